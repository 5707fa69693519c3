// Rows of 16 bits whose scores are -1e9 to -1e12, as padding has, whose output nobody uses: their probabilities are 0 rather than
// infinite, which would make the gradients of all keys NaN.
// RUN: %python -c "import numpy as np; r = np.random.default_rng(0); [np.save(f'%t.{x}.npy', r.standard_normal((1, 2, n, 16)).astype(np.float16)) for x, n in (('q', 37), ('k', 50), ('v', 50))]; b = np.zeros((37, 50), np.float32); b[5:20] = -np.logspace(9, 12, 15)[:, None]; np.save('%t.b.npy', b); g = r.standard_normal((1, 2, 37, 16)).astype(np.float16); g[:, :, 5:20] = 0; np.save('%t.g.npy', g)"
// RUN: flash-run %s --target=cpu --inputs=%t.q.npy,%t.k.npy,%t.v.npy,%t.b.npy,%t.g.npy --outputs=%t.cpu-dq.npy,%t.cpu-dk.npy,%t.cpu-dv.npy
// RUN: flash-run %s --target=emulate --inputs=%t.q.npy,%t.k.npy,%t.v.npy,%t.b.npy,%t.g.npy --outputs=%t.sm80-dq.npy,%t.sm80-dk.npy,%t.sm80-dv.npy
// RUN: flash-run %s --target=emulate:sm_90a --inputs=%t.q.npy,%t.k.npy,%t.v.npy,%t.b.npy,%t.g.npy --outputs=%t.sm90-dq.npy,%t.sm90-dk.npy,%t.sm90-dv.npy
// RUN: %python %S/Inputs/large_grad.py %t 1e-2 cpu sm80 sm90
!q = tensor<1x2x37x16xf16>
!k = tensor<1x2x50x16xf16>
!l = tensor<1x2x37xf32>
func.func @gradients(%q: !q, %k: !k, %v: !k, %bias: tensor<37x50xf32>, %do: !q) -> (!q, !k, !k) {
  %o, %l = flash.attention %q, %k, %v score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %bias[%i, %j] : tensor<37x50xf32>
    %y = arith.addf %s, %x : f32
    flash.yield %y : f32
  } : (!q, !k, !k) -> (!q, !l)
  %dq, %dk, %dv = flash.attention_grad %q, %k, %v, %o, %l, %do score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %bias[%i, %j] : tensor<37x50xf32>
    %y = arith.addf %s, %x : f32
    flash.yield %y : f32
  } : (!q, !k, !k, !q, !l, !q) -> (!q, !k, !k)
  return %dq, %dk, %dv : !q, !k, !k
}
