// A product with f16 operands in a loop, whose result is exponentiated. Tiles of
// registers are vectors, also across the loop.
//
// RUN: flash-translate %s --chip=sm_80 | FileCheck %s \
// RUN:   --implicit-check-not=.local --implicit-check-not=cvt.u32.u64 \
// RUN:   --implicit-check-not=cvta --implicit-check-not=call \
// RUN:   --implicit-check-not=.func
//
// The same text each time:
// RUN: flash-translate %s --chip=sm_80 > %t
// RUN: flash-translate %s --chip=sm_80 | diff %t -

// CHECK: .version 8.0
// CHECK: .target sm_80
// CHECK: .extern .shared .align 1024 .b8 smem[];
// CHECK-LABEL: .visible .entry product(
// CHECK: .maxntid 32
// Addresses in shared memory have 32 bits.
// CHECK: mov.b32 {{.*}}, smem;
// CHECK: ldmatrix.sync.aligned.m8n8.x4.shared.b16 {[[A:.*]]}, [%r{{[0-9]+}}];
// Copies stay in front of the wait, loads behind it.
// CHECK: cp.async.cg.shared.global [%r[[NEXT:[0-9]+]]], [%rd{{[0-9]+}}], 16;
// CHECK: cp.async.cg.shared.global [%r[[NEXT]]+512], [%rd{{[0-9]+}}+512], 16;
// CHECK: cp.async.commit_group;
// CHECK: cp.async.wait_group 1;
// CHECK: bar.sync 0;
// CHECK: ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{.*}}, [%r[[STAGE:[0-9]+]]+1024];
// CHECK: ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{.*}}, [%r[[STAGE]]+1536];
// The accumulators stay in their registers.
// CHECK: mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
// CHECK-NEXT: {[[ACC:.*]]},
// CHECK-NEXT: {[[A]]},
// CHECK-NEXT: {{.*}},
// CHECK-NEXT: {[[ACC]]};
// CHECK-COUNT-3: mma.sync
// CHECK: bra
// CHECK-COUNT-16: ex2.approx.ftz.f32
// CHECK-COUNT-2: shfl.sync.bfly.b32
// CHECK-COUNT-8: cvt.rn.f16x2.f32
// CHECK-COUNT-2: st.global.v4.b32
// CHECK: ret;

llvm.mlir.global external @smem() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<0 x i8>

