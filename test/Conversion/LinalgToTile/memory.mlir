// Slices and insertions: which dimensions, where, how much of them exists.
// RUN: flash-opt %s --convert-linalg-to-tile --canonicalize --cse | FileCheck %s

// Of a tensor [batch, position, head, element], tiles of positions and elements:
// the kernel sees the dimensions in another order, and the launch says so.


// CHECK-LABEL: func @order_of_dimensions(
// CHECK:       memref.transpose %{{.*}} (d0, d1, d2, d3) -> (d0, d2, d1, d3) : memref<2x64x4x16xf16
// CHECK:       memref.transpose %{{.*}} (d0, d1, d2, d3) -> (d0, d2, d1, d3) : memref<2x64x4x16xf16
// CHECK:       gpu.launch_func

// CHECK-LABEL: gpu.func @order_of_dimensions(
// CHECK-SAME:  %[[IN:[^,: ]*]]: memref<2x4x64x16xf16, strided<[?, ?, ?, 1], offset: ?>>
// CHECK-SAME:  %[[OUT:[^,: ]*]]: memref<2x4x64x16xf16, strided<[?, ?, ?, 1], offset: ?>>
// CHECK:       %[[AT:.*]]:3 = tile.position
// CHECK:       %[[I:.*]] = arith.muli %[[AT]]#2, %c32
// CHECK:       tile.fetch %[[IN]][%[[AT]]#0, %[[AT]]#1, %[[I]]] : {{.*}} to <32x16xf16
// CHECK:       tile.store %{{.*}}, %[[OUT]][%[[AT]]#0, %[[AT]]#1, %[[I]]] :
func.func @order_of_dimensions(%x: tensor<2x64x4x16xf16>) -> tensor<2x64x4x16xf16> {
  %e = tensor.empty() : tensor<2x64x4x16xf16>
  %r = scf.forall (%b, %h, %i) = (0, 0, 0) to (2, 4, 64) step (1, 1, 32) shared_outs(%o = %e) -> (tensor<2x64x4x16xf16>) {
    %0 = tensor.extract_slice %x[%b, %i, %h, 0] [1, 32, 1, 16] [1, 1, 1, 1] : tensor<2x64x4x16xf16> to tensor<32x16xf16>
    %1 = arith.addf %0, %0 : tensor<32x16xf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %1 into %o[%b, %i, %h, 0] [1, 32, 1, 16] [1, 1, 1, 1] : tensor<32x16xf16> into tensor<2x64x4x16xf16>
    }
  }
  return %r : tensor<2x64x4x16xf16>
}

// Offsets of slices of slices add up. Where not all columns are read or written
// the first of them is an index too.

// CHECK-LABEL: gpu.func @offsets(
// CHECK:       %[[I:.*]] = affine.apply {{.*}}%{{.*}}
// CHECK:       tile.fetch %{{.*}}[%[[I]], %c8] : memref<128x64xf16{{.*}} to <16x32xf16
// CHECK:       tile.store %{{.*}}[%{{.*}}, %c32] : {{.*}} to memref<64x64xf16
func.func @offsets(%x: tensor<128x64xf16>) -> tensor<64x64xf16> {
  %e = tensor.empty() : tensor<64x64xf16>
  %r = scf.forall (%i) = (0) to (64) step (16) shared_outs(%o = %e) -> (tensor<64x64xf16>) {
    %half = tensor.extract_slice %x[64, 8] [64, 32] [1, 1] : tensor<128x64xf16> to tensor<64x32xf16>
    %0 = tensor.extract_slice %half[%i, 0] [16, 32] [1, 1] : tensor<64x32xf16> to tensor<16x32xf16>
    %1 = arith.addf %0, %0 : tensor<16x32xf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %1 into %o[%i, 32] [16, 32] [1, 1] : tensor<16x32xf16> into tensor<64x64xf16>
    }
  }
  return %r : tensor<64x64xf16>
}

// Rows that do not exist are zero, which the program may say to lie behind the end of memory.
// Of the result those are stored that exist.

