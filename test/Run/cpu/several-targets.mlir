// Several targets, each of which is compared with the one reference.
// RUN: flash-run %s --target=cpu,emulate,emulate:sm_90a --check --shape=1=1x1x30x16 | FileCheck %s
// CHECK:      cpu check: ok
// CHECK-NEXT: emulate check: ok
// CHECK-NEXT: emulate:sm_90a check: ok

// A wrong result on one is found, and the others run.
// RUN: %python %S/Inputs/npy.py make %t.a.npy "<f4" 2 0000803f0000803f
// RUN: %python %S/Inputs/npy.py make %t.b.npy "<f4" 2 0000803300000000
// RUN: not flash-run --target=cpu,cpu %S/failed-check.mlir --check --inputs=%t.a.npy,%t.b.npy | FileCheck %s --check-prefix=WRONG
// WRONG: cpu check: FAILED
// WRONG: cpu check: FAILED

// Cases share a reference only if they have its inputs, too.
// RUN: echo "%s --check --shape=1=1x1x30x16 --target=cpu" > %t.suite
// RUN: echo "%s --check --shape=1=1x1x30x16 --target=emulate --schedule=query_tile=32" >> %t.suite
// RUN: echo "%s --check --shape=1=1x1x30x16 --target=cpu --seed=1" >> %t.suite
// RUN: echo "%s --check --shape=1=1x1x30x16 --target=cpu --seed=1 --fill=0=2" >> %t.suite
// RUN: echo "%s --check --shape=1=1x1x30x16 --target=cpu --seed=1 --fill=0=x2" >> %t.suite
// RUN: echo "%s --check --shape=1=1x1x30x16 --target=cpu --seed=1 --fill=0=2@3" >> %t.suite
// RUN: echo "%s --check --shape=1=1x1x40x16 --target=cpu --seed=1 --fill=0=2@3" >> %t.suite
// RUN: flash-run --suite=%t.suite | FileCheck %s --check-prefix=SUITE
// SUITE: suite: 7 of 7 cases ok
// RUN: echo "%s --check --shape=1=1x1x30x16 --target=cpu,emulate" > %t.suite
// RUN: not flash-run --suite=%t.suite | FileCheck %s --check-prefix=LINES
// LINES: a case of a suite has one target; write a line for each

func.func @f(%q: tensor<1x1x20x16xf16>, %k: tensor<1x1x?x16xf16>) -> tensor<1x1x20x16xf16> {
  %o = flash.attention %q, %k, %k : (tensor<1x1x20x16xf16>, tensor<1x1x?x16xf16>, tensor<1x1x?x16xf16>) -> tensor<1x1x20x16xf16>
  return %o : tensor<1x1x20x16xf16>
}
