// Every form of every op parses, verifies, and prints to what parses again,
// also through the generic form.
// RUN: flash-opt %s -o %t.mlir
// RUN: flash-opt %t.mlir | diff %t.mlir -
// RUN: flash-opt %s --mlir-print-op-generic | flash-opt | diff %t.mlir -
// RUN: FileCheck %s < %t.mlir

// CHECK: #[[DOCUMENTS:.*]] = affine_set<(d0, d1, d2, d3)[s0, s1] : (d2 floordiv 128 - d3 floordiv 128 == 0)>

// CHECK-LABEL: func @plain(
// CHECK: flash.attention %{{.*}}, %{{.*}}, %{{.*}} : (tensor<2x8x333x64xf32>, tensor<2x2x517x64xf32>, tensor<2x2x517x48xf32>) -> tensor<2x8x333x48xf32>
func.func @plain(%q: tensor<2x8x333x64xf32>, %k: tensor<2x2x517x64xf32>, %v: tensor<2x2x517x48xf32>) -> tensor<2x8x333x48xf32> {
  %o = flash.attention %q, %k, %v
      : (tensor<2x8x333x64xf32>, tensor<2x2x517x64xf32>, tensor<2x2x517x48xf32>) -> tensor<2x8x333x48xf32>
  return %o : tensor<2x8x333x48xf32>
}

