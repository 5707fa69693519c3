// Numbers of f32 rounded to f8E4M3FN, all of f16 and others, as numpy rounds them: to the nearest, ties to even, and to 448 at most.
// RUN: rm -rf %t && mkdir %t && %python %S/Inputs/e4m3.py write %t/x.npy
// RUN: flash-run %s --target=cpu --inputs=%t/x.npy --outputs=%t/y.npy
// RUN: %python %S/Inputs/e4m3.py compare %t/x.npy %t/y.npy
func.func @round(%x: tensor<?xf32>) -> tensor<?xf8E4M3FN> {
  %r = arith.truncf %x : tensor<?xf32> to tensor<?xf8E4M3FN>
  return %r : tensor<?xf8E4M3FN>
}
