// Loops whose bodies are products, elementwise arithmetic, a softmax of rows.
// RUN: flash-opt %s --flash-tile-naive --convert-flash-to-scf --flash-tile-softmax="row-tile=8 reduction-bytes=1024" --canonicalize --cse --flash-decompose=guard-values --cse --convert-linalg-to-tile --canonicalize --cse | FileCheck %s

// CHECK-LABEL: func @attention(
// CHECK:         %[[S:.*]] = memref.alloc({{.*}}) : memref<2x4x?x?xf16>
// CHECK:         gpu.launch_func @kernels::@attention {{.*}}threads in (%c256,
// CHECK:         gpu.launch_func @kernels::@attention_0
// CHECK:         gpu.launch_func @kernels::@attention_1

// CHECK:       gpu.func @attention(
// CHECK:         tile.fetch %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}] rows(%{{.*}})
// CHECK:         %[[P:.*]] = tile.mma_async %{{.*}}, %{{.*}} transpose_b
// CHECK:         %[[QK:.*]] = tile.mma_wait %[[P]]
// CHECK:         %[[X:.*]] = tile.map %[[QK]]
// CHECK:           arith.cmpi sge
// CHECK:         %[[R:.*]] = arith.truncf %[[X]]
// CHECK:         tile.store %[[R]], %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}] rows(

// CHECK:       gpu.func @attention_0(
// CHECK:         scf.for {{.*}} step %c512
// CHECK:           tile.read {{.*}} rows(%{{.*}}) columns(%{{.*}}) padding(%{{.*}} : f16) nonempty : {{.*}} to tensor<8x512xf16, #tile.warp_rows<8, 8>>
// CHECK:           tile.fold {{ *}}max
// CHECK:           tile.reduce {{ *}}max
// CHECK:           tile.fold {{ *}}add
// CHECK:           tile.reduce {{ *}}add
// CHECK:         scf.for
// CHECK:           tile.read
// CHECK:           tile.store {{.*}} columns(

// CHECK:       gpu.func @attention_1(
// CHECK:         scf.for %[[J:.*]] = %c0 {{.*}} step %c64
// CHECK-DAG:       %[[A:.*]] = tile.fetch %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}, %[[J]]]
// CHECK-DAG:       %[[V:.*]] = tile.fetch %{{.*}}[%{{.*}}, %{{.*}}, %[[J]]] rows(
// CHECK:           tile.mma_async %[[A]], %[[V]] add
func.func @attention(%q: tensor<2x4x?x64xf16>, %k: tensor<2x2x?x64xf16>, %v: tensor<2x2x?x48xf16>) -> tensor<2x4x?x48xf16> {
  %o = flash.attention %q, %k, %v mask(#flash.causal)
      : (tensor<2x4x?x64xf16>, tensor<2x2x?x64xf16>, tensor<2x2x?x48xf16>) -> tensor<2x4x?x48xf16>
  return %o : tensor<2x4x?x48xf16>
}
