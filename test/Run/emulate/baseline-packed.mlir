// The naive program has no kernels of batches with lengths of their own; the line says so, and the program's figures stay.
// RUN: flash-run %s --target=emulate --shape 0=1x2x50x16 --shape 1=4 --check --baseline --bench-seconds=0.01 | FileCheck %s
// RUN: flash-run %s --target=cpu --shape 0=1x2x50x16 --shape 1=4 --check --baseline --bench-seconds=0.01 | FileCheck %s --check-prefix=CPU
// CHECK: check: ok
// CHECK-NEXT: bench:
// CHECK: baseline: none, kernels of the naive program take no batches of different lengths (query_lengths, key_lengths, packed rows); its program for the CPU does (--target=cpu)
// CPU: baseline check: ok

!m = tensor<1x2x?x16xf32>
!v = tensor<?x2x?x16xf32>
!w = tensor<?x2x?xf32>
func.func @gradient(%q: !m, %offsets: tensor<?xi32>) -> !m {
  %qs, %n = flash.unpack %q by %offsets : !m, tensor<?xi32> -> !v, tensor<?xi32>
  %r, %lse = flash.attention %qs, %qs, %qs query_lengths(%n : tensor<?xi32>) key_lengths(%n : tensor<?xi32>) : (!v, !v, !v) -> (!v, !w)
  %dq, %dk, %dv = flash.attention_grad %qs, %qs, %qs, %r, %lse, %qs query_lengths(%n : tensor<?xi32>) key_lengths(%n : tensor<?xi32>) : (!v, !v, !v, !v, !w, !v) -> (!v, !v, !v)
  %c2 = arith.constant 2 : index
  %rows = tensor.dim %q, %c2 : !m
  %empty = tensor.empty(%rows) : !m
  %packed = flash.pack %dq by %offsets into %empty : !v, tensor<?xi32> into !m
  return %packed : !m
}
