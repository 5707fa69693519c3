// With precision(tf32) the block programs round and have the tolerance of f16,
// the log-sum-exp too; the naive program and the CPU compute in f32 all the same.
// RUN: flash-run %s --target=emulate --check --baseline --shape 0=2x4x70x32 --shape 1=2x2x131x32 --shape 2=2x2x131x24 \
// RUN:   | FileCheck %s --check-prefixes=TF32,BASELINE
// RUN: flash-run %s --target=cpu --check --shape 0=2x4x70x32 --shape 1=2x2x131x32 --shape 2=2x2x131x24 \
// RUN:   | FileCheck %s --check-prefix=F32
// TF32: {{^}}check: ok {{.*}} rms 0.000{{[0-9]+}} {{.*}}(tolerance 0.001)
// BASELINE: baseline check: ok {{.*}} (tolerance 1e-06)
// F32: {{^}}check: ok {{.*}} (tolerance 1e-06)
!q = tensor<?x?x?x32xf32>
!v = tensor<?x?x?x24xf32>
func.func @attention(%q: !q, %k: !q, %v: !v) -> (!v, tensor<?x?x?xf32>) {
  %o, %l = flash.attention %q, %k, %v mask(#flash.causal) precision(tf32) : (!q, !q, !v) -> (!v, tensor<?x?x?xf32>)
  return %o, %l : !v, tensor<?x?x?xf32>
}
