// Gradients with each size that may be 0, of a sink and of a captured tensor, too.
func.func @batch(%q: tensor<0x4x70x64xf16>, %k: tensor<0x2x17x64xf16>, %v: tensor<0x2x17x64xf16>, %n: tensor<0xi32>, %sink: tensor<4xf32>, %t: tensor<4xf32>, %do: tensor<0x4x70x64xf16>, %dlse: tensor<0x4x70xf32>)
    -> (tensor<0x4x70x64xf16>, tensor<0x2x17x64xf16>, tensor<0x2x17x64xf16>, tensor<4xf32>, tensor<4xf32>) {
  %o, %lse = flash.attention %q, %k, %v mask(#flash.causal) lengths(%n : tensor<0xi32>) sink(%sink : tensor<4xf32>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %bias = tensor.extract %t[%h] : tensor<4xf32>
    %r = arith.addf %s, %bias : f32
    flash.yield %r : f32
  } : (tensor<0x4x70x64xf16>, tensor<0x2x17x64xf16>, tensor<0x2x17x64xf16>) -> (tensor<0x4x70x64xf16>, tensor<0x4x70xf32>)
  %dq, %dk, %dv, %ds, %dt = flash.attention_grad %q, %k, %v, %o, %lse, %do mask(#flash.causal) lengths(%n : tensor<0xi32>) sink(%sink : tensor<4xf32>)
      lse_grad(%dlse : tensor<0x4x70xf32>) wrt(%t : tensor<4xf32>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %bias = tensor.extract %t[%h] : tensor<4xf32>
    %r = arith.addf %s, %bias : f32
    flash.yield %r : f32
  } : (tensor<0x4x70x64xf16>, tensor<0x2x17x64xf16>, tensor<0x2x17x64xf16>, tensor<0x4x70x64xf16>, tensor<0x4x70xf32>, tensor<0x4x70x64xf16>) -> (tensor<0x4x70x64xf16>, tensor<0x2x17x64xf16>, tensor<0x2x17x64xf16>, tensor<4xf32>, tensor<4xf32>)
  return %dq, %dk, %dv, %ds, %dt : tensor<0x4x70x64xf16>, tensor<0x2x17x64xf16>, tensor<0x2x17x64xf16>, tensor<4xf32>, tensor<4xf32>
}
func.func @batch_at_once(%q: tensor<0x4x70x64xf16>, %k: tensor<0x2x17x64xf16>, %v: tensor<0x2x17x64xf16>, %n: tensor<0xi32>, %sink: tensor<4xf32>, %t: tensor<4xf32>, %do: tensor<0x4x70x64xf16>, %dlse: tensor<0x4x70xf32>)
    -> (tensor<0x4x70x64xf16>, tensor<0x2x17x64xf16>, tensor<0x2x17x64xf16>, tensor<4xf32>, tensor<4xf32>) {
  %o, %lse = flash.attention %q, %k, %v mask(#flash.causal) lengths(%n : tensor<0xi32>) sink(%sink : tensor<4xf32>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %bias = tensor.extract %t[%h] : tensor<4xf32>
    %r = arith.addf %s, %bias : f32
    flash.yield %r : f32
  } : (tensor<0x4x70x64xf16>, tensor<0x2x17x64xf16>, tensor<0x2x17x64xf16>) -> (tensor<0x4x70x64xf16>, tensor<0x4x70xf32>)
  %dq, %dk, %dv, %ds, %dt = flash.attention_grad %q, %k, %v, %o, %lse, %do mask(#flash.causal) lengths(%n : tensor<0xi32>) sink(%sink : tensor<4xf32>) schedule(<key_tile = 64, query_step = 64, products = 5>)
      lse_grad(%dlse : tensor<0x4x70xf32>) wrt(%t : tensor<4xf32>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %bias = tensor.extract %t[%h] : tensor<4xf32>
    %r = arith.addf %s, %bias : f32
    flash.yield %r : f32
  } : (tensor<0x4x70x64xf16>, tensor<0x2x17x64xf16>, tensor<0x2x17x64xf16>, tensor<0x4x70x64xf16>, tensor<0x4x70xf32>, tensor<0x4x70x64xf16>) -> (tensor<0x4x70x64xf16>, tensor<0x2x17x64xf16>, tensor<0x2x17x64xf16>, tensor<4xf32>, tensor<4xf32>)
  return %dq, %dk, %dv, %ds, %dt : tensor<0x4x70x64xf16>, tensor<0x2x17x64xf16>, tensor<0x2x17x64xf16>, tensor<4xf32>, tensor<4xf32>
}
func.func @queries(%q: tensor<2x4x0x64xf16>, %k: tensor<2x2x17x64xf16>, %v: tensor<2x2x17x64xf16>, %n: tensor<2xi32>, %sink: tensor<4xf32>, %t: tensor<4xf32>, %do: tensor<2x4x0x64xf16>, %dlse: tensor<2x4x0xf32>)
    -> (tensor<2x4x0x64xf16>, tensor<2x2x17x64xf16>, tensor<2x2x17x64xf16>, tensor<4xf32>, tensor<4xf32>) {
  %o, %lse = flash.attention %q, %k, %v mask(#flash.causal) lengths(%n : tensor<2xi32>) sink(%sink : tensor<4xf32>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %bias = tensor.extract %t[%h] : tensor<4xf32>
    %r = arith.addf %s, %bias : f32
    flash.yield %r : f32
  } : (tensor<2x4x0x64xf16>, tensor<2x2x17x64xf16>, tensor<2x2x17x64xf16>) -> (tensor<2x4x0x64xf16>, tensor<2x4x0xf32>)
  %dq, %dk, %dv, %ds, %dt = flash.attention_grad %q, %k, %v, %o, %lse, %do mask(#flash.causal) lengths(%n : tensor<2xi32>) sink(%sink : tensor<4xf32>)
      lse_grad(%dlse : tensor<2x4x0xf32>) wrt(%t : tensor<4xf32>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %bias = tensor.extract %t[%h] : tensor<4xf32>
    %r = arith.addf %s, %bias : f32
    flash.yield %r : f32
  } : (tensor<2x4x0x64xf16>, tensor<2x2x17x64xf16>, tensor<2x2x17x64xf16>, tensor<2x4x0x64xf16>, tensor<2x4x0xf32>, tensor<2x4x0x64xf16>) -> (tensor<2x4x0x64xf16>, tensor<2x2x17x64xf16>, tensor<2x2x17x64xf16>, tensor<4xf32>, tensor<4xf32>)
  return %dq, %dk, %dv, %ds, %dt : tensor<2x4x0x64xf16>, tensor<2x2x17x64xf16>, tensor<2x2x17x64xf16>, tensor<4xf32>, tensor<4xf32>
}
func.func @queries_at_once(%q: tensor<2x4x0x64xf16>, %k: tensor<2x2x17x64xf16>, %v: tensor<2x2x17x64xf16>, %n: tensor<2xi32>, %sink: tensor<4xf32>, %t: tensor<4xf32>, %do: tensor<2x4x0x64xf16>, %dlse: tensor<2x4x0xf32>)
    -> (tensor<2x4x0x64xf16>, tensor<2x2x17x64xf16>, tensor<2x2x17x64xf16>, tensor<4xf32>, tensor<4xf32>) {
  %o, %lse = flash.attention %q, %k, %v mask(#flash.causal) lengths(%n : tensor<2xi32>) sink(%sink : tensor<4xf32>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %bias = tensor.extract %t[%h] : tensor<4xf32>
    %r = arith.addf %s, %bias : f32
    flash.yield %r : f32
  } : (tensor<2x4x0x64xf16>, tensor<2x2x17x64xf16>, tensor<2x2x17x64xf16>) -> (tensor<2x4x0x64xf16>, tensor<2x4x0xf32>)
  %dq, %dk, %dv, %ds, %dt = flash.attention_grad %q, %k, %v, %o, %lse, %do mask(#flash.causal) lengths(%n : tensor<2xi32>) sink(%sink : tensor<4xf32>) schedule(<key_tile = 64, query_step = 64, products = 5>)
      lse_grad(%dlse : tensor<2x4x0xf32>) wrt(%t : tensor<4xf32>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %bias = tensor.extract %t[%h] : tensor<4xf32>
    %r = arith.addf %s, %bias : f32
    flash.yield %r : f32
  } : (tensor<2x4x0x64xf16>, tensor<2x2x17x64xf16>, tensor<2x2x17x64xf16>, tensor<2x4x0x64xf16>, tensor<2x4x0xf32>, tensor<2x4x0x64xf16>) -> (tensor<2x4x0x64xf16>, tensor<2x2x17x64xf16>, tensor<2x2x17x64xf16>, tensor<4xf32>, tensor<4xf32>)
  return %dq, %dk, %dv, %ds, %dt : tensor<2x4x0x64xf16>, tensor<2x2x17x64xf16>, tensor<2x2x17x64xf16>, tensor<4xf32>, tensor<4xf32>
}
func.func @keys(%q: tensor<2x4x70x64xf16>, %k: tensor<2x2x0x64xf16>, %v: tensor<2x2x0x64xf16>, %n: tensor<2xi32>, %sink: tensor<4xf32>, %t: tensor<4xf32>, %do: tensor<2x4x70x64xf16>, %dlse: tensor<2x4x70xf32>)
    -> (tensor<2x4x70x64xf16>, tensor<2x2x0x64xf16>, tensor<2x2x0x64xf16>, tensor<4xf32>, tensor<4xf32>) {
  %o, %lse = flash.attention %q, %k, %v mask(#flash.causal) lengths(%n : tensor<2xi32>) sink(%sink : tensor<4xf32>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %bias = tensor.extract %t[%h] : tensor<4xf32>
    %r = arith.addf %s, %bias : f32
    flash.yield %r : f32
  } : (tensor<2x4x70x64xf16>, tensor<2x2x0x64xf16>, tensor<2x2x0x64xf16>) -> (tensor<2x4x70x64xf16>, tensor<2x4x70xf32>)
  %dq, %dk, %dv, %ds, %dt = flash.attention_grad %q, %k, %v, %o, %lse, %do mask(#flash.causal) lengths(%n : tensor<2xi32>) sink(%sink : tensor<4xf32>)
      lse_grad(%dlse : tensor<2x4x70xf32>) wrt(%t : tensor<4xf32>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %bias = tensor.extract %t[%h] : tensor<4xf32>
    %r = arith.addf %s, %bias : f32
    flash.yield %r : f32
  } : (tensor<2x4x70x64xf16>, tensor<2x2x0x64xf16>, tensor<2x2x0x64xf16>, tensor<2x4x70x64xf16>, tensor<2x4x70xf32>, tensor<2x4x70x64xf16>) -> (tensor<2x4x70x64xf16>, tensor<2x2x0x64xf16>, tensor<2x2x0x64xf16>, tensor<4xf32>, tensor<4xf32>)
  return %dq, %dk, %dv, %ds, %dt : tensor<2x4x70x64xf16>, tensor<2x2x0x64xf16>, tensor<2x2x0x64xf16>, tensor<4xf32>, tensor<4xf32>
}
func.func @keys_at_once(%q: tensor<2x4x70x64xf16>, %k: tensor<2x2x0x64xf16>, %v: tensor<2x2x0x64xf16>, %n: tensor<2xi32>, %sink: tensor<4xf32>, %t: tensor<4xf32>, %do: tensor<2x4x70x64xf16>, %dlse: tensor<2x4x70xf32>)
    -> (tensor<2x4x70x64xf16>, tensor<2x2x0x64xf16>, tensor<2x2x0x64xf16>, tensor<4xf32>, tensor<4xf32>) {
  %o, %lse = flash.attention %q, %k, %v mask(#flash.causal) lengths(%n : tensor<2xi32>) sink(%sink : tensor<4xf32>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %bias = tensor.extract %t[%h] : tensor<4xf32>
    %r = arith.addf %s, %bias : f32
    flash.yield %r : f32
  } : (tensor<2x4x70x64xf16>, tensor<2x2x0x64xf16>, tensor<2x2x0x64xf16>) -> (tensor<2x4x70x64xf16>, tensor<2x4x70xf32>)
  %dq, %dk, %dv, %ds, %dt = flash.attention_grad %q, %k, %v, %o, %lse, %do mask(#flash.causal) lengths(%n : tensor<2xi32>) sink(%sink : tensor<4xf32>) schedule(<key_tile = 64, query_step = 64, products = 5>)
      lse_grad(%dlse : tensor<2x4x70xf32>) wrt(%t : tensor<4xf32>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %bias = tensor.extract %t[%h] : tensor<4xf32>
    %r = arith.addf %s, %bias : f32
    flash.yield %r : f32
  } : (tensor<2x4x70x64xf16>, tensor<2x2x0x64xf16>, tensor<2x2x0x64xf16>, tensor<2x4x70x64xf16>, tensor<2x4x70xf32>, tensor<2x4x70x64xf16>) -> (tensor<2x4x70x64xf16>, tensor<2x2x0x64xf16>, tensor<2x2x0x64xf16>, tensor<4xf32>, tensor<4xf32>)
  return %dq, %dk, %dv, %ds, %dt : tensor<2x4x70x64xf16>, tensor<2x2x0x64xf16>, tensor<2x2x0x64xf16>, tensor<4xf32>, tensor<4xf32>
}
func.func @none(%q: tensor<2x4x0x64xf16>, %k: tensor<2x2x0x64xf16>, %v: tensor<2x2x0x64xf16>, %n: tensor<2xi32>, %sink: tensor<4xf32>, %t: tensor<4xf32>, %do: tensor<2x4x0x64xf16>, %dlse: tensor<2x4x0xf32>)
    -> (tensor<2x4x0x64xf16>, tensor<2x2x0x64xf16>, tensor<2x2x0x64xf16>, tensor<4xf32>, tensor<4xf32>) {
  %o, %lse = flash.attention %q, %k, %v mask(#flash.causal) lengths(%n : tensor<2xi32>) sink(%sink : tensor<4xf32>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %bias = tensor.extract %t[%h] : tensor<4xf32>
    %r = arith.addf %s, %bias : f32
    flash.yield %r : f32
  } : (tensor<2x4x0x64xf16>, tensor<2x2x0x64xf16>, tensor<2x2x0x64xf16>) -> (tensor<2x4x0x64xf16>, tensor<2x4x0xf32>)
  %dq, %dk, %dv, %ds, %dt = flash.attention_grad %q, %k, %v, %o, %lse, %do mask(#flash.causal) lengths(%n : tensor<2xi32>) sink(%sink : tensor<4xf32>)
      lse_grad(%dlse : tensor<2x4x0xf32>) wrt(%t : tensor<4xf32>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %bias = tensor.extract %t[%h] : tensor<4xf32>
    %r = arith.addf %s, %bias : f32
    flash.yield %r : f32
  } : (tensor<2x4x0x64xf16>, tensor<2x2x0x64xf16>, tensor<2x2x0x64xf16>, tensor<2x4x0x64xf16>, tensor<2x4x0xf32>, tensor<2x4x0x64xf16>) -> (tensor<2x4x0x64xf16>, tensor<2x2x0x64xf16>, tensor<2x2x0x64xf16>, tensor<4xf32>, tensor<4xf32>)
  return %dq, %dk, %dv, %ds, %dt : tensor<2x4x0x64xf16>, tensor<2x2x0x64xf16>, tensor<2x2x0x64xf16>, tensor<4xf32>, tensor<4xf32>
}
func.func @none_at_once(%q: tensor<2x4x0x64xf16>, %k: tensor<2x2x0x64xf16>, %v: tensor<2x2x0x64xf16>, %n: tensor<2xi32>, %sink: tensor<4xf32>, %t: tensor<4xf32>, %do: tensor<2x4x0x64xf16>, %dlse: tensor<2x4x0xf32>)
    -> (tensor<2x4x0x64xf16>, tensor<2x2x0x64xf16>, tensor<2x2x0x64xf16>, tensor<4xf32>, tensor<4xf32>) {
  %o, %lse = flash.attention %q, %k, %v mask(#flash.causal) lengths(%n : tensor<2xi32>) sink(%sink : tensor<4xf32>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %bias = tensor.extract %t[%h] : tensor<4xf32>
    %r = arith.addf %s, %bias : f32
    flash.yield %r : f32
  } : (tensor<2x4x0x64xf16>, tensor<2x2x0x64xf16>, tensor<2x2x0x64xf16>) -> (tensor<2x4x0x64xf16>, tensor<2x4x0xf32>)
  %dq, %dk, %dv, %ds, %dt = flash.attention_grad %q, %k, %v, %o, %lse, %do mask(#flash.causal) lengths(%n : tensor<2xi32>) sink(%sink : tensor<4xf32>) schedule(<key_tile = 64, query_step = 64, products = 5>)
      lse_grad(%dlse : tensor<2x4x0xf32>) wrt(%t : tensor<4xf32>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %bias = tensor.extract %t[%h] : tensor<4xf32>
    %r = arith.addf %s, %bias : f32
    flash.yield %r : f32
  } : (tensor<2x4x0x64xf16>, tensor<2x2x0x64xf16>, tensor<2x2x0x64xf16>, tensor<2x4x0x64xf16>, tensor<2x4x0xf32>, tensor<2x4x0x64xf16>) -> (tensor<2x4x0x64xf16>, tensor<2x2x0x64xf16>, tensor<2x2x0x64xf16>, tensor<4xf32>, tensor<4xf32>)
  return %dq, %dk, %dv, %ds, %dt : tensor<2x4x0x64xf16>, tensor<2x2x0x64xf16>, tensor<2x2x0x64xf16>, tensor<4xf32>, tensor<4xf32>
}
