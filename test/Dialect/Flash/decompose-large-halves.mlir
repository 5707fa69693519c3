// Products whose maximum times log2(e) has a rounding beyond the range of f16's exponentials, in roles.
// RUN: %python -c "import numpy as np; r = np.random.default_rng(0); [np.save(f'%t.{x}.npy', (c * r.standard_normal((1, 2, n, 64))).astype(np.float16)) for x, n, c in (('q', 96, 1.2e4), ('k', 200, 1.2e4), ('v', 200, 1))]; np.save('%t.b.npy', np.zeros((96, 200)))"
// RUN: flash-run %s --target=emulate:sm_90a --inputs=%t.q.npy,%t.k.npy,%t.v.npy --outputs=%t.sm90.npy,%t.sm90-lse.npy
// RUN: flash-run %s --target=emulate:sm_90a --schedule="query_tile=64,key_tile=64,features=specialize_warps" --inputs=%t.q.npy,%t.k.npy,%t.v.npy --outputs=%t.plain.npy,%t.plain-lse.npy
// RUN: flash-run %s --target=cpu --inputs=%t.q.npy,%t.k.npy,%t.v.npy --outputs=%t.cpu.npy,%t.cpu-lse.npy
// RUN: %python %S/Inputs/large.py %t 2e-3 sm90 plain cpu
!q = tensor<1x2x96x64xf16>
!k = tensor<1x2x200x64xf16>
func.func @attention(%q: !q, %k: !k, %v: !k) -> (!q, tensor<1x2x96xf32>) {
  %o, %l = flash.attention %q, %k, %v : (!q, !k, !k) -> (!q, tensor<1x2x96xf32>)
  return %o, %l : !q, tensor<1x2x96xf32>
}