// CHECK-LABEL: gpu.func @padded(
// CHECK:       %[[I:.*]] = arith.muli
// CHECK:       %[[SIZE:.*]] = affine.min
// CHECK-DAG:   tile.fetch %arg0[%[[I]]] rows(%[[SIZE]]) : {{.*}} to <16x32xf16
// CHECK-DAG:   tile.fetch %arg1[%[[I]]] rows(%[[SIZE]]) to_end : {{.*}} to <16x32xf16
// CHECK-DAG:   tile.store %{{.*}}[%[[I]]] rows(%[[SIZE]]) to_end : tensor<16x32xf16, #tile.fragment<1>>
// CHECK-DAG:   tile.store %{{.*}}[%[[I]]] rows(%[[SIZE]]) : tensor<16xf32, #tile.rows<1>>
func.func @padded(%x: tensor<100x32xf16>, %y: tensor<100x32xf16>, %v: tensor<100xf32>) -> (tensor<100x32xf16>, tensor<100xf32>) {
  %zero = arith.constant 0.0 : f16
  %zero32 = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<100x32xf16>
  %ev = tensor.empty() : tensor<100xf32>
  %r:2 = scf.forall (%i) = (0) to (100) step (16) shared_outs(%o = %e, %ov = %ev) -> (tensor<100x32xf16>, tensor<100xf32>) {
    %size = affine.min affine_map<(i) -> (100 - i, 16)>(%i)
    %low = affine.apply affine_map<(n) -> (16 - n)>(%size)
    %0 = tensor.extract_slice %x[%i, 0] [%size, 32] [1, 1] : tensor<100x32xf16> to tensor<?x32xf16>
    %1 = tensor.pad %0 low[0, 0] high[%low, 0] {
    ^bb0(%a: index, %b: index):
      tensor.yield %zero : f16
    } : tensor<?x32xf16> to tensor<16x32xf16>
    %2 = tensor.extract_slice %y[%i, 0] [%size, 32] [1, 1] : tensor<100x32xf16> to tensor<?x32xf16>
    %3 = tensor.pad %2 low[0, 0] high[%low, 0] {
    ^bb0(%a: index, %b: index):
      tensor.yield %zero : f16
    } {flash.to_end} : tensor<?x32xf16> to tensor<16x32xf16>
    %4 = tensor.extract_slice %v[%i] [%size] [1] : tensor<100xf32> to tensor<?xf32>
    %5 = tensor.pad %4 low[0] high[%low] {
    ^bb0(%a: index):
      tensor.yield %zero32 : f32
    } : tensor<?xf32> to tensor<16xf32>
    %sum = arith.addf %1, %3 : tensor<16x32xf16>
    %exps = math.exp2 %5 : tensor<16xf32>
    %some = tensor.extract_slice %sum[0, 0] [%size, 32] [1, 1] : tensor<16x32xf16> to tensor<?x32xf16>
    %some_exps = tensor.extract_slice %exps[0] [%size] [1] : tensor<16xf32> to tensor<?xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %some into %o[%i, 0] [%size, 32] [1, 1] : tensor<?x32xf16> into tensor<100x32xf16>
      tensor.parallel_insert_slice %some_exps into %ov[%i] [%size] [1] : tensor<?xf32> into tensor<100xf32>
    }
  }
  return %r#0, %r#1 : tensor<100x32xf16>, tensor<100xf32>
}

// A tile whose rows lie along the last dimension of the memory is fetched as it
// lies, for a product that takes it with its columns as rows.

// CHECK-LABEL: gpu.func @columns_as_rows(
// CHECK:       %[[K:.*]] = tile.fetch %arg1[%c0] : {{.*}} to <32x16xf16, swizzle = 32>
// CHECK:       tile.mma_async %{{.*}}, %[[K]] transpose_b :
func.func @columns_as_rows(%x: tensor<16x16xf16>, %k: tensor<32x16xf16>) -> tensor<16x32xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16x32xf32>
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<16x32xf32>) {
    %0 = tensor.empty() : tensor<16x32xf32>
    %1 = linalg.fill ins(%zero : f32) outs(%0 : tensor<16x32xf32>) -> tensor<16x32xf32>
    %2 = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
        ins(%x, %k : tensor<16x16xf16>, tensor<32x16xf16>) outs(%1 : tensor<16x32xf32>) -> tensor<16x32xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %2 into %o[0, 0] [16, 32] [1, 1] : tensor<16x32xf32> into tensor<16x32xf32>
    }
  }
  return %r : tensor<16x32xf32>
}

// A cast makes a type more or less static and nothing else.

// CHECK-LABEL: gpu.func @casts(
// CHECK:       tile.fetch %arg0[%{{.*}}, %c0] : memref<4x16x32xf16
// CHECK:       tile.store
func.func @casts(%x: tensor<4x16x32xf16>) -> tensor<4x16x32xf16> {
  %e = tensor.empty() : tensor<4x16x32xf16>
  %r = scf.forall (%i) in (4) shared_outs(%o = %e) -> (tensor<4x16x32xf16>) {
    %0 = tensor.extract_slice %x[%i, 0, 0] [1, 16, 32] [1, 1, 1] : tensor<4x16x32xf16> to tensor<16x32xf16>
    %1 = tensor.cast %0 : tensor<16x32xf16> to tensor<?x32xf16>
    %2 = tensor.cast %1 : tensor<?x32xf16> to tensor<16x32xf16>
    %3 = arith.addf %2, %2 : tensor<16x32xf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %3 into %o[%i, 0, 0] [1, 16, 32] [1, 1, 1] : tensor<16x32xf16> into tensor<4x16x32xf16>
    }
  }
  return %r : tensor<4x16x32xf16>
}