llvm.func @product(%k: !llvm.ptr<1>, %o: !llvm.ptr<1>, %steps: i32) attributes {nvvm.kernel, nvvm.maxntid = array<i32: 32>} {
  %c0 = llvm.mlir.constant(0 : i32) : i32
  %c1 = llvm.mlir.constant(1 : i32) : i32
  %c2 = llvm.mlir.constant(2 : i32) : i32
  %c3 = llvm.mlir.constant(3 : i32) : i32
  %empty = llvm.mlir.poison : vector<4xf32>
  %c16 = llvm.mlir.constant(16 : i32) : i32
  %c31 = llvm.mlir.constant(31 : i32) : i32
  %c1024 = llvm.mlir.constant(1024 : i32) : i32
  %all = llvm.mlir.constant(-1 : i32) : i32
  %zero = llvm.mlir.constant(dense<0.0> : vector<16xf32>) : vector<16xf32>
  %tid = nvvm.read.ptx.sreg.tid.x : i32
  %smem = llvm.mlir.addressof @smem : !llvm.ptr<3>
  %offset = llvm.mul %tid, %c16 : i32
  %row = llvm.getelementptr %smem[%offset] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
  %source = llvm.getelementptr %k[%offset] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i8
  %q = nvvm.ldmatrix %row {num = 4 : i32, layout = #nvvm.mma_layout<row>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, eltType = #nvvm.ld_st_matrix_elt_type<b16>} : (!llvm.ptr<3>) -> !llvm.struct<(i32, i32, i32, i32)>
  %q0 = llvm.extractvalue %q[0] : !llvm.struct<(i32, i32, i32, i32)>
  %q1 = llvm.extractvalue %q[1] : !llvm.struct<(i32, i32, i32, i32)>
  %q2 = llvm.extractvalue %q[2] : !llvm.struct<(i32, i32, i32, i32)>
  %q3 = llvm.extractvalue %q[3] : !llvm.struct<(i32, i32, i32, i32)>
  %a0 = llvm.bitcast %q0 : i32 to vector<2xf16>
  %a1 = llvm.bitcast %q1 : i32 to vector<2xf16>
  %a2 = llvm.bitcast %q2 : i32 to vector<2xf16>
  %a3 = llvm.bitcast %q3 : i32 to vector<2xf16>
  llvm.br ^head(%c0, %zero : i32, vector<16xf32>)
^head(%i: i32, %acc: vector<16xf32>):
  %more = llvm.icmp "slt" %i, %steps : i32
  llvm.cond_br %more, ^step, ^done
^step:
  %parity = llvm.and %i, %c1 : i32
  %other = llvm.xor %parity, %c1 : i32
  %other_offset = llvm.mul %other, %c1024 : i32
  %next = llvm.getelementptr %row[%other_offset] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
  %next1 = llvm.getelementptr %next[512] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
  %from_offset = llvm.mul %i, %c1024 : i32
  %from = llvm.getelementptr %source[%from_offset] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i8
  %from1 = llvm.getelementptr %from[512] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8
  nvvm.cp.async.shared.global %next, %from, 16, cache = cg : !llvm.ptr<3>, !llvm.ptr<1>
  nvvm.cp.async.shared.global %next1, %from1, 16, cache = cg : !llvm.ptr<3>, !llvm.ptr<1>
  nvvm.cp.async.commit.group
  nvvm.cp.async.wait.group 1
  nvvm.barrier
  %stage_offset = llvm.mul %parity, %c1024 : i32
  %stage = llvm.getelementptr %row[%stage_offset] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
  %k0_at = llvm.getelementptr %stage[1024] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
  %k1_at = llvm.getelementptr %stage[1536] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
  %k0 = nvvm.ldmatrix %k0_at {num = 4 : i32, layout = #nvvm.mma_layout<row>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, eltType = #nvvm.ld_st_matrix_elt_type<b16>} : (!llvm.ptr<3>) -> !llvm.struct<(i32, i32, i32, i32)>
  %k0_0 = llvm.extractvalue %k0[0] : !llvm.struct<(i32, i32, i32, i32)>
  %b0_0 = llvm.bitcast %k0_0 : i32 to vector<2xf16>
  %k0_1 = llvm.extractvalue %k0[1] : !llvm.struct<(i32, i32, i32, i32)>
  %b0_1 = llvm.bitcast %k0_1 : i32 to vector<2xf16>
  %k0_2 = llvm.extractvalue %k0[2] : !llvm.struct<(i32, i32, i32, i32)>
  %b0_2 = llvm.bitcast %k0_2 : i32 to vector<2xf16>
  %k0_3 = llvm.extractvalue %k0[3] : !llvm.struct<(i32, i32, i32, i32)>
  %b0_3 = llvm.bitcast %k0_3 : i32 to vector<2xf16>
  %k1 = nvvm.ldmatrix %k1_at {num = 4 : i32, layout = #nvvm.mma_layout<row>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, eltType = #nvvm.ld_st_matrix_elt_type<b16>} : (!llvm.ptr<3>) -> !llvm.struct<(i32, i32, i32, i32)>
  %k1_0 = llvm.extractvalue %k1[0] : !llvm.struct<(i32, i32, i32, i32)>
  %b1_0 = llvm.bitcast %k1_0 : i32 to vector<2xf16>
  %k1_1 = llvm.extractvalue %k1[1] : !llvm.struct<(i32, i32, i32, i32)>
  %b1_1 = llvm.bitcast %k1_1 : i32 to vector<2xf16>
  %k1_2 = llvm.extractvalue %k1[2] : !llvm.struct<(i32, i32, i32, i32)>
  %b1_2 = llvm.bitcast %k1_2 : i32 to vector<2xf16>
  %k1_3 = llvm.extractvalue %k1[3] : !llvm.struct<(i32, i32, i32, i32)>
  %b1_3 = llvm.bitcast %k1_3 : i32 to vector<2xf16>
  %c0v = llvm.shufflevector %acc, %acc [0, 1, 2, 3] : vector<16xf32>
  %c0_0 = llvm.extractelement %c0v[%c0 : i32] : vector<4xf32>
  %c0_1 = llvm.extractelement %c0v[%c1 : i32] : vector<4xf32>
  %c0_2 = llvm.extractelement %c0v[%c2 : i32] : vector<4xf32>
  %c0_3 = llvm.extractelement %c0v[%c3 : i32] : vector<4xf32>
  %d0 = nvvm.mma.sync A[%a0, %a1, %a2, %a3] B[%b0_0, %b0_1] C[%c0_0, %c0_1, %c0_2, %c0_3] {layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>, shape = #nvvm.shape<m = 16, n = 8, k = 16>} : (vector<2xf16>, vector<2xf16>, f32) -> !llvm.struct<(f32, f32, f32, f32)>
  %d0_0 = llvm.extractvalue %d0[0] : !llvm.struct<(f32, f32, f32, f32)>
  %n0_0 = llvm.insertelement %d0_0, %empty[%c0 : i32] : vector<4xf32>
  %d0_1 = llvm.extractvalue %d0[1] : !llvm.struct<(f32, f32, f32, f32)>
  %n0_1 = llvm.insertelement %d0_1, %n0_0[%c1 : i32] : vector<4xf32>
  %d0_2 = llvm.extractvalue %d0[2] : !llvm.struct<(f32, f32, f32, f32)>
  %n0_2 = llvm.insertelement %d0_2, %n0_1[%c2 : i32] : vector<4xf32>
  %d0_3 = llvm.extractvalue %d0[3] : !llvm.struct<(f32, f32, f32, f32)>
  %n0_3 = llvm.insertelement %d0_3, %n0_2[%c3 : i32] : vector<4xf32>
  %c1v = llvm.shufflevector %acc, %acc [4, 5, 6, 7] : vector<16xf32>
  %c1_0 = llvm.extractelement %c1v[%c0 : i32] : vector<4xf32>
  %c1_1 = llvm.extractelement %c1v[%c1 : i32] : vector<4xf32>
  %c1_2 = llvm.extractelement %c1v[%c2 : i32] : vector<4xf32>
  %c1_3 = llvm.extractelement %c1v[%c3 : i32] : vector<4xf32>
  %d1 = nvvm.mma.sync A[%a0, %a1, %a2, %a3] B[%b0_2, %b0_3] C[%c1_0, %c1_1, %c1_2, %c1_3] {layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>, shape = #nvvm.shape<m = 16, n = 8, k = 16>} : (vector<2xf16>, vector<2xf16>, f32) -> !llvm.struct<(f32, f32, f32, f32)>
  %d1_0 = llvm.extractvalue %d1[0] : !llvm.struct<(f32, f32, f32, f32)>
  %n1_0 = llvm.insertelement %d1_0, %empty[%c0 : i32] : vector<4xf32>
  %d1_1 = llvm.extractvalue %d1[1] : !llvm.struct<(f32, f32, f32, f32)>
  %n1_1 = llvm.insertelement %d1_1, %n1_0[%c1 : i32] : vector<4xf32>
  %d1_2 = llvm.extractvalue %d1[2] : !llvm.struct<(f32, f32, f32, f32)>
  %n1_2 = llvm.insertelement %d1_2, %n1_1[%c2 : i32] : vector<4xf32>
  %d1_3 = llvm.extractvalue %d1[3] : !llvm.struct<(f32, f32, f32, f32)>
  %n1_3 = llvm.insertelement %d1_3, %n1_2[%c3 : i32] : vector<4xf32>
  %c2v = llvm.shufflevector %acc, %acc [8, 9, 10, 11] : vector<16xf32>
  %c2_0 = llvm.extractelement %c2v[%c0 : i32] : vector<4xf32>
  %c2_1 = llvm.extractelement %c2v[%c1 : i32] : vector<4xf32>
  %c2_2 = llvm.extractelement %c2v[%c2 : i32] : vector<4xf32>
  %c2_3 = llvm.extractelement %c2v[%c3 : i32] : vector<4xf32>
  %d2 = nvvm.mma.sync A[%a0, %a1, %a2, %a3] B[%b1_0, %b1_1] C[%c2_0, %c2_1, %c2_2, %c2_3] {layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>, shape = #nvvm.shape<m = 16, n = 8, k = 16>} : (vector<2xf16>, vector<2xf16>, f32) -> !llvm.struct<(f32, f32, f32, f32)>
  %d2_0 = llvm.extractvalue %d2[0] : !llvm.struct<(f32, f32, f32, f32)>
  %n2_0 = llvm.insertelement %d2_0, %empty[%c0 : i32] : vector<4xf32>
  %d2_1 = llvm.extractvalue %d2[1] : !llvm.struct<(f32, f32, f32, f32)>
  %n2_1 = llvm.insertelement %d2_1, %n2_0[%c1 : i32] : vector<4xf32>
  %d2_2 = llvm.extractvalue %d2[2] : !llvm.struct<(f32, f32, f32, f32)>
  %n2_2 = llvm.insertelement %d2_2, %n2_1[%c2 : i32] : vector<4xf32>
  %d2_3 = llvm.extractvalue %d2[3] : !llvm.struct<(f32, f32, f32, f32)>
  %n2_3 = llvm.insertelement %d2_3, %n2_2[%c3 : i32] : vector<4xf32>
  %c3v = llvm.shufflevector %acc, %acc [12, 13, 14, 15] : vector<16xf32>
  %c3_0 = llvm.extractelement %c3v[%c0 : i32] : vector<4xf32>
  %c3_1 = llvm.extractelement %c3v[%c1 : i32] : vector<4xf32>
  %c3_2 = llvm.extractelement %c3v[%c2 : i32] : vector<4xf32>
  %c3_3 = llvm.extractelement %c3v[%c3 : i32] : vector<4xf32>
  %d3 = nvvm.mma.sync A[%a0, %a1, %a2, %a3] B[%b1_2, %b1_3] C[%c3_0, %c3_1, %c3_2, %c3_3] {layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>, shape = #nvvm.shape<m = 16, n = 8, k = 16>} : (vector<2xf16>, vector<2xf16>, f32) -> !llvm.struct<(f32, f32, f32, f32)>
  %d3_0 = llvm.extractvalue %d3[0] : !llvm.struct<(f32, f32, f32, f32)>
  %n3_0 = llvm.insertelement %d3_0, %empty[%c0 : i32] : vector<4xf32>
  %d3_1 = llvm.extractvalue %d3[1] : !llvm.struct<(f32, f32, f32, f32)>
  %n3_1 = llvm.insertelement %d3_1, %n3_0[%c1 : i32] : vector<4xf32>
  %d3_2 = llvm.extractvalue %d3[2] : !llvm.struct<(f32, f32, f32, f32)>
  %n3_2 = llvm.insertelement %d3_2, %n3_1[%c2 : i32] : vector<4xf32>
  %d3_3 = llvm.extractvalue %d3[3] : !llvm.struct<(f32, f32, f32, f32)>
  %n3_3 = llvm.insertelement %d3_3, %n3_2[%c3 : i32] : vector<4xf32>
  %lower = llvm.shufflevector %n0_3, %n1_3 [0, 1, 2, 3, 4, 5, 6, 7] : vector<4xf32>
  %upper = llvm.shufflevector %n2_3, %n3_3 [0, 1, 2, 3, 4, 5, 6, 7] : vector<4xf32>
  %sum = llvm.shufflevector %lower, %upper [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15] : vector<8xf32>
  %inext = llvm.add %i, %c1 : i32
  llvm.br ^head(%inext, %sum : i32, vector<16xf32>)
^done:
  %e = llvm.intr.exp2(%acc) : (vector<16xf32>) -> vector<16xf32>
  %f = llvm.fptrunc %e : vector<16xf32> to vector<16xf16>
  %e0 = llvm.extractelement %e[%c0 : i32] : vector<16xf32>
  %s0 = nvvm.shfl.sync bfly %all, %e0, %c1, %c31 : f32 -> f32
  %m0 = llvm.intr.maxnum(%e0, %s0) : (f32, f32) -> f32
  %s1 = nvvm.shfl.sync bfly %all, %m0, %c2, %c31 : f32 -> f32
  %m1 = llvm.intr.maxnum(%m0, %s1) : (f32, f32) -> f32
  %f0 = llvm.shufflevector %f, %f [0, 1, 2, 3, 4, 5, 6, 7] : vector<16xf16>
  %f1 = llvm.shufflevector %f, %f [8, 9, 10, 11, 12, 13, 14, 15] : vector<16xf16>
  %o0 = llvm.getelementptr %o[%offset] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i8
  %o1 = llvm.getelementptr %o0[512] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8
  %o2 = llvm.getelementptr %o0[1024] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8
  llvm.store %f0, %o0 {alignment = 16 : i64} : vector<8xf16>, !llvm.ptr<1>
  llvm.store %f1, %o1 {alignment = 16 : i64} : vector<8xf16>, !llvm.ptr<1>
  llvm.store %m1, %o2 : f32, !llvm.ptr<1>
  llvm.return
}
