// Rows of finfo.min, as padding has, whose output nobody uses: they add nothing to gradients, though their log-sum-exp times
// log2(e) is beyond f32.
// RUN: %python -c "import numpy as np; r = np.random.default_rng(0); [np.save(f'%t.{x}.npy', r.standard_normal((1, 2, n, 16)).astype(np.float32)) for x, n in (('q', 37), ('k', 50), ('v', 50))]; b = np.zeros((37, 50), np.float32); b[:, 40:] = np.finfo(np.float32).min; b[5:9] = np.finfo(np.float32).min; b[20] = 3e38; np.save('%t.b.npy', b); g = r.standard_normal((1, 2, 37, 16)).astype(np.float32); g[:, :, 5:9] = 0; g[:, :, 20] = 0; np.save('%t.g.npy', g)"
// RUN: flash-run %s --target=cpu --inputs=%t.q.npy,%t.k.npy,%t.v.npy,%t.b.npy,%t.g.npy --outputs=%t.cpu-dq.npy,%t.cpu-dk.npy,%t.cpu-dv.npy
// RUN: flash-run %s --target=emulate --inputs=%t.q.npy,%t.k.npy,%t.v.npy,%t.b.npy,%t.g.npy --outputs=%t.sm80-dq.npy,%t.sm80-dk.npy,%t.sm80-dv.npy
// RUN: %python %S/Inputs/large_grad.py %t 1e-4 cpu sm80
!q = tensor<1x2x37x16xf32>
!k = tensor<1x2x50x16xf32>
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
