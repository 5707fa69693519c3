// What precision(fp8) cannot be said of.
// RUN: flash-opt %s --split-input-file --verify-diagnostics

!q = tensor<2x4x9x16xf8E4M3FN>
!t = tensor<2x4x9x16xf16>
func.func @query(%q: !t, %k: !q, %s: tensor<1xf32>) {
  %kd = flash.dequantize %k scale(%s : tensor<1xf32>) : !q -> !t
  // expected-error @below {{precision(fp8) multiplies what flash.dequantize gives of f8E4M3FN, and the query is of 'tensor<2x4x9x16xf16>'; leave precision(fp8) out, or quantize it, too}}
  %o = flash.attention %q, %kd, %kd precision(fp8) : (!t, !t, !t) -> !t
  return
}

// -----

!q = tensor<2x4x9x16xf8E4M3FN>
!t = tensor<2x4x9x16xf16>
func.func @value(%q: !q, %v: tensor<2x4x9x16xi8>, %s: tensor<1xf32>) {
  %qd = flash.dequantize %q scale(%s : tensor<1xf32>) : !q -> !t
  %vd = flash.dequantize %v scale(%s : tensor<1xf32>) : tensor<2x4x9x16xi8> -> !t
  // expected-error @below {{precision(fp8) multiplies what flash.dequantize gives of f8E4M3FN, and the value is of 'tensor<2x4x9x16xi8>'; leave}}
  %o = flash.attention %qd, %qd, %vd precision(fp8) : (!t, !t, !t) -> !t
  return
}

// -----

!q = tensor<2x4x9x16xf8E4M3FN>
!t = tensor<2x4x9x16xf16>
func.func @rows(%q: !q, %s: tensor<1xf32>, %rows: tensor<2x4x9xf32>) {
  %qd = flash.dequantize %q scale(%s : tensor<1xf32>) : !q -> !t
  %kd = flash.dequantize %q scale(%rows : tensor<2x4x9xf32>) : !q -> !t
  // expected-error @below {{precision(fp8) takes a scale [1] or for each batch and head [B, H], and the key has one for each row, 'tensor<2x4x9xf32>'; leave precision(fp8) out, or use one for each head}}
  %o = flash.attention %qd, %kd, %qd precision(fp8) : (!t, !t, !t) -> !t
  return
}

// -----

!q = tensor<2x4x9x16xf8E4M3FN>
!t = tensor<2x4x9x16xf16>
func.func @views(%q: !q, %k: tensor<1x4x18x16xf8E4M3FN>, %o: tensor<3xi32>, %s: tensor<1xf32>) {
  %ks, %n = flash.unpack %k by %o : tensor<1x4x18x16xf8E4M3FN>, tensor<3xi32> -> tensor<2x4x18x16xf8E4M3FN>, tensor<2xi32>
  %qd = flash.dequantize %q scale(%s : tensor<1xf32>) : !q -> !t
  %kd = flash.dequantize %ks scale(%s : tensor<1xf32>) : tensor<2x4x18x16xf8E4M3FN> -> tensor<2x4x18x16xf16>
  // expected-error @below {{precision(fp8) takes dense rows, and the key is a view of flash.unpack; leave precision(fp8) out, or copy the rows}}
  %r = flash.attention %qd, %kd, %kd key_lengths(%n : tensor<2xi32>) precision(fp8) : (!t, tensor<2x4x18x16xf16>, tensor<2x4x18x16xf16>) -> !t
  return
}

// -----

!q = tensor<2x4x9x16xf8E4M3FN>
!t = tensor<2x4x9x16xf16>
func.func @scale(%q: !q, %s: tensor<1xf32>) {
  %qd = flash.dequantize %q scale(%s : tensor<1xf32>) : !q -> !t
  // expected-error @below {{precision(fp8) takes a positive scale, got -5.000000e-01; leave precision(fp8) out}}
  %o = flash.attention %qd, %qd, %qd scale(-0.5) precision(fp8) : (!t, !t, !t) -> !t
  return
}

// -----

!t = tensor<2x4x9x16xf16>
func.func @gradients(%q: !t, %lse: tensor<2x4x9xf32>) {
  // expected-error @below {{has no precision(fp8), which is of flash.attention alone; leave it out}}
  %0:3 = flash.attention_grad %q, %q, %q, %q, %lse, %q precision(fp8) : (!t, !t, !t, !t, tensor<2x4x9xf32>, !t) -> (!t, !t, !t)
  return
}

// -----

!f = tensor<64x64xf8E4M3FN>
func.func @factor(%q: !f, %a: tensor<64x64xf32>, %m: tensor<64xf32>) {
  // expected-error @below {{multiplies tiles of f8E4M3FN with precision(fp8) and factor(...), and others without a factor; got 'tensor<64x64xf8E4M3FN>'}}
  %0:3 = flash.online_attention ins(%q, %q, %q : !f, !f, !f) outs(%a, %m, %m : tensor<64x64xf32>, tensor<64xf32>, tensor<64xf32>)
      at[0, 0, 0, 0] of[64, 64] scale(1.0) precision(fp8)
  return
}

// -----

func.func @size(%t: tensor<24x32xf8E4M3FN>) {
  // expected-error @below {{interleaves a multiple of 16 rows of static size, got 'tensor<24x32xf8E4M3FN>'}}
  %0 = flash.interleave %t : tensor<24x32xf8E4M3FN> -> tensor<32x24xf8E4M3FN>
  return
}

// -----

func.func @result(%t: tensor<16x32xf8E4M3FN>) {
  // expected-error @below {{of 'tensor<16x32xf8E4M3FN>' gives 'tensor<32x16xf8E4M3FN>', got 'tensor<16x32xf8E4M3FN>'}}
  %0 = flash.interleave %t : tensor<16x32xf8E4M3FN> -> tensor<16x32xf8E4M3FN>
  return
}

// -----

#nt = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
func.func @product(%a: tensor<16x32xf16>, %c: tensor<16x16xf32>) {
  // expected-error @below {{"flash.precision" of fp8 belongs to a linalg.contract of f8E4M3FN}}
  %0 = linalg.contract indexing_maps = #nt {flash.precision = #flash.precision<fp8>} ins(%a, %a : tensor<16x32xf16>, tensor<16x32xf16>) outs(%c : tensor<16x16xf32>) -> tensor<16x16xf32>
  return
}
