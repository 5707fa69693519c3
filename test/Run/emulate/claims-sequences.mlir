// Blocks claim the tiles of packed rows, by a count of their own: one thread finds the sequence of a tile for all warps. The same bits
// as of blocks that have one tile each, of sequences without queries or keys, and of rows of no sequence, which are filled.
// DEFINE: %{run} = flash-run %s --function=packed --target=emulate:sm_90a --seed=12 --shape 0=1x2x700x64 --shape 1=1x2x700x64 --shape 2=1x2x700x64 --fill 3=37@0 --fill 3=37@1 --fill 3=300@2 --fill 3=301@3 --fill 3=530@4
// RUN: %{run} --check --schedule='features=specialize_warps|overlap|ping_pong|bulk_store|persistent|claim_tiles' --outputs=%t-a0.npy,%t-a1.npy
// RUN: %{run} --check --schedule='features=specialize_warps|overlap|ping_pong|bulk_store' --outputs=%t-b0.npy,%t-b1.npy
// RUN: cmp %t-a0.npy %t-b0.npy
// RUN: cmp %t-a1.npy %t-b1.npy
// Warpgroups without rows change nothing, and not where something is not finite.
// RUN: %{run} --check --schedule='features=specialize_warps|overlap|ping_pong|bulk_store|persistent|claim_tiles|skip_rows' --outputs=%t-s0.npy,%t-s1.npy
// RUN: cmp %t-s0.npy %t-b0.npy
// RUN: cmp %t-s1.npy %t-b1.npy
// RUN: %{run} --check --schedule='features=specialize_warps|overlap|ping_pong|bulk_store|persistent|claim_tiles|skip_rows' --fill 2=inf@40 --fill 1=nan@301
// RUN: flash-run %s --function=packed --target=cpu,emulate --shape 0=1x2x70x64 --shape 1=1x2x70x64 --shape 2=1x2x70x64 --fill 3=37@1 --fill 3=40@2 --fill 3=40@3 --fill 3=60@4 --check

// Memory is for results and the count alone.
// RUN: flash-run %s --function=packed --target=sm_90a --dump=l2 --shape 0=1x2x70x64 --shape 1=1x2x70x64 --shape 2=1x2x70x64 --fill 3=37@1 --fill 3=40@2 --fill 3=40@3 --fill 3=60@4 --schedule='features=specialize_warps|persistent|claim_tiles' | FileCheck %s --check-prefix=MEMORY
// MEMORY-COUNT-3: memref.alloc(
// MEMORY-NOT: {{memref.alloc|tensor.empty}}

// Gradients, too, and each of the three results has its gaps filled.
// DEFINE: %{grad} = flash-run %s --function=grad --seed=13 --shape 0=1x2x300x64 --shape 1=1x2x300x64 --shape 2=1x2x300x64 --shape 3=1x2x300x64 --shape 4=1x2x300 --shape 5=1x2x300x64 --fill 6=7@0 --fill 6=7@1 --fill 6=150@2 --fill 6=151@3 --fill 6=290@4
// RUN: %{grad} --target=cpu --check
// RUN: %{grad} --target=emulate --check
// RUN: %{grad} --target=emulate:sm_90a --check --schedule='products=5,features=specialize_warps|bulk_store|persistent|claim_tiles' --outputs=%t-c0.npy,%t-c1.npy,%t-c2.npy
// RUN: %{grad} --target=emulate:sm_90a --check --schedule='products=5,features=specialize_warps|bulk_store' --outputs=%t-d0.npy,%t-d1.npy,%t-d2.npy
// RUN: cmp %t-c0.npy %t-d0.npy
// RUN: cmp %t-c1.npy %t-d1.npy
// RUN: cmp %t-c2.npy %t-d2.npy
// On one multiprocessor the heads of each sequence follow each other.
// RUN: %{grad} --target=emulate:sm_90a --multiprocessors=1 --check --schedule='products=5,features=specialize_warps|bulk_store|persistent|claim_tiles' --outputs=%t-e0.npy,%t-e1.npy,%t-e2.npy
// RUN: cmp %t-e0.npy %t-d0.npy
// RUN: cmp %t-e1.npy %t-d1.npy
// RUN: cmp %t-e2.npy %t-d2.npy
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

func.func @grad(%q: !x, %k: !x, %v: !x, %o: !x, %lse: !lse, %do: !x, %offsets: tensor<5xi32>) -> (!x, !x, !x) {
  %c2 = arith.constant 2 : index
  %qs, %n = flash.unpack %q by %offsets : !x, tensor<5xi32> -> !xs, tensor<4xi32>
  %ks, %nk = flash.unpack %k by %offsets : !x, tensor<5xi32> -> !xs, tensor<4xi32>
  %vs, %nv = flash.unpack %v by %offsets : !x, tensor<5xi32> -> !xs, tensor<4xi32>
  %os, %no = flash.unpack %o by %offsets : !x, tensor<5xi32> -> !xs, tensor<4xi32>
  %dos, %ndo = flash.unpack %do by %offsets : !x, tensor<5xi32> -> !xs, tensor<4xi32>
  %ls, %nl = flash.unpack %lse by %offsets : !lse, tensor<5xi32> -> !lses, tensor<4xi32>
  %dqs, %dks, %dvs = flash.attention_grad %qs, %ks, %vs, %os, %ls, %dos mask(#flash.causal) query_lengths(%n : tensor<4xi32>) key_lengths(%n : tensor<4xi32>)
      : (!xs, !xs, !xs, !xs, !lses, !xs) -> (!xs, !xs, !xs)
  %t = tensor.dim %q, %c2 : !x
  %zero = arith.constant 0.0 : bf16
  %empty = tensor.empty(%t) : !x
  %zeros = linalg.fill ins(%zero : bf16) outs(%empty : !x) -> !x
  %dq = flash.pack %dqs by %offsets into %zeros : !xs, tensor<5xi32> into !x
  %dk = flash.pack %dks by %offsets into %zeros : !xs, tensor<5xi32> into !x
  %dv = flash.pack %dvs by %offsets into %zeros : !xs, tensor<5xi32> into !x
  return %dq, %dk, %dv : !x, !x, !x
}
