// RUN: flash-opt %s --flash-cpu-convert-to-llvm | FileCheck %s

// CHECK: llvm.func @_mlir_memref_to_llvm_alloc(i64) -> !llvm.ptr
// CHECK-LABEL: llvm.func @sums(
// CHECK-NOT: {{ (arith|cf|index|memref|func)\.}}
func.func @sums(%x: memref<4xf32>, %n: index) -> memref<?xf32> {
  %copy = memref.alloc(%n) : memref<?xf32>
  %one = index.constant 1
  %zero = arith.constant 0 : index
  cf.br ^step(%zero : index)
^step(%i: index):
  %value = memref.load %x[%i] : memref<4xf32>
  %twice = arith.addf %value, %value : f32
  memref.store %twice, %copy[%i] : memref<?xf32>
  %next = index.add %i, %one
  %more = arith.cmpi slt, %next, %n : index
  cf.cond_br %more, ^step(%next : index), ^end
^end:
  return %copy : memref<?xf32>
}

// CHECK-LABEL: llvm.func @vectors(
// CHECK-NOT: {{ vector\.}}
// CHECK: llvm.return
func.func @vectors(%x: memref<8xf32>, %s: f32) {
  %zero = arith.constant 0 : index
  %v = vector.load %x[%zero] : memref<8xf32>, vector<8xf32>
  %b = vector.broadcast %s : f32 to vector<8xf32>
  %y = vector.fma %v, %b, %b : vector<8xf32>
  vector.store %y, %x[%zero] : memref<8xf32>, vector<8xf32>
  return
}

// What is converted before is left as it is.
// CHECK-LABEL: llvm.func @others(
// CHECK: math.exp2
func.func @others(%x: f32) -> f32 {
  %y = math.exp2 %x : f32
  return %y : f32
}
