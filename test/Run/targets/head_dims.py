"""Compiles an attention and its gradients for a GPU target, at every head dimension from 8 to 256."""
import subprocess
import sys

SIZES = "tensor<?x?x?x{d}x{element}>"
PROGRAM = """
func.func @forward(%q: {t}, %k: {t}, %v: {t}) -> {t} {{
  %o = flash.attention %q, %k, %v : ({t}, {t}, {t}) -> {t}
  return %o : {t}
}}
func.func @backward(%q: {t}, %k: {t}, %v: {t}, %o: {t}, %l: {l}, %do: {t}) -> ({t}, {t}, {t}) {{
  %dq, %dk, %dv = flash.attention_grad %q, %k, %v, %o, %l, %do : ({t}, {t}, {t}, {t}, {l}, {t}) -> ({t}, {t}, {t})
  return %dq, %dk, %dv : {t}, {t}, {t}
}}
"""

bad = 0
for d in range(8, 257, 8):
    element = ("f16", "f32", "bf16")[d // 8 % 3] if sys.argv[1] == "sm_80" else "f16"
    text = PROGRAM.format(t=SIZES.format(d=d, element=element), l="tensor<?x?x?xf32>")
    for function in ("forward", "backward"):
        done = subprocess.run(["flash-run", "-", f"--function={function}", f"--target={sys.argv[1]}", "--dump=ptx"],
                              input=text, capture_output=True, text=True)
        if done.returncode or ".entry" not in done.stdout:
            bad += 1
            print(f"{function}, D = {d}, {element}: {done.stderr[:500]}")
print(f"{bad} of 64 do not compile")
sys.exit(bad > 0)
