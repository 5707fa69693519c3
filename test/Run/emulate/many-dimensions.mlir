// A tensor map has five dimensions at most, and one more than the memory where only some rows of a tile are copied. What
// a role cannot copy, the warps that compute load and store.
// RUN: flash-run %s --target=emulate:sm_90a --function=five --check
// RUN: flash-run %s --target=sm_90a --function=five --dump=ptx
// RUN: flash-run %s --target=emulate:sm_90a --function=six --check
// RUN: flash-run %s --target=sm_90a --function=six --dump=ptx

#ik = affine_map<(i, j, k) -> (i, k)>
#jk = affine_map<(i, j, k) -> (j, k)>
#ij = affine_map<(i, j, k) -> (i, j)>

func.func @five(%x: tensor<2x1x2x200x16xf16>, %y: tensor<16x16xf16>) -> tensor<200x16xf32> {
  %zero = arith.constant 0.0 : f16
  %zero32 = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<200x16xf32>
  %r = scf.forall (%i) = (0) to (200) step (128) shared_outs(%o = %e) -> (tensor<200x16xf32>) {
    %n = affine.min affine_map<(i) -> (200 - i, 128)>(%i)
    %rest = affine.apply affine_map<(i) -> (128 - i)>(%n)
    %s = tensor.extract_slice %x[1, 0, 0, %i, 0] [1, 1, 1, %n, 16] [1, 1, 1, 1, 1] : tensor<2x1x2x200x16xf16> to tensor<?x16xf16>
    %t = tensor.pad %s low[0, 0] high[%rest, 0] {
    ^bb0(%row: index, %column: index):
      tensor.yield %zero : f16
    } : tensor<?x16xf16> to tensor<128x16xf16>
    %z = tensor.empty() : tensor<128x16xf32>
    %zeros = linalg.fill ins(%zero32 : f32) outs(%z : tensor<128x16xf32>) -> tensor<128x16xf32>
    %p = linalg.contract indexing_maps = [#ik, #jk, #ij] ins(%t, %y : tensor<128x16xf16>, tensor<16x16xf16>) outs(%zeros : tensor<128x16xf32>) -> tensor<128x16xf32>
    %some = tensor.extract_slice %p[0, 0] [%n, 16] [1, 1] : tensor<128x16xf32> to tensor<?x16xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %some into %o[%i, 0] [%n, 16] [1, 1] : tensor<?x16xf32> into tensor<200x16xf32>
    }
  } {flash.schedule = #flash.schedule<features = specialize_warps, warps = 8>}
  return %r : tensor<200x16xf32>
}

func.func @six(%x: tensor<2x1x2x1x256x16xf16>, %y: tensor<16x16xf16>) -> tensor<2x1x1x1x256x16xf16> {
  %zero32 = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x1x1x1x256x16xf16>
  %r = scf.forall (%i) = (0) to (256) step (128) shared_outs(%o = %e) -> (tensor<2x1x1x1x256x16xf16>) {
    %t = tensor.extract_slice %x[1, 0, 0, 0, %i, 0] [1, 1, 1, 1, 128, 16] [1, 1, 1, 1, 1, 1] : tensor<2x1x2x1x256x16xf16> to tensor<128x16xf16>
    %z = tensor.empty() : tensor<128x16xf32>
    %zeros = linalg.fill ins(%zero32 : f32) outs(%z : tensor<128x16xf32>) -> tensor<128x16xf32>
    %p = linalg.contract indexing_maps = [#ik, #jk, #ij] ins(%t, %y : tensor<128x16xf16>, tensor<16x16xf16>) outs(%zeros : tensor<128x16xf32>) -> tensor<128x16xf32>
    %sum = arith.truncf %p : tensor<128x16xf32> to tensor<128x16xf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %sum into %o[0, 0, 0, 0, %i, 0] [1, 1, 1, 1, 128, 16] [1, 1, 1, 1, 1, 1] : tensor<128x16xf16> into tensor<2x1x1x1x256x16xf16>
      tensor.parallel_insert_slice %sum into %o[1, 0, 0, 0, %i, 0] [1, 1, 1, 1, 128, 16] [1, 1, 1, 1, 1, 1] : tensor<128x16xf16> into tensor<2x1x1x1x256x16xf16>
    }
  } {flash.schedule = #flash.schedule<features = specialize_warps|bulk_store, warps = 8, stages = 2>}
  return %r : tensor<2x1x1x1x256x16xf16>
}
