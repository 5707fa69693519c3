// RUN: launch-plan-opt --test-launch-plan %S/Inputs/attention.mlir -o /dev/null | FileCheck %s --check-prefix=ATTENTION
// RUN: launch-plan-opt --test-launch-plan %s -o /dev/null | FileCheck %s

// What a cast of an argument asks for is checked when the call starts; that is
// the innermost stride of argument 0.
// ATTENTION-LABEL: plan @attention
// ATTENTION-NEXT:  argument 0 f16 sizes [?, 4, ?, 64] strides [?, ?, ?, 1] align 16{{$}}
// ATTENTION-NEXT:  argument 1 f16 sizes [?, ?, 4, 64] strides [?, 256, 64, 1] dense align 2
// ATTENTION-NEXT:  argument 2 i32 sizes [?] strides [?] align 4
// ATTENTION-DAG:   r[[B:[0-9]+]] = size 0 of argument 0
// ATTENTION-DAG:   r[[NQ:[0-9]+]] = size 2 of argument 0
// ATTENTION-DAG:   r[[B1:[0-9]+]] = size 0 of argument 1
// ATTENTION-DAG:   r[[STRIDE:[0-9]+]] = stride 0 of argument 1
// ATTENTION-DAG:   r[[NK:[0-9]+]] = size 1 of argument 1
// ATTENTION-DAG:   r[[N:[0-9]+]] = size 0 of argument 2
// ATTENTION:       r[[SAME:[0-9]+]] = eq r[[B]], r[[N]]
// ATTENTION-NEXT:  assert r[[SAME]], "lengths has one element per batch, 100%s \"sure??!\""
// ATTENTION-NEXT:  r[[TILES:[0-9]+]] = ceildivu r[[NQ]], 128
// ATTENTION-NEXT:  r[[HEADS:[0-9]+]] = mul r[[B]], 2
// ATTENTION-NEXT:  r[[PARTS:[0-9]+]] = ceildivs r[[NK]], 512
// ATTENTION-NEXT:  r[[SPLITS:[0-9]+]] = mins r[[PARTS]], 8
// ATTENTION:       r[[HALF:[0-9]+]] = divs r[[NK]], 2
// ATTENTION-NEXT:  r[[OFFSET:[0-9]+]] = mul r[[HALF]], 256
// ATTENTION:       buffer 0 f16 sizes [r[[B]], 4, r[[NQ]], 64]
// ATTENTION-NEXT:  buffer 1 f32 sizes [r[[B]], 4, r[[NQ]]]
// ATTENTION-NEXT:  buffer 2 f32 sizes [r[[SPLITS]], r[[B]], 4, r[[NQ]], 64]
// ATTENTION-NEXT:  result 0 buffer 0 sizes [r[[B]], 4, r[[NQ]], 64] strides [{{.*}}] open [?, ?, ?, ?] dense align 64
// ATTENTION-NEXT:  result 1 buffer 1 sizes [r[[B]], 4, r[[NQ]]] strides [{{.*}}] open [?, ?, ?] dense align 16
// ATTENTION-NEXT:  launch @kernels::@attention grid [r[[TILES]], r[[HEADS]], r[[SPLITS]]] block [128, 1, 1] shared 65536 parameters 168
// ATTENTION-NEXT:    0: ptr argument 0 + 0
// ATTENTION-NEXT:    8: i32 r[[B]]
// ATTENTION-NEXT:    12: i32 r[[NQ]]
// ATTENTION:         88: ptr argument 1 + r[[OFFSET]]
// ATTENTION-NEXT:    96: i32 r[[B]]
// ATTENTION-NEXT:    104: i64 r[[STRIDE]]
// ATTENTION-NEXT:    112: ptr buffer 2 + 0
// ATTENTION:         164: f32 1040187392
// ATTENTION-NEXT:  launch @kernels::@merge grid [r[[TILES]], 1, 1] block [128, 1, 1] shared 0

