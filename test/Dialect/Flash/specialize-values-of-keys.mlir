// The schedule of a version knows that values are the first columns of the keys: a tile of these, which is in shared memory once, may be longer.
// RUN: flash-opt %s --flash-attach-target=target=sm_90a --flash-specialize="sizes=128x128x1x576,128x1x4096x576" | FileCheck %s

// CHECK-LABEL: func.func @latent(
// CHECK:         flash.attention
// CHECK-SAME:      key_tile = 64, packed_heads = 64, {{.*}}divide_columns
func.func @latent(%q: tensor<?x?x?x576xbf16>, %k: tensor<?x?x?x576xbf16>) -> tensor<?x?x?x512xbf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %b = tensor.dim %k, %c0 : tensor<?x?x?x576xbf16>
  %h = tensor.dim %k, %c1 : tensor<?x?x?x576xbf16>
  %n = tensor.dim %k, %c2 : tensor<?x?x?x576xbf16>
  %v = tensor.extract_slice %k[0, 0, 0, 0] [%b, %h, %n, 512] [1, 1, 1, 1] : tensor<?x?x?x576xbf16> to tensor<?x?x?x512xbf16>
  %o = flash.attention %q, %k, %v : (tensor<?x?x?x576xbf16>, tensor<?x?x?x576xbf16>, tensor<?x?x?x512xbf16>) -> tensor<?x?x?x512xbf16>
  return %o : tensor<?x?x?x512xbf16>
}

// Apart they leave room for half as many.
// CHECK-LABEL: func.func @apart(
// CHECK:         flash.attention
// CHECK-SAME:      key_tile = 32,
func.func @apart(%q: tensor<?x?x?x576xbf16>, %k: tensor<?x?x?x576xbf16>, %v: tensor<?x?x?x512xbf16>) -> tensor<?x?x?x512xbf16> {
  %o = flash.attention %q, %k, %v : (tensor<?x?x?x576xbf16>, tensor<?x?x?x576xbf16>, tensor<?x?x?x512xbf16>) -> tensor<?x?x?x512xbf16>
  return %o : tensor<?x?x?x512xbf16>
}

// The same where keys have 8 bits, so that the copy for which the schedule is chosen dequantizes them.
// CHECK-LABEL: func.func @dequantized(
// CHECK:         flash.attention
// CHECK-SAME:      schedule(<
func.func @dequantized(%q: tensor<?x?x?x576xbf16>, %keys: tensor<?x?x?x576xi8>, %scale: tensor<1xf32>) -> tensor<?x?x?x512xbf16> {
  %k = flash.dequantize %keys scale(%scale : tensor<1xf32>) : tensor<?x?x?x576xi8> -> tensor<?x?x?x576xbf16>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %b = tensor.dim %k, %c0 : tensor<?x?x?x576xbf16>
  %h = tensor.dim %k, %c1 : tensor<?x?x?x576xbf16>
  %n = tensor.dim %k, %c2 : tensor<?x?x?x576xbf16>
  %v = tensor.extract_slice %k[0, 0, 0, 0] [%b, %h, %n, 512] [1, 1, 1, 1] : tensor<?x?x?x576xbf16> to tensor<?x?x?x512xbf16>
  %o = flash.attention %q, %k, %v : (tensor<?x?x?x576xbf16>, tensor<?x?x?x576xbf16>, tensor<?x?x?x512xbf16>) -> tensor<?x?x?x512xbf16>
  return %o : tensor<?x?x?x512xbf16>
}