// A tile is fetched where it is taken, be it used in a branch alone.

// CHECK-LABEL: gpu.func @in_loop(
// CHECK-DAG:   %[[OUTSIDE:.*]] = tile.fetch %arg0
// CHECK:       scf.for
// CHECK:         %[[INSIDE:.*]] = tile.fetch %arg1
// CHECK:         scf.if
// CHECK:           tile.mma_async %[[OUTSIDE]], %[[INSIDE]] add
func.func @in_loop(%x: tensor<16x16xf16>, %k: tensor<64x16xf16>, %c: i1) -> tensor<16x16xf32> {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %e = tensor.empty() : tensor<16x16xf32>
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<16x16xf32>) {
    %q = tensor.extract_slice %x[0, 0] [16, 16] [1, 1] : tensor<16x16xf16> to tensor<16x16xf16>
    %0 = tensor.empty() : tensor<16x16xf32>
    %1 = linalg.fill ins(%zero : f32) outs(%0 : tensor<16x16xf32>) -> tensor<16x16xf32>
    %2 = scf.for %j = %c0 to %c64 step %c16 iter_args(%acc = %1) -> (tensor<16x16xf32>) {
      %kt = tensor.extract_slice %k[%j, 0] [16, 16] [1, 1] : tensor<64x16xf16> to tensor<16x16xf16>
      %here = arith.cmpi sgt, %j, %c16 : index
      %3 = scf.if %here -> (tensor<16x16xf32>) {
        %4 = linalg.matmul ins(%q, %kt : tensor<16x16xf16>, tensor<16x16xf16>) outs(%acc : tensor<16x16xf32>) -> tensor<16x16xf32>
        scf.yield %4 : tensor<16x16xf32>
      } else {
        scf.yield %acc : tensor<16x16xf32>
      }
      scf.yield %3 : tensor<16x16xf32>
    }
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %2 into %o[0, 0] [16, 16] [1, 1] : tensor<16x16xf32> into tensor<16x16xf32>
    }
  }
  return %r : tensor<16x16xf32>
}

// A tile without what is not finite is fetched a second time.

// CHECK-LABEL: gpu.func @zero_nonfinite(
// CHECK:       %[[K:.*]] = tile.fetch %[[M:[^ ]*]][%{{.*}}] : memref
// CHECK:       %[[F:.*]] = tile.fetch %[[M]][%{{.*}}] finite : memref
// CHECK:       tile.mma_async %[[K]], %[[F]]
func.func @zero_nonfinite(%x: tensor<16x16xf16>) -> tensor<16x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16x16xf32>
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<16x16xf32>) {
    %k = tensor.extract_slice %x[0, 0] [16, 16] [1, 1] : tensor<16x16xf16> to tensor<16x16xf16>
    %f = flash.zero_nonfinite %k : tensor<16x16xf16>
    %0 = tensor.empty() : tensor<16x16xf32>
    %1 = linalg.fill ins(%zero : f32) outs(%0 : tensor<16x16xf32>) -> tensor<16x16xf32>
    %2 = linalg.matmul ins(%k, %f : tensor<16x16xf16>, tensor<16x16xf16>) outs(%1 : tensor<16x16xf32>) -> tensor<16x16xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %2 into %o[0, 0] [16, 16] [1, 1] : tensor<16x16xf32> into tensor<16x16xf32>
    }
  }
  return %r : tensor<16x16xf32>
}

// flash.is_finite looks at the tile that a product takes.

