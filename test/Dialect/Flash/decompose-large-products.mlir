// Products beyond 2^31 in f32, whose maximum times log2(e) has a rounding beyond the range of exp2.
// RUN: %python -c "import numpy as np; r = np.random.default_rng(0); [np.save(f'%t.{x}.npy', c * r.standard_normal((1, 2, n, 16)).astype(np.float32)) for x, n, c in (('q', 37, np.float32(1e5)), ('k', 50, np.float32(1e5)), ('v', 50, np.float32(1)))]; np.save('%t.b.npy', np.zeros((37, 50)))"
// RUN: flash-run %s --target=cpu --inputs=%t.q.npy,%t.k.npy,%t.v.npy --outputs=%t.cpu.npy,%t.cpu-lse.npy
// RUN: flash-run %s --target=emulate --inputs=%t.q.npy,%t.k.npy,%t.v.npy --outputs=%t.sm80.npy,%t.sm80-lse.npy
// RUN: flash-run %s --target=emulate --schedule="query_tile=16,key_tile=16,split_keys=16" --inputs=%t.q.npy,%t.k.npy,%t.v.npy --outputs=%t.splits.npy,%t.splits-lse.npy
// RUN: flash-run %s --target=emulate:sm_90a --inputs=%t.q.npy,%t.k.npy,%t.v.npy --outputs=%t.sm90.npy,%t.sm90-lse.npy
// RUN: %python %S/Inputs/large.py %t 1e-4 cpu sm80 splits sm90
!q = tensor<1x2x37x16xf32>
!k = tensor<1x2x50x16xf32>
func.func @attention(%q: !q, %k: !k, %v: !k) -> (!q, tensor<1x2x37xf32>) {
  %o, %l = flash.attention %q, %k, %v : (!q, !k, !k) -> (!q, tensor<1x2x37xf32>)
  return %o, %l : !q, tensor<1x2x37xf32>
}
