// A slice of whose dimensions one is known to be 1 beside others that are left out: upstream canonicalization
// takes other ones, so that a run must not use it.
// RUN: flash-run %s --target=cpu,emulate --check

func.func @tiles(%a: tensor<1x3x64x2xf32>) -> tensor<3x2x64x64xf32> {
  %zero = arith.constant 0.000000e+00 : f32
  %empty = tensor.empty() : tensor<3x2x64x64xf32>
  %all = scf.forall (%i, %j, %k) = (0, 0, 0) to (3, 2, 1) step (1, 1, 64) shared_outs(%o = %empty) -> (tensor<3x2x64x64xf32>) {
    %rows = affine.min affine_map<(d0) -> (1 - d0, 64)>(%k)
    %rest = affine.apply affine_map<(d0) -> (64 - d0)>(%rows)
    %slice = tensor.extract_slice %a[%k, %i, 0, %j] [%rows, 1, 64, 1] [1, 1, 1, 1] : tensor<1x3x64x2xf32> to tensor<?x64xf32>
    %x = tensor.pad %slice low[0, 0] high[%rest, 0] {
    ^bb0(%row: index, %column: index):
      tensor.yield %zero : f32
    } : tensor<?x64xf32> to tensor<64x64xf32>
    %y = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<64x64xf32>) outs(%x : tensor<64x64xf32>) {
    ^bb0(%e: f32, %out: f32):
      %s = arith.addf %e, %e : f32
      linalg.yield %s : f32
    } -> tensor<64x64xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %y into %o[%i, %j, 0, 0] [1, 1, 64, 64] [1, 1, 1, 1] : tensor<64x64xf32> into tensor<3x2x64x64xf32>
    }
  }
  return %all : tensor<3x2x64x64xf32>
}
