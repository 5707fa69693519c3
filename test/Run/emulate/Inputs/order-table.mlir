// Eight tiles, in the order of a table.
!t = tensor<2x1x256x16xf16>
!r = tensor<2x1x256x64xf32>
func.func @f(%q: !t, %k: tensor<2x1x64x16xf16>, %table: tensor<?xi32>) -> !r {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : !r
  %o = scf.forall (%b, %i) = (0, 0) to (2, 256) step (1, 64) shared_outs(%out = %empty) -> !r {
    %qt = tensor.extract_slice %q[%b, 0, %i, 0] [1, 1, 64, 16] [1, 1, 1, 1] : !t to tensor<64x16xf16>
    %kt = tensor.extract_slice %k[%b, 0, 0, 0] [1, 1, 64, 16] [1, 1, 1, 1] : tensor<2x1x64x16xf16> to tensor<64x16xf16>
    %e = tensor.empty() : tensor<64x64xf32>
    %init = linalg.fill ins(%zero : f32) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
    %s = linalg.contract
        indexing_maps = [affine_map<(m, n, d) -> (m, d)>, affine_map<(m, n, d) -> (n, d)>, affine_map<(m, n, d) -> (m, n)>]
        ins(%qt, %kt : tensor<64x16xf16>, tensor<64x16xf16>) outs(%init : tensor<64x64xf32>) -> tensor<64x64xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %s into %out[%b, 0, %i, 0] [1, 1, 64, 64] [1, 1, 1, 1] : tensor<64x64xf32> into !r
    }
  } {tile.order = #tile.order<table(2)>}
  return %o : !r
}
