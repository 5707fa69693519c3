// Every form of every op parses, verifies, and prints to what parses again, also
// through the generic form.
// RUN: flash-opt %s -o %t.mlir
// RUN: flash-opt %t.mlir | diff %t.mlir -
// RUN: flash-opt %s --mlir-print-op-generic | flash-opt | diff %t.mlir -
// RUN: FileCheck %s < %t.mlir

// CHECK-LABEL: func @ops(
func.func @ops(%x: f32) {
  // CHECK: nvx.shared_memory : <3>
  %base = nvx.shared_memory : !llvm.ptr<3>
  // CHECK: nvx.warpgroup : i32
  %w = nvx.warpgroup : i32
  // CHECK: nvx.log2 %{{.*}} : f32
  %l = nvx.log2 %x : f32
  return
}

// CHECK-LABEL: func @products(
func.func @products(%q: i64, %k: i64, %p: vector<8xi32>, %acc: vector<64xf32>) {
  // CHECK: %[[S:.*]] = nvx.warpgroup_mma f16 %{{.*}} at [0, 2] : i64, %{{.*}} at [0, 4] -> vector<64xf32>
  %s = nvx.warpgroup_mma f16 %q at [0, 2] : i64, %k at [0, 4] -> vector<64xf32>
  // CHECK: nvx.warpgroup_mma f16 %{{.*}} at [0, 128] : i64, %{{.*}} at [0, 128] transpose_a transpose_b -> vector<64xf32>
  %t = nvx.warpgroup_mma f16 %q at [0, 128] : i64, %k at [0, 128] transpose_a transpose_b -> vector<64xf32>
  // CHECK: %[[O:.*]] = nvx.warpgroup_mma bf16 %{{.*}} : vector<8xi32>, %{{.*}} at [0, 128] add %{{.*}} : vector<64xf32> transpose_b -> vector<64xf32>
  %o = nvx.warpgroup_mma bf16 %p : vector<8xi32>, %k at [0, 128] add %acc : vector<64xf32> transpose_b -> vector<64xf32>
  // CHECK: nvx.warpgroup_wait 1 %[[S]], %[[O]] : (vector<64xf32>, vector<64xf32>) -> (vector<64xf32>, vector<64xf32>)
  %s1, %o1 = nvx.warpgroup_wait 1 %s, %o : (vector<64xf32>, vector<64xf32>) -> (vector<64xf32>, vector<64xf32>)
  // CHECK: nvx.warpgroup_wait 0 : () -> ()
  nvx.warpgroup_wait 0 : () -> ()
  return
}
