// Two roles: a warp that loads a tile with the tensor memory accelerator, and a
// warp group that multiplies it, with its left operand in registers.
//
// The copy into the block's own shared memory is an instruction of PTX 8.6.
// RUN: flash-translate %s --chip=sm_90a --ptx=86 | FileCheck %s \
// RUN:   --implicit-check-not=.local --implicit-check-not=cvt.u32.u64 \
// RUN:   --implicit-check-not=call

// CHECK: .version 8.6
// CHECK: .target sm_90a
// CHECK: .extern .shared .align 1024 .b8 smem[];
// CHECK-LABEL: .visible .entry attention(
// CHECK: .param .align 64 .b8 attention_param_0[128]
// CHECK: .maxntid 256
// CHECK: .minnctapersm 1
// CHECK: mbarrier.init.shared.b64 [smem],
// CHECK: fence.mbarrier_init.release.cluster;
// CHECK: bar.sync 0;
// CHECK: setmaxnreg.dec.sync.aligned.u32 24;
// CHECK: elect.sync
// CHECK: mbarrier.arrive.expect_tx
// CHECK: cp.async.bulk.tensor.3d.shared::cta.global.tile.mbarrier::complete_tx::bytes
// CHECK: setmaxnreg.inc.sync.aligned.u32 240;
// CHECK: mbarrier.try_wait.parity.shared::cta.b64 p, [%{{r[0-9]+}}], %r{{[0-9]+}};
// CHECK: wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16
// The wait names the accumulators, so nothing that reads them precedes it.
// CHECK-NOT: ex2
// CHECK: wgmma.wait_group.sync.aligned 0;
// CHECK-COUNT-4: ex2.approx.ftz.f32
// CHECK: st.global.v4.b32

gpu.module @kernels {
  llvm.mlir.global external @smem() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<0 x i8>
  llvm.func @attention(%map: !llvm.ptr {llvm.byval = !llvm.array<128 x i8>, llvm.align = 64 : i64, nvvm.grid_constant}, %o: !llvm.ptr<1>)
      attributes {gpu.kernel, nvvm.kernel, nvvm.maxntid = array<i32: 256>, nvvm.minctasm = 1 : i32} {
    %c0 = llvm.mlir.constant(0 : i32) : i32
    %c1 = llvm.mlir.constant(1 : i32) : i32
    %c2 = llvm.mlir.constant(2 : i32) : i32
    %c3 = llvm.mlir.constant(3 : i32) : i32
    %c7 = llvm.mlir.constant(7 : i32) : i32
    %c16 = llvm.mlir.constant(16 : i32) : i32
    %bytes = llvm.mlir.constant(16384 : i32) : i32
    %base = llvm.mlir.addressof @smem : !llvm.ptr<3>
    %stage = llvm.getelementptr %base[1024] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %tid = nvvm.read.ptx.sreg.tid.x : i32
    %first = llvm.icmp "eq" %tid, %c0 : i32
    llvm.cond_br %first, ^init, ^roles
  ^init:
    nvvm.mbarrier.init %base, %c1 : !llvm.ptr<3>, i32
    nvvm.fence.mbarrier.init
    llvm.br ^roles
  ^roles:
    nvvm.barrier
    %group = llvm.lshr %tid, %c7 : i32
    %loads = llvm.icmp "eq" %group, %c0 : i32
    llvm.cond_br %loads, ^load, ^math
  ^load:
    nvvm.setmaxregister decrease 24
    %elected = nvvm.elect.sync -> i1
    llvm.cond_br %elected, ^issue, ^exit
  ^issue:
    nvvm.mbarrier.arrive.expect_tx %base, %bytes : !llvm.ptr<3>, i32
    nvvm.cp.async.bulk.tensor.shared.cluster.global %stage, %map, %base, box[%c0, %c0, %c0] {isCTAOnly = true} : !llvm.ptr<3>, !llvm.ptr
    llvm.br ^exit
  ^math:
    nvvm.setmaxregister increase 240
    llvm.inline_asm has_side_effects asm_dialect = att "{\0A.reg .pred p;\0AL: mbarrier.try_wait.parity.shared::cta.b64 p, [$0], $1;\0A@!p bra L;\0A}", "r,r,~{memory}" %base, %c0 : (!llvm.ptr<3>, i32) -> ()
    %descriptor = llvm.mlir.constant(0 : i64) : i64
    %zero = llvm.mlir.constant(0.0 : f32) : f32
    %product = llvm.inline_asm has_side_effects asm_dialect = att "wgmma.fence.sync.aligned;\0Awgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {$0, $1, $2, $3}, {$4, $5, $6, $7}, $8, 1, 1, 1, 1;\0Awgmma.commit_group.sync.aligned;", "=f,=f,=f,=f,r,r,r,r,l,0,1,2,3,~{memory}" %tid, %tid, %tid, %tid, %descriptor, %zero, %zero, %zero, %zero : (i32, i32, i32, i32, i64, f32, f32, f32, f32) -> !llvm.struct<(f32, f32, f32, f32)>
    %p0 = llvm.extractvalue %product[0] : !llvm.struct<(f32, f32, f32, f32)>
    %p1 = llvm.extractvalue %product[1] : !llvm.struct<(f32, f32, f32, f32)>
    %p2 = llvm.extractvalue %product[2] : !llvm.struct<(f32, f32, f32, f32)>
    %p3 = llvm.extractvalue %product[3] : !llvm.struct<(f32, f32, f32, f32)>
    %done = llvm.inline_asm has_side_effects asm_dialect = att "wgmma.wait_group.sync.aligned 0;", "=f,=f,=f,=f,0,1,2,3,~{memory}" %p0, %p1, %p2, %p3 : (f32, f32, f32, f32) -> !llvm.struct<(f32, f32, f32, f32)>
    %d0 = llvm.extractvalue %done[0] : !llvm.struct<(f32, f32, f32, f32)>
    %d1 = llvm.extractvalue %done[1] : !llvm.struct<(f32, f32, f32, f32)>
    %d2 = llvm.extractvalue %done[2] : !llvm.struct<(f32, f32, f32, f32)>
    %d3 = llvm.extractvalue %done[3] : !llvm.struct<(f32, f32, f32, f32)>
    %v = llvm.mlir.poison : vector<4xf32>
    %v0 = llvm.insertelement %d0, %v[%c0 : i32] : vector<4xf32>
    %v1 = llvm.insertelement %d1, %v0[%c1 : i32] : vector<4xf32>
    %v2 = llvm.insertelement %d2, %v1[%c2 : i32] : vector<4xf32>
    %v3 = llvm.insertelement %d3, %v2[%c3 : i32] : vector<4xf32>
    %e = llvm.intr.exp2(%v3) : (vector<4xf32>) -> vector<4xf32>
    %offset = llvm.mul %tid, %c16 : i32
    %to = llvm.getelementptr %o[%offset] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i8
    llvm.store %e, %to {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<1>
    llvm.br ^exit
  ^exit:
    llvm.return
  }
}
