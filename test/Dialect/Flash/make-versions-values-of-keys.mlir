// Values that are the first columns of the keys have the keys' sizes, so that calls say these; other slices are computed.
// RUN: flash-opt %s --flash-attach-target=target=sm_90a --flash-make-versions="calls=8x128x1x576,8x1x4096x576" --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @latent(
// CHECK:         scf.if
// CHECK:           flash.attention
// CHECK-SAME:        key_tile = 64, packed_heads = 64,
// CHECK:         } else {
func.func @latent(%q: tensor<?x128x1x576xbf16>, %k: tensor<?x1x?x576xbf16>) -> tensor<?x128x1x512xbf16> {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %b = tensor.dim %k, %c0 : tensor<?x1x?x576xbf16>
  %n = tensor.dim %k, %c2 : tensor<?x1x?x576xbf16>
  %v = tensor.extract_slice %k[0, 0, 0, 0] [%b, 1, %n, 512] [1, 1, 1, 1] : tensor<?x1x?x576xbf16> to tensor<?x1x?x512xbf16>
  %o = flash.attention %q, %k, %v : (tensor<?x128x1x576xbf16>, tensor<?x1x?x576xbf16>, tensor<?x1x?x512xbf16>) -> tensor<?x128x1x512xbf16>
  return %o : tensor<?x128x1x512xbf16>
}

// -----

func.func @last(%q: tensor<?x128x1x576xbf16>, %k: tensor<?x1x?x576xbf16>) -> tensor<?x128x1x512xbf16> {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %b = tensor.dim %k, %c0 : tensor<?x1x?x576xbf16>
  %n = tensor.dim %k, %c2 : tensor<?x1x?x576xbf16>
  %v = tensor.extract_slice %k[0, 0, 0, 64] [%b, 1, %n, 512] [1, 1, 1, 1] : tensor<?x1x?x576xbf16> to tensor<?x1x?x512xbf16>
  // expected-error @below {{cannot have versions: its batch size is that of a tensor that is computed}}
  %o = flash.attention %q, %k, %v : (tensor<?x128x1x576xbf16>, tensor<?x1x?x576xbf16>, tensor<?x1x?x512xbf16>) -> tensor<?x128x1x512xbf16>
  return %o : tensor<?x128x1x512xbf16>
}