module attributes {gpu.container_module} {

// CHECK-LABEL: plan @views
// CHECK-DAG:   r[[A:[0-9]+]] = size 0 of argument 0
// CHECK-DAG:   r[[S0:[0-9]+]] = stride 0 of argument 0
// CHECK-DAG:   r[[S1:[0-9]+]] = stride 1 of argument 0
func.func @views(%x: memref<?x6xf32, strided<[?, ?], offset: ?>>) -> memref<?x1x6xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %a = memref.dim %x, %c0 : memref<?x6xf32, strided<[?, ?], offset: ?>>
  // Unit dimensions come and go; a group that is split gets the product.
  %expand = memref.expand_shape %x [[0, 1], [2, 3, 4]] output_shape [%a, 1, 2, 3, 1] : memref<?x6xf32, strided<[?, ?], offset: ?>> into memref<?x1x2x3x1xf32, strided<[?, ?, ?, ?, ?], offset: ?>>
  %collapse = memref.collapse_shape %expand [[0, 1], [2], [3, 4]] : memref<?x1x2x3x1xf32, strided<[?, ?, ?, ?, ?], offset: ?>> into memref<?x2x3xf32, strided<[?, ?, ?], offset: ?>>
  // Every second row from row 1, without the dimension of size 1.
  %half = arith.divui %a, %c2 : index
  %sub = memref.subview %collapse[1, 1, 0] [%half, 1, 3] [2, 1, 1] : memref<?x2x3xf32, strided<[?, ?, ?], offset: ?>> to memref<?x3xf32, strided<[?, ?], offset: ?>>
  // Counted from the argument's first element, not from the view's.
  %again = memref.reinterpret_cast %sub to offset: [%a], sizes: [%half, 2], strides: [%a, 1] : memref<?x3xf32, strided<[?, ?], offset: ?>> to memref<?x2xf32, strided<[?, 1], offset: ?>>
  // CHECK: r[[GROUP:[0-9]+]] = mul r[[S1]], 3
  // CHECK: r[[HALF:[0-9]+]] = divu r[[A]], 2
  // CHECK: r[[STEP:[0-9]+]] = mul 2, r[[S0]]
  // CHECK: r[[OFFSET:[0-9]+]] = add r[[S0]], r[[GROUP]]
  // CHECK: result 0 buffer 0 sizes [r[[A]], 1, 6] strides [r[[ROW:[0-9]+]], r[[ROW]], r{{[0-9]+}}] open [?, ?, ?] dense align 16
  %o = memref.alloc(%a) : memref<?x6xf32>
  %result = memref.expand_shape %o [[0, 1], [2]] output_shape [%a, 1, 6] : memref<?x6xf32> into memref<?x1x6xf32>
  // CHECK:      launch @kernels::@views
  // CHECK-NEXT:   0: ptr argument 0 + 0
  // CHECK-NEXT:   8: i32 r[[A]]
  // CHECK-NEXT:   16: i64 r[[S0]]
  // CHECK-NEXT:   24: i64 r[[GROUP]]
  // CHECK-NEXT:   32: i64 r[[S1]]
  // CHECK-NEXT:   40: ptr argument 0 + r[[OFFSET]]
  // CHECK-NEXT:   48: i32 r[[HALF]]
  // CHECK-NEXT:   56: i64 r[[STEP]]
  // CHECK-NEXT:   64: i64 r[[S1]]
  // CHECK-NEXT:   72: ptr argument 0 + r[[A]]
  // CHECK-NEXT:   80: i32 r[[HALF]]
  // CHECK-NEXT:   88: i64 r[[A]]
  // CHECK-NEXT:   96: ptr buffer 0 + 0
  // CHECK-NEXT:   104: i32 r[[A]]
  gpu.launch_func @kernels::@views blocks in (%a, %c1, %c1) threads in (%c1, %c1, %c1)
      args(%collapse : memref<?x2x3xf32, strided<[?, ?, ?], offset: ?>>, %sub : memref<?x3xf32, strided<[?, ?], offset: ?>>,
           %again : memref<?x2xf32, strided<[?, 1], offset: ?>>, %result : memref<?x1x6xf32>)
  return %result : memref<?x1x6xf32>
}

