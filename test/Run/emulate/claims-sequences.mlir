// Blocks claim the tiles of packed rows, by a count of their own: one thread finds the sequence of a tile for all warps. The same bits
// as of blocks that have one tile each, of sequences without queries or keys, and of rows of no sequence, which are filled.
// DEFINE: %{run} = flash-run %s --target=emulate:sm_90a --seed=12 --shape 0=1x2x700x64 --shape 1=1x2x700x64 --shape 2=1x2x700x64 --fill 3=37@0 --fill 3=37@1 --fill 3=300@2 --fill 3=301@3 --fill 3=530@4
// RUN: %{run} --check --schedule='features=specialize_warps|overlap|ping_pong|bulk_store|persistent|claim_tiles' --outputs=%t-a0.npy,%t-a1.npy
// RUN: %{run} --check --schedule='features=specialize_warps|overlap|ping_pong|bulk_store' --outputs=%t-b0.npy,%t-b1.npy
// RUN: cmp %t-a0.npy %t-b0.npy
// RUN: cmp %t-a1.npy %t-b1.npy
// RUN: flash-run %s --target=cpu --shape 0=1x2x70x64 --shape 1=1x2x70x64 --shape 2=1x2x70x64 --fill 3=37@1 --fill 3=40@2 --fill 3=40@3 --fill 3=60@4 --check
// RUN: flash-run %s --target=emulate --shape 0=1x2x70x64 --shape 1=1x2x70x64 --shape 2=1x2x70x64 --fill 3=37@1 --fill 3=40@2 --fill 3=40@3 --fill 3=60@4 --check
!x = tensor<1x2x?x64xbf16>
!xs = tensor<4x2x?x64xbf16>
!lse = tensor<1x2x?xf32>
!lses = tensor<4x2x?xf32>
func.func @packed(%q: !x, %k: !x, %v: !x, %offsets: tensor<5xi32>) -> (!x, !lse) {
  %c2 = arith.constant 2 : index
  %qs, %n = flash.unpack %q by %offsets : !x, tensor<5xi32> -> !xs, tensor<4xi32>
  %ks, %nk = flash.unpack %k by %offsets : !x, tensor<5xi32> -> !xs, tensor<4xi32>
  %vs, %nv = flash.unpack %v by %offsets : !x, tensor<5xi32> -> !xs, tensor<4xi32>
  %os, %ls = flash.attention %qs, %ks, %vs mask(#flash.causal) query_lengths(%n : tensor<4xi32>) key_lengths(%n : tensor<4xi32>) : (!xs, !xs, !xs) -> (!xs, !lses)
  %t = tensor.dim %q, %c2 : !x
  %zero = arith.constant 0.0 : bf16
  %emptyO = tensor.empty(%t) : !x
  %zeros = linalg.fill ins(%zero : bf16) outs(%emptyO : !x) -> !x
  %o = flash.pack %os by %offsets into %zeros : !xs, tensor<5xi32> into !x
  %none = arith.constant 0xFF800000 : f32
  %emptyLse = tensor.empty(%t) : !lse
  %nones = linalg.fill ins(%none : f32) outs(%emptyLse : !lse) -> !lse
  %lse = flash.pack %ls by %offsets into %nones : !lses, tensor<5xi32> into !lse
  return %o, %lse : !x, !lse
}
