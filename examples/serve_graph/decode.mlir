// One new token of each sequence, whose keys and values lie in pages of 16 rows. How many sequences and pages there are, and
// how many pages a sequence may have, the caller says at each launch.
!query = tensor<?x8x1x64xf32>
!pages = tensor<?x2x16x64xf32>
!keys = tensor<?x2x?x64xf32>
func.func @decode(%query: !query, %keys: !pages, %values: !pages, %table: tensor<?x?xi32>, %lengths: tensor<?xi32>) -> !query {
  %k = flash.unpage %keys by %table lengths(%lengths : tensor<?xi32>) : !pages, tensor<?x?xi32> -> !keys
  %v = flash.unpage %values by %table lengths(%lengths : tensor<?xi32>) : !pages, tensor<?x?xi32> -> !keys
  %o = flash.attention %query, %k, %v mask(#flash.causal) key_lengths(%lengths : tensor<?xi32>)
      : (!query, !keys, !keys) -> !query
  return %o : !query
}
