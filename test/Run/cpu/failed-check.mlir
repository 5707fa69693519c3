// A wrong result is found: f32 addition loses what f64 keeps. The report is
// written, the results are not.
// RUN: rm -f %t.npy %t.json
// RUN: %python %S/Inputs/npy.py make %t.a.npy "<f4" 2 0000803f0000803f
// RUN: %python %S/Inputs/npy.py make %t.b.npy "<f4" 2 0000803300000000
// RUN: not flash-run --target=cpu %s --check --inputs=%t.a.npy,%t.b.npy --outputs=%t.npy --json=%t.json | FileCheck %s
// RUN: not ls %t.npy
// RUN: FileCheck %s --check-prefix=JSON --input-file=%t.json
// CHECK: check: FAILED {{.*}}(tolerance 1e-06)  first bad index [0]: got 0, expected 5.96046448e-08
// JSON: "first_bad": {
// JSON: "ok": false
func.func @f(%a: tensor<2xf32>, %b: tensor<2xf32>) -> tensor<2xf32> {
  %c = arith.addf %a, %b : tensor<2xf32>
  %d = arith.subf %c, %a : tensor<2xf32>
  return %d : tensor<2xf32>
}
