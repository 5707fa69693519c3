// Sizes that types leave open are checked when the program runs.
// RUN: not flash-run --target=cpu %s --shape=0=1x2x16x8 --shape=1=1x2x16x8 --shape=2=1x2x17x8 2>&1 | FileCheck %s
// CHECK: flash-run: error: flash.attention at {{.*}}shapes-at-run-time.mlir:6:8: lengths of key and value differ
func.func @attention(%q: tensor<?x?x?x8xf32>, %k: tensor<?x?x?x8xf32>, %v: tensor<?x?x?x8xf32>) -> tensor<?x?x?x8xf32> {
  // The op below is the one that is named.
  %o = flash.attention %q, %k, %v : (tensor<?x?x?x8xf32>, tensor<?x?x?x8xf32>, tensor<?x?x?x8xf32>) -> tensor<?x?x?x8xf32>
  return %o : tensor<?x?x?x8xf32>
}