// A cast of a view is checked where it is; what is known needs no check.
// CHECK-LABEL: plan @casts
// CHECK-NEXT:  argument 0 f32 sizes [?, 8] strides [8, 1] dense
// CHECK:       r[[N:[0-9]+]] = size 0 of argument 0
// CHECK:       r[[EQ:[0-9]+]] = eq r[[N]], 4
// CHECK-NEXT:  assert r[[EQ]], "memref.cast: the size of dimension 0 is not 4"
// CHECK-NOT:   assert
// CHECK:       buffer 0 f32 sizes [4, 8]
func.func @casts(%x: memref<?x?xf32>) -> memref<?x?xf32> {
  %c0 = arith.constant 0 : index
  %whole = memref.cast %x : memref<?x?xf32> to memref<?x8xf32>
  %n = memref.dim %whole, %c0 : memref<?x8xf32>
  %sub = memref.subview %whole[0, 0] [%n, 8] [1, 1] : memref<?x8xf32> to memref<?x8xf32, strided<[8, 1]>>
  %four = memref.cast %sub : memref<?x8xf32, strided<[8, 1]>> to memref<4x8xf32, strided<[8, 1]>>
  %m = memref.dim %four, %c0 : memref<4x8xf32, strided<[8, 1]>>
  %o = memref.alloc(%m) : memref<?x8xf32>
  %known = memref.cast %o : memref<?x8xf32> to memref<4x8xf32>
  %any = memref.cast %known : memref<4x8xf32> to memref<*xf32>
  %result = memref.cast %any : memref<*xf32> to memref<?x?xf32>
  return %result : memref<?x?xf32>
}

// CHECK-LABEL: plan @metadata
// CHECK-DAG:   r[[A:[0-9]+]] = size 0 of argument 0
// CHECK-DAG:   r[[S:[0-9]+]] = stride 0 of argument 0
// CHECK:       r[[REST:[0-9]+]] = remu r[[S]], 8
// CHECK:       r[[OK:[0-9]+]] = eq r[[REST]], 0
// CHECK-NEXT:  assert r[[OK]], "rows start at multiples of 16 bytes"
// CHECK:       buffer 0 f16 sizes [r[[A]]]
func.func @metadata(%x: memref<?x6xf16, strided<[?, 1], offset: ?>>) -> memref<?xf16> {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %base, %offset, %sizes:2, %strides:2 = memref.extract_strided_metadata %x : memref<?x6xf16, strided<[?, 1], offset: ?>> -> memref<f16>, index, index, index, index, index
  %rest = arith.remui %strides#0, %c8 : index
  %ok = arith.cmpi eq, %rest, %c0 : index
  cf.assert %ok, "rows start at multiples of 16 bytes"
  %size = arith.addi %sizes#0, %offset : index
  %o = memref.alloc(%size) : memref<?xf16>
  %result = memref.assume_alignment %o, 128 : memref<?xf16>
  return %result : memref<?xf16>
}

// A view is aligned where its argument is and its offset is a multiple.

// CHECK-LABEL: plan @aligned_views
// CHECK:       argument 0 {{.*}}align 16
// CHECK:       r[[OFFSET:[0-9]+]] = mul
// CHECK:       r[[BYTES:[0-9]+]] = mul r[[OFFSET]], 2
// CHECK:       r[[REST:[0-9]+]] = rems r[[BYTES]], 16
// CHECK:       r[[OK:[0-9]+]] = eq r[[REST]], 0
// CHECK-NEXT:  assert r[[OK]], "memref.assume_alignment: a view does not start at a multiple of 16 bytes"
func.func @aligned_views(%x: memref<?x8xf16>, %i: memref<?xf16>) -> memref<?xf16> {
  %c0 = arith.constant 0 : index
  %n = memref.dim %i, %c0 : memref<?xf16>
  %fixed = memref.subview %x[2, 0] [2, 8] [1, 1] : memref<?x8xf16> to memref<2x8xf16, strided<[8, 1], offset: 16>>
  %0 = memref.assume_alignment %fixed, 16 : memref<2x8xf16, strided<[8, 1], offset: 16>>
  %open = memref.subview %x[%n, 0] [2, 8] [1, 1] : memref<?x8xf16> to memref<2x8xf16, strided<[8, 1], offset: ?>>
  %1 = memref.assume_alignment %open, 16 : memref<2x8xf16, strided<[8, 1], offset: ?>>
  %o = memref.alloc(%n) : memref<?xf16>
  return %o : memref<?xf16>
}

gpu.module @kernels {
  gpu.func @views(%a: memref<?x2x3xf32, strided<[?, ?, ?], offset: ?>>, %b: memref<?x3xf32, strided<[?, ?], offset: ?>>,
                  %c: memref<?x2xf32, strided<[?, 1], offset: ?>>, %d: memref<?x1x6xf32>) kernel {
    gpu.return
  }
}
}
