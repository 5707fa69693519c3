// One step of the online softmax: a tile of keys and values updates the state of four queries.
!tile = tensor<4x16xf32>
!keys = tensor<16x16xf32>
!row = tensor<4xf32>
func.func @step(%q: !tile, %k: !keys, %v: !keys, %acc: !tile, %max: !row, %sum: !row) -> (!tile, !row, !row) {
  %a, %m, %l = flash.online_attention ins(%q, %k, %v : !tile, !keys, !keys) outs(%acc, %max, %sum : !tile, !row, !row)
      at[0, 0, 0, 0] of[4, 16] scale(1.0) unit(1.0)
  return %a, %m, %l : !tile, !row, !row
}
