// RUN: flash-opt %s --pass-pipeline="builtin.module(gpu.module(convert-nvx-to-llvm))" --split-input-file --verify-diagnostics | FileCheck %s

// A memref is a pointer, its dynamic sizes and its dynamic strides; indices are
// i32, strides i64. Dynamic shared memory is declared once.

// CHECK:       llvm.mlir.global external @shared_memory() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<0 x i8>
// CHECK-LABEL: llvm.func @kernel(
// CHECK-SAME:  %[[P:[^:]*]]: !llvm.ptr<1>, %[[ROWS:[^:]*]]: i32, %[[STRIDE:[^:]*]]: i64, %[[N:[^:]*]]: i32
// CHECK-SAME:  nvvm.kernel
// CHECK:       llvm.mlir.addressof @shared_memory : !llvm.ptr<3>
// CHECK:       llvm.mul %[[STRIDE]], %[[STRIDE]] : i64
// CHECK:       llvm.add %[[ROWS]], %[[N]] : i32
// CHECK:       llvm.call_intrinsic "llvm.nvvm.lg2.approx.ftz.f"
// CHECK:       llvm.intr.maxnum
// CHECK-NOT:   llvm.mlir.global
gpu.module @m {
  gpu.func @kernel(%m: memref<?x64xf16, strided<[?, 1]>>, %n: index, %x: f32) kernel {
    %p:3 = builtin.unrealized_conversion_cast %m : memref<?x64xf16, strided<[?, 1]>> to !llvm.ptr<1>, index, i64
    %s = nvx.shared_memory : !llvm.ptr<3>
    %square = arith.muli %p#2, %p#2 : i64
    %sum = arith.addi %p#1, %n : index
    %l = nvx.log2 %x : f32
    %y = arith.maxnumf %l, %x : f32
    llvm.store %square, %p#0 : i64, !llvm.ptr<1>
    gpu.return
  }
}

// -----

// The first lane's number of the warpgroup, once and where all threads meet.

// CHECK-LABEL: llvm.func @warpgroups(
// CHECK:       %[[THREAD:.*]] = nvvm.read.ptx.sreg.tid.x : i32
// CHECK:       %[[NUMBER:.*]] = llvm.udiv %[[THREAD]], %{{.*}} : i32
// CHECK:       %[[FIRST:.*]] = nvvm.shfl.sync idx %{{.*}}, %[[NUMBER]], %{{.*}}, %{{.*}} : i32 -> i32
// CHECK:       llvm.cond_br
// CHECK:       llvm.store %[[FIRST]]
// CHECK:       llvm.store %[[FIRST]]
// CHECK-NOT:   nvvm.shfl
gpu.module @m {
  gpu.func @warpgroups(%p: !llvm.ptr<1>, %c: i1) kernel {
    cf.cond_br %c, ^then, ^end
  ^then:
    %x = nvx.warpgroup : i32
    llvm.store %x, %p : i32, !llvm.ptr<1>
    %y = nvx.warpgroup : i32
    llvm.store %y, %p : i32, !llvm.ptr<1>
    cf.br ^end
  ^end:
    gpu.return
  }
}

// -----

// CHECK-LABEL: gpu.module @none
// CHECK-NOT:   llvm.mlir.global
gpu.module @none {
  gpu.func @kernel() kernel {
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @kernel(%m: memref<?x64xf16, strided<[?, 1]>>) kernel {
    %c0 = arith.constant 0 : index
    // expected-error @below {{'memref.load' op still uses a memref of the kernel}}
    %x = memref.load %m[%c0, %c0] : memref<?x64xf16, strided<[?, 1]>>
    gpu.return
  }
}

// -----

gpu.module @m {
  // expected-error @below {{'gpu.func' op has attributions of memory; the only memory of a block is that of its rings (tile.ring)}}
  gpu.func @workgroup(%m: memref<?x64xf16, strided<[?, 1]>>) workgroup(%w: memref<64xf32, #gpu.address_space<workgroup>>) kernel {
    gpu.return
  }
}

// -----

gpu.module @m {
  // expected-error @below {{'gpu.func' op has attributions of memory}}
  gpu.func @private() private(%p: memref<64xf32, #gpu.address_space<private>>) kernel {
    gpu.return
  }
}
