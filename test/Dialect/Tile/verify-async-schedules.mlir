// What the passes make of a program passes tile-verify-async, whatever the stages,
// the masks (with one, two or three loops) and the tail.
// RUN: flash-opt %s --flash-gpu="target=sm_80 schedule=query_tile=32,key_tile=32,warps=2,stages=1" | FileCheck %s
// RUN: flash-opt %s --flash-gpu="target=sm_80 schedule=query_tile=32,key_tile=32,warps=2,stages=2" | FileCheck %s
// RUN: flash-opt %s --flash-gpu="target=sm_80 schedule=query_tile=16,key_tile=64,warps=1,stages=5" | FileCheck %s
// RUN: flash-opt %s --flash-gpu=target=sm_80 | FileCheck %s

!type = tensor<1x2x100x32xf16>

// CHECK: llvm.func @full(
func.func @full(%q: !type, %k: !type, %v: !type) -> !type {
  %o = flash.attention %q, %k, %v : (!type, !type, !type) -> !type
  return %o : !type
}

// CHECK: llvm.func @causal(
func.func @causal(%q: !type, %k: !type, %v: !type) -> !type {
  %o = flash.attention %q, %k, %v mask(#flash.causal) : (!type, !type, !type) -> !type
  return %o : !type
}

// CHECK: llvm.func @window(
func.func @window(%q: !type, %k: !type, %v: !type) -> !type {
  %o = flash.attention %q, %k, %v mask(#flash.window<left = 20, right = 5>) : (!type, !type, !type) -> !type
  return %o : !type
}

// CHECK: llvm.func @keys_of_any_number(
func.func @keys_of_any_number(%q: tensor<?x2x?x32xf32>, %k: tensor<?x2x?x32xf32>, %v: tensor<?x2x?x32xf32>) -> tensor<?x2x?x32xf32> {
  %o = flash.attention %q, %k, %v : (tensor<?x2x?x32xf32>, tensor<?x2x?x32xf32>, tensor<?x2x?x32xf32>) -> tensor<?x2x?x32xf32>
  return %o : tensor<?x2x?x32xf32>
}
