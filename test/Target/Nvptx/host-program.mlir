// RUN: host-program-opt --test-host-program %S/Inputs/attention.mlir -o /dev/null | FileCheck %s --check-prefix=ATTENTION
// RUN: host-program-opt --test-host-program %s -o /dev/null | FileCheck %s

// What a cast of an argument demands is checked when the call starts; that is
// the innermost stride of argument 0.
// ATTENTION-LABEL: program @attention
// ATTENTION-NEXT:  argument 0 f16 sizes [?, 4, ?, 64] strides [?, ?, ?, 1] align 16{{$}}
// ATTENTION-NEXT:  argument 1 f16 sizes [?, ?, 4, 64] strides [?, 256, 64, 1] dense align 2
// ATTENTION-NEXT:  argument 2 i32 sizes [?] strides [?] align 4
// ATTENTION-NEXT:  result 0 f16 sizes [?, 4, ?, 64] strides [?, ?, ?, ?] dense align 64
// ATTENTION-NEXT:  result 1 f32 sizes [?, 4, ?] strides [?, ?, ?] dense align 16
// ATTENTION-NEXT:  launch 0 @kernels::@attention parameters 168
// ATTENTION-NEXT:    0: ptr
// ATTENTION-NEXT:    8: i32
// ATTENTION-NEXT:    12: i32
// ATTENTION:         88: ptr
// ATTENTION-NEXT:    96: i32
// ATTENTION-NEXT:    104: i64
// ATTENTION-NEXT:    112: ptr
// ATTENTION:         164: f32
// ATTENTION-NEXT:  launch 1 @kernels::@merge parameters {{[0-9]+}} dependent

// What nothing needs is gone, such as sizes that are known.
// ATTENTION-LABEL: func.func @attention(
// ATTENTION-SAME:  %[[CALL:.*]]: !host.call) -> i32
// ATTENTION-DAG:   %[[Q:.*]] = host.input %[[CALL]][1]
// ATTENTION-DAG:   %[[B:.*]] = host.input %[[CALL]][2]
// ATTENTION-NOT:   host.input %[[CALL]][3]
// ATTENTION-DAG:   %[[NQ:.*]] = host.input %[[CALL]][4]
// ATTENTION-DAG:   %[[K:.*]] = host.input %[[CALL]][10]
// ATTENTION-DAG:   %[[NK:.*]] = host.input %[[CALL]][12]
// ATTENTION-DAG:   %[[STRIDE:.*]] = host.input %[[CALL]][15]
// ATTENTION-DAG:   %[[LENGTHS:.*]] = host.input %[[CALL]][20]
// ATTENTION:       %[[SAME:.*]] = arith.cmpi eq, %[[B]], %[[LENGTHS]]
// ATTENTION-NEXT:  host.check %[[SAME]], "lengths has one element per batch, 100%s \22sure??!\22"
// ATTENTION-NEXT:  %[[TILES:.*]] = host.checked ceildivu %[[NQ]], %c128
// ATTENTION-NEXT:  %[[HEADS:.*]] = host.checked mul %[[B]], %c2
// ATTENTION:       %[[PARTS:.*]] = host.checked ceildivs %[[NK]], %c512
// ATTENTION:       %[[FEW:.*]] = arith.cmpi slt, %[[PARTS]], %c8
// ATTENTION:       %[[SPLITS:.*]] = arith.select %[[FEW]], %[[PARTS]], %c8
// ATTENTION:       %[[HALF:.*]] = host.checked divs %[[NK]], %c2
// ATTENTION:       %[[OFFSET:.*]] = host.checked mul %[[HALF]], %c256
// ATTENTION:       host.check %{{.*}}, "buffer 0: the number of bytes does not fit in 64 bits"
// ATTENTION:       %[[O:.*]] = host.input %[[CALL]][22]
// ATTENTION:       %[[GIVEN:.*]] = arith.cmpi ne
// ATTENTION:       %[[S:.*]] = host.input %[[CALL]][27]
// ATTENTION:       arith.select %[[GIVEN]], %[[S]], %{{.*}}
// ATTENTION:       %[[MARK:.*]] = host.mark %[[CALL]]
// ATTENTION:       %[[SCRATCH:.*]] = host.allocate %[[CALL]], %{{.*}}
// ATTENTION-NEXT:  host.launch %[[CALL]], 0 "attention"(%[[TILES]], %[[HEADS]], %[[SPLITS]], %c128_i64, %c1_i64, %c1_i64, %c65536_i64, %[[Q]], %c0_i64, %[[B]], %[[NQ]],
// ATTENTION-SAME:  %[[K]], %[[OFFSET]], %[[B]], %[[STRIDE]], %[[SCRATCH]], %c0_i64, %[[SPLITS]],
// ATTENTION-NEXT:  host.launch %[[CALL]], 1 "merge"(%[[TILES]],
// ATTENTION-SAME:  %[[O]], %c0_i64,
// ATTENTION-SAME:  dependent{{$}}
// ATTENTION-NEXT:  host.release %[[CALL]], %[[MARK]]
// ATTENTION-NEXT:  host.output %[[CALL]][0], %{{.*}}
// ATTENTION-NEXT:  host.output %[[CALL]][1], %[[B]]
// ATTENTION:       return %c0_i32

