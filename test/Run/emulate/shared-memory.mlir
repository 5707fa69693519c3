// Emulation refuses what the GPU that it stands for refuses: a block has less shared memory on sm_80 than on sm_90a.
// RUN: not flash-run %s --target=emulate 2>&1 | FileCheck %s
// RUN: not flash-run %s --target=sm_80 --dump=ptx 2>&1 | FileCheck %s
// RUN: flash-run %s --target=emulate:sm_90a --check
// CHECK: shared-memory.mlir:[[#@LINE+7]]:{{.*}}: error: the kernel 'products' needs 204800 bytes of shared memory, and a block may have 166912;

#ik = affine_map<(i, j, k) -> (i, k)>
#jk = affine_map<(i, j, k) -> (j, k)>
#ij = affine_map<(i, j, k) -> (i, j)>
func.func @products(%x: tensor<16x128xf32>, %y: tensor<128x128xf32>, %z: tensor<128x128xf32>, %w: tensor<128x128xf32>) -> tensor<16x128xf32> {
  %e = tensor.empty() : tensor<16x128xf32>
  %r = scf.forall (%i) = (0) to (16) step (16) shared_outs(%o = %e) -> (tensor<16x128xf32>) {
    %zero = arith.constant 0.0 : f32
    %s = tensor.empty() : tensor<16x128xf32>
    %zeros = linalg.fill ins(%zero : f32) outs(%s : tensor<16x128xf32>) -> tensor<16x128xf32>
    %a = tensor.extract_slice %x[%i, 0] [16, 128] [1, 1] : tensor<16x128xf32> to tensor<16x128xf32>
    %0 = linalg.contract indexing_maps = [#ik, #jk, #ij] ins(%a, %y : tensor<16x128xf32>, tensor<128x128xf32>) outs(%zeros : tensor<16x128xf32>) -> tensor<16x128xf32>
    %1 = linalg.contract indexing_maps = [#ik, #jk, #ij] ins(%0, %z : tensor<16x128xf32>, tensor<128x128xf32>) outs(%zeros : tensor<16x128xf32>) -> tensor<16x128xf32>
    %2 = linalg.contract indexing_maps = [#ik, #jk, #ij] ins(%1, %w : tensor<16x128xf32>, tensor<128x128xf32>) outs(%zeros : tensor<16x128xf32>) -> tensor<16x128xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %2 into %o[%i, 0] [16, 128] [1, 1] : tensor<16x128xf32> into tensor<16x128xf32>
    }
  }
  return %r : tensor<16x128xf32>
}
