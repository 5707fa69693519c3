// What callers may choose of the memory of a result: the strides of the buffer follow
// from those of the result wherever the views between have an inverse.
// RUN: host-program-opt --test-host-program %s -o /dev/null | FileCheck %s

module attributes {gpu.container_module} {

// What a cast demands is demanded of the caller, and the alignment, too.
// CHECK-LABEL: program @cast
// CHECK:         result 0 f32 sizes [?, 64] strides [?, 1] align 32
// CHECK-LABEL: func.func @cast
// CHECK-DAG:     %[[O:.*]] = host.input %arg0[4]
// CHECK-DAG:     %[[GIVEN:.*]] = host.input %arg0[7]
// CHECK:         %[[S:.*]] = arith.select %{{.*}}, %[[GIVEN]], %c64_i64
// CHECK:         host.launch %arg0, 0 "rows"({{.*}}, %[[O]], %c0_i64, %{{.*}}, %[[S]])
func.func @cast(%x: memref<?xf32, strided<[?], offset: ?>>) -> memref<?x64xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xf32, strided<[?], offset: ?>>
  %o = memref.alloc(%n) : memref<?x64xf32>
  %a = memref.assume_alignment %o, 32 : memref<?x64xf32>
  %v = memref.cast %a : memref<?x64xf32> to memref<?x64xf32, strided<[?, 1], offset: ?>>
  gpu.launch_func @kernels::@rows blocks in (%n, %c1, %c1) threads in (%c1, %c1, %c1)
      args(%v : memref<?x64xf32, strided<[?, 1], offset: ?>>)
  return %o : memref<?x64xf32>
}

// Elements that are stored two at a time: the other strides are even.
// CHECK-LABEL: func.func @vector_width
// CHECK:         %[[GIVEN:.*]] = host.input %arg0[7]
// CHECK:         %[[S:.*]] = arith.select %{{.*}}, %[[GIVEN]], %c64_i64
// CHECK:         %[[REST:.*]] = host.checked rems %[[S]], %c2_i64
// CHECK-NEXT:    %[[EVEN:.*]] = arith.cmpi eq, %[[REST]], %c0_i64
// CHECK-NEXT:    host.check %[[EVEN]], "the kernel 'rows' stores 2 elements at a time: the strides of its results must be multiples of that"
// CHECK-NOT:     host.check
// CHECK:         return
func.func @vector_width(%x: memref<?xf32, strided<[?], offset: ?>>) -> memref<?x64xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xf32, strided<[?], offset: ?>>
  %o = memref.alloc(%n) : memref<?x64xf32>
  %v = memref.cast %o : memref<?x64xf32> to memref<?x64xf32, strided<[?, 1], offset: ?>>
  gpu.launch_func @kernels::@rows blocks in (%n, %c1, %c1) threads in (%c1, %c1, %c1)
      args(%v : memref<?x64xf32, strided<[?, 1], offset: ?>>) {tile.store_vector_widths = array<i64: 2>}
  return %o : memref<?x64xf32>
}

// A kernel that takes the identity layout may count on it.
// CHECK-LABEL: program @identity
// CHECK:         result 0 {{.*}} dense align 16
func.func @identity(%x: memref<?xf32, strided<[?], offset: ?>>) -> memref<?x64xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xf32, strided<[?], offset: ?>>
  %o = memref.alloc(%n) : memref<?x64xf32>
  gpu.launch_func @kernels::@dense blocks in (%n, %c1, %c1) threads in (%c1, %c1, %c1)
      args(%o : memref<?x64xf32>)
  return %o : memref<?x64xf32>
}

// Dimensions that the result has as one: both of the buffer follow its stride. Those
// of size 1 come and go.
// CHECK-LABEL: program @collapsed
// CHECK:         result 0 f32 sizes [?, 1, 64] strides [?, ?, 1] align 16
// CHECK-LABEL: func.func @collapsed
// CHECK-DAG:     %[[N:.*]] = host.input %arg0[2]
// CHECK-DAG:     %[[O:.*]] = host.input %arg0[4]
// CHECK-DAG:     %[[GIVEN:.*]] = host.input %arg0[8]
// CHECK:         %[[S:.*]] = arith.select %{{.*}}, %[[GIVEN]], %c64_i64
// CHECK:         %[[OUTER:.*]] = host.checked mul %[[S]], %[[N]]
// CHECK:         host.launch %arg0, 0 "groups"({{.*}}, %[[O]], %c0_i64, %[[N]], %[[OUTER]], %[[S]])
func.func @collapsed(%x: memref<?xf32, strided<[?], offset: ?>>) -> memref<?x1x64xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %n = memref.dim %x, %c0 : memref<?xf32, strided<[?], offset: ?>>
  %o = memref.alloc(%n) : memref<3x?x64xf32>
  %v = memref.cast %o : memref<3x?x64xf32> to memref<3x?x64xf32, strided<[?, ?, 1], offset: ?>>
  gpu.launch_func @kernels::@groups blocks in (%n, %c1, %c1) threads in (%c1, %c1, %c1)
      args(%v : memref<3x?x64xf32, strided<[?, ?, 1], offset: ?>>)
  %rows = arith.muli %n, %c3 : index
  %together = memref.collapse_shape %o [[0, 1], [2]] : memref<3x?x64xf32> into memref<?x64xf32>
  %r = memref.expand_shape %together [[0, 1], [2]] output_shape [%rows, 1, 64] : memref<?x64xf32> into memref<?x1x64xf32>
  return %r : memref<?x1x64xf32>
}

// A dimension of the buffer that the result has as two: only a dense result will do.
// CHECK-LABEL: program @split
// CHECK:         result 0 f32 sizes [?, 4, 16] strides [?, ?, ?] dense align 16
// CHECK-LABEL: func.func @split
// CHECK-NOT:     host.input %arg0[{{[5-9]|1[0-9]}}]
// CHECK:         return
func.func @split(%x: memref<?xf32, strided<[?], offset: ?>>) -> memref<?x4x16xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xf32, strided<[?], offset: ?>>
  %o = memref.alloc(%n) : memref<?x64xf32>
  %v = memref.cast %o : memref<?x64xf32> to memref<?x64xf32, strided<[?, 1], offset: ?>>
  gpu.launch_func @kernels::@rows blocks in (%n, %c1, %c1) threads in (%c1, %c1, %c1)
      args(%v : memref<?x64xf32, strided<[?, 1], offset: ?>>)
  %r = memref.expand_shape %o [[0], [1, 2]] output_shape [%n, 4, 16] : memref<?x64xf32> into memref<?x4x16xf32>
  return %r : memref<?x4x16xf32>
}

gpu.module @kernels {
  gpu.func @rows(%o: memref<?x64xf32, strided<[?, 1], offset: ?>>) kernel {
    gpu.return
  }
  gpu.func @dense(%o: memref<?x64xf32>) kernel {
    gpu.return
  }
  gpu.func @groups(%o: memref<3x?x64xf32, strided<[?, ?, 1], offset: ?>>) kernel {
    gpu.return
  }
}
}
