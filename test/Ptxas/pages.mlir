// The programs for keys in pages spill no registers with roles: a tile has eight of them, each with a copy of its own. Without roles
// the prompt spills a few, as each thread has the addresses of all pages.
// REQUIRES: ptxas
// RUN: flash-opt %s --flash-gpu=target=sm_80 | flash-translate --ptxas --chip=sm_80 --allow-spills | FileCheck %s
// RUN: flash-opt %s --flash-gpu=target=sm_90a | flash-translate --ptxas --chip=sm_90a | FileCheck %s --check-prefixes=CHECK,ROLES
// CHECK-DAG: token: {{.*}} spill stores 0
// CHECK-DAG: ragged: {{.*}} spill stores 0
// ROLES-DAG: prompt: {{.*}} spill stores 0
!q = tensor<?x32x?x128xbf16>
!one = tensor<?x32x1x128xbf16>
!view = tensor<?x8x?x128xbf16>
func.func @prompt(%q: !q, %k: tensor<?x8x16x128xbf16>, %v: tensor<?x8x16x128xbf16>, %table: tensor<?x?xi32>, %n: tensor<?xi32>) -> !q {
  %ks = flash.unpage %k by %table lengths(%n : tensor<?xi32>) : tensor<?x8x16x128xbf16>, tensor<?x?xi32> -> !view
  %vs = flash.unpage %v by %table lengths(%n : tensor<?xi32>) : tensor<?x8x16x128xbf16>, tensor<?x?xi32> -> !view
  %o = flash.attention %q, %ks, %vs mask(#flash.causal) key_lengths(%n : tensor<?xi32>) : (!q, !view, !view) -> !q
  return %o : !q
}
func.func @token(%q: !one, %k: tensor<?x8x16x128xbf16>, %v: tensor<?x8x16x128xbf16>, %table: tensor<?x?xi32>, %n: tensor<?xi32>) -> !one {
  %ks = flash.unpage %k by %table lengths(%n : tensor<?xi32>) : tensor<?x8x16x128xbf16>, tensor<?x?xi32> -> !view
  %vs = flash.unpage %v by %table lengths(%n : tensor<?xi32>) : tensor<?x8x16x128xbf16>, tensor<?x?xi32> -> !view
  %o = flash.attention %q, %ks, %vs key_lengths(%n : tensor<?xi32>) : (!one, !view, !view) -> !one
  return %o : !one
}
// Splits behind the last key end at once.
func.func @ragged(%q: !one, %k: tensor<?x8x16x128xbf16>, %v: tensor<?x8x16x128xbf16>, %table: tensor<?x?xi32>, %n: tensor<?xi32>) -> !one {
  %ks = flash.unpage %k by %table lengths(%n : tensor<?xi32>) : tensor<?x8x16x128xbf16>, tensor<?x?xi32> -> !view
  %vs = flash.unpage %v by %table lengths(%n : tensor<?xi32>) : tensor<?x8x16x128xbf16>, tensor<?x?xi32> -> !view
  %o = flash.attention %q, %ks, %vs key_lengths(%n : tensor<?xi32>) schedule(<key_tile = 64, packed_heads = 4, split_keys = 2048>)
      : (!one, !view, !view) -> !one
  return %o : !one
}