module attributes {gpu.container_module} {

// CHECK-LABEL: program @views
// CHECK:       result 0 f32 sizes [?, 1, 6] strides [?, ?, ?] dense align 16
// CHECK-LABEL: func.func @views
// CHECK-DAG:   %[[X:.*]] = host.input %arg0[1]
// CHECK-DAG:   %[[A:.*]] = host.input %arg0[2]
// CHECK-DAG:   %[[S0:.*]] = host.input %arg0[4]
// CHECK-DAG:   %[[S1:.*]] = host.input %arg0[5]
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
  // CHECK: %[[GROUP:.*]] = host.checked mul %[[S1]], %c3_i64
  // CHECK: %[[HALF:.*]] = host.checked divu %[[A]], %c2_i64
  // CHECK: %[[STEP:.*]] = host.checked mul %c2_i64, %[[S0]]
  // CHECK: %[[OFFSET:.*]] = host.checked add %[[S0]], %[[GROUP]]
  %o = memref.alloc(%a) : memref<?x6xf32>
  %result = memref.expand_shape %o [[0, 1], [2]] output_shape [%a, 1, 6] : memref<?x6xf32> into memref<?x1x6xf32>
  // CHECK: %[[O:.*]] = host.input %arg0[6]
  // CHECK:      host.launch %arg0, 0 "views"(%[[A]], %c1_i64, %c1_i64, %c1_i64, %c1_i64, %c1_i64, %c0_i64,
  // CHECK-SAME: {{^}} %[[X]], %c0_i64, %[[A]], %[[S0]], %[[GROUP]], %[[S1]],
  // CHECK-SAME: {{^}} %[[X]], %[[OFFSET]], %[[HALF]], %[[STEP]], %[[S1]],
  // CHECK-SAME: {{^}} %[[X]], %[[A]], %[[HALF]], %[[A]],
  // CHECK-SAME: {{^}} %[[O]], %c0_i64, %[[A]])
  // CHECK:      host.output %arg0[4], %[[ROW:.*]]
  // CHECK-NEXT: host.output %arg0[5], %[[ROW]]
  gpu.launch_func @kernels::@views blocks in (%a, %c1, %c1) threads in (%c1, %c1, %c1)
      args(%collapse : memref<?x2x3xf32, strided<[?, ?, ?], offset: ?>>, %sub : memref<?x3xf32, strided<[?, ?], offset: ?>>,
           %again : memref<?x2xf32, strided<[?, 1], offset: ?>>, %result : memref<?x1x6xf32>)
  return %result : memref<?x1x6xf32>
}

// Memory that is given back is used again, if nothing behind it is in use.
// CHECK-LABEL: func.func @given_back
// CHECK:       %[[FIRST:.*]] = host.mark %arg0
// CHECK:       %[[X:.*]] = host.allocate %arg0
// CHECK:       %[[Y:.*]] = host.allocate %arg0
// CHECK:       host.launch {{.*}} %[[X]], %c0_i64, %{{[0-9]+}}, %[[Y]],
// CHECK-NEXT:  host.release %arg0, %[[FIRST]]
// CHECK:       %[[Z:.*]] = host.allocate %arg0
// CHECK:       %[[KEPT:.*]] = host.allocate %arg0
// CHECK:       host.launch {{.*}} %[[Z]], %c0_i64, %{{[0-9]+}}, %[[KEPT]],
// CHECK-NOT:   host.release
func.func @given_back(%n: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = memref.dim %n, %c0 : memref<?xf32>
  %x = memref.alloc(%a) : memref<?xf32>
  %y = memref.alloc(%a) : memref<?xf32>
  gpu.launch_func @kernels::@two blocks in (%a, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<?xf32>, %y : memref<?xf32>)
  memref.dealloc %x : memref<?xf32>
  memref.dealloc %y : memref<?xf32>
  %z = memref.alloc(%a) : memref<?xf32>
  %kept = memref.alloc(%a) : memref<?xf32>
  gpu.launch_func @kernels::@two blocks in (%a, %c1, %c1) threads in (%c1, %c1, %c1) args(%z : memref<?xf32>, %kept : memref<?xf32>)
  memref.dealloc %z : memref<?xf32>
  return
}

