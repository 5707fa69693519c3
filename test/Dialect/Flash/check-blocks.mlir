// RUN: flash-opt %s --flash-check-blocks | FileCheck %s --check-prefix=WRITE
// RUN: flash-opt %s --flash-check-blocks --flash-assert-reads | FileCheck %s --check-prefix=ASSERT
// RUN: flash-opt %s --flash-check-blocks --flash-assert-reads=only-blocks | FileCheck %s --check-prefixes=ASSERT,ONLY
// RUN: not flash-opt %s --flash-check-blocks --flash-gpu=target=sm_90a 2>&1 | FileCheck %s --check-prefix=GPU
// ONLY-NOT: the index of dimension
// GPU: 'flash.check_blocks' op runs on the CPU only

!q = tensor<1x2x300x16xf32>
!k = tensor<1x2x?x16xf32>
!s = tensor<1x2x300xf32>
!l = tensor<1x1x?x4xi32>
!n = tensor<1x1x?x2xi32>

// WRITE-DAG:    #[[OF_KEYS:.*]] = affine_map<()[s0] -> (s0 ceildiv 64)>
// WRITE-LABEL:  func @check(
// WRITE:        %[[NK:.*]] = tensor.dim
// WRITE:        %[[KEYS:.*]] = affine.apply #[[OF_KEYS]]()[%[[NK]]]
// WRITE:        flash.check_blocks %[[LIST:.*]], %[[COUNTS:.*]] below %[[KEYS]]
// WRITE-NEXT:   flash.attention {{.*}} blocks(%[[LIST]], %[[COUNTS]]
// WRITE:        flash.check_blocks %[[LIST]], %[[COUNTS]] below
// WRITE:        %[[QUERIES:.*]] = arith.constant 3 : index
// WRITE:        flash.check_blocks %[[QUERY_LIST:.*]], %[[QUERY_COUNTS:.*]] below %[[QUERIES]]
// WRITE-NEXT:   flash.attention_grad {{.*}} query_blocks(%[[QUERY_LIST]], %[[QUERY_COUNTS]]
// A list of another program's is checked by that.
// WRITE-LABEL:  func @map(
// WRITE-NOT:    flash.check_blocks

// ASSERT-LABEL: func @check(
// ASSERT:       scf.for
// ASSERT:         scf.for
// ASSERT:           scf.for
// ASSERT:             %[[PARTS:.*]] = arith.index_cast
// ASSERT:             %[[END:.*]] = arith.index_cast
// ASSERT:             arith.cmpi sge, %[[PARTS]]
// ASSERT-NEXT:        cf.assert %{{.*}}, "a list of blocks at {{.*}}check-blocks.mlir:[[#@LINE+13]]:14 has a negative count"
// ASSERT-NEXT:        arith.cmpi sle, %[[PARTS]], %[[END]]
// ASSERT-NEXT:        cf.assert {{.*}} has more partial blocks than blocks"
// ASSERT-NEXT:        arith.cmpi sle, %[[END]]
// ASSERT-NEXT:        cf.assert {{.*}} has a count above its length"
// ASSERT-NEXT:        scf.for %[[I:.*]] = %{{.*}} to %[[END]]
// ASSERT:               cf.assert {{.*}} has a negative number"
// ASSERT:               cf.assert {{.*}} has a number that is not below how many blocks there are"
// ASSERT-NEXT:          scf.for %{{.*}} = %{{.*}} to %[[I]]
// ASSERT:                 arith.cmpi ne
// ASSERT-NEXT:            cf.assert {{.*}} has a block twice"
// ASSERT-NOT:   flash.check_blocks
func.func @check(%q: !q, %k: !k, %l: !l, %n: !n, %ql: !l, %qn: !n) -> (!q, !q) {
  %o, %lse = flash.attention %q, %k, %k blocks(%l, %n : !l, !n) of [128, 64] : (!q, !k, !k) -> (!q, !s)
  %dq, %dk, %dv = flash.attention_grad %q, %k, %k, %o, %lse, %o blocks(%l, %n : !l, !n) query_blocks(%ql, %qn : !l, !n) of [128, 64]
      : (!q, !k, !k, !q, !s, !q) -> (!q, !k, !k)
  return %o, %dq : !q, !q
}

func.func @map(%q: !q) -> !q {
  %l, %n = flash.block_map of[1, 1, 300, 300] tiles([64, 64]) mask(#flash.causal) : tensor<1x1x5x5xi32>, tensor<1x1x5x2xi32>
  %o = flash.attention %q, %q, %q mask(#flash.causal) blocks(%l, %n : tensor<1x1x5x5xi32>, tensor<1x1x5x2xi32>)
      schedule(<query_tile = 64, key_tile = 64>) : (!q, !q, !q) -> !q
  return %o : !q
}
