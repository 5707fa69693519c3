// Gradients in f32 of rows whose products are 1e9 to 1e12: the probability of the maximum is 1, though the log-sum-exp in units of
// log2 is off by more than exponents hold. Values and gradients are small integers, so that the other gradients are exactly 0.
// RUN: %python -c "import numpy as np; r = np.random.default_rng(0); [np.save(f'%t.{x}.npy', c * r.standard_normal((1, 2, n, 40)).astype(np.float32)) for x, n, c in (('q', 37, np.logspace(4, 7, 37, dtype=np.float32)[:, None]), ('k', 50, np.float32(1e5)))]; [np.save(f'%t.{x}.npy', r.integers(-8, 9, (1, 2, n, 40)).astype(np.float32)) for x, n in (('v', 50), ('g', 37))]; np.save('%t.b.npy', np.zeros((37, 50)))"
// RUN: flash-run %s --target=cpu --inputs=%t.q.npy,%t.k.npy,%t.v.npy,%t.g.npy --outputs=%t.cpu-dq.npy,%t.cpu-dk.npy,%t.cpu-dv.npy
// RUN: flash-run %s --target=emulate --inputs=%t.q.npy,%t.k.npy,%t.v.npy,%t.g.npy --outputs=%t.sm80-dq.npy,%t.sm80-dk.npy,%t.sm80-dv.npy
// RUN: flash-run %s --target=emulate:sm_90a --inputs=%t.q.npy,%t.k.npy,%t.v.npy,%t.g.npy --outputs=%t.sm90-dq.npy,%t.sm90-dk.npy,%t.sm90-dv.npy
// RUN: %python %S/Inputs/large_grad.py %t 1e-4 cpu sm80 sm90
!q = tensor<1x2x37x40xf32>
!k = tensor<1x2x50x40xf32>
!l = tensor<1x2x37xf32>
func.func @gradients(%q: !q, %k: !k, %v: !k, %do: !q) -> (!q, !k, !k) {
  %o, %l = flash.attention %q, %k, %v : (!q, !k, !k) -> (!q, !l)
  %dq, %dk, %dv = flash.attention_grad %q, %k, %v, %o, %l, %do : (!q, !k, !k, !q, !l, !q) -> (!q, !k, !k)
  return %dq, %dk, %dv : !q, !k, !k
}
