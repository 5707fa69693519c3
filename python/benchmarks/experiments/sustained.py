"""Speed when kernels run for seconds, and the energy that it takes."""
import peers as peers_module
import programs
from energy import EnergyCounter, sustain
from results import Result, Table

# D, heads, N, mask: 16k tokens of hidden size 2048.
CASES = [(64, 32, 4096, "full"), (128, 16, 4096, "full"), (128, 16, 16384, "causal"), (256, 8, 4096, "full")]
GRADIENTS = [(64, 32, 4096, "full"), (64, 32, 4096, "causal"), (128, 16, 4096, "full"), (128, 16, 4096, "causal"), (256, 8, 4096, "full")]
TOKENS = 16384
DTYPE, GRADIENT_DTYPE = "f16", "bf16"


def list_calls(bench, shape, mask):
    """What is timed, by name; what is not there is left out."""
    causal = mask == "causal"
    tensors = bench.peers.tensors(bench.flash.arrays.qkv(shape, DTYPE))
    flash = bench.peers.modules.get("Python")
    calls = {}
    if flash:
        kernel = flash.compile(programs.attention(shape, DTYPE, programs.CAUSAL if causal else None), target=bench.target)
        calls["flash-mlir"] = lambda: kernel(*tensors)
    calls["cuDNN"] = bench.peers.sdpa_call("cuDNN", tensors, causal)
    for name in peers_module.MODULES:
        calls[name] = bench.peers.call(name, tensors, causal)
    return {name: call for name, call in calls.items() if call}


def list_gradients(bench, shape, mask):
    tensors = [bench.peers.normal(shape, GRADIENT_DTYPE) for _ in range(4)]
    calls = {name: bench.peers.backward(name, tensors, mask == "causal")
             for name in ("Python", "cuDNN", "FA4", peers_module.DETERMINISTIC)}
    return {name: call for name, call in calls.items() if call}


def measure(bench, energy, label, cases, list_of, factor):
    """A row for each call of each case, whose work is that of the forward times `factor`."""
    torch, rows = peers_module.torch, []
    for dim, heads, length, mask in cases:
        shape = (TOKENS // length, heads, length, dim)
        teraflop = factor * 1e-12 * programs.count_flops(shape, mask)
        calls = list_of(bench, shape, mask)
        for name, call in calls.items():
            try:
                with torch.no_grad():
                    seconds, joules = sustain(call, torch.cuda.synchronize, bench.sustained_seconds, energy)
            except Exception as error:  # A backend that refuses.
                bench.say(f"  {name}: {peers_module.describe(error)}")
                continue
            rows.append([label, dim, mask, length, name, teraflop / seconds, joules and joules / teraflop, joules and joules / seconds])
        del calls
        bench.peers.release()
    return rows


def run(bench):
    result = Result(f"Sustained speed, {DTYPE} and gradients in {GRADIENT_DTYPE}, {TOKENS} tokens, hidden size 2048",
                    f"Each kernel runs without a pause for {bench.sustained_seconds:.3g} s; of the second half, TFLOP/s, and joules "
                    "for each TFLOP by the energy counter of the GPU, all of whose parts it counts.")
    if not bench.gpu or not bench.peers.here:
        result.notes.append("Needs an NVIDIA GPU and PyTorch.")
        return result
    torch = peers_module.torch
    try:
        energy = EnergyCounter(str(getattr(torch.cuda.get_device_properties(0), "uuid", "")))
    except OSError as error:
        energy = None
        result.notes.append(f"No energy: {error}.")
    rows = measure(bench, energy, "forward", CASES, list_calls, 1)
    rows += measure(bench, energy, "gradients", GRADIENTS, list_gradients, programs.GRADIENT_PRODUCTS)
    result.tables.append(Table(["pass", "D", "mask", "N", "kernel", "TFLOP/s", "J/TFLOP", "W"], rows))
    result.notes += [f"Not found: {each}." for each in bench.peers.missing]
    return result
