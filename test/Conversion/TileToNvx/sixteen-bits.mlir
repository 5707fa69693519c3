// Elements of 16 bits, of which two share a register.
// RUN: flash-opt %s --pass-pipeline="builtin.module(gpu.module(gpu.func(convert-tile-to-nvx)))" | FileCheck %s

!x = tensor<16x8xf16, #tile.fragment<1>>
!y = tensor<16x8xbf16, #tile.fragment<1>>
!rows = tensor<16xf16, #tile.rows<1>>

gpu.module @m {
  // Arithmetic is that of f32, rounded: here 0.5 twice in each constant.

  // CHECK-LABEL: gpu.func @arithmetic(
  // CHECK:       arith.constant dense<939538432> : vector<2xi32>
  // CHECK-COUNT-8: arith.extf %{{.*}} : f16 to f32
  // CHECK:       arith.mulf %{{.*}}, %{{.*}} : vector<4xf32>
  // CHECK-COUNT-2: nvvm.convert.f32x2.to.f16x2
  gpu.func @arithmetic(%x: !x, %m: memref<?x8xf16>, %n: index) kernel {
    %half = arith.constant dense<0.5> : !x
    %y = arith.mulf %x, %half : !x
    tile.store %y, %m[%n] : !x to memref<?x8xf16>
    gpu.return
  }

  // CHECK-LABEL: gpu.func @choose(
  // CHECK:       %[[C:.*]] = arith.cmpf ogt, %{{.*}}, %{{.*}} : vector<4xf32>
  // CHECK:       %[[S:.*]] = arith.select %[[C]], %{{.*}}, %{{.*}} : vector<4xi1>, vector<4xf32>
  // CHECK:       %[[E:.*]]:4 = vector.to_elements %[[S]]
  // CHECK:       nvvm.convert.f32x2.to.bf16x2 %[[E]]#1, %[[E]]#0
  gpu.func @choose(%x: !y, %y: !y, %m: memref<?x8xbf16>, %n: index) kernel {
    %c = arith.cmpf ogt, %x, %y : !y
    %z = arith.select %c, %x, %y : tensor<16x8xi1, #tile.fragment<1>>, !y
    tile.store %z, %m[%n] : !y to memref<?x8xbf16>
    gpu.return
  }

  // A register of a scalar, or of a row's value, has it twice.

  // CHECK-LABEL: gpu.func @broadcast(
  // CHECK:       %[[PAIR:.*]] = vector.from_elements %[[S:.*]], %[[S]] : vector<2xf16>
  // CHECK:       llvm.bitcast %[[PAIR]] : vector<2xf16> to i32
  // CHECK:       %[[FIRST:.*]] = llvm.extractelement %[[R:.*]][%{{.*}}] : vector<2xf16>
  // CHECK:       %[[SECOND:.*]] = llvm.extractelement %[[R]][%{{.*}}] : vector<2xf16>
  // CHECK:       vector.from_elements %[[FIRST]], %[[FIRST]] : vector<2xf16>
  // CHECK:       vector.from_elements %[[SECOND]], %[[SECOND]] : vector<2xf16>
  gpu.func @broadcast(%s: f16, %r: !rows, %m: memref<?x8xf16>, %n: index) kernel {
    %x = tile.broadcast %s : f16 to !x
    tile.store %x, %m[%n] : !x to memref<?x8xf16>
    %y = tile.broadcast %r : !rows to !x
    tile.store %y, %m[%n] : !x to memref<?x8xf16>
    gpu.return
  }

  // CHECK-LABEL: gpu.func @store_rows(
  // CHECK-COUNT-2: llvm.store %{{.*}} {alignment = 2 : i64} : f16
  // CHECK-NOT:   llvm.store
  // CHECK:       gpu.return
  gpu.func @store_rows(%r: !rows, %m: memref<?xf16>, %n: index) kernel {
    tile.store %r, %m[%n] : !rows to memref<?xf16>
    gpu.return
  }

  // Columns that may not exist are stored one by one, each where it does: next to
  // each other, or as far apart as the memory says.

  // CHECK-LABEL: gpu.func @some_columns(
  // CHECK:       %[[ADDRESS:.*]] = llvm.getelementptr %{{.*}}[%{{.*}}] : (!llvm.ptr<1>, i64)
  // CHECK:       scf.if
  // CHECK:         llvm.store %{{.*}}, %[[ADDRESS]] {alignment = 2 : i64} : f16
  // CHECK:       scf.if
  // CHECK:         %[[NEXT:.*]] = llvm.getelementptr %[[ADDRESS]][2]
  // CHECK:         llvm.store %{{.*}}, %[[NEXT]] {alignment = 2 : i64} : f16
  // CHECK-COUNT-2: llvm.store
  // CHECK-NOT:   llvm.store
  // CHECK:       gpu.return
  gpu.func @some_columns(%x: !x, %m: memref<?x?xf16, strided<[?, 1]>>, %n: index) kernel {
    tile.store %x, %m[%n, %n] columns(%n) : !x to memref<?x?xf16, strided<[?, 1]>>
    gpu.return
  }

  // CHECK-LABEL: gpu.func @apart(
  // CHECK:       %[[ADDRESS:.*]] = llvm.getelementptr %{{.*}}[%{{.*}}] : (!llvm.ptr<1>, i64)
  // CHECK:       scf.if
  // CHECK:       scf.if
  // CHECK:         %[[ONE:.*]] = arith.constant 1 : i64
  // CHECK:         %[[BYTES:.*]] = arith.muli %{{.*}}, %c2_i64
  // CHECK:         %[[DISTANCE:.*]] = arith.muli %[[ONE]], %[[BYTES]]
  // CHECK:         %[[NEXT:.*]] = llvm.getelementptr %[[ADDRESS]][%[[DISTANCE]]]
  // CHECK:         llvm.store %{{.*}}, %[[NEXT]] {alignment = 2 : i64} : f16
  gpu.func @apart(%x: !x, %m: memref<?x?xf16, strided<[?, ?]>>, %n: index) kernel {
    tile.store %x, %m[%n, %n] columns(%n) : !x to memref<?x?xf16, strided<[?, ?]>>
    gpu.return
  }

  // A transposed load is one of ldmatrix, of f32 one of each element; as it lies
  // f32 comes in pairs.

  // CHECK-LABEL: gpu.func @loads(
  // CHECK:       nvvm.ldmatrix %{{.*}} {{{.*}}layout = #nvvm.mma_layout<col>, num = 4 : i32
  // CHECK-COUNT-8: llvm.load %{{.*}} : !llvm.ptr<3> -> f32
  // CHECK-COUNT-4: llvm.load %{{.*}} {alignment = 8 : i64} : !llvm.ptr<3> -> vector<2xf32>
  // CHECK-NOT:   llvm.load
  // CHECK:       gpu.return
  gpu.func @loads() kernel {
    %c0 = arith.constant 0 : index
    %h = tile.smem_view %c0 : !tile.smem<16x16xf16, swizzle = 32>
    %t = tile.load %h transpose : !tile.smem<16x16xf16, swizzle = 32> to tensor<16x16xf16, #tile.fragment<1>>
    %f = tile.smem_view %c0 : !tile.smem<16x16xf32, swizzle = 64>
    %u = tile.load %f transpose : !tile.smem<16x16xf32, swizzle = 64> to tensor<16x16xf32, #tile.fragment<1>>
    %v = tile.load %f : !tile.smem<16x16xf32, swizzle = 64> to tensor<16x16xf32, #tile.fragment<1>>
    gpu.return
  }
}