// CHECK-LABEL: gpu.func @is_finite(
// CHECK:       %[[V:.*]] = tile.fetch
// CHECK:       %[[F:.*]] = tile.is_finite %[[V]]
// CHECK:       scf.if %[[F]]
func.func @is_finite(%x: tensor<16x16xf16>) -> tensor<16x16xf16> {
  %one = arith.constant 1.0 : f16
  %e = tensor.empty() : tensor<16x16xf16>
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<16x16xf16>) {
    %v = tensor.extract_slice %x[0, 0] [16, 16] [1, 1] : tensor<16x16xf16> to tensor<16x16xf16>
    %finite = flash.is_finite %v : tensor<16x16xf16>
    %0 = tensor.empty() : tensor<16x16xf16>
    %1 = linalg.fill ins(%one : f16) outs(%0 : tensor<16x16xf16>) -> tensor<16x16xf16>
    %2 = scf.if %finite -> (tensor<16x16xf16>) {
      %3 = arith.addf %v, %v : tensor<16x16xf16>
      scf.yield %3 : tensor<16x16xf16>
    } else {
      scf.yield %1 : tensor<16x16xf16>
    }
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %2 into %o[0, 0] [16, 16] [1, 1] : tensor<16x16xf16> into tensor<16x16xf16>
    }
  }
  return %r : tensor<16x16xf16>
}

// Some of the columns of a tile are stored one by one, and so are all where two
// neighbours would not lie next to each other, or not at an even address.

// CHECK-LABEL: gpu.func @some_columns(
// CHECK-SAME:  memref<16x5xf16, strided<[?, 1], offset: ?>>
// CHECK-SAME:  memref<16x33xf16, strided<[?, 1], offset: ?>>
// CHECK-SAME:  memref<16x34xf16, strided<[?, 1], offset: ?>>
// CHECK-SAME:  memref<16x34xf16, strided<[?, 1], offset: ?>>
// CHECK-SAME:  memref<3x16x16xf16, strided<[?, ?, ?], offset: ?>>
// CHECK:       tile.store %[[Y:.*]], %arg1[%c0, %c0] columns(%c5) :
// CHECK:       tile.store %[[Y]], %arg2[%c0, %c0] columns(%c16) :
// CHECK:       tile.store %[[Y]], %arg3[%c0, %c2] : tensor
// CHECK:       tile.store %[[Y]], %arg4[%c0, %c1] columns(%c16) :
// CHECK:       tile.store %[[Y]], %arg5[%c1, %c0, %c0] columns(%c16) :
func.func @some_columns(%x: tensor<16x16xf16>) -> (tensor<16x5xf16>, tensor<16x33xf16>, tensor<16x34xf16>, tensor<16x34xf16>, tensor<16x16x3xf16>) {
  %e0 = tensor.empty() : tensor<16x5xf16>
  %e1 = tensor.empty() : tensor<16x33xf16>
  %e2 = tensor.empty() : tensor<16x34xf16>
  %e4 = tensor.empty() : tensor<16x16x3xf16>
  %r:5 = scf.forall (%i) in (1) shared_outs(%o0 = %e0, %o1 = %e1, %o2 = %e2, %o3 = %e2, %o4 = %e4)
      -> (tensor<16x5xf16>, tensor<16x33xf16>, tensor<16x34xf16>, tensor<16x34xf16>, tensor<16x16x3xf16>) {
    %y = arith.addf %x, %x : tensor<16x16xf16>
    %some = tensor.extract_slice %y[0, 0] [16, 5] [1, 1] : tensor<16x16xf16> to tensor<16x5xf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %some into %o0[0, 0] [16, 5] [1, 1] : tensor<16x5xf16> into tensor<16x5xf16>
      tensor.parallel_insert_slice %y into %o1[0, 0] [16, 16] [1, 1] : tensor<16x16xf16> into tensor<16x33xf16>
      tensor.parallel_insert_slice %y into %o2[0, 2] [16, 16] [1, 1] : tensor<16x16xf16> into tensor<16x34xf16>
      tensor.parallel_insert_slice %y into %o3[0, 1] [16, 16] [1, 1] : tensor<16x16xf16> into tensor<16x34xf16>
      tensor.parallel_insert_slice %y into %o4[0, 0, 1] [16, 16, 1] [1, 1, 1] : tensor<16x16xf16> into tensor<16x16x3xf16>
    }
  }
  return %r#0, %r#1, %r#2, %r#3, %r#4 : tensor<16x5xf16>, tensor<16x33xf16>, tensor<16x34xf16>, tensor<16x34xf16>, tensor<16x16x3xf16>
}

// Copies are of 16 bytes: a tile from another column on is read element by
// element, one whose columns a loop counts is fetched where its steps are whole
// copies.

