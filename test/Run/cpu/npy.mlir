// Every element type through a file and back; the arguments are the results.
// bf16 is read from its bits or rounded from f32 (0x3f808001 rounds up).
// RUN: %python %S/Inputs/npy.py make %t.f16.npy "<f2" 2 003c01fc
// RUN: %python %S/Inputs/npy.py make %t.bf16.npy "<u2" 2 803f01ff
// RUN: %python %S/Inputs/npy.py make %t.f32.npy "<f4" 2 0180803f0080803f
// RUN: %python %S/Inputs/npy.py make %t.i32.npy "<i4" 2 ffffffff01000000
// RUN: flash-run --target=cpu %s --inputs=%t.f16.npy,%t.bf16.npy,%t.f32.npy,%t.f32.npy,%t.i32.npy --outputs=%t.0,%t.1,%t.2,%t.3,%t.4
// RUN: %python %S/Inputs/npy.py show %t.0 | FileCheck %s --check-prefix=F16
// RUN: %python %S/Inputs/npy.py show %t.1 | FileCheck %s --check-prefix=BF16
// RUN: %python %S/Inputs/npy.py show %t.2 | FileCheck %s --check-prefix=ROUNDED
// RUN: %python %S/Inputs/npy.py show %t.3 | FileCheck %s --check-prefix=F32
// RUN: %python %S/Inputs/npy.py show %t.4 | FileCheck %s --check-prefix=I32
// F16: <f2 False (2,) 003c01fc
// BF16: <u2 False (2,) 803f01ff
// ROUNDED: <u2 False (2,) 813f803f
// F32: <f4 False (2,) 0180803f0080803f
// I32: <i4 False (2,) ffffffff01000000

// The same seed gives the same inputs on every machine.
// RUN: flash-run --target=cpu %s --seed=42 --outputs=%t.0,%t.1,%t.2,%t.3,%t.4
// RUN: %python %S/Inputs/npy.py show %t.3 | FileCheck %s --check-prefix=RANDOM
// RANDOM: <f4 False (2,) 4874bd3f8df3a3be
func.func @f(%a: tensor<2xf16>, %b: tensor<2xbf16>, %c: tensor<2xbf16>, %d: tensor<2xf32>, %e: tensor<2xi32>)
    -> (tensor<2xf16>, tensor<2xbf16>, tensor<2xbf16>, tensor<2xf32>, tensor<2xi32>) {
  return %a, %b, %c, %d, %e : tensor<2xf16>, tensor<2xbf16>, tensor<2xbf16>, tensor<2xf32>, tensor<2xi32>
}
