// RUN: flash-opt %s --flash-promote-to-f64 --split-input-file | FileCheck %s --implicit-check-not=f16 --implicit-check-not=f32
// RUN: flash-opt %examples/softcap_alibi.mlir --flash-decompose-naive=row-block=64 --flash-promote-to-f64 \
// RUN:   | FileCheck %s --check-prefix=NAIVE --implicit-check-not=f16 --implicit-check-not=f32
// RUN: flash-opt %examples/from_linalg.mlir --flash-promote-to-f64 \
// RUN:   | FileCheck %s --check-prefix=LINALG --implicit-check-not=f16 --implicit-check-not=f32

// NAIVE:  func @attention(%arg0: tensor<?x?x?x128xf64>
// NAIVE:    tensor.parallel_insert_slice {{.*}} : tensor<?x128xf64> into tensor<?x?x?x128xf64>

// LINALG: %[[SCALE:.*]] = arith.constant dense<1.250000e-01> : tensor<8x256x256xf64>
// LINALG: linalg.softmax dimension(2) ins(%{{.*}} : tensor<8x256x256xf64>)
// LINALG: linalg.batch_matmul ins({{.*}} : tensor<8x256x256xf64>, tensor<8x256x64xf64>)

// Conversions between promoted types vanish, others stay; constants keep the
// value that they had in their own type; integers are left alone.

// CHECK-LABEL: func @scalars(
// CHECK-SAME:      %[[X:.*]]: f64, %[[Y:.*]]: f64, %[[I:.*]]: i32, %[[W:.*]]: f64) -> (f64, i32, f64)
// CHECK-DAG:     %[[TENTH:.*]] = arith.constant 0.0999755859375 : f64
// CHECK-DAG:     %[[INF:.*]] = arith.constant 0xFFF0000000000000 : f64
// CHECK-DAG:     arith.constant dense<[1.000000e+00, 2.500000e+00]> : tensor<2xf64>
// CHECK-DAG:     arith.constant dense<7> : tensor<2xi32>
// CHECK:         %[[S:.*]] = arith.addf %[[X]], %[[TENTH]] : f64
// CHECK:         %[[T:.*]] = arith.maximumf %[[S]], %[[INF]] : f64
// CHECK:         %[[U:.*]] = arith.sitofp %[[I]] : i32 to f64
// CHECK:         %[[R:.*]] = arith.mulf %[[T]], %[[U]] : f64
// CHECK:         return %[[R]], %[[I]], %[[W]]
func.func @scalars(%x: f16, %y: bf16, %i: i32, %w: f64) -> (f16, i32, f32) {
  %tenth = arith.constant 0.1 : f16
  %inf = arith.constant 0xFF800000 : f32
  %list = arith.constant dense<[1.0, 2.5]> : tensor<2xbf16>
  %ints = arith.constant dense<7> : tensor<2xi32>
  %s = arith.addf %x, %tenth : f16
  %e = arith.extf %s : f16 to f32
  %t = arith.maximumf %e, %inf : f32
  %u = arith.sitofp %i : i32 to f32
  %p = arith.mulf %t, %u : f32
  %r = arith.truncf %p : f32 to f16
  %n = arith.truncf %w : f64 to f32
  return %r, %i, %n : f16, i32, f32
}

// -----

// Calls, loops and branches.

// CHECK-LABEL: func private @callee(%arg0: tensor<?xf64>) -> f64
func.func private @callee(%x: tensor<?xf16>) -> f32 {
  %c0 = arith.constant 0 : index
  %y = tensor.extract %x[%c0] : tensor<?xf16>
  %z = arith.extf %y : f16 to f32
  return %z : f32
}

// CHECK-LABEL: func @caller(
// CHECK:         call @callee(%{{.*}}) : (tensor<?xf64>) -> f64
// CHECK:         scf.for {{.*}} -> (f64)
// CHECK:         cf.br ^bb1(%{{.*}} : f64)
// CHECK:       ^bb1(%{{.*}}: f64)
// CHECK:         memref.store %{{.*}} : memref<4xf64>
func.func @caller(%x: tensor<?xf16>, %n: index, %m: memref<4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = call @callee(%x) : (tensor<?xf16>) -> f32
  %b = scf.for %i = %c0 to %n step %c1 iter_args(%s = %a) -> f32 {
    %t = arith.addf %s, %s : f32
    scf.yield %t : f32
  }
  cf.br ^bb1(%b : f32)
^bb1(%c: f32):
  memref.store %c, %m[%c0] : memref<4xf32>
  return
}

// -----

// The bodies of named ops, with the conversions they imply.

// CHECK-LABEL: func @mixed(
// CHECK:         linalg.matmul ins(%arg0, %arg1 : tensor<4x8xf64>, tensor<8x4xf64>) outs(%arg2 : tensor<4x4xf64>)
func.func @mixed(%a: tensor<4x8xf16>, %b: tensor<8x4xf16>, %c: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = linalg.matmul ins(%a, %b : tensor<4x8xf16>, tensor<8x4xf16>) outs(%c : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}

// -----

// Vectors and globals.

// CHECK-LABEL: memref.global "private" constant @table : memref<2xf64> = dense<[1.000000e+00, 2.000000e+00]>
memref.global "private" constant @table : memref<2xf32> = dense<[1.0, 2.0]>
// CHECK-LABEL: func @vectors(
// CHECK:         vector.transfer_read {{.*}} : memref<2xf64>, vector<2xf64>
func.func @vectors() -> vector<2xf32> {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  %t = memref.get_global @table : memref<2xf32>
  %v = vector.transfer_read %t[%c0], %pad : memref<2xf32>, vector<2xf32>
  return %v : vector<2xf32>
}