// A cast of a view is checked where it is; what is known needs no check.
// CHECK-LABEL: program @casts
// CHECK-NEXT:  argument 0 f32 sizes [?, 8] strides [8, 1] dense
// CHECK-LABEL: func.func @casts
// CHECK:       %[[N:.*]] = host.input %arg0[2]
// CHECK:       %[[EQ:.*]] = arith.cmpi eq, %[[N]], %c4_i64
// CHECK-NEXT:  host.check %[[EQ]], "memref.cast: the size of dimension 0 is not 4"
// CHECK-NOT:   host.check
// CHECK:       host.output %arg0[0], %c128_i64
// CHECK-NEXT:  host.output %arg0[1], %c4_i64
// CHECK-NEXT:  host.output %arg0[2], %c8_i64
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

// CHECK-LABEL: func.func @metadata
// CHECK-DAG:   %[[A:.*]] = host.input %arg0[2]
// CHECK-DAG:   %[[S:.*]] = host.input %arg0[4]
// CHECK:       %[[REST:.*]] = host.checked remu %[[S]], %c8_i64
// CHECK:       %[[OK:.*]] = arith.cmpi eq, %[[REST]], %c0_i64
// CHECK-NEXT:  host.check %[[OK]], "rows start at multiples of 16 bytes"
// CHECK:       host.output %arg0[1], %[[A]]
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

// CHECK-LABEL: program @aligned_views
// CHECK:       argument 0 {{.*}}align 16
// CHECK-LABEL: func.func @aligned_views
// CHECK:       %[[OFFSET:.*]] = host.checked mul
// CHECK:       %[[BYTES:.*]] = host.checked mul %[[OFFSET]], %c2_i64
// CHECK:       %[[REST:.*]] = arith.remui %[[BYTES]], %c16_i64
// CHECK:       %[[OK:.*]] = arith.cmpi eq, %[[REST]], %c0_i64
// CHECK-NEXT:  host.check %[[OK]], "memref.assume_alignment: a view does not start at a multiple of 16 bytes"
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

// What a branch demands of an argument is not demanded of every caller.

// CHECK-LABEL: program @branch
// CHECK:       argument 0 f16 sizes [?, ?] strides [?, 1] dense align 2
// CHECK-LABEL: func.func @branch
// CHECK:       %[[X:.*]] = host.input %arg0[1]
// CHECK:       %[[N:.*]] = host.input %arg0[2]
// CHECK:       scf.if
// CHECK:         %[[REST:.*]] = arith.remui %[[X]], %c64_i64
// CHECK:         %[[OK:.*]] = arith.cmpi eq, %[[REST]], %c0_i64
// CHECK-NEXT:    host.check %[[OK]], "memref.assume_alignment: a view does not start at a multiple of 64 bytes"
// CHECK:         %[[IS_8:.*]] = arith.cmpi eq, %[[N]], %c8_i64
// CHECK-NEXT:    host.check %[[IS_8]], "memref.cast: the size of dimension 0 is not 8"
func.func @branch(%x: memref<?x?xf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.dim %x, %c1 : memref<?x?xf16>
  %few = arith.cmpi slt, %m, %c1 : index
  scf.if %few {
    %aligned = memref.assume_alignment %x, 64 : memref<?x?xf16>
    %eight = memref.cast %aligned : memref<?x?xf16> to memref<8x?xf16>
  }
  return
}

gpu.module @kernels {
  gpu.func @views(%a: memref<?x2x3xf32, strided<[?, ?, ?], offset: ?>>, %b: memref<?x3xf32, strided<[?, ?], offset: ?>>,
                  %c: memref<?x2xf32, strided<[?, 1], offset: ?>>, %d: memref<?x1x6xf32>) kernel {
    gpu.return
  }
  gpu.func @two(%x: memref<?xf32>, %y: memref<?xf32>) kernel {
    gpu.return
  }
}
}