// The example in the description of flash.attention.
// CHECK-LABEL: func @lse(
// CHECK: flash.attention {{.*}} scale(2.000000e-01) mask(#flash.causal)
// CHECK-SAME: -> (tensor<2x8x333x48xf32>, tensor<2x8x333xf32>)
func.func @lse(%q: tensor<2x8x333x64xf32>, %k: tensor<2x2x517x64xf32>, %v: tensor<2x2x517x48xf32>)
    -> (tensor<2x8x333x48xf32>, tensor<2x8x333xf32>) {
  %o, %lse = flash.attention %q, %k, %v scale(0.2) mask(#flash.causal)
      : (tensor<2x8x333x64xf32>, tensor<2x2x517x64xf32>, tensor<2x2x517x48xf32>)
      -> (tensor<2x8x333x48xf32>, tensor<2x8x333xf32>)
  return %o, %lse : tensor<2x8x333x48xf32>, tensor<2x8x333xf32>
}

// Every optional part at once, all sizes dynamic that may be.
// CHECK-LABEL: func @everything(
// CHECK: flash.attention {{.*}} scale(1.250000e-01) mask(#flash.prefix<7>) lengths(%{{.*}} : tensor<?xi32>)
// CHECK-SAME: sink(%{{.*}} : tensor<?xf32>) schedule(<query_tile = 64, key_tile = 128>) score {
// CHECK-NEXT: ^bb0(%{{.*}}: f32, %{{.*}}: index, %{{.*}}: index, %{{.*}}: index, %{{.*}}: index):
// CHECK: flash.guard %{{.*}} else 0 : index
// CHECK: flash.yield
// CHECK-NEXT: } {test.note = "kept"} : (tensor<?x?x?x128xbf16>
func.func @everything(%q: tensor<?x?x?x128xbf16>, %k: tensor<?x?x?x128xbf16>, %v: tensor<?x?x?x256xbf16>,
                      %n: tensor<?xi32>, %s: tensor<?xf32>, %bias: tensor<?x?xf32>) -> tensor<?x?x?x256xbf16> {
  %o, %lse = flash.attention %q, %k, %v scale(0.125) mask(#flash.prefix<7>) lengths(%n : tensor<?xi32>)
      sink(%s : tensor<?xf32>) schedule(<query_tile = 64, key_tile = 128>) score {
  ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index):
    %c1 = arith.constant 1 : index
    %size = tensor.dim %bias, %c1 : tensor<?x?xf32>
    %inside = arith.cmpi ult, %j, %size : index
    %at = arith.select %inside, %j, %c1 : index
    %guarded = flash.guard %at else 0 : index
    %y = tensor.extract %bias[%i, %guarded] : tensor<?x?xf32>
    %z = arith.addf %x, %y : f32
    %r = math.tanh %z : f32
    flash.yield %r : f32
  } {test.note = "kept"} : (tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16>, tensor<?x?x?x256xbf16>)
      -> (tensor<?x?x?x256xbf16>, tensor<?x?x?xf32>)
  return %o : tensor<?x?x?x256xbf16>
}

// Products of rounded operands, of the whole and of a step.
// CHECK-LABEL: func @precision(
// CHECK: flash.attention {{.*}} mask(#flash.causal) precision(tf32) schedule(<query_tile = 64, key_tile = 32>) :
// CHECK: flash.online_attention {{.*}} scale(1.000000e+00) precision(tf32) schedule(<query_tile = 16, key_tile = 32>)
func.func @precision(%q: tensor<2x4x64x16xf32>, %k: tensor<32x16xf32>, %x: tensor<16x16xf32>, %r: tensor<16xf32>)
    -> (tensor<2x4x64x16xf32>, tensor<16x16xf32>) {
  %o = flash.attention %q, %q, %q mask(#flash.causal) precision(tf32) schedule(<query_tile = 64, key_tile = 32>)
      : (tensor<2x4x64x16xf32>, tensor<2x4x64x16xf32>, tensor<2x4x64x16xf32>) -> tensor<2x4x64x16xf32>
  %a, %m, %l = flash.online_attention ins(%x, %k, %k : tensor<16x16xf32>, tensor<32x16xf32>, tensor<32x16xf32>)
      outs(%x, %r, %r : tensor<16x16xf32>, tensor<16xf32>, tensor<16xf32>)
      at[0, 0, 0, 0] of[16, 32] scale(1.0) precision(tf32) schedule(<query_tile = 16, key_tile = 32>)
  return %o, %a : tensor<2x4x64x16xf32>, tensor<16x16xf32>
}

// Rank 3: without batch, and with leading(batch) without heads.
// CHECK-LABEL: func @rank3(
// CHECK: flash.attention %{{.*}}, %{{.*}}, %{{.*}} sink(%{{.*}} : tensor<8xf32>) :
// CHECK: flash.attention %{{.*}}, %{{.*}}, %{{.*}} leading(heads) lengths(%{{.*}} : tensor<1xi32>) :
// CHECK: flash.attention %{{.*}}, %{{.*}}, %{{.*}} leading(batch) lengths(%{{.*}} : tensor<8xi32>) sink(%{{.*}} : tensor<1xf32>) :
func.func @rank3(%q: tensor<8x?x8xf16>, %k: tensor<2x?x8xf16>, %kb: tensor<8x?x8xf16>, %s: tensor<8xf32>,
                 %one: tensor<1xi32>, %n: tensor<8xi32>, %s1: tensor<1xf32>) {
  %0 = flash.attention %q, %k, %k sink(%s : tensor<8xf32>)
      : (tensor<8x?x8xf16>, tensor<2x?x8xf16>, tensor<2x?x8xf16>) -> tensor<8x?x8xf16>
  %1 = flash.attention %q, %k, %k leading(heads) lengths(%one : tensor<1xi32>)
      : (tensor<8x?x8xf16>, tensor<2x?x8xf16>, tensor<2x?x8xf16>) -> tensor<8x?x8xf16>
  %2, %lse = flash.attention %q, %kb, %kb leading(batch) lengths(%n : tensor<8xi32>) sink(%s1 : tensor<1xf32>)
      : (tensor<8x?x8xf16>, tensor<8x?x8xf16>, tensor<8x?x8xf16>) -> (tensor<8x?x8xf16>, tensor<8x?xf32>)
  return
}

// The gradients without any clause; the gradient of a tensor with open sizes
// may have them, or not.
// CHECK-LABEL: func @gradients(
// CHECK: flash.attention_grad %arg0, %arg1, %arg2, %arg3, %arg4, %arg5 :
// CHECK-SAME: -> (tensor<2x8x333x64xf16>, tensor<2x2x517x64xf16>, tensor<2x2x517x48xf16>)
func.func @gradients(%q: tensor<2x8x333x64xf16>, %k: tensor<2x2x?x64xf16>, %v: tensor<2x2x?x48xf16>,
                     %o: tensor<2x8x333x48xf16>, %lse: tensor<2x8x333xf32>, %do: tensor<2x8x?x48xf16>)
    -> tensor<2x2x517x64xf16> {
  %0:3 = flash.attention_grad %q, %k, %v, %o, %lse, %do
      : (tensor<2x8x333x64xf16>, tensor<2x2x?x64xf16>, tensor<2x2x?x48xf16>,
         tensor<2x8x333x48xf16>, tensor<2x8x333xf32>, tensor<2x8x?x48xf16>)
      -> (tensor<2x8x333x64xf16>, tensor<2x2x517x64xf16>, tensor<2x2x517x48xf16>)
  return %0#1 : tensor<2x2x517x64xf16>
}

// Every optional part of the gradients at once.
// CHECK-LABEL: func @all_gradients(
// CHECK: flash.attention_grad {{.*}} leading(heads) scale(1.250000e-01) mask(#flash.causal) lengths(%{{.*}} : tensor<1xi32>)
// CHECK-SAME: sink(%{{.*}} : tensor<?xf32>) precision(tf32) multiples([1, 8]) schedule(<query_tile = 64>)
// CHECK-SAME: lse_grad(%{{.*}} : tensor<?x?xf32>) wrt(%{{.*}}, %{{.*}} : tensor<?xf16>, tensor<f32>) score {
// CHECK: flash.guard %{{.*}} else 0 : index
// CHECK: } {test.note = "kept"} : (tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x128xf32>,
// CHECK-SAME: tensor<?x?x128xf32>, tensor<?x?xf32>, tensor<?x?x128xf32>)
// CHECK-SAME: -> (tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x128xf32>, tensor<?xf32>, tensor<?xf16>, tensor<f32>)
func.func @all_gradients(%q: tensor<?x?x64xf32>, %k: tensor<?x?x64xf32>, %v: tensor<?x?x128xf32>,
                         %o: tensor<?x?x128xf32>, %lse: tensor<?x?xf32>, %do: tensor<?x?x128xf32>,
                         %n: tensor<1xi32>, %s: tensor<?xf32>, %table: tensor<?xf16>, %gain: tensor<f32>) {
  %0:6 = flash.attention_grad %q, %k, %v, %o, %lse, %do leading(heads) scale(0.125) mask(#flash.causal)
      lengths(%n : tensor<1xi32>) sink(%s : tensor<?xf32>) precision(tf32) multiples([1, 8])
      schedule(<query_tile = 64>) lse_grad(%lse : tensor<?x?xf32>)
      wrt(%table, %gain : tensor<?xf16>, tensor<f32>) score {
  ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index):
    %d = arith.subi %i, %j : index
    %at = flash.guard %d else 0 : index
    %t = tensor.extract %table[%at] : tensor<?xf16>
    %w = arith.extf %t : f16 to f32
    %g = tensor.extract %gain[] : tensor<f32>
    %y = arith.mulf %g, %w : f32
    %r = arith.addf %x, %y : f32
    flash.yield %r : f32
  } {test.note = "kept"} : (tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x128xf32>,
       tensor<?x?x128xf32>, tensor<?x?xf32>, tensor<?x?x128xf32>)
      -> (tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x128xf32>, tensor<?xf32>, tensor<?xf16>, tensor<f32>)
  return
}

// The example in the description of flash.attention_grad.
// CHECK-LABEL: func @sink_gradient(
// CHECK: flash.attention_grad {{.*}} mask(#flash.causal) sink(%{{.*}} : tensor<8xf32>) :
func.func @sink_gradient(%q: tensor<2x8x333x64xf32>, %k: tensor<2x2x517x64xf32>, %v: tensor<2x2x517x48xf32>,
                         %o: tensor<2x8x333x48xf32>, %lse: tensor<2x8x333xf32>, %do: tensor<2x8x333x48xf32>,
                         %s: tensor<8xf32>) {
  %dq, %dk, %dv, %ds = flash.attention_grad %q, %k, %v, %o, %lse, %do
      mask(#flash.causal) sink(%s : tensor<8xf32>)
      : (tensor<2x8x333x64xf32>, tensor<2x2x517x64xf32>, tensor<2x2x517x48xf32>,
         tensor<2x8x333x48xf32>, tensor<2x8x333xf32>, tensor<2x8x333x48xf32>)
      -> (tensor<2x8x333x64xf32>, tensor<2x2x517x64xf32>, tensor<2x2x517x48xf32>,
          tensor<8xf32>)
  return
}

// A score region may be anything elementwise; also the identity.
// CHECK-LABEL: func @identity_score(
// CHECK: flash.yield %{{.*}} : f32
func.func @identity_score(%q: tensor<1x1x4x8xf32>) -> tensor<1x1x4x8xf32> {
  %o = flash.attention %q, %q, %q score {
  ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index):
    flash.yield %x : f32
  } : (tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>) -> tensor<1x1x4x8xf32>
  return %o : tensor<1x1x4x8xf32>
}

// CHECK-LABEL: func @masks()
// CHECK-SAME: affine = #flash.affine<#[[DOCUMENTS]]>
// CHECK-SAME: all = #flash.all_of<[#flash.causal, #flash.window<left = 3>]>
// CHECK-SAME: any = #flash.any_of<[#flash.prefix<48>, #flash.all_of<[#flash.full]>]>
// CHECK-SAME: causal = #flash.causal
// CHECK-SAME: explicit = #flash.causal,
// CHECK-SAME: features = #flash.schedule<query_tile = 128, key_tile = 64, warps = 8, stages = 2, query_stages = 1, ctas_per_sm = 2, features = specialize_warps|overlap|ping_pong|lazy_rescale|persistent>
// CHECK-SAME: full = #flash.full
// CHECK-SAME: no_features = #flash.schedule<query_tile = 128, key_tile = 64, stages = 2, features = none>
// CHECK-SAME: prefix = #flash.prefix<0>
// CHECK-SAME: schedule = #flash.schedule<query_tile = 8, key_tile = 1024>
// CHECK-SAME: top_left = #flash.causal<top_left>
// CHECK-SAME: window = #flash.window<left = 100, right = 0>
// CHECK-SAME: window_both = #flash.window<>
// CHECK-SAME: window_left = #flash.window<left = 5>
// CHECK-SAME: window_right = #flash.window<right = 2147483647>
func.func @masks() attributes {
  full = #flash.full, causal = #flash.causal, explicit = #flash.causal<bottom_right>,
  top_left = #flash.causal<top_left>, window = #flash.window<left = 100, right = 0>,
  window_left = #flash.window<left = 5>, window_right = #flash.window<right = 2147483647>,
  window_both = #flash.window<>, prefix = #flash.prefix<0>,
  affine = #flash.affine<affine_set<(b, h, i, j)[nq, nk] : (i floordiv 128 - j floordiv 128 == 0)>>,
  any = #flash.any_of<[#flash.prefix<48>, #flash.all_of<[#flash.full]>]>,
  all = #flash.all_of<[#flash.causal, #flash.window<left = 3>]>,
  schedule = #flash.schedule<query_tile = 8, key_tile = 1024>,
  features = #flash.schedule<query_tile = 128, key_tile = 64, warps = 8, stages = 2, query_stages = 1, ctas_per_sm = 2, features = specialize_warps|overlap|ping_pong|lazy_rescale|persistent>,
  no_features = #flash.schedule<query_tile = 128, key_tile = 64, stages = 2, features = none>
} {
  return
}

// The example in the description of flash.online_attention.
// CHECK-LABEL: func @tile_step(
// CHECK: flash.online_attention ins(%{{.*}}, %{{.*}}, %{{.*}} : tensor<64x64xf16>, tensor<128x64xf16>, tensor<128x64xf16>)
// CHECK-SAME: outs(%{{.*}}, %{{.*}}, %{{.*}} : tensor<64x64xf32>, tensor<64xf32>, tensor<64xf32>)
// CHECK-SAME: at[%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}] of[512, 512] scale(1.250000e-01) mask(#flash.causal)
func.func @tile_step(%qt: tensor<64x64xf16>, %kt: tensor<128x64xf16>, %vt: tensor<128x64xf16>, %a: tensor<64x64xf32>,
                     %m: tensor<64xf32>, %l: tensor<64xf32>, %b: index, %h: index, %i: index, %j: index) -> tensor<64x64xf32> {
  %a1, %m1, %l1 = flash.online_attention
      ins(%qt, %kt, %vt : tensor<64x64xf16>, tensor<128x64xf16>, tensor<128x64xf16>)
      outs(%a, %m, %l : tensor<64x64xf32>, tensor<64xf32>, tensor<64xf32>)
      at[%b, %h, %i, %j] of[512, 512] scale(1.250000e-01) mask(#flash.causal)
  return %a1 : tensor<64x64xf32>
}

// CHECK-LABEL: func @tile_step_padded(
// CHECK: at[0, 1, %{{.*}}, 128] of[%{{.*}}, 300] keys(%{{.*}}) scale(1.000000e+00) schedule(<query_tile = 8, key_tile = 8>) score {
// CHECK: {test.note}
func.func @tile_step_padded(%qt: tensor<?x8xf32>, %kt: tensor<8x8xf32>, %vt: tensor<8x16xf32>, %a: tensor<?x16xf32>,
                            %m: tensor<?xf32>, %i: index, %nq: index, %n: index) {
  %0:3 = flash.online_attention
      ins(%qt, %kt, %vt : tensor<?x8xf32>, tensor<8x8xf32>, tensor<8x16xf32>)
      outs(%a, %m, %m : tensor<?x16xf32>, tensor<?xf32>, tensor<?xf32>)
      at[0, 1, %i, 128] of[%nq, 300] keys(%n) scale(1.0) schedule(<query_tile = 8, key_tile = 8>) score {
  ^bb0(%x: f32, %b: index, %h: index, %q: index, %k: index):
    %r = arith.mulf %x, %x : f32
    flash.yield %r : f32
  } {test.note}
  return
}

// CHECK-LABEL: func @partial_step(
// CHECK: of[4, 8] partial(%{{.*}}) scale(1.000000e+00) mask(#flash.causal)
func.func @partial_step(%q: tensor<4x8xf32>, %k: tensor<8x8xf32>, %m: tensor<4xf32>, %c: i1) {
  %0:3 = flash.online_attention
      ins(%q, %k, %k : tensor<4x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>)
      outs(%q, %m, %m : tensor<4x8xf32>, tensor<4xf32>, tensor<4xf32>) at[0, 0, 0, 0] of[4, 8] partial(%c) scale(1.0)
      mask(#flash.causal)
  return
}

// CHECK-LABEL: func @whole_step(
// CHECK: at[0, 0, 0, 0] of[%{{.*}}, 70] scale(2.500000e-01) unit(5.000000e-01) mask(#flash.full) lengths(%{{.*}} : tensor<3xi32>)
func.func @whole_step(%q: tensor<3x4x?x16xbf16>, %k: tensor<3x2x70x16xbf16>, %a: tensor<3x4x?x16xf32>,
                      %m: tensor<3x4x?xf32>, %n: tensor<3xi32>, %nq: index) {
  %0:3 = flash.online_attention
      ins(%q, %k, %k : tensor<3x4x?x16xbf16>, tensor<3x2x70x16xbf16>, tensor<3x2x70x16xbf16>)
      outs(%a, %m, %m : tensor<3x4x?x16xf32>, tensor<3x4x?xf32>, tensor<3x4x?xf32>)
      at[0, 0, 0, 0] of[%nq, 70] scale(0.25) unit(0.5) mask(#flash.full) lengths(%n : tensor<3xi32>)
  return
}

// The example in the description of flash.finalize, then with a log-sum-exp.
// CHECK-LABEL: func @finalize(
// CHECK: flash.finalize ins(%{{.*}} : tensor<64x64xf32>, tensor<64xf32>, tensor<64xf32>) outs(%{{.*}} : tensor<64x64xf16>) -> tensor<64x64xf16>
// CHECK: flash.finalize {{.*}} outs(%{{.*}}, %{{.*}} : tensor<2x4x?x16xbf16>, tensor<2x4x?xf32>) unit(5.000000e-01) -> (tensor<2x4x?x16xbf16>, tensor<2x4x?xf32>)
func.func @finalize(%a: tensor<64x64xf32>, %m: tensor<64xf32>, %l: tensor<64xf32>, %e: tensor<64x64xf16>,
                    %A: tensor<2x4x?x16xf32>, %M: tensor<2x4x?xf32>, %E: tensor<2x4x?x16xbf16>) {
  %o = flash.finalize ins(%a, %m, %l : tensor<64x64xf32>, tensor<64xf32>, tensor<64xf32>)
      outs(%e : tensor<64x64xf16>) -> tensor<64x64xf16>
  %O, %lse = flash.finalize ins(%A, %M, %M : tensor<2x4x?x16xf32>, tensor<2x4x?xf32>, tensor<2x4x?xf32>)
      outs(%E, %M : tensor<2x4x?x16xbf16>, tensor<2x4x?xf32>) unit(0.5) -> (tensor<2x4x?x16xbf16>, tensor<2x4x?xf32>)
  return
}

// CHECK-LABEL: func @combine(
func.func @combine(%o: tensor<4x?x64xf32>, %l: tensor<4x?xf32>) -> tensor<?x64xf16> {
  // CHECK: flash.combine %{{.*}}, %{{.*}} : (tensor<4x?x64xf32>, tensor<4x?xf32>) -> tensor<?x64xf16>
  %x = flash.combine %o, %l : (tensor<4x?x64xf32>, tensor<4x?xf32>) -> tensor<?x64xf16>
  // CHECK: flash.combine %{{.*}}, %{{.*}} step(8) : (tensor<4x?x64xf32>, tensor<4x?xf32>) -> tensor<?x64xf16>
  %s = flash.combine %o, %l step(8) : (tensor<4x?x64xf32>, tensor<4x?xf32>) -> tensor<?x64xf16>
  // CHECK: flash.combine {{.*}} -> (tensor<?x64xf32>, tensor<?xf32>)
  %y, %z = flash.combine %o, %l : (tensor<4x?x64xf32>, tensor<4x?xf32>) -> (tensor<?x64xf32>, tensor<?xf32>)
  return %x : tensor<?x64xf16>
}

// Any of the optional parts of a schedule, in any order.
// CHECK: attributes {s = #flash.schedule<query_tile = 8, key_tile = 16, num_splits = 2>}
func.func private @splits() attributes {s = #flash.schedule<num_splits = 2, key_tile = 16, query_tile = 8>}
// CHECK: attributes {s = #flash.schedule<query_tile = 8, key_tile = 16, stages = 2, split_ctas = 264>}
func.func private @split_ctas() attributes {s = #flash.schedule<query_tile = 8, key_tile = 16, stages = 2, split_ctas = 264>}
// CHECK: attributes {s = #flash.schedule<key_tile = 16, split_keys = 1024>}
func.func private @split_keys() attributes {s = #flash.schedule<split_keys = 1024, key_tile = 16>}

// CHECK-LABEL: func @zero_nonfinite(
// CHECK: flash.zero_nonfinite %{{.*}} : tensor<128x64xbf16>
func.func @zero_nonfinite(%k: tensor<128x64xbf16>) -> tensor<128x64xbf16> {
  %f = flash.zero_nonfinite %k : tensor<128x64xbf16>
  return %f : tensor<128x64xbf16>
}

// CHECK-LABEL: func @is_finite(
// CHECK: flash.is_finite %{{.*}} : tensor<128x64xf16>
func.func @is_finite(%v: tensor<128x64xf16>) -> i1 {
  %f = flash.is_finite %v : tensor<128x64xf16>
  return %f : i1
}

// CHECK-LABEL: func @multiples(
// CHECK: flash.attention {{.*}} precision(tf32) multiples([64, 128]) schedule(<query_tile = 64>) :
// CHECK: flash.online_attention {{.*}} scale(1.000000e+00) multiples([1, 32])
func.func @multiples(%q: tensor<2x4x?x16xf32>, %a: tensor<2x4x?x16xf32>, %r: tensor<2x4x?xf32>, %n: index) -> (tensor<2x4x?x16xf32>, tensor<2x4x?x16xf32>) {
  %o = flash.attention %q, %q, %q precision(tf32) multiples([64, 128]) schedule(<query_tile = 64>)
      : (tensor<2x4x?x16xf32>, tensor<2x4x?x16xf32>, tensor<2x4x?x16xf32>) -> tensor<2x4x?x16xf32>
  %s:3 = flash.online_attention ins(%q, %q, %q : tensor<2x4x?x16xf32>, tensor<2x4x?x16xf32>, tensor<2x4x?x16xf32>)
      outs(%a, %r, %r : tensor<2x4x?x16xf32>, tensor<2x4x?xf32>, tensor<2x4x?xf32>) at[0, 0, 0, 0] of[%n, %n] scale(1.0) multiples([1, 32])
  return %o, %s#0 : tensor<2x4x?x16xf32>, tensor<2x4x?x16xf32>
}

// The examples in the descriptions of the steps of the gradients, and their
// optional parts.
// CHECK-LABEL: func @grad_steps(
// CHECK: flash.query_grad_step ins({{.*}} : tensor<64x64xf16>, tensor<128x64xf16>, tensor<128x32xf16>, tensor<64x32xf16>, tensor<64xf32>, tensor<64xf32>)
// CHECK-SAME: outs(%{{.*}} : tensor<64x64xf32>) at[%{{.*}}, 0, %{{.*}}, 128] of[512, %{{.*}}] keys(%{{.*}}) scale(1.250000e-01) mask(#flash.causal) schedule(<query_tile = 64>) score {
// CHECK: flash.key_grad_step ins(
// CHECK-SAME: outs(%{{.*}}, %{{.*}} : tensor<128x64xf32>, tensor<128x32xf32>) at[%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}] of[512, 512] queries(%{{.*}}) keys(%{{.*}}) scale(1.250000e-01)
// CHECK: flash.key_grad_step
// CHECK-SAME: of[512, 512] scale(1.250000e-01) mask(#flash.causal)
func.func @grad_steps(%q: tensor<64x64xf16>, %k: tensor<128x64xf16>, %v: tensor<128x32xf16>, %do: tensor<64x32xf16>,
                      %shift: tensor<64xf32>, %delta: tensor<64xf32>, %0: tensor<64x64xf32>, %1: tensor<128x64xf32>,
                      %2: tensor<128x32xf32>, %b: index, %h: index, %i: index, %j: index, %n: index)
    -> (tensor<64x64xf32>, tensor<128x64xf32>, tensor<128x32xf32>, tensor<128x64xf32>, tensor<128x32xf32>) {
  %3 = flash.query_grad_step ins(%q, %k, %v, %do, %shift, %delta : tensor<64x64xf16>, tensor<128x64xf16>,
          tensor<128x32xf16>, tensor<64x32xf16>, tensor<64xf32>, tensor<64xf32>)
      outs(%0 : tensor<64x64xf32>) at[%b, 0, %i, 128] of[512, %n] keys(%n) scale(0.125) mask(#flash.causal)
      schedule(<query_tile = 64>) score {
  ^bb0(%s: f32, %sb: index, %sh: index, %si: index, %sj: index):
    %r = math.tanh %s : f32
    flash.yield %r : f32
  }
  %4:2 = flash.key_grad_step ins(%q, %k, %v, %do, %shift, %delta : tensor<64x64xf16>, tensor<128x64xf16>,
          tensor<128x32xf16>, tensor<64x32xf16>, tensor<64xf32>, tensor<64xf32>)
      outs(%1, %2 : tensor<128x64xf32>, tensor<128x32xf32>) at[%b, %h, %i, %j] of[512, 512]
      queries(%n) keys(%j) scale(0.125)
  %5:2 = flash.key_grad_step ins(%q, %k, %v, %do, %shift, %delta : tensor<64x64xf16>, tensor<128x64xf16>,
          tensor<128x32xf16>, tensor<64x32xf16>, tensor<64xf32>, tensor<64xf32>)
      outs(%1, %2 : tensor<128x64xf32>, tensor<128x32xf32>) at[%b, %h, %i, %j] of[512, 512]
      scale(0.125) mask(#flash.causal)
  return %3, %4#0, %4#1, %5#0, %5#1 : tensor<64x64xf32>, tensor<128x64xf32>, tensor<128x32xf32>, tensor<128x64xf32>, tensor<128x32xf32>
}

// Which tiles a mask leaves, and attention on them. The map may guard reads.
// CHECK-LABEL: func @blocks(
// CHECK: %[[T:.*]], %[[N:.*]] = flash.block_map of[1, %{{.*}}, 300, %{{.*}}] tiles([64, 32]) mask(#flash.causal) lengths(%{{.*}} : tensor<1xi32>) keep {
// CHECK: flash.yield %{{.*}} : i1
// CHECK: } : tensor<1x?x5x?xi32>, tensor<1x?x5x2xi32>
// CHECK: flash.attention {{.*}} blocks(%[[T]], %[[N]] : tensor<1x?x5x?xi32>, tensor<1x?x5x2xi32>) schedule
// CHECK: flash.yield %{{.*}} keep %{{.*}} : f32
func.func @blocks(%q: tensor<1x?x300x16xf32>, %k: tensor<1x?x?x16xf32>, %n: tensor<1xi32>, %w: tensor<?xindex>, %hq: index, %nk: index)
    -> tensor<1x?x300x16xf32> {
  %tiles, %counts = flash.block_map of[1, %hq, 300, %nk] tiles([64, 32]) mask(#flash.causal) lengths(%n : tensor<1xi32>) keep {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %d = arith.subi %i, %j : index
    %at = flash.guard %d else 0 : index
    %x = tensor.extract %w[%at] : tensor<?xindex>
    %near = arith.cmpi sle, %x, %h : index
    flash.yield %near : i1
  } : tensor<1x?x5x?xi32>, tensor<1x?x5x2xi32>
  %o = flash.attention %q, %k, %k mask(#flash.causal) lengths(%n : tensor<1xi32>)
      blocks(%tiles, %counts : tensor<1x?x5x?xi32>, tensor<1x?x5x2xi32>) schedule(<query_tile = 64, key_tile = 32>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %d = arith.subi %i, %j : index
    %x = tensor.extract %w[%d] : tensor<?xindex>
    %near = arith.cmpi sle, %x, %h : index
    flash.yield %s keep %near : f32
  } : (tensor<1x?x300x16xf32>, tensor<1x?x?x16xf32>, tensor<1x?x?x16xf32>) -> tensor<1x?x300x16xf32>
  return %o : tensor<1x?x300x16xf32>
}

// Lists of blocks that the caller gives, of any length and of one batch or head for all.
// CHECK-LABEL: func @given_blocks(
// CHECK: flash.check_blocks %{{.*}}, %{{.*}} below %{{.*}} : tensor<1x?x?x8xi32>, tensor<1x?x?x2xi32>
// CHECK: flash.attention {{.*}} blocks(%{{.*}}, %{{.*}} : tensor<1x?x?x8xi32>, tensor<1x?x?x2xi32>) of [128, 64] precision(tf32) :
// CHECK: flash.attention_grad {{.*}} blocks(%{{.*}}, %{{.*}} : tensor<1x?x?x8xi32>, tensor<1x?x?x2xi32>) query_blocks(%{{.*}}, %{{.*}} : tensor<1x?x?x8xi32>, tensor<1x?x?x2xi32>) of [128, 64] schedule
// CHECK: flash.visit keys tile(32) exist(%{{.*}}) list(%{{.*}}, %{{.*}} : tensor<1x?x?x8xi32>, tensor<1x?x?x2xi32>) [%{{.*}}, %{{.*}}, %{{.*}}] cut(64) {
func.func @given_blocks(%q: tensor<1x?x300x16xf32>, %k: tensor<1x?x?x16xf32>, %l: tensor<1x?x?x8xi32>, %n: tensor<1x?x?x2xi32>, %i: index)
    -> tensor<1x?x300x16xf32> {
  flash.check_blocks %l, %n below %i : tensor<1x?x?x8xi32>, tensor<1x?x?x2xi32>
  %o, %lse = flash.attention %q, %k, %k blocks(%l, %n : tensor<1x?x?x8xi32>, tensor<1x?x?x2xi32>) of [128, 64] precision(tf32)
      : (tensor<1x?x300x16xf32>, tensor<1x?x?x16xf32>, tensor<1x?x?x16xf32>) -> (tensor<1x?x300x16xf32>, tensor<1x?x300xf32>)
  %dq, %dk, %dv = flash.attention_grad %q, %k, %k, %o, %lse, %o blocks(%l, %n : tensor<1x?x?x8xi32>, tensor<1x?x?x2xi32>)
      query_blocks(%l, %n : tensor<1x?x?x8xi32>, tensor<1x?x?x2xi32>) of [128, 64] schedule(<query_tile = 32, key_tile = 32>)
      : (tensor<1x?x300x16xf32>, tensor<1x?x?x16xf32>, tensor<1x?x?x16xf32>, tensor<1x?x300x16xf32>, tensor<1x?x300xf32>, tensor<1x?x300x16xf32>)
      -> (tensor<1x?x300x16xf32>, tensor<1x?x?x16xf32>, tensor<1x?x?x16xf32>)
  flash.visit keys tile(32) exist(%i) list(%l, %n : tensor<1x?x?x8xi32>, tensor<1x?x?x2xi32>) [%i, %i, %i] cut(64) {
  ^bb0(%at: index, %rows: index):
    flash.next
  }
  return %dq : tensor<1x?x300x16xf32>
}

// CHECK-LABEL: func @whole_map(
// CHECK: flash.block_map of[2, 4, 300, 500] tiles([64, 32]) : tensor<2x4x5x16xi32>, tensor<2x4x5x2xi32>
func.func @whole_map() {
  %tiles, %counts = flash.block_map of[2, 4, 300, 500] tiles([64, 32]) : tensor<2x4x5x16xi32>, tensor<2x4x5x2xi32>
  return
}

// CHECK-LABEL: func @captured_grad_step(
// CHECK: flash.captured_grad_step of(%{{.*}} : tensor<4x?xf32>) reads([0, 1]) ins({{.*}}) outs(%{{.*}} : tensor<128x64xf32>) at[%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}] of[512, 512] queries(%{{.*}}) keys(%{{.*}}) over_queries scale(1.250000e-01) mask(#flash.causal) score {
// CHECK: flash.captured_grad_step of(%{{.*}} : tensor<f16>) reads([0]) {{.*}} outs(%{{.*}} : tensor<64xf32>) at
func.func @captured_grad_step(%q: tensor<64x64xf16>, %k: tensor<128x64xf16>, %v: tensor<128x32xf16>, %do: tensor<64x32xf16>,
                              %shift: tensor<64xf32>, %delta: tensor<64xf32>, %bias: tensor<4x?xf32>, %0: tensor<128x64xf32>,
                              %scalar: tensor<f16>, %1: tensor<64xf32>, %b: index, %h: index, %i: index, %j: index)
    -> (tensor<128x64xf32>, tensor<64xf32>) {
  %2 = flash.captured_grad_step of(%bias : tensor<4x?xf32>) reads([0, 1]) ins(%q, %k, %v, %do, %shift, %delta : tensor<64x64xf16>,
          tensor<128x64xf16>, tensor<128x32xf16>, tensor<64x32xf16>, tensor<64xf32>, tensor<64xf32>)
      outs(%0 : tensor<128x64xf32>) at[%b, %h, %i, %j] of[512, 512] queries(%i) keys(%j) over_queries
      scale(0.125) mask(#flash.causal) score {
  ^bb0(%s: f32, %sb: index, %sh: index, %si: index, %sj: index):
    %e = tensor.extract %bias[%sh, %sj] : tensor<4x?xf32>
    %x = tensor.extract %bias[%sh, %sj] : tensor<4x?xf32>
    %t = arith.addf %s, %e : f32
    %r = arith.addf %t, %x : f32
    flash.yield %r : f32
  }
  %3 = flash.captured_grad_step of(%scalar : tensor<f16>) reads([0]) ins(%q, %k, %v, %do, %shift, %delta : tensor<64x64xf16>,
          tensor<128x64xf16>, tensor<128x32xf16>, tensor<64x32xf16>, tensor<64xf32>, tensor<64xf32>)
      outs(%1 : tensor<64xf32>) at[%b, %h, %i, %j] of[512, 512] scale(0.125) score {
  ^bb0(%s: f32, %sb: index, %sh: index, %si: index, %sj: index):
    %e = tensor.extract %scalar[] : tensor<f16>
    %w = arith.extf %e : f16 to f32
    %r = arith.mulf %s, %w : f32
    flash.yield %r : f32
  }
  return %2, %3 : tensor<128x64xf32>, tensor<64xf32>
}

// The gradients of scores that a step gives, and the sums of their diagonals.
// CHECK-LABEL: func @diagonals(
// CHECK: %{{.*}}, %{{.*}}, %[[R:.*]]:2 = flash.key_grad_step {{.*}} outs(%{{.*}}, %{{.*}}, %{{.*}} : tensor<6x8xf32>, tensor<6x16xf32>, tensor<4x8xf32>) score_grads at[0, 0, 0, 0]
// CHECK: flash.insert_diagonals %[[R]]#1 into %{{.*}}[%{{.*}}, %{{.*}}] : tensor<6x4xf16> into tensor<?x2x10xf32>
func.func @diagonals(%q: tensor<4x8xf16>, %k: tensor<6x8xf16>, %v: tensor<6x16xf16>, %do: tensor<4x16xf16>, %shift: tensor<4xf32>, %delta: tensor<4xf32>,
                     %dk: tensor<6x8xf32>, %dv: tensor<6x16xf32>, %dq: tensor<4x8xf32>, %to: tensor<?x2x10xf32>, %i: index) -> tensor<?x2x10xf32> {
  %0:4 = flash.key_grad_step ins(%q, %k, %v, %do, %shift, %delta : tensor<4x8xf16>, tensor<6x8xf16>, tensor<6x16xf16>, tensor<4x16xf16>, tensor<4xf32>, tensor<4xf32>)
      outs(%dk, %dv, %dq : tensor<6x8xf32>, tensor<6x16xf32>, tensor<4x8xf32>) score_grads at[0, 0, 0, 0] of[4, 6] scale(1.0)
  %1 = flash.insert_diagonals %0#3 into %to[%i, %i] : tensor<6x4xf16> into tensor<?x2x10xf32>
  return %1 : tensor<?x2x10xf32>
}

// What iterations of a loop add to sums of tiles, and a step that has such a tile, whose columns are in two parts.
// CHECK-LABEL: func @contributions(
// CHECK: %{{.*}}, %{{.*}}, %[[T:.*]] = flash.key_grad_step {{.*}} outs(%{{.*}}, %{{.*}}, %{{.*}} : tensor<6x8xf32>, tensor<6x16xf32>, tensor<8x4xf32>) at[0, 0, 0, 0]
// CHECK: flash.contribute %[[T]] to %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}] among(%{{.*}} to %{{.*}}) : tensor<8x4xf32> to tensor<1x1x?x8x4xf32>
// CHECK: flash.parallel_add %{{.*}} to %{{.*}} counting %{{.*}} : tensor<1x1x?x8x4xf32>, tensor<1x1x?xi32>
func.func @contributions(%q: tensor<4x8xf16>, %k: tensor<6x8xf16>, %v: tensor<6x16xf16>, %do: tensor<4x16xf16>,
                         %shift: tensor<4xf32>, %delta: tensor<4xf32>, %dk: tensor<6x8xf32>, %dv: tensor<6x16xf32>,
                         %dq: tensor<8x4xf32>, %sums: tensor<1x1x?x8x4xf32>, %counts: tensor<1x1x?xi32>, %n: index)
    -> (tensor<1x1x?x8x4xf32>, tensor<1x1x?xi32>) {
  %c0 = arith.constant 0 : index
  %0:2 = scf.forall (%j) in (%n) shared_outs(%s = %sums, %c = %counts) -> (tensor<1x1x?x8x4xf32>, tensor<1x1x?xi32>) {
    %1:3 = flash.key_grad_step ins(%q, %k, %v, %do, %shift, %delta : tensor<4x8xf16>, tensor<6x8xf16>, tensor<6x16xf16>, tensor<4x16xf16>, tensor<4xf32>, tensor<4xf32>)
        outs(%dk, %dv, %dq : tensor<6x8xf32>, tensor<6x16xf32>, tensor<8x4xf32>) at[0, 0, 0, 0] of[4, 6] scale(1.0)
    %none = tensor.empty(%n) : tensor<1x1x?x8x4xf32>
    %2 = flash.contribute %1#2 to %none[%c0, %c0, %c0] among(%c0 to %n) : tensor<8x4xf32> to tensor<1x1x?x8x4xf32>
    scf.forall.in_parallel {
      flash.parallel_add %2 to %s counting %c : tensor<1x1x?x8x4xf32>, tensor<1x1x?xi32>
    }
  }
  return %0#0, %0#1 : tensor<1x1x?x8x4xf32>, tensor<1x1x?xi32>
}
