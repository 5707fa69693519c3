// Products of warpgroups and named barriers as inline PTX.
// RUN: flash-opt %s --pass-pipeline="builtin.module(gpu.module(convert-nvx-to-llvm))" | FileCheck %s

gpu.module @m {
  // Two steps of 16: 8 columns are 4 registers. The first step starts from
  // nothing; neither operand is transposed.
  // CHECK-LABEL: llvm.func @product(
  // CHECK:       llvm.inline_asm has_side_effects
  // CHECK-SAME:  setp.eq.u32 adds, 0, 0;
  // CHECK-SAME:  setp.ne.u32 starts, 0, 0;
  // CHECK-SAME:  .reg .b64 b1;
  // CHECK-SAME:  add.s64 b1, $6, 4;
  // CHECK-SAME:  wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {$0, $1, $2, $3}, $4, $6, starts, 1, 1, 0, 0;
  // CHECK-SAME:  wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {$0, $1, $2, $3}, $5, b1, adds, 1, 1, 0, 0;
  // CHECK-SAME:  "=f,=f,=f,=f,l,l,l"
  gpu.func @product(%q: i64, %k: i64, %o: !llvm.ptr) kernel {
    %s = nvx.warpgroup_mma f16 %q at [0, 2] : i64, %k at [0, 4] -> vector<4xf32>
    llvm.store %s, %o : vector<4xf32>, !llvm.ptr
    gpu.return
  }

  // The first operand in shared memory may have its rows next to each other.
  // CHECK-LABEL: llvm.func @transposed(
  // CHECK:       llvm.inline_asm has_side_effects
  // CHECK-SAME:  wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {$0, $1, $2, $3}, $4, $5, starts, 1, 1, 1, 0;
  gpu.func @transposed(%q: i64, %k: i64, %o: !llvm.ptr) kernel {
    %s = nvx.warpgroup_mma f16 %q at [0] : i64, %k at [0] transpose_a -> vector<4xf32>
    llvm.store %s, %o : vector<4xf32>, !llvm.ptr
    gpu.return
  }

  // The descriptors of many steps are not kept in registers.
  // CHECK-LABEL: llvm.func @four_steps(
  // CHECK:       llvm.inline_asm has_side_effects
  // CHECK-SAME:  {$0, $1, $2, $3}, $7, b3, adds, 1, 1, 0, 0;
  // CHECK-SAME:  "=f,=f,=f,=f,l,l,l,l,l"
  gpu.func @four_steps(%q: i64, %k: i64, %o: !llvm.ptr) kernel {
    %s = nvx.warpgroup_mma f16 %q at [0, 2, 4, 6] : i64, %k at [0, 2, 4, 6] -> vector<4xf32>
    llvm.store %s, %o : vector<4xf32>, !llvm.ptr
    gpu.return
  }
  // CHECK-LABEL: llvm.func @five_steps(
  // CHECK:       llvm.inline_asm has_side_effects
  // CHECK-SAME:  add.s64 a4, $4, 8;
  // CHECK-SAME:  "=f,=f,=f,=f,l,l"
  gpu.func @five_steps(%q: i64, %k: i64, %o: !llvm.ptr) kernel {
    %s = nvx.warpgroup_mma f16 %q at [0, 2, 4, 6, 8] : i64, %k at [0, 2, 4, 6, 8] -> vector<4xf32>
    llvm.store %s, %o : vector<4xf32>, !llvm.ptr
    gpu.return
  }
  // CHECK-LABEL: llvm.func @many_steps(
  // CHECK:       llvm.inline_asm has_side_effects
  // CHECK-SAME:  add.s64 a8, $4, 16;
  // CHECK-SAME:  {$0, $1, $2, $3}, a8, b8, adds, 1, 1, 0, 0;
  // CHECK-SAME:  "=f,=f,=f,=f,l,l"
  gpu.func @many_steps(%q: i64, %k: i64, %o: !llvm.ptr) kernel {
    %s = nvx.warpgroup_mma f16 %q at [0, 2, 4, 6, 8, 10, 12, 14, 16] : i64, %k at [0, 2, 4, 6, 8, 10, 12, 14, 16] -> vector<4xf32>
    llvm.store %s, %o : vector<4xf32>, !llvm.ptr
    gpu.return
  }

  // Registers that are read and written are tied; a in registers has no form of
  // transposition.
  // CHECK-LABEL: llvm.func @sum(
  // CHECK:       llvm.inline_asm has_side_effects
  // CHECK-SAME:  wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {$0, $1, $2, $3}, {$8, $9, $10, $11}, $12, adds, 1, 1, 1;
  // CHECK-SAME:  "=f,=f,=f,=f,0,1,2,3,r,r,r,r,l"
  gpu.func @sum(%p: vector<4xi32>, %v: i64, %acc: vector<4xf32>, %o: !llvm.ptr) kernel {
    %s = nvx.warpgroup_mma bf16 %p : vector<4xi32>, %v at [0] add %acc : vector<4xf32> transpose_b -> vector<4xf32>
    llvm.store %s, %o : vector<4xf32>, !llvm.ptr
    gpu.return
  }

  // Elements of 8 bits: steps of 32, and no operand can be transposed.
  // CHECK-LABEL: llvm.func @eight_bits(
  // CHECK:       llvm.inline_asm has_side_effects
  // CHECK-SAME:  wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3 {$0, $1, $2, $3}, $4, $6, starts, 1, 1;
  // CHECK-SAME:  wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3 {$0, $1, $2, $3}, $5, b1, adds, 1, 1;
  // CHECK:       wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3 {$0, $1, $2, $3}, {$4, $5, $6, $7}, $8, starts, 1, 1;
  gpu.func @eight_bits(%q: i64, %k: i64, %p: vector<4xi32>, %o: !llvm.ptr) kernel {
    %s = nvx.warpgroup_mma f8E4M3FN %q at [0, 2] : i64, %k at [0, 2] -> vector<4xf32>
    %t = nvx.warpgroup_mma f8E4M3FN %p : vector<4xi32>, %k at [0] -> vector<4xf32>
    llvm.store %s, %o : vector<4xf32>, !llvm.ptr
    llvm.store %t, %o : vector<4xf32>, !llvm.ptr
    gpu.return
  }

  // CHECK-LABEL: llvm.func @wait(
  // CHECK:       llvm.inline_asm has_side_effects {{.*}}"wgmma.wait_group.sync.aligned 1;", "=f,=f,=r,0,1,2"
  // CHECK:       llvm.inline_asm has_side_effects {{.*}}"wgmma.wait_group.sync.aligned 0;"
  gpu.func @wait(%x: vector<2xf32>, %y: vector<1xi32>, %o: !llvm.ptr) kernel {
    %a, %b = nvx.warpgroup_wait 1 %x, %y : (vector<2xf32>, vector<1xi32>) -> (vector<2xf32>, vector<1xi32>)
    nvx.warpgroup_wait 0 : () -> ()
    llvm.store %a, %o : vector<2xf32>, !llvm.ptr
    llvm.store %b, %o : vector<1xi32>, !llvm.ptr
    gpu.return
  }

  // A tensor map stays where the launch puts it.
  // CHECK-LABEL: llvm.func @map(
  // CHECK-SAME:  !llvm.ptr {llvm.align = 64 : i64, llvm.byval = !llvm.array<128 x i8>, nvvm.grid_constant}
  gpu.func @map(%m: !nvgpu.tensormap.descriptor<tensor = memref<64x64xf16, 3>, swizzle = swizzle_128b, l2promo = l2promo_256b, oob = zero, interleave = none>) kernel {
    %p = builtin.unrealized_conversion_cast %m : !nvgpu.tensormap.descriptor<tensor = memref<64x64xf16, 3>, swizzle = swizzle_128b, l2promo = l2promo_256b, oob = zero, interleave = none> to !llvm.ptr
    nvvm.prefetch tensormap, %p : !llvm.ptr
    gpu.return
  }
}
