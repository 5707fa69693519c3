// The naive kernels, checked and timed beside the fused one, in types in which
// they round the scores.
// RUN: sed 's/TYPE/f16/g' %s > %t-f16.mlir
// RUN: sed 's/TYPE/bf16/g' %s > %t-bf16.mlir
// RUN: sed 's/TYPE/f32/g' %s > %t-f32.mlir
// DEFINE: %{flags} = --target=emulate --check --baseline --shape 0=2x4x70x32 --shape 1=2x2x131x32 --shape 2=2x2x131x24
// RUN: flash-run %t-f16.mlir %{flags} --json=%t.json | FileCheck %s
// RUN: flash-run %t-bf16.mlir %{flags} | FileCheck %s
// RUN: flash-run %t-f32.mlir %{flags} | FileCheck %s
// RUN: FileCheck %s --check-prefix=JSON --input-file=%t.json
// CHECK: {{^}}check: ok
// CHECK: baseline check: ok {{.*}} worst of 2 results
// CHECK: baseline: {{.*}} KB beyond inputs and results (speed-up
// JSON:      "baseline": {
// JSON-NEXT:   "check": {
// JSON:          "ok": true
// JSON:      "target": "emulate"
!q = tensor<?x?x?x32xTYPE>
!v = tensor<?x?x?x24xTYPE>
func.func @attention(%q: !q, %k: !q, %v: !v) -> (!v, tensor<?x?x?xf32>) {
  %o, %l = flash.attention %q, %k, %v mask(#flash.causal) : (!q, !q, !v) -> (!v, tensor<?x?x?xf32>)
  return %o, %l : !v, tensor<?x?x?xf32>
}
