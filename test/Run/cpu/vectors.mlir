// A program may have vectors of its own, of all operations that upstream converts.
// RUN: flash-run %s --target=cpu,emulate --check

!t = tensor<1x1x16x16xf32>
func.func @f(%q: !t, %k: !t, %v: !t, %x: tensor<16xf32>) -> (!t, tensor<16xf32>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %r = vector.transfer_read %x[%c0], %zero {in_bounds = [true]} : tensor<16xf32>, vector<16xf32>
  %s = math.exp %r : vector<16xf32>
  %y = vector.transfer_write %s, %x[%c0] {in_bounds = [true]} : vector<16xf32>, tensor<16xf32>
  %o = flash.attention %q, %k, %v : (!t, !t, !t) -> !t
  return %o, %y : !t, tensor<16xf32>
}