// CHECK-LABEL: gpu.func @alignment(
// CHECK:       %[[J:.*]] = arith.muli {{.*}}, %c32
// CHECK:       tile.fetch %arg0[%c0, %[[J]]] : {{.*}} to <16x32xf16
// CHECK:       tile.fetch %arg0[%c0, %{{.*}}] : {{.*}} to <16x32xf16
// CHECK:       %[[MAP:.*]] = tile.map : () -> tensor<16x32xf32
// CHECK:         memref.load
// CHECK-NOT:   tile.fetch
func.func @alignment(%x: tensor<16x256xf16>) -> tensor<16x64xf16> {
  %e = tensor.empty() : tensor<16x64xf16>
  %r = scf.forall (%j) = (0) to (64) step (32) shared_outs(%o = %e) -> (tensor<16x64xf16>) {
    %next = affine.apply affine_map<(d0) -> (d0 * 2 + 64)>(%j)
    %odd = affine.apply affine_map<(d0) -> (d0 + 4)>(%j)
    %0 = tensor.extract_slice %x[0, %j] [16, 32] [1, 1] : tensor<16x256xf16> to tensor<16x32xf16>
    %1 = tensor.extract_slice %x[0, %next] [16, 32] [1, 1] : tensor<16x256xf16> to tensor<16x32xf16>
    %2 = tensor.extract_slice %x[0, %odd] [16, 32] [1, 1] : tensor<16x256xf16> to tensor<16x32xf16>
    %3 = arith.addf %0, %1 : tensor<16x32xf16>
    %4 = arith.addf %3, %2 : tensor<16x32xf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %4 into %o[0, %j] [16, 32] [1, 1] : tensor<16x32xf16> into tensor<16x64xf16>
    }
  }
  return %r : tensor<16x64xf16>
}

// The first rows of a padded tile are stored as they are.

// CHECK-LABEL: gpu.func @part_of_padded(
// CHECK:       %[[T:.*]] = tile.fetch %arg0[%c0] rows(%c10)
// CHECK:       %[[X:.*]] = tile.load %[[T]]
// CHECK:       tile.store %[[X]], %{{.*}} rows(%c10)
func.func @part_of_padded(%x: tensor<10x16xf16>) -> tensor<10x16xf16> {
  %zero = arith.constant 0.0 : f16
  %e = tensor.empty() : tensor<10x16xf16>
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<10x16xf16>) {
    %0 = tensor.pad %x low[0, 0] high[6, 0] {
    ^bb0(%a: index, %b: index):
      tensor.yield %zero : f16
    } : tensor<10x16xf16> to tensor<16x16xf16>
    %1 = tensor.extract_slice %0[0, 0] [10, 16] [1, 1] : tensor<16x16xf16> to tensor<10x16xf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %1 into %o[0, 0] [10, 16] [1, 1] : tensor<10x16xf16> into tensor<10x16xf16>
    }
  }
  return %r : tensor<10x16xf16>
}

// Elements that a loop inserts into a part of an output, one after the other,
// are stored where they are inserted.

// CHECK-LABEL: gpu.func @elements(
// CHECK-SAME:    %[[X:.*]]: memref<8xf32{{.*}}>, %[[O:.*]]: memref<4x8xi32
// CHECK:       %[[I:.*]] = tile.position
// CHECK:       scf.for %[[J:.*]] = %c0{{.*}} to %c8{{.*}} iter_args(%[[N:.*]] = %c0{{.*}}) -> (index)
// CHECK:         %[[E:.*]] = memref.load %[[X]][%[[J]]]
// CHECK:         %[[NUMBER:.*]] = arith.index_cast %[[J]] : index to i32
// CHECK:         memref.store %[[NUMBER]], %[[O]][%[[I]], %[[N]]]
// CHECK:         scf.yield %{{.*}} : index
func.func @elements(%x: tensor<8xf32>) -> tensor<4x8xi32> {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %e = tensor.empty() : tensor<4x8xi32>
  %r = scf.forall (%i) in (4) shared_outs(%o = %e) -> (tensor<4x8xi32>) {
    %row = tensor.extract_slice %o[%i, 0] [1, 8] [1, 1] : tensor<4x8xi32> to tensor<8xi32>
    %all:2 = scf.for %j = %c0 to %c8 step %c1 iter_args(%n = %c0, %list = %row) -> (index, tensor<8xi32>) {
      %y = tensor.extract %x[%j] : tensor<8xf32>
      %more = arith.cmpf ogt, %y, %zero : f32
      %number = arith.index_cast %j : index to i32
      %next = tensor.insert %number into %list[%n] : tensor<8xi32>
      %n1 = arith.addi %n, %c1 : index
      %count = arith.select %more, %n1, %n : index
      scf.yield %count, %next : index, tensor<8xi32>
    }
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %all#1 into %o[%i, 0] [1, 8] [1, 1] : tensor<8xi32> into tensor<4x8xi32>
    }
  }
  return %r : tensor<4x8xi32>
}
