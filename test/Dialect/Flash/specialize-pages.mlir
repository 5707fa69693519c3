// A version for sequences of one row whose keys lie in pages: heads that read the same keys share tiles, keys are split as the calls need
// it, and a tile of keys is several pages, or divides one.
// RUN: flash-opt %s --flash-version="target=sm_90a sizes=4x32x1x128,900x8x48x128,900x8x48x128,4x100,4" | FileCheck %s
// Where the sizes of the table are not known, neither are those of the view.
// RUN: flash-opt %s --flash-version="target=sm_90a sizes=4x32x1x128,900x8x48x128,900x8x48x128" | FileCheck %s --check-prefix=OPEN

!q = tensor<?x?x?x128xbf16>
!cache = tensor<?x?x48x128xbf16>
// CHECK: func @attention(%{{.*}}: tensor<?x32x1x128xbf16>, %{{.*}}: tensor<?x8x48x128xbf16>,
// CHECK: flash.unpage %{{.*}} -> tensor<?x8x?x128xbf16>
// CHECK: flash.attention {{.*}} schedule(<query_tile = 16, key_tile = 48, {{.*}}packed_heads = 4, {{.*}}split_ctas = 264
// OPEN: flash.unpage %{{.*}} -> tensor<?x?x?x128xbf16>
// OPEN-NOT: schedule
func.func @attention(%q: !q, %k: !cache, %v: !cache, %table: tensor<?x?xi32>, %n: tensor<?xi32>) -> !q {
  %ks = flash.unpage %k by %table lengths(%n : tensor<?xi32>) : !cache, tensor<?x?xi32> -> !q
  %vs = flash.unpage %v by %table lengths(%n : tensor<?xi32>) : !cache, tensor<?x?xi32> -> !q
  %o = flash.attention %q, %ks, %vs key_lengths(%n : tensor<?xi32>) : (!q, !q, !q) -> !q
  return %o : !q
}
