// Rows of which each score is near the ends of f32 are the mean of the values, and others are as they would be alone.
// RUN: %python -c "import numpy as np; r = np.random.default_rng(0); [np.save(f'%t.{x}.npy', r.standard_normal((1, 2, n, 16)).astype(np.float32)) for x, n in (('q', 37), ('k', 50), ('v', 50))]; b = np.zeros((37, 50), np.float32); b[:, 40:] = np.finfo(np.float32).min; b[5:9] = np.finfo(np.float32).min; b[20] = 3e38; b[36] = -2.4e38; b[30, ::2] = -1e37; b[31, 1] = 1e37; np.save('%t.b.npy', b)"
// RUN: flash-run %s --target=cpu --inputs=%t.q.npy,%t.k.npy,%t.v.npy,%t.b.npy --outputs=%t.cpu.npy,%t.cpu-lse.npy
// RUN: flash-run %s --target=emulate --inputs=%t.q.npy,%t.k.npy,%t.v.npy,%t.b.npy --outputs=%t.sm80.npy,%t.sm80-lse.npy
// RUN: flash-run %s --target=emulate:sm_90a --inputs=%t.q.npy,%t.k.npy,%t.v.npy,%t.b.npy --outputs=%t.sm90.npy,%t.sm90-lse.npy
// RUN: %python %S/Inputs/large.py %t 1e-4 cpu sm80 sm90
!q = tensor<1x2x37x16xf32>
!k = tensor<1x2x50x16xf32>
func.func @attention(%q: !q, %k: !k, %v: !k, %bias: tensor<37x50xf32>) -> (!q, tensor<1x2x37xf32>) {
  %o, %l = flash.attention %q, %k, %v score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %bias[%i, %j] : tensor<37x50xf32>
    %y = arith.addf %s, %x : f32
    flash.yield %y : f32
  } : (!q, !k, !k) -> (!q, tensor<1x2x37xf32>)
  return %o, %l : !q, tensor<1x2x37xf32>
}
