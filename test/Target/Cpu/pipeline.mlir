// RUN: flash-opt %s --flash-cpu-backend="vector-bits=512 registers=32" | FileCheck %s

// One step of everything: pad, transpose, parallel tiles, dynamic last tile.
// No allocation is left inside the parallel body, and nothing but the LLVM
// dialect.

// CHECK-DAG: llvm.func @flash_parallel_for(i64, !llvm.ptr, !llvm.ptr)
// CHECK-DAG: llvm.func @_mlir_memref_to_llvm_alloc(i64) -> !llvm.ptr
// CHECK-DAG: llvm.func @_mlir_ciface_tiles(
// CHECK-LABEL: llvm.func internal @tiles_parallel_0
// CHECK-NOT: _mlir_memref_to_llvm_alloc
// CHECK-NOT: {{ (scf|memref|vector|arith|linalg)\.}}
func.func @tiles(%a: tensor<?x40xf32>) -> tensor<?x40xf32> {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %rows = tensor.dim %a, %c0 : tensor<?x40xf32>
  %e = tensor.empty(%rows) : tensor<?x40xf32>
  %r = scf.forall (%i) = (0) to (%rows) step (32) shared_outs(%o = %e) -> (tensor<?x40xf32>) {
    %n = affine.min affine_map<(i)[n] -> (32, n - i)>(%i)[%rows]
    %h = affine.apply affine_map<()[n] -> (32 - n)>()[%n]
    %s = tensor.extract_slice %a[%i, 0] [%n, 40] [1, 1] : tensor<?x40xf32> to tensor<?x40xf32>
    %p = tensor.pad %s low[0, 0] high[%h, 0] {
    ^bb0(%x: index, %y: index):
      tensor.yield %zero : f32
    } : tensor<?x40xf32> to tensor<32x40xf32>
    %te = tensor.empty() : tensor<40x32xf32>
    %t = linalg.transpose ins(%p : tensor<32x40xf32>) outs(%te : tensor<40x32xf32>) permutation = [1, 0]
    %be = tensor.empty() : tensor<32x40xf32>
    %b = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>],
                         iterator_types = ["parallel", "parallel"]}
        ins(%t : tensor<40x32xf32>) outs(%be : tensor<32x40xf32>) {
    ^bb0(%x: f32, %q: f32):
      %y = math.exp2 %x : f32
      linalg.yield %y : f32
    } -> tensor<32x40xf32>
    %bs = tensor.extract_slice %b[0, 0] [%n, 40] [1, 1] : tensor<32x40xf32> to tensor<?x40xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %bs into %o[%i, 0] [%n, 40] [1, 1] : tensor<?x40xf32> into tensor<?x40xf32>
    }
  }
  return %r : tensor<?x40xf32>
}
