#set = affine_set<(d0, d1, d2, d3)[s0, s1] : (d2 floordiv 128 - d3 floordiv 128 == 0)>
module {
  func.func @plain(%arg0: tensor<2x8x333x64xf32>, %arg1: tensor<2x2x517x64xf32>, %arg2: tensor<2x2x517x48xf32>) -> tensor<2x8x333x48xf32> {
    %output = flash.attention %arg0, %arg1, %arg2 : (tensor<2x8x333x64xf32>, tensor<2x2x517x64xf32>, tensor<2x2x517x48xf32>) -> tensor<2x8x333x48xf32>
    return %output : tensor<2x8x333x48xf32>
  }
  func.func @lse(%arg0: tensor<2x8x333x64xf32>, %arg1: tensor<2x2x517x64xf32>, %arg2: tensor<2x2x517x48xf32>) -> (tensor<2x8x333x48xf32>, tensor<2x8x333xf32>) {
    %output, %lse = flash.attention %arg0, %arg1, %arg2 scale(2.000000e-01) mask(#flash.causal) : (tensor<2x8x333x64xf32>, tensor<2x2x517x64xf32>, tensor<2x2x517x48xf32>) -> (tensor<2x8x333x48xf32>, tensor<2x8x333xf32>)
    return %output, %lse : tensor<2x8x333x48xf32>, tensor<2x8x333xf32>
  }
  func.func @everything(%arg0: tensor<?x?x?x128xbf16>, %arg1: tensor<?x?x?x128xbf16>, %arg2: tensor<?x?x?x256xbf16>, %arg3: tensor<?xi32>, %arg4: tensor<?xf32>, %arg5: tensor<?x?xf32>) -> tensor<?x?x?x256xbf16> {
    %output, %lse = flash.attention %arg0, %arg1, %arg2 scale(1.250000e-01) mask(#flash.prefix<7>) lengths(%arg3 : tensor<?xi32>) sink(%arg4 : tensor<?xf32>) schedule(<query_tile = 64, key_tile = 128>) score {
    ^bb0(%arg6: f32, %arg7: index, %arg8: index, %arg9: index, %arg10: index):
      %c1 = arith.constant 1 : index
      %dim = tensor.dim %arg5, %c1 : tensor<?x?xf32>
      %0 = arith.cmpi ult, %arg10, %dim : index
      %1 = arith.select %0, %arg10, %c1 : index
      %2 = flash.guard %1 else 0 : index
      %extracted = tensor.extract %arg5[%arg9, %2] : tensor<?x?xf32>
      %3 = arith.addf %arg6, %extracted : f32
      %4 = math.tanh %3 : f32
      flash.yield %4 : f32
    } {test.note = "kept"} : (tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16>, tensor<?x?x?x256xbf16>) -> (tensor<?x?x?x256xbf16>, tensor<?x?x?xf32>)
    return %output : tensor<?x?x?x256xbf16>
  }
  func.func @precision(%arg0: tensor<2x4x64x16xf32>, %arg1: tensor<32x16xf32>, %arg2: tensor<16x16xf32>, %arg3: tensor<16xf32>) -> (tensor<2x4x64x16xf32>, tensor<16x16xf32>) {
    %output = flash.attention %arg0, %arg0, %arg0 mask(#flash.causal) precision(tf32) schedule(<query_tile = 64, key_tile = 32>) : (tensor<2x4x64x16xf32>, tensor<2x4x64x16xf32>, tensor<2x4x64x16xf32>) -> tensor<2x4x64x16xf32>
    %acc_out, %max_out, %sum_out = flash.online_attention ins(%arg2, %arg1, %arg1 : tensor<16x16xf32>, tensor<32x16xf32>, tensor<32x16xf32>) outs(%arg2, %arg3, %arg3 : tensor<16x16xf32>, tensor<16xf32>, tensor<16xf32>) at[0, 0, 0, 0] of[16, 32] scale(1.000000e+00) precision(tf32) schedule(<query_tile = 16, key_tile = 32>)
    return %output, %acc_out : tensor<2x4x64x16xf32>, tensor<16x16xf32>
  }
  func.func @rank3(%arg0: tensor<8x?x8xf16>, %arg1: tensor<2x?x8xf16>, %arg2: tensor<8x?x8xf16>, %arg3: tensor<8xf32>, %arg4: tensor<1xi32>, %arg5: tensor<8xi32>, %arg6: tensor<1xf32>) {
    %output = flash.attention %arg0, %arg1, %arg1 sink(%arg3 : tensor<8xf32>) : (tensor<8x?x8xf16>, tensor<2x?x8xf16>, tensor<2x?x8xf16>) -> tensor<8x?x8xf16>
    %output_0 = flash.attention %arg0, %arg1, %arg1 leading(heads) lengths(%arg4 : tensor<1xi32>) : (tensor<8x?x8xf16>, tensor<2x?x8xf16>, tensor<2x?x8xf16>) -> tensor<8x?x8xf16>
    %output_1, %lse = flash.attention %arg0, %arg2, %arg2 leading(batch) lengths(%arg5 : tensor<8xi32>) sink(%arg6 : tensor<1xf32>) : (tensor<8x?x8xf16>, tensor<8x?x8xf16>, tensor<8x?x8xf16>) -> (tensor<8x?x8xf16>, tensor<8x?xf32>)
    return
  }
  func.func @gradients(%arg0: tensor<2x8x333x64xf16>, %arg1: tensor<2x2x?x64xf16>, %arg2: tensor<2x2x?x48xf16>, %arg3: tensor<2x8x333x48xf16>, %arg4: tensor<2x8x333xf32>, %arg5: tensor<2x8x?x48xf16>) -> tensor<2x2x517x64xf16> {
    %query_grad, %key_grad, %value_grad = flash.attention_grad %arg0, %arg1, %arg2, %arg3, %arg4, %arg5 : (tensor<2x8x333x64xf16>, tensor<2x2x?x64xf16>, tensor<2x2x?x48xf16>, tensor<2x8x333x48xf16>, tensor<2x8x333xf32>, tensor<2x8x?x48xf16>) -> (tensor<2x8x333x64xf16>, tensor<2x2x517x64xf16>, tensor<2x2x517x48xf16>)
    return %key_grad : tensor<2x2x517x64xf16>
  }
  func.func @all_gradients(%arg0: tensor<?x?x64xf32>, %arg1: tensor<?x?x64xf32>, %arg2: tensor<?x?x128xf32>, %arg3: tensor<?x?x128xf32>, %arg4: tensor<?x?xf32>, %arg5: tensor<?x?x128xf32>, %arg6: tensor<1xi32>, %arg7: tensor<?xf32>, %arg8: tensor<?xf16>, %arg9: tensor<f32>) {
    %query_grad, %key_grad, %value_grad, %sink_grad, %captured_grads:2 = flash.attention_grad %arg0, %arg1, %arg2, %arg3, %arg4, %arg5 leading(heads) scale(1.250000e-01) mask(#flash.causal) lengths(%arg6 : tensor<1xi32>) sink(%arg7 : tensor<?xf32>) precision(tf32) multiples([1, 8]) schedule(<query_tile = 64>) lse_grad(%arg4 : tensor<?x?xf32>) wrt(%arg8, %arg9 : tensor<?xf16>, tensor<f32>) score {
    ^bb0(%arg10: f32, %arg11: index, %arg12: index, %arg13: index, %arg14: index):
      %0 = arith.subi %arg13, %arg14 : index
      %1 = flash.guard %0 else 0 : index
      %extracted = tensor.extract %arg8[%1] : tensor<?xf16>
      %2 = arith.extf %extracted : f16 to f32
      %extracted_0 = tensor.extract %arg9[] : tensor<f32>
      %3 = arith.mulf %extracted_0, %2 : f32
      %4 = arith.addf %arg10, %3 : f32
      flash.yield %4 : f32
    } {test.note = "kept"} : (tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x128xf32>, tensor<?x?x128xf32>, tensor<?x?xf32>, tensor<?x?x128xf32>) -> (tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x128xf32>, tensor<?xf32>, tensor<?xf16>, tensor<f32>)
    return
  }
  func.func @sink_gradient(%arg0: tensor<2x8x333x64xf32>, %arg1: tensor<2x2x517x64xf32>, %arg2: tensor<2x2x517x48xf32>, %arg3: tensor<2x8x333x48xf32>, %arg4: tensor<2x8x333xf32>, %arg5: tensor<2x8x333x48xf32>, %arg6: tensor<8xf32>) {
    %query_grad, %key_grad, %value_grad, %sink_grad = flash.attention_grad %arg0, %arg1, %arg2, %arg3, %arg4, %arg5 mask(#flash.causal) sink(%arg6 : tensor<8xf32>) : (tensor<2x8x333x64xf32>, tensor<2x2x517x64xf32>, tensor<2x2x517x48xf32>, tensor<2x8x333x48xf32>, tensor<2x8x333xf32>, tensor<2x8x333x48xf32>) -> (tensor<2x8x333x64xf32>, tensor<2x2x517x64xf32>, tensor<2x2x517x48xf32>, tensor<8xf32>)
    return
  }
  func.func @identity_score(%arg0: tensor<1x1x4x8xf32>) -> tensor<1x1x4x8xf32> {
    %output = flash.attention %arg0, %arg0, %arg0 score {
    ^bb0(%arg1: f32, %arg2: index, %arg3: index, %arg4: index, %arg5: index):
      flash.yield %arg1 : f32
    } : (tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>) -> tensor<1x1x4x8xf32>
    return %output : tensor<1x1x4x8xf32>
  }
  func.func @masks() attributes {affine = #flash.affine<#set>, all = #flash.all_of<[#flash.causal, #flash.window<left = 3>]>, any = #flash.any_of<[#flash.prefix<48>, #flash.all_of<[#flash.full]>]>, causal = #flash.causal, explicit = #flash.causal, features = #flash.schedule<query_tile = 128, key_tile = 64, warps = 8, stages = 2, query_stages = 1, ctas_per_sm = 2, features = specialize_warps|overlap|ping_pong|lazy_rescale|persistent>, full = #flash.full, no_features = #flash.schedule<query_tile = 128, key_tile = 64, stages = 2, features = none>, prefix = #flash.prefix<0>, schedule = #flash.schedule<query_tile = 8, key_tile = 1024>, top_left = #flash.causal<top_left>, window = #flash.window<left = 100, right = 0>, window_both = #flash.window<>, window_left = #flash.window<left = 5>, window_right = #flash.window<right = 2147483647>} {
    return
  }
  func.func @tile_step(%arg0: tensor<64x64xf16>, %arg1: tensor<128x64xf16>, %arg2: tensor<128x64xf16>, %arg3: tensor<64x64xf32>, %arg4: tensor<64xf32>, %arg5: tensor<64xf32>, %arg6: index, %arg7: index, %arg8: index, %arg9: index) -> tensor<64x64xf32> {
    %acc_out, %max_out, %sum_out = flash.online_attention ins(%arg0, %arg1, %arg2 : tensor<64x64xf16>, tensor<128x64xf16>, tensor<128x64xf16>) outs(%arg3, %arg4, %arg5 : tensor<64x64xf32>, tensor<64xf32>, tensor<64xf32>) at[%arg6, %arg7, %arg8, %arg9] of[512, 512] scale(1.250000e-01) mask(#flash.causal)
    return %acc_out : tensor<64x64xf32>
  }
  func.func @tile_step_padded(%arg0: tensor<?x8xf32>, %arg1: tensor<8x8xf32>, %arg2: tensor<8x16xf32>, %arg3: tensor<?x16xf32>, %arg4: tensor<?xf32>, %arg5: index, %arg6: index, %arg7: index) {
    %acc_out, %max_out, %sum_out = flash.online_attention ins(%arg0, %arg1, %arg2 : tensor<?x8xf32>, tensor<8x8xf32>, tensor<8x16xf32>) outs(%arg3, %arg4, %arg4 : tensor<?x16xf32>, tensor<?xf32>, tensor<?xf32>) at[0, 1, %arg5, 128] of[%arg6, 300] keys(%arg7) scale(1.000000e+00) schedule(<query_tile = 8, key_tile = 8>) score {
    ^bb0(%arg8: f32, %arg9: index, %arg10: index, %arg11: index, %arg12: index):
      %0 = arith.mulf %arg8, %arg8 : f32
      flash.yield %0 : f32
    } {test.note}
    return
  }
  func.func @whole_step(%arg0: tensor<3x4x?x16xbf16>, %arg1: tensor<3x2x70x16xbf16>, %arg2: tensor<3x4x?x16xf32>, %arg3: tensor<3x4x?xf32>, %arg4: tensor<3xi32>, %arg5: index) {
    %acc_out, %max_out, %sum_out = flash.online_attention ins(%arg0, %arg1, %arg1 : tensor<3x4x?x16xbf16>, tensor<3x2x70x16xbf16>, tensor<3x2x70x16xbf16>) outs(%arg2, %arg3, %arg3 : tensor<3x4x?x16xf32>, tensor<3x4x?xf32>, tensor<3x4x?xf32>) at[0, 0, 0, 0] of[%arg5, 70] scale(2.500000e-01) mask(#flash.full) lengths(%arg4 : tensor<3xi32>)
    return
  }
  func.func @finalize(%arg0: tensor<64x64xf32>, %arg1: tensor<64xf32>, %arg2: tensor<64xf32>, %arg3: tensor<64x64xf16>, %arg4: tensor<2x4x?x16xf32>, %arg5: tensor<2x4x?xf32>, %arg6: tensor<2x4x?x16xbf16>) {
    %output = flash.finalize ins(%arg0, %arg1, %arg2 : tensor<64x64xf32>, tensor<64xf32>, tensor<64xf32>) outs(%arg3 : tensor<64x64xf16>) -> tensor<64x64xf16>
    %output_0, %lse = flash.finalize ins(%arg4, %arg5, %arg5 : tensor<2x4x?x16xf32>, tensor<2x4x?xf32>, tensor<2x4x?xf32>) outs(%arg6, %arg5 : tensor<2x4x?x16xbf16>, tensor<2x4x?xf32>) -> (tensor<2x4x?x16xbf16>, tensor<2x4x?xf32>)
    return
  }
  func.func @combine(%arg0: tensor<4x?x64xf32>, %arg1: tensor<4x?xf32>) -> tensor<?x64xf16> {
    %output = flash.combine %arg0, %arg1 : (tensor<4x?x64xf32>, tensor<4x?xf32>) -> tensor<?x64xf16>
    %output_0 = flash.combine %arg0, %arg1 step(8) : (tensor<4x?x64xf32>, tensor<4x?xf32>) -> tensor<?x64xf16>
    %output_1, %lse = flash.combine %arg0, %arg1 : (tensor<4x?x64xf32>, tensor<4x?xf32>) -> (tensor<?x64xf32>, tensor<?xf32>)
    return %output : tensor<?x64xf16>
  }
  func.func private @splits() attributes {s = #flash.schedule<query_tile = 8, key_tile = 16, num_splits = 2>}
  func.func private @split_ctas() attributes {s = #flash.schedule<query_tile = 8, key_tile = 16, stages = 2, split_ctas = 264>}
  func.func private @split_keys() attributes {s = #flash.schedule<key_tile = 16, split_keys = 1024>}
  func.func @is_finite(%arg0: tensor<128x64xf16>) -> i1 {
    %0 = flash.is_finite %arg0 : tensor<128x64xf16>
    return %0 : i1
  }
  func.func @multiples(%arg0: tensor<2x4x?x16xf32>, %arg1: tensor<2x4x?x16xf32>, %arg2: tensor<2x4x?xf32>, %arg3: index) -> (tensor<2x4x?x16xf32>, tensor<2x4x?x16xf32>) {
    %output = flash.attention %arg0, %arg0, %arg0 precision(tf32) multiples([64, 128]) schedule(<query_tile = 64>) : (tensor<2x4x?x16xf32>, tensor<2x4x?x16xf32>, tensor<2x4x?x16xf32>) -> tensor<2x4x?x16xf32>
    %acc_out, %max_out, %sum_out = flash.online_attention ins(%arg0, %arg0, %arg0 : tensor<2x4x?x16xf32>, tensor<2x4x?x16xf32>, tensor<2x4x?x16xf32>) outs(%arg1, %arg2, %arg2 : tensor<2x4x?x16xf32>, tensor<2x4x?xf32>, tensor<2x4x?xf32>) at[0, 0, 0, 0] of[%arg3, %arg3] scale(1.000000e+00) multiples([1, 32])
    return %output, %acc_out : tensor<2x4x?x16xf32>, tensor<2x4x?x16xf32>
  }
  func.func @grad_steps(%arg0: tensor<64x64xf16>, %arg1: tensor<128x64xf16>, %arg2: tensor<128x32xf16>, %arg3: tensor<64x32xf16>, %arg4: tensor<64xf32>, %arg5: tensor<64xf32>, %arg6: tensor<64x64xf32>, %arg7: tensor<128x64xf32>, %arg8: tensor<128x32xf32>, %arg9: index, %arg10: index, %arg11: index, %arg12: index, %arg13: index) -> (tensor<64x64xf32>, tensor<128x64xf32>, tensor<128x32xf32>, tensor<128x64xf32>, tensor<128x32xf32>) {
    %0 = flash.query_grad_step ins(%arg0, %arg1, %arg2, %arg3, %arg4, %arg5 : tensor<64x64xf16>, tensor<128x64xf16>, tensor<128x32xf16>, tensor<64x32xf16>, tensor<64xf32>, tensor<64xf32>) outs(%arg6 : tensor<64x64xf32>) at[%arg9, 0, %arg11, 128] of[512, %arg13] keys(%arg13) scale(1.250000e-01) mask(#flash.causal) schedule(<query_tile = 64>) score {
    ^bb0(%arg14: f32, %arg15: index, %arg16: index, %arg17: index, %arg18: index):
      %1 = math.tanh %arg14 : f32
      flash.yield %1 : f32
    }
    %key_grad_out, %value_grad_out = flash.key_grad_step ins(%arg0, %arg1, %arg2, %arg3, %arg4, %arg5 : tensor<64x64xf16>, tensor<128x64xf16>, tensor<128x32xf16>, tensor<64x32xf16>, tensor<64xf32>, tensor<64xf32>) outs(%arg7, %arg8 : tensor<128x64xf32>, tensor<128x32xf32>) at[%arg9, %arg10, %arg11, %arg12] of[512, 512] queries(%arg13) keys(%arg12) scale(1.250000e-01)
    %key_grad_out_0, %value_grad_out_1 = flash.key_grad_step ins(%arg0, %arg1, %arg2, %arg3, %arg4, %arg5 : tensor<64x64xf16>, tensor<128x64xf16>, tensor<128x32xf16>, tensor<64x32xf16>, tensor<64xf32>, tensor<64xf32>) outs(%arg7, %arg8 : tensor<128x64xf32>, tensor<128x32xf32>) at[%arg9, %arg10, %arg11, %arg12] of[512, 512] scale(1.250000e-01) mask(#flash.causal)
    return %0, %key_grad_out, %value_grad_out, %key_grad_out_0, %value_grad_out_1 : tensor<64x64xf32>, tensor<128x64xf32>, tensor<128x32xf32>, tensor<128x64xf32>, tensor<128x32xf32>
  }
  func.func @blocks(%arg0: tensor<1x?x300x16xf32>, %arg1: tensor<1x?x?x16xf32>, %arg2: tensor<1xi32>, %arg3: tensor<?xindex>, %arg4: index, %arg5: index) -> tensor<1x?x300x16xf32> {
    %key_tiles, %counts = flash.block_map of[1, %arg4, 300, %arg5] tiles([64, 32]) mask(#flash.causal) lengths(%arg2 : tensor<1xi32>) keep {
    ^bb0(%arg6: index, %arg7: index, %arg8: index, %arg9: index):
      %0 = arith.subi %arg8, %arg9 : index
      %1 = flash.guard %0 else 0 : index
      %extracted = tensor.extract %arg3[%1] : tensor<?xindex>
      %2 = arith.cmpi sle, %extracted, %arg7 : index
      flash.yield %2 : i1
    } : tensor<1x?x5x?xi32>, tensor<1x?x5x2xi32>
    %output = flash.attention %arg0, %arg1, %arg1 mask(#flash.causal) lengths(%arg2 : tensor<1xi32>) blocks(%key_tiles, %counts : tensor<1x?x5x?xi32>, tensor<1x?x5x2xi32>) schedule(<query_tile = 64, key_tile = 32>) score {
    ^bb0(%arg6: f32, %arg7: index, %arg8: index, %arg9: index, %arg10: index):
      %0 = arith.subi %arg9, %arg10 : index
      %extracted = tensor.extract %arg3[%0] : tensor<?xindex>
      %1 = arith.cmpi sle, %extracted, %arg8 : index
      flash.yield %arg6 keep %1 : f32
    } : (tensor<1x?x300x16xf32>, tensor<1x?x?x16xf32>, tensor<1x?x?x16xf32>) -> tensor<1x?x300x16xf32>
    return %output : tensor<1x?x300x16xf32>
  }
  func.func @whole_map() {
    %key_tiles, %counts = flash.block_map of[2, 4, 300, 500] tiles([64, 32]) : tensor<2x4x5x16xi32>, tensor<2x4x5x2xi32>
    return
  }
  func.func @captured_grad_step(%arg0: tensor<64x64xf16>, %arg1: tensor<128x64xf16>, %arg2: tensor<128x32xf16>, %arg3: tensor<64x32xf16>, %arg4: tensor<64xf32>, %arg5: tensor<64xf32>, %arg6: tensor<4x?xf32>, %arg7: tensor<128x64xf32>, %arg8: tensor<f16>, %arg9: tensor<64xf32>, %arg10: index, %arg11: index, %arg12: index, %arg13: index) -> (tensor<128x64xf32>, tensor<64xf32>) {
    %0 = flash.captured_grad_step of(%arg6 : tensor<4x?xf32>) reads([0, 1]) ins(%arg0, %arg1, %arg2, %arg3, %arg4, %arg5 : tensor<64x64xf16>, tensor<128x64xf16>, tensor<128x32xf16>, tensor<64x32xf16>, tensor<64xf32>, tensor<64xf32>) outs(%arg7 : tensor<128x64xf32>) at[%arg10, %arg11, %arg12, %arg13] of[512, 512] queries(%arg12) keys(%arg13) over_queries scale(1.250000e-01) mask(#flash.causal) score {
    ^bb0(%arg14: f32, %arg15: index, %arg16: index, %arg17: index, %arg18: index):
      %extracted = tensor.extract %arg6[%arg16, %arg18] : tensor<4x?xf32>
      %extracted_0 = tensor.extract %arg6[%arg16, %arg18] : tensor<4x?xf32>
      %2 = arith.addf %arg14, %extracted : f32
      %3 = arith.addf %2, %extracted_0 : f32
      flash.yield %3 : f32
    }
    %1 = flash.captured_grad_step of(%arg8 : tensor<f16>) reads([0]) ins(%arg0, %arg1, %arg2, %arg3, %arg4, %arg5 : tensor<64x64xf16>, tensor<128x64xf16>, tensor<128x32xf16>, tensor<64x32xf16>, tensor<64xf32>, tensor<64xf32>) outs(%arg9 : tensor<64xf32>) at[%arg10, %arg11, %arg12, %arg13] of[512, 512] scale(1.250000e-01) score {
    ^bb0(%arg14: f32, %arg15: index, %arg16: index, %arg17: index, %arg18: index):
      %extracted = tensor.extract %arg8[] : tensor<f16>
      %2 = arith.extf %extracted : f16 to f32
      %3 = arith.mulf %arg14, %2 : f32
      flash.yield %3 : f32
    }
    return %0, %1 : tensor<128x64xf32>, tensor<64xf32>
  }
}

