// Every rule of the verifiers and parsers, with its message.
// RUN: flash-opt %s --split-input-file --verify-diagnostics

func.func @f(%q: tensor<1x1x4x8xf64>, %k: tensor<1x1x4x8xf64>, %v: tensor<1x1x4x8xf64>) {
  // expected-error @below {{operand #0 must be ranked tensor without encoding of 16-bit float or bfloat16 type or 32-bit float values, but got 'tensor<1x1x4x8xf64>'}}
  %o = flash.attention %q, %k, %v
      : (tensor<1x1x4x8xf64>, tensor<1x1x4x8xf64>, tensor<1x1x4x8xf64>) -> tensor<1x1x4x8xf64>
  return
}

// -----

func.func @f(%q: tensor<*xf32>) {
  %o = flash.attention %q, %q, %q
      // expected-error @below {{invalid kind of type specified: expected builtin.tensor, but found 'tensor<*xf32>'}}
      : (tensor<*xf32>, tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  return
}

// -----

func.func @f(%q: tensor<1x1x4x8xf32, 1 : i32>, %k: tensor<1x1x4x8xf32>, %v: tensor<1x1x4x8xf32>) {
  // expected-error @below {{operand #0 must be ranked tensor without encoding}}
  %o = flash.attention %q, %k, %v
      : (tensor<1x1x4x8xf32, 1 : i32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>) -> tensor<1x1x4x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x1x4x8xf32>, %k: tensor<1x1x4x8xf32>, %v: tensor<1x1x4x8xf32>, %n: tensor<1xi64>) {
  // expected-error @below {{operand #3 must be 1D tensor without encoding of 32-bit signless integer values}}
  %o = flash.attention %q, %k, %v lengths(%n : tensor<1xi64>)
      : (tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>) -> tensor<1x1x4x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x1x4x8xf32>, %k: tensor<1x1x4x8xf32>, %v: tensor<1x1x4x8xf32>, %s: tensor<1x1xf32>) {
  // expected-error @below {{operand #3 must be 1D tensor without encoding of 32-bit float values, but got 'tensor<1x1xf32>'}}
  %o = flash.attention %q, %k, %v sink(%s : tensor<1x1xf32>)
      : (tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>) -> tensor<1x1x4x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x1x4x8xf32>, %k: tensor<1x1x4x8xf16>, %v: tensor<1x1x4x8xf32>) {
  // expected-error @below {{query, key and value must have one element type, got 'f32', 'f16' and 'f32'}}
  %o = flash.attention %q, %k, %v
      : (tensor<1x1x4x8xf32>, tensor<1x1x4x8xf16>, tensor<1x1x4x8xf32>) -> tensor<1x1x4x8xf32>
  return
}

// -----

func.func @f(%q: tensor<f32>, %k: tensor<f32>, %v: tensor<f32>) {
  // expected-error @below {{operands must have rank 4 (batch, heads, length, head dimension) or rank 3 (without batch, or with leading(batch) without heads), got rank 0}}
  %o = flash.attention %q, %k, %v
      : (tensor<f32>, tensor<f32>, tensor<f32>) -> tensor<f32>
  return
}

// -----

func.func @f(%q: tensor<8xf32>, %k: tensor<8xf32>, %v: tensor<8xf32>) {
  // expected-error @below {{operands must have rank 4 (batch, heads, length, head dimension) or rank 3 (without batch, or with leading(batch) without heads), got rank 1}}
  %o = flash.attention %q, %k, %v
      : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x8xf32>, %k: tensor<1x8xf32>, %v: tensor<1x8xf32>) {
  // expected-error @below {{operands must have rank 4 (batch, heads, length, head dimension) or rank 3 (without batch, or with leading(batch) without heads), got rank 2}}
  %o = flash.attention %q, %k, %v
      : (tensor<1x8xf32>, tensor<1x8xf32>, tensor<1x8xf32>) -> tensor<1x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x1x1x1x8xf32>, %k: tensor<1x1x1x1x8xf32>, %v: tensor<1x1x1x1x8xf32>) {
  // expected-error @below {{operands must have rank 4 (batch, heads, length, head dimension) or rank 3 (without batch, or with leading(batch) without heads), got rank 5}}
  %o = flash.attention %q, %k, %v
      : (tensor<1x1x1x1x8xf32>, tensor<1x1x1x1x8xf32>, tensor<1x1x1x1x8xf32>) -> tensor<1x1x1x1x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x1x4x8xf32>, %k: tensor<1x4x8xf32>, %v: tensor<1x1x4x8xf32>) {
  // expected-error @below {{query, key and value must have one rank, got 4, 3 and 4}}
  %o = flash.attention %q, %k, %v
      : (tensor<1x1x4x8xf32>, tensor<1x4x8xf32>, tensor<1x1x4x8xf32>) -> tensor<1x1x4x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x1x4x8xf32>, %k: tensor<1x1x4x8xf32>, %v: tensor<4x8xf32>) {
  // expected-error @below {{query, key and value must have one rank, got 4, 4 and 2}}
  %o = flash.attention %q, %k, %v
      : (tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<4x8xf32>) -> tensor<1x1x4x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x1x4x8xf32>, %k: tensor<1x1x4x8xf32>, %v: tensor<1x1x4x8xf32>) {
  // expected-error @below {{leading says what the first of three dimensions is; rank-4 operands have both batch and heads}}
  %o = flash.attention %q, %k, %v leading(batch)
      : (tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>) -> tensor<1x1x4x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x1x4x?xf32>, %k: tensor<1x1x4x?xf32>, %v: tensor<1x1x4x8xf32>) {
  // expected-error @below {{head dimension must be static; only batch, heads and lengths may be dynamic}}
  %o = flash.attention %q, %k, %v
      : (tensor<1x1x4x?xf32>, tensor<1x1x4x?xf32>, tensor<1x1x4x8xf32>) -> tensor<1x1x4x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x1x4x8xf32>, %k: tensor<1x1x4x8xf32>, %v: tensor<1x1x4x?xf32>) {
  // expected-error @below {{value head dimension must be static; only batch, heads and lengths may be dynamic}}
  %o = flash.attention %q, %k, %v
      : (tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x?xf32>) -> tensor<1x1x4x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x1x4x0xf32>, %k: tensor<1x1x4x0xf32>, %v: tensor<1x1x4x8xf32>) {
  // expected-error @below {{head dimension must be a multiple of 8 from 8 to 576, got 0; the nearest supported size is 8}}
  %o = flash.attention %q, %k, %v
      : (tensor<1x1x4x0xf32>, tensor<1x1x4x0xf32>, tensor<1x1x4x8xf32>) -> tensor<1x1x4x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x1x4x65xf32>, %k: tensor<1x1x4x65xf32>, %v: tensor<1x1x4x8xf32>) {
  // expected-error @below {{head dimension must be a multiple of 8 from 8 to 576, got 65; the nearest supported size is 72}}
  %o = flash.attention %q, %k, %v
      : (tensor<1x1x4x65xf32>, tensor<1x1x4x65xf32>, tensor<1x1x4x8xf32>) -> tensor<1x1x4x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x1x4x8xf32>, %k: tensor<1x1x4x8xf32>, %v: tensor<1x1x4x9223372036854775807xf32>) {
  // expected-error @below {{value head dimension must be a multiple of 8 from 8 to 576, got 9223372036854775807; the nearest supported size is 576}}
  %o = flash.attention %q, %k, %v
      : (tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x9223372036854775807xf32>) -> tensor<1x1x4x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x1x4x8xf32>, %k: tensor<1x1x4x16xf32>, %v: tensor<1x1x4x8xf32>) {
  // expected-error @below {{head dimensions of query and key must agree, got 8 and 16}}
  %o = flash.attention %q, %k, %v
      : (tensor<1x1x4x8xf32>, tensor<1x1x4x16xf32>, tensor<1x1x4x8xf32>) -> tensor<1x1x4x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x1x4x8xf32>, %k: tensor<1x1x4x8xf32>, %v: tensor<1x1x5x8xf32>) {
  // expected-error @below {{lengths of key and value must agree, got 4 and 5}}
  %o = flash.attention %q, %k, %v
      : (tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x5x8xf32>) -> tensor<1x1x4x8xf32>
  return
}

// -----

func.func @f(%q: tensor<2x1x4x8xf32>, %k: tensor<3x1x4x8xf32>, %v: tensor<2x1x4x8xf32>) {
  // expected-error @below {{batch sizes of query and key must agree, got 2 and 3}}
  %o = flash.attention %q, %k, %v
      : (tensor<2x1x4x8xf32>, tensor<3x1x4x8xf32>, tensor<2x1x4x8xf32>) -> tensor<2x1x4x8xf32>
  return
}

// -----

func.func @f(%q: tensor<2x1x4x8xf32>, %k: tensor<?x1x4x8xf32>, %v: tensor<3x1x4x8xf32>) {
  // expected-error @below {{batch sizes of query and value must agree, got 2 and 3}}
  %o = flash.attention %q, %k, %v
      : (tensor<2x1x4x8xf32>, tensor<?x1x4x8xf32>, tensor<3x1x4x8xf32>) -> tensor<2x1x4x8xf32>
  return
}

// -----

func.func @f(%q: tensor<2x4x8xf32>, %k: tensor<3x4x8xf32>, %v: tensor<2x4x8xf32>) {
  // expected-error @below {{batch sizes of query and key must agree, got 2 and 3}}
  %o = flash.attention %q, %k, %v leading(batch)
      : (tensor<2x4x8xf32>, tensor<3x4x8xf32>, tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x4x4x8xf32>, %k: tensor<1x2x4x8xf32>, %v: tensor<1x1x4x8xf32>) {
  // expected-error @below {{head counts of key and value must agree, got 2 and 1}}
  %o = flash.attention %q, %k, %v
      : (tensor<1x4x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x1x4x8xf32>) -> tensor<1x4x4x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x0x4x8xf32>, %k: tensor<1x1x4x8xf32>, %v: tensor<1x1x4x8xf32>) {
  // expected-error @below {{needs at least one head}}
  %o = flash.attention %q, %k, %v
      : (tensor<1x0x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>) -> tensor<1x0x4x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x?x4x8xf32>, %k: tensor<1x0x4x8xf32>, %v: tensor<1x0x4x8xf32>) {
  // expected-error @below {{needs at least one head}}
  %o = flash.attention %q, %k, %v
      : (tensor<1x?x4x8xf32>, tensor<1x0x4x8xf32>, tensor<1x0x4x8xf32>) -> tensor<1x?x4x8xf32>
  return
}

// -----

func.func @f(%q: tensor<3x4x8xf32>, %k: tensor<2x4x8xf32>, %v: tensor<2x4x8xf32>) {
  // expected-error @below {{query heads (3) must be a multiple of key heads (2)}}
  %o = flash.attention %q, %k, %v
      : (tensor<3x4x8xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> tensor<3x4x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x1x4x8xf32>, %k: tensor<1x1x4x8xf32>, %v: tensor<1x1x4x8xf32>) {
  // expected-error @below {{output must have the operands' element type 'f32', got 'f16'}}
  %o = flash.attention %q, %k, %v
      : (tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>) -> tensor<1x1x4x8xf16>
  return
}

// -----

func.func @f(%q: tensor<1x1x4x8xf32>, %k: tensor<1x1x4x8xf32>, %v: tensor<1x1x4x16xf32>) {
  // expected-error @below {{output must have type 'tensor<1x1x4x16xf32>', got 'tensor<1x1x4x8xf32>'}}
  %o = flash.attention %q, %k, %v
      : (tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x16xf32>) -> tensor<1x1x4x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x1x4x8xf32>, %k: tensor<1x1x4x8xf32>, %v: tensor<1x1x4x8xf32>) {
  // expected-error @below {{output must have type 'tensor<1x1x4x8xf32>', got 'tensor<1x1x4x?xf32>'}}
  %o = flash.attention %q, %k, %v
      : (tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>) -> tensor<1x1x4x?xf32>
  return
}

// -----

func.func @f(%q: tensor<1x1x4x8xf32>, %k: tensor<1x1x4x8xf32>, %v: tensor<1x1x4x8xf32>) {
  // expected-error @below {{output must have type 'tensor<1x1x4x8xf32>', got 'tensor<1x4x8xf32>'}}
  %o = flash.attention %q, %k, %v
      : (tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>) -> tensor<1x4x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x1x4x8xf32>, %k: tensor<1x1x4x8xf32>, %v: tensor<1x1x4x8xf32>) {
  // expected-error @below {{log-sum-exp must have type 'tensor<1x1x4xf32>', got 'tensor<1x1x5xf32>'}}
  %o, %l = flash.attention %q, %k, %v
      : (tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>) -> (tensor<1x1x4x8xf32>, tensor<1x1x5xf32>)
  return
}

// -----

func.func @f(%q: tensor<1x1x4x8xf32>, %k: tensor<1x1x4x8xf32>, %v: tensor<1x1x4x8xf32>) {
  // expected-error @below {{result #1 must be ranked tensor without encoding of 32-bit float values, but got 'tensor<1x1x4xf16>'}}
  %o, %l = flash.attention %q, %k, %v
      : (tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>) -> (tensor<1x1x4x8xf32>, tensor<1x1x4xf16>)
  return
}

// -----

func.func @f(%q: tensor<2x1x4x8xf32>, %k: tensor<2x1x4x8xf32>, %v: tensor<2x1x4x8xf32>, %n: tensor<3xi32>) {
  // expected-error @below {{batch size and number of lengths must agree, got 2 and 3}}
  %o = flash.attention %q, %k, %v lengths(%n : tensor<3xi32>)
      : (tensor<2x1x4x8xf32>, tensor<2x1x4x8xf32>, tensor<2x1x4x8xf32>) -> tensor<2x1x4x8xf32>
  return
}

// -----

func.func @f(%q: tensor<2x4x8xf32>, %k: tensor<2x4x8xf32>, %v: tensor<2x4x8xf32>, %n: tensor<2xi32>) {
  // expected-error @below {{batch size and number of lengths must agree, got 1 and 2}}
  %o = flash.attention %q, %k, %v lengths(%n : tensor<2xi32>)
      : (tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x4x4x8xf32>, %k: tensor<1x2x4x8xf32>, %v: tensor<1x2x4x8xf32>, %s: tensor<2xf32>) {
  // expected-error @below {{query heads and number of sinks must agree, got 4 and 2}}
  %o = flash.attention %q, %k, %v sink(%s : tensor<2xf32>)
      : (tensor<1x4x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>) -> tensor<1x4x4x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x1x4x8xf32>, %k: tensor<1x1x4x8xf32>, %v: tensor<1x1x4x8xf32>) {
  // expected-error @below {{scale must be finite}}
  %o = flash.attention %q, %k, %v scale(0x7FF0000000000000)
      : (tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>) -> tensor<1x1x4x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x1x4x8xf32>, %x: f32, %t: tensor<4xf32>) {
  // expected-error @below {{the score region takes (score: f32, batch: index, head: index, query: index, key: index)}}
  %o = flash.attention %q, %q, %q score {
    flash.yield %x : f32
  } : (tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>) -> tensor<1x1x4x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x1x4x8xf32>, %x: f32, %t: tensor<4xf32>) {
  // expected-error @below {{the score region takes}}
  %o = flash.attention %q, %q, %q score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index):
    flash.yield %s : f32
  } : (tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>) -> tensor<1x1x4x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x1x4x8xf32>, %x: f32, %t: tensor<4xf32>) {
  // expected-error @below {{the score region takes}}
  %o = flash.attention %q, %q, %q score {
  ^bb0(%s: f16, %b: index, %h: index, %i: index, %j: index):
    flash.yield %x : f32
  } : (tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>) -> tensor<1x1x4x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x1x4x8xf32>, %x: f32, %t: tensor<4xf32>) {
  // expected-error @below {{the score region must end with flash.yield}}
  %o = flash.attention %q, %q, %q score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    func.return
  } : (tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>) -> tensor<1x1x4x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x1x4x8xf32>, %x: f32, %t: tensor<4xf32>) {
  %o = flash.attention %q, %q, %q score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    // expected-error @below {{gives the score, of type f32, got 'index'}}
    flash.yield %i : index
  } : (tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>) -> tensor<1x1x4x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x1x4x8xf32>, %x: f32, %t: tensor<4xf32>) {
  %o = flash.attention %q, %q, %q score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %c = arith.cmpf olt, %s, %x : f32
    // expected-error @below {{is not allowed in a score region; use elementwise arith and math ops on scalars (arith.select instead of control flow), tensor.extract and tensor.dim}}
    %r = scf.if %c -> f32 {
      scf.yield %s : f32
    } else {
      scf.yield %x : f32
    }
    flash.yield %r : f32
  } : (tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>) -> tensor<1x1x4x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x1x4x8xf32>, %x: f32, %t: tensor<4xf32>) {
  %o = flash.attention %q, %q, %q score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    // expected-error @below {{is not allowed in a score region}}
    %u = arith.addf %t, %t : tensor<4xf32>
    flash.yield %s : f32
  } : (tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>) -> tensor<1x1x4x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x1x4x8xf32>, %x: f32, %t: tensor<4xf32>) {
  %o = flash.attention %q, %q, %q score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    // expected-error @below {{is not allowed in a score region}}
    %u = complex.create %s, %s : complex<f32>
    flash.yield %s : f32
  } : (tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>) -> tensor<1x1x4x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x1x4x8xf32>, %x: f32, %t: tensor<4xf32>) {
  // expected-error @below {{region #0 ('score') failed to verify constraint: region with at most 1 blocks}}
  %o = flash.attention %q, %q, %q score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    cf.br ^bb1
  ^bb1:
    flash.yield %s : f32
  } : (tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>) -> tensor<1x1x4x8xf32>
  return
}

// -----

func.func @f(%x: f32) {
  // expected-error @below {{expects parent op to be one of 'flash.attention, flash.attention_grad, flash.online_attention, flash.query_grad_step, flash.key_grad_step, flash.captured_grad_step, flash.block_map, flash.dequantize_tile'}}
  flash.yield %x : f32
}

// -----

// expected-error @below {{window sides must be from 0 to 2147483647, got -1; leave a side out to make it unbounded}}
func.func private @f() attributes {m = #flash.window<left = -1>}

// -----

// expected-error @below {{window sides must be from 0 to 2147483647, got 2147483648; leave a side out to make it unbounded}}
func.func private @f() attributes {m = #flash.window<right = 2147483648>}

// -----

// expected-error @below {{prefix length must be from 0 to 2147483647, got -1}}
func.func private @f() attributes {m = #flash.prefix<-1>}

// -----

// expected-error @below {{prefix length must be from 0 to 2147483647, got 4294967296}}
func.func private @f() attributes {m = #flash.prefix<4294967296>}

// -----

// expected-error @below {{the set of an affine mask is over (b, h, i, j)[nq, nk]: expected 4 dimensions and 2 symbols, got 4 and 0}}
func.func private @f() attributes {m = #flash.affine<affine_set<(b, h, i, j) : (i - j == 0)>>}

// -----

#large = affine_set<(b, h, i, j)[nq, nk] : (2147483648 * i - j >= 0)>
// expected-error @below {{constraint 'd2 * 2147483648 - d3' of an affine mask has the constant 2147483648, which does not fit in 32 bits}}
func.func private @f() attributes {m = #flash.affine<#large>}

// -----

// expected-error @below {{constraint 'd2 - d3 floordiv s0' of an affine mask is not affine: products of variables and division by a symbol are not supported}}
func.func private @f() attributes {m = #flash.affine<affine_set<(b, h, i, j)[nq, nk] : (i - j floordiv nq == 0)>>}

// -----

// expected-error @below {{any_of needs at least one mask}}
func.func private @f() attributes {m = #flash.any_of<[]>}

// -----

// expected-error @below {{all_of needs at least one mask}}
func.func private @f() attributes {m = #flash.all_of<[]>}

// -----

// expected-error @below {{query_tile must be a multiple of 8 from 8 to 1024, got 0; the nearest is 8}}
func.func private @f() attributes {m = #flash.schedule<query_tile = 0, key_tile = 8>}

// -----

// expected-error @below {{key_tile must be a multiple of 8 from 8 to 1024, got 100; the nearest is 104}}
func.func private @f() attributes {m = #flash.schedule<query_tile = 8, key_tile = 100>}

// -----

// expected-error @below {{query_tile must be a multiple of 8 from 8 to 1024, got 9223372036854775807; the nearest is 1024}}
func.func private @f() attributes {m = #flash.schedule<query_tile = 9223372036854775807, key_tile = 8>}

// -----

// expected-error @below {{'fast' is no list of features such as specialize_warps|overlap, nor one of features to leave out, each with its minus, such as -overlap|-ping_pong; the features are specialize_warps|overlap|ping_pong|lazy_rescale|persistent|bulk_store|defer_products|sum_diagonals|claim_tiles|skip_rows|divide_columns, or none}}
func.func private @f() attributes {m = #flash.schedule<query_tile = 64, key_tile = 64, features = fast>}

// -----

// expected-error @below {{num_splits must be from 1 to 256, got 0}}
func.func private @f() attributes {m = #flash.schedule<query_tile = 8, key_tile = 8, num_splits = 0>}

// -----

// expected-error @below {{split_ctas must be from 1 to 65536, got 65537}}
func.func private @f() attributes {m = #flash.schedule<query_tile = 8, key_tile = 8, split_ctas = 65537>}

// -----

// expected-error @below {{num_splits says what split_ctas leaves to the sizes; write one of them}}
func.func private @f() attributes {m = #flash.schedule<query_tile = 8, key_tile = 8, num_splits = 1, split_ctas = 8>}

// -----

// expected-error @below {{split_keys must be from 8 to 1048576, got 4}}
func.func private @f() attributes {m = #flash.schedule<query_tile = 8, key_tile = 8, split_keys = 4>}

// -----

// A multiple of 8 that is none of the tile is no choice, nor is one above the most.
// expected-error @below {{split_keys must be a multiple of key_tile, got 100 and 32; the nearest is 128}}
func.func private @f() attributes {m = #flash.schedule<query_tile = 16, key_tile = 32, split_keys = 100>}

// -----

// expected-error @below {{split_keys must be a multiple of key_tile, got 1048570 and 192; the nearest is 1048512}}
func.func private @f() attributes {m = #flash.schedule<query_tile = 64, key_tile = 192, split_keys = 1048570>}

// -----

// expected-error @below {{split_keys must be a multiple of key_tile, got 96 and 64; the nearest is 128}}
func.func private @f() attributes {m = #flash.schedule<query_tile = 8, key_tile = 64, split_keys = 96>}

// -----

// expected-error @below {{claim_tiles says how blocks that persist, with warps that have roles, take tiles; write specialize_warps|persistent|claim_tiles, or leave it out}}
func.func private @f() attributes {m = #flash.schedule<features = specialize_warps|claim_tiles>}

// -----

// expected-error @below {{skip_rows lets warpgroups without rows give back what the warps that copy wait for; write specialize_warps|skip_rows, or leave it out}}
func.func private @f() attributes {m = #flash.schedule<features = skip_rows>}

// -----

// expected-error @below {{claim_tiles says how blocks that persist, with warps that have roles, take tiles; write specialize_warps|persistent|claim_tiles, or leave it out}}
func.func private @f() attributes {m = #flash.schedule<features = persistent|claim_tiles>}

// -----

// expected-error @below {{divide_columns lets one of two warpgroups compute the scores for both; it needs specialize_warps, and goes without lazy_rescale}}
func.func private @f() attributes {m = #flash.schedule<features = specialize_warps|lazy_rescale|divide_columns>}

// -----

// expected-error @below {{warpgroups that divide columns alternate between tiles under ping_pong; this goes without overlap}}
func.func private @f() attributes {m = #flash.schedule<features = specialize_warps|overlap|ping_pong|divide_columns>}

// -----

// expected-error @below {{split_keys says how long splits are, and num_splits how many there are; write one of them}}
func.func private @f() attributes {m = #flash.schedule<query_tile = 8, key_tile = 8, num_splits = 1, split_keys = 8>}

// -----

// expected-error @below {{split_keys says how long splits are, and split_ctas how many there are; write one of them}}
func.func private @f() attributes {m = #flash.schedule<query_tile = 8, key_tile = 8, split_ctas = 1, split_keys = 8>}

// -----

// expected-error @below {{a schedule has no key 'tiles'; the keys are query_tile, key_tile, query_step, key_step, products, key_programs, packed_heads, value_columns, warps, stages, query_stages, key_program_stages, ctas_per_sm, features, block_map, num_splits, split_ctas, split_keys}}
func.func private @f() attributes {m = #flash.schedule<tiles = 8>}

// -----

// expected-error @below {{warps is given twice}}
func.func private @f() attributes {m = #flash.schedule<warps = 4, warps = 4>}

// -----

// expected-error @below {{warps needs a number, got 'four'}}
func.func private @f() attributes {m = #flash.schedule<warps = four>}

// -----

// expected-error @below {{unknown attribute `schedul` in dialect `flash`; the nearest is `schedule`}}
func.func private @f() attributes {m = #flash.schedul<warps = 4>}

// -----

// expected-error @below {{'func.func' op has an attribute 'flash.schedule', which belongs to 'scf.forall' or 'gpu.func'}}
func.func private @f() attributes {flash.schedule = #flash.schedule<warps = 4>}

// -----

gpu.module @m {
  // expected-error @below {{'gpu.func' op has "flash.schedule", which a kernel has, a gpu.func with the attribute kernel}}
  gpu.func @f() attributes {flash.schedule = #flash.schedule<warps = 4>} {
    gpu.return
  }
}

// -----

gpu.module @m {
  // expected-error @below {{'gpu.func' op needs a #flash.schedule as attribute 'flash.schedule', got 4 : i64}}
  gpu.func @f() kernel attributes {flash.schedule = 4} {
    gpu.return
  }
}

// -----

// expected-error @below {{invalid kind of attribute specified}}
func.func private @f() attributes {m = #flash.any_of<[1 : i32]>}

// -----

// expected-error @below {{expected one of [bottom_right, top_left] for the corner in which a causal mask's diagonal starts, got: left}}
// expected-error @below {{failed to parse Flash_CausalAttr parameter 'alignment'}}
func.func private @f() attributes {m = #flash.causal<left>}

// -----

// expected-error @below {{unknown attribute `nothing` in dialect `flash`}}
func.func private @f() attributes {m = #flash.nothing}

// -----

func.func @f(%q: tensor<1x1x4x8xf32>) {
  // expected-error @below {{expected non-function type}}
  %o = flash.attention %q, %q, %q : (tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>) -> 3
  return
}

// -----

func.func @f(%q: tensor<1x1x4x8xf32>) {
  // expected-error @below {{expected ')'}}
  %o, %l = flash.attention %q, %q, %q : (tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>) -> (tensor<1x1x4x8xf32>, tensor<1x1x4xf32>, f32)
  return
}

// -----

func.func @f(%q: tensor<1x1x4x8xf32>) {
  // expected-error @below {{invalid kind of attribute specified}}
  %o = flash.attention %q, %q, %q mask(1 : i32) : (tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>) -> tensor<1x1x4x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x1x4x8xf32>) {
  // expected-error @below {{expected string or keyword containing one of the following enum values for attribute 'leading' [heads, batch]}}
  %o = flash.attention %q, %q, %q leading(keys) : (tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>) -> tensor<1x1x4x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x4x8xf32>, %k: tensor<1x6x8xf32>, %v: tensor<1x6x16xf32>, %a: tensor<1x4x16xf32>, %m: tensor<1x4xf32>, %s: tensor<1x4xf32>) {
  // expected-error @below {{operands must have rank 4 (whole tensors) or rank 2 (one tile of one head), got rank 3}}
  %0:3 = flash.online_attention ins(%q, %k, %v : tensor<1x4x8xf32>, tensor<1x6x8xf32>, tensor<1x6x16xf32>)
      outs(%a, %m, %s : tensor<1x4x16xf32>, tensor<1x4xf32>, tensor<1x4xf32>) at[0, 0, 0, 0] of[4, 6] scale(1.0)
  return
}

// -----

func.func @f(%q: tensor<f32>, %k: tensor<6x8xf32>, %v: tensor<6x16xf32>, %a: tensor<4x16xf32>, %m: tensor<4xf32>, %s: tensor<4xf32>) {
  // expected-error @below {{operands must have rank 4 (whole tensors) or rank 2 (one tile of one head), got rank 0}}
  %0:3 = flash.online_attention ins(%q, %k, %v : tensor<f32>, tensor<6x8xf32>, tensor<6x16xf32>)
      outs(%a, %m, %s : tensor<4x16xf32>, tensor<4xf32>, tensor<4xf32>) at[0, 0, 0, 0] of[4, 6] scale(1.0)
  return
}

// -----

func.func @f(%q: tensor<4x8xf32>, %k: tensor<1x1x6x8xf32>, %v: tensor<6x16xf32>, %a: tensor<4x16xf32>, %m: tensor<4xf32>, %s: tensor<4xf32>) {
  // expected-error @below {{query, key and value must have one rank, got 2, 4 and 2}}
  %0:3 = flash.online_attention ins(%q, %k, %v : tensor<4x8xf32>, tensor<1x1x6x8xf32>, tensor<6x16xf32>)
      outs(%a, %m, %s : tensor<4x16xf32>, tensor<4xf32>, tensor<4xf32>) at[0, 0, 0, 0] of[4, 6] scale(1.0)
  return
}

// -----

func.func @f(%q: tensor<4x8xf32>, %k: tensor<6x16xf32>, %v: tensor<6x16xf32>, %a: tensor<4x16xf32>, %m: tensor<4xf32>, %s: tensor<4xf32>) {
  // expected-error @below {{head dimensions of query and key must agree, got 8 and 16}}
  %0:3 = flash.online_attention ins(%q, %k, %v : tensor<4x8xf32>, tensor<6x16xf32>, tensor<6x16xf32>)
      outs(%a, %m, %s : tensor<4x16xf32>, tensor<4xf32>, tensor<4xf32>) at[0, 0, 0, 0] of[4, 6] scale(1.0)
  return
}

// -----

func.func @f(%q: tensor<1x3x4x8xf32>, %k: tensor<1x2x6x8xf32>, %v: tensor<1x2x6x16xf32>, %a: tensor<1x3x4x16xf32>, %m: tensor<1x3x4xf32>, %s: tensor<1x3x4xf32>) {
  // expected-error @below {{query heads (3) must be a multiple of key heads (2)}}
  %0:3 = flash.online_attention ins(%q, %k, %v : tensor<1x3x4x8xf32>, tensor<1x2x6x8xf32>, tensor<1x2x6x16xf32>)
      outs(%a, %m, %s : tensor<1x3x4x16xf32>, tensor<1x3x4xf32>, tensor<1x3x4xf32>) at[0, 0, 0, 0] of[4, 6] scale(1.0)
  return
}

// -----

func.func @f(%q: tensor<4x8xf32>, %k: tensor<6x8xf32>, %v: tensor<6x16xf32>, %a: tensor<4x8xf32>, %m: tensor<4xf32>, %s: tensor<4xf32>) {
  // expected-error @below {{accumulator must have type 'tensor<4x16xf32>', got 'tensor<4x8xf32>'}}
  %0:3 = flash.online_attention ins(%q, %k, %v : tensor<4x8xf32>, tensor<6x8xf32>, tensor<6x16xf32>)
      outs(%a, %m, %s : tensor<4x8xf32>, tensor<4xf32>, tensor<4xf32>) at[0, 0, 0, 0] of[4, 6] scale(1.0)
  return
}

// -----

func.func @f(%q: tensor<4x8xf32>, %k: tensor<6x8xf32>, %v: tensor<6x16xf32>, %a: tensor<4x?xf32>, %m: tensor<4xf32>, %s: tensor<4xf32>) {
  // expected-error @below {{accumulator must have type 'tensor<4x16xf32>', got 'tensor<4x?xf32>'}}
  %0:3 = flash.online_attention ins(%q, %k, %v : tensor<4x8xf32>, tensor<6x8xf32>, tensor<6x16xf32>)
      outs(%a, %m, %s : tensor<4x?xf32>, tensor<4xf32>, tensor<4xf32>) at[0, 0, 0, 0] of[4, 6] scale(1.0)
  return
}

// -----

func.func @f(%q: tensor<4x8xf32>, %k: tensor<6x8xf32>, %v: tensor<6x16xf32>, %a: tensor<4x16xf32>, %m: tensor<5xf32>, %s: tensor<4xf32>) {
  // expected-error @below {{maximum must have type 'tensor<4xf32>', got 'tensor<5xf32>'}}
  %0:3 = flash.online_attention ins(%q, %k, %v : tensor<4x8xf32>, tensor<6x8xf32>, tensor<6x16xf32>)
      outs(%a, %m, %s : tensor<4x16xf32>, tensor<5xf32>, tensor<4xf32>) at[0, 0, 0, 0] of[4, 6] scale(1.0)
  return
}

// -----

func.func @f(%q: tensor<4x8xf32>, %k: tensor<6x8xf32>, %v: tensor<6x16xf32>, %a: tensor<4x16xf32>, %m: tensor<4xf32>, %s: tensor<4x1xf32>) {
  // expected-error @below {{sum must have type 'tensor<4xf32>', got 'tensor<4x1xf32>'}}
  %0:3 = flash.online_attention ins(%q, %k, %v : tensor<4x8xf32>, tensor<6x8xf32>, tensor<6x16xf32>)
      outs(%a, %m, %s : tensor<4x16xf32>, tensor<4xf32>, tensor<4x1xf32>) at[0, 0, 0, 0] of[4, 6] scale(1.0)
  return
}

// -----

func.func @f(%q: tensor<4x8xf32>, %k: tensor<6x8xf32>, %v: tensor<6x16xf32>, %a: tensor<4x16xf16>, %m: tensor<4xf32>, %s: tensor<4xf32>) {
  // expected-error @below {{operand #3 must be ranked tensor without encoding of 32-bit float values}}
  %0:3 = flash.online_attention ins(%q, %k, %v : tensor<4x8xf32>, tensor<6x8xf32>, tensor<6x16xf32>)
      outs(%a, %m, %s : tensor<4x16xf16>, tensor<4xf32>, tensor<4xf32>) at[0, 0, 0, 0] of[4, 6] scale(1.0)
  return
}

// -----

func.func @f(%q: tensor<4x8xf32>, %k: tensor<6x8xf32>, %v: tensor<6x16xf32>, %a: tensor<4x16xf32>, %m: tensor<4xf32>, %s: tensor<4xf32>) {
  // expected-error @below {{'at' takes the four indices [b, h, i, j]}}
  %0:3 = flash.online_attention ins(%q, %k, %v : tensor<4x8xf32>, tensor<6x8xf32>, tensor<6x16xf32>)
      outs(%a, %m, %s : tensor<4x16xf32>, tensor<4xf32>, tensor<4xf32>) at[0, 0, 0] of[4, 6] scale(1.0)
  return
}

// -----

func.func @f(%q: tensor<4x8xf32>, %k: tensor<6x8xf32>, %v: tensor<6x16xf32>, %a: tensor<4x16xf32>, %m: tensor<4xf32>, %s: tensor<4xf32>) {
  // expected-error @below {{'of' takes the two lengths [nq, nk]}}
  %0:3 = flash.online_attention ins(%q, %k, %v : tensor<4x8xf32>, tensor<6x8xf32>, tensor<6x16xf32>)
      outs(%a, %m, %s : tensor<4x16xf32>, tensor<4xf32>, tensor<4xf32>) at[0, 0, 0, 0] of[4] scale(1.0)
  return
}

// -----

func.func @f(%q: tensor<4x8xf32>, %k: tensor<6x8xf32>, %v: tensor<6x16xf32>, %a: tensor<4x16xf32>, %m: tensor<4xf32>, %s: tensor<4xf32>) {
  // expected-error @below {{'at' and 'of' must not be negative, got -1}}
  %0:3 = flash.online_attention ins(%q, %k, %v : tensor<4x8xf32>, tensor<6x8xf32>, tensor<6x16xf32>)
      outs(%a, %m, %s : tensor<4x16xf32>, tensor<4xf32>, tensor<4xf32>) at[0, 0, -1, 0] of[4, 6] scale(1.0)
  return
}

// -----

func.func @f(%q: tensor<1x1x4x8xf32>, %k: tensor<1x1x6x8xf32>, %v: tensor<1x1x6x16xf32>, %a: tensor<1x1x4x16xf32>, %m: tensor<1x1x4xf32>, %s: tensor<1x1x4xf32>, %n: index) {
  // expected-error @below {{keys counts the keys of a tile (rank 2); use lengths on whole tensors}}
  %0:3 = flash.online_attention ins(%q, %k, %v : tensor<1x1x4x8xf32>, tensor<1x1x6x8xf32>, tensor<1x1x6x16xf32>)
      outs(%a, %m, %s : tensor<1x1x4x16xf32>, tensor<1x1x4xf32>, tensor<1x1x4xf32>) at[0, 0, 0, 0] of[4, 6] keys(%n) scale(1.0)
  return
}

// -----

func.func @f(%q: tensor<1x1x4x8xf32>, %k: tensor<1x1x6x8xf32>, %v: tensor<1x1x6x16xf32>, %a: tensor<1x1x4x16xf32>, %m: tensor<1x1x4xf32>, %s: tensor<1x1x4xf32>, %c: i1) {
  // expected-error @below {{partial is of a tile (rank 2), not of whole tensors}}
  %0:3 = flash.online_attention ins(%q, %k, %v : tensor<1x1x4x8xf32>, tensor<1x1x6x8xf32>, tensor<1x1x6x16xf32>)
      outs(%a, %m, %s : tensor<1x1x4x16xf32>, tensor<1x1x4xf32>, tensor<1x1x4xf32>) at[0, 0, 0, 0] of[4, 6] partial(%c) scale(1.0)
  return
}

// -----

func.func @f(%q: tensor<4x8xf32>, %k: tensor<6x8xf32>, %v: tensor<6x16xf32>, %a: tensor<4x16xf32>, %m: tensor<4xf32>, %s: tensor<4xf32>, %n: tensor<1xi32>) {
  // expected-error @below {{lengths are per batch and need rank 4; use keys on a tile}}
  %0:3 = flash.online_attention ins(%q, %k, %v : tensor<4x8xf32>, tensor<6x8xf32>, tensor<6x16xf32>)
      outs(%a, %m, %s : tensor<4x16xf32>, tensor<4xf32>, tensor<4xf32>) at[0, 0, 0, 0] of[4, 6] scale(1.0) lengths(%n : tensor<1xi32>)
  return
}

// -----

func.func @f(%q: tensor<1x1x4x8xf32>, %k: tensor<1x1x6x8xf32>, %v: tensor<1x1x6x16xf32>, %a: tensor<1x1x4x16xf32>, %m: tensor<1x1x4xf32>, %s: tensor<1x1x4xf32>, %n: tensor<2xi32>) {
  // expected-error @below {{batch size and number of lengths must agree, got 1 and 2}}
  %0:3 = flash.online_attention ins(%q, %k, %v : tensor<1x1x4x8xf32>, tensor<1x1x6x8xf32>, tensor<1x1x6x16xf32>)
      outs(%a, %m, %s : tensor<1x1x4x16xf32>, tensor<1x1x4xf32>, tensor<1x1x4xf32>) at[0, 0, 0, 0] of[4, 6] scale(1.0) lengths(%n : tensor<2xi32>)
  return
}

// -----

func.func @f(%q: tensor<4x8xf32>, %k: tensor<6x8xf32>, %v: tensor<6x16xf32>, %a: tensor<4x16xf32>, %m: tensor<4xf32>, %s: tensor<4xf32>) {
  // expected-error @below {{scale must be finite}}
  %0:3 = flash.online_attention ins(%q, %k, %v : tensor<4x8xf32>, tensor<6x8xf32>, tensor<6x16xf32>)
      outs(%a, %m, %s : tensor<4x16xf32>, tensor<4xf32>, tensor<4xf32>) at[0, 0, 0, 0] of[4, 6] scale(0x7FF8000000000000)
  return
}

// -----

func.func @f(%q: tensor<4x8xf32>, %k: tensor<6x8xf32>, %v: tensor<6x16xf32>, %a: tensor<4x16xf32>, %m: tensor<4xf32>, %s: tensor<4xf32>) {
  // expected-error @below {{unit must be between 2^-64 and 2^64}}
  %0:3 = flash.online_attention ins(%q, %k, %v : tensor<4x8xf32>, tensor<6x8xf32>, tensor<6x16xf32>)
      outs(%a, %m, %s : tensor<4x16xf32>, tensor<4xf32>, tensor<4xf32>) at[0, 0, 0, 0] of[4, 6] scale(1.0) unit(0.0)
  return
}

// -----

func.func @f(%q: tensor<4x8xf32>, %k: tensor<6x8xf32>, %v: tensor<6x16xf32>, %a: tensor<4x16xf32>, %m: tensor<4xf32>, %s: tensor<4xf32>) {
  // expected-error @below {{the score region takes}}
  %0:3 = flash.online_attention ins(%q, %k, %v : tensor<4x8xf32>, tensor<6x8xf32>, tensor<6x16xf32>)
      outs(%a, %m, %s : tensor<4x16xf32>, tensor<4xf32>, tensor<4xf32>) at[0, 0, 0, 0] of[4, 6] scale(1.0) score {
  ^bb0(%x: f32):
    flash.yield %x : f32
  }
  return
}

// -----

func.func @f(%q: tensor<4x8xf32>, %a: tensor<4x8xf32>, %m: tensor<4xf32>, %i: index) {
  // expected-error @below {{'at' and 'of' need one operand per dynamic entry}}
  %0:3 = "flash.online_attention"(%q, %q, %q, %a, %m, %m) <{operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, scale = 1.0, static_position = array<i64: 0, 0, -9223372036854775808, 0>, static_extents = array<i64: 4, 4>}> ({}) : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4x8xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @f(%q: tensor<4x8xf32>, %a: tensor<4x8xf32>, %m: tensor<4xf32>, %i: index) {
  // expected-error @below {{operand count (6) does not match with the total size (7) specified in attribute 'operandSegmentSizes'}}
  %0:3 = "flash.online_attention"(%q, %q, %q, %a, %m, %m) <{operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0>, scale = 1.0, static_position = array<i64: 0, 0, 0, 0>, static_extents = array<i64: 4, 4>}> ({}) : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4x8xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @f(%q: tensor<4x8xf32>, %a: tensor<4x8xf32>, %m: tensor<4xf32>, %i: index) {
  // expected-error @below {{operand group #5 must have one operand, got 2}}
  %0:3 = "flash.online_attention"(%q, %q, %q, %a, %m, %m, %m) <{operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, scale = 1.0, static_position = array<i64: 0, 0, 0, 0>, static_extents = array<i64: 4, 4>}> ({}) : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4x8xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @f(%q: tensor<4x8xf32>, %a: tensor<4x8xf32>, %m: tensor<4xf32>, %i: index) {
  // expected-error @below {{requires attribute 'scale'}}
  %0:3 = "flash.online_attention"(%q, %q, %q, %a, %m, %m) <{operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, static_position = array<i64: 0, 0, 0, 0>, static_extents = array<i64: 4, 4>}> ({}) : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4x8xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @f(%q: tensor<4x8xf32>, %a: tensor<4x8xf32>, %m: tensor<4xf32>, %i: index) {
  // expected-error @below {{requires attribute 'static_position'}}
  %0:3 = "flash.online_attention"(%q, %q, %q, %a, %m, %m) <{operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, scale = 1.0, static_extents = array<i64: 4, 4>}> ({}) : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4x8xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @f(%q: tensor<4x8xf32>, %a: tensor<4x8xf32>, %m: tensor<4xf32>, %i: index) {
  // expected-error @below {{invalid properties}}
  %0:3 = "flash.online_attention"(%q, %q, %q, %a, %m, %m) <{operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, scale = 1.0, static_position = 1 : i32, static_extents = array<i64: 4, 4>}> ({}) : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4x8xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @f(%q: tensor<1x1x4x8xf32>) {
  // expected-error @below {{requires one region}}
  %0 = "flash.attention"(%q, %q, %q) <{operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0, 0, 0>}>  : (tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>) -> tensor<1x1x4x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x1x4x8xf32>) {
  // expected-error @below {{requires one region}}
  %0 = "flash.attention"(%q, %q, %q) <{operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0, 0, 0>}> ({}, {}) : (tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>) -> tensor<1x1x4x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x1x4x8xf32>) {
  // expected-error @below {{operand count (3) does not match with the total size (4) specified in attribute 'operandSegmentSizes'}}
  %0 = "flash.attention"(%q, %q, %q) <{operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0, 0, 0, 0>}> ({}) : (tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>) -> tensor<1x1x4x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x1x4x8xf32>) {
  // expected-error @below {{invalid properties}}
  %0 = "flash.attention"(%q, %q, %q) <{operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>}> ({}) : (tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>) -> tensor<1x1x4x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x1x4x8xf32>) {
  // expected-error @below {{the score region takes}}
  %0 = "flash.attention"(%q, %q, %q) <{operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0, 0, 0>}> ({
  ^bb0:
  }) : (tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>) -> tensor<1x1x4x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x1x4x8xf32>) {
  // expected-error @below {{the score region must end with flash.yield}}
  %0 = "flash.attention"(%q, %q, %q) <{operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0, 0, 0>}> ({
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
  }) : (tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>) -> tensor<1x1x4x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x1x4x8xf32>) {
  // expected-error @below {{Invalid attribute `mask` in property conversion: 3 : i32}}
  %0 = "flash.attention"(%q, %q, %q) <{operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0, 0, 0>, mask = 3 : i32}> ({}) : (tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>) -> tensor<1x1x4x8xf32>
  return
}

// -----

func.func @f(%a: tensor<1x4x16xf32>, %m: tensor<4xf32>, %s: tensor<4xf32>, %e: tensor<4x16xf16>) {
  // expected-error @below {{operands must have rank 4 (whole tensors) or rank 2 (one tile of one head), got rank 3}}
  %o = flash.finalize ins(%a, %m, %s : tensor<1x4x16xf32>, tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4x16xf16>) -> tensor<4x16xf16>
  return
}

// -----

func.func @f(%a: tensor<f32>, %m: tensor<4xf32>, %s: tensor<4xf32>, %e: tensor<4x16xf16>) {
  // expected-error @below {{operands must have rank 4 (whole tensors) or rank 2 (one tile of one head), got rank 0}}
  %o = flash.finalize ins(%a, %m, %s : tensor<f32>, tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4x16xf16>) -> tensor<4x16xf16>
  return
}

// -----

func.func @f(%a: tensor<4x?xf32>, %m: tensor<4xf32>, %s: tensor<4xf32>, %e: tensor<4x16xf16>) {
  // expected-error @below {{value head dimension must be static}}
  %o = flash.finalize ins(%a, %m, %s : tensor<4x?xf32>, tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4x16xf16>) -> tensor<4x16xf16>
  return
}

// -----

func.func @f(%a: tensor<4x12xf32>, %m: tensor<4xf32>, %s: tensor<4xf32>, %e: tensor<4x16xf16>) {
  // expected-error @below {{value head dimension must be a multiple of 8 from 8 to 576, got 12; the nearest supported size is 16}}
  %o = flash.finalize ins(%a, %m, %s : tensor<4x12xf32>, tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4x16xf16>) -> tensor<4x16xf16>
  return
}

// -----

func.func @f(%a: tensor<4x16xf32>, %m: tensor<5xf32>, %s: tensor<4xf32>, %e: tensor<4x16xf16>) {
  // expected-error @below {{maximum must have type 'tensor<4xf32>', got 'tensor<5xf32>'}}
  %o = flash.finalize ins(%a, %m, %s : tensor<4x16xf32>, tensor<5xf32>, tensor<4xf32>) outs(%e : tensor<4x16xf16>) -> tensor<4x16xf16>
  return
}

// -----

func.func @f(%a: tensor<4x16xf32>, %m: tensor<4xf32>, %s: tensor<5xf32>, %e: tensor<4x16xf16>) {
  // expected-error @below {{sum must have type 'tensor<4xf32>', got 'tensor<5xf32>'}}
  %o = flash.finalize ins(%a, %m, %s : tensor<4x16xf32>, tensor<4xf32>, tensor<5xf32>) outs(%e : tensor<4x16xf16>) -> tensor<4x16xf16>
  return
}

// -----

func.func @f(%a: tensor<4x16xf32>, %m: tensor<4xf32>, %s: tensor<4xf32>, %e: tensor<4x8xf16>) {
  // expected-error @below {{output must have type 'tensor<4x16xf16>', got 'tensor<4x8xf16>'}}
  %o = flash.finalize ins(%a, %m, %s : tensor<4x16xf32>, tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4x8xf16>) -> tensor<4x8xf16>
  return
}

// -----

func.func @f(%a: tensor<4x16xf32>, %m: tensor<4xf32>, %s: tensor<4xf32>, %e: tensor<4x16xf16>) {
  // expected-error @below {{output must have the type of its init}}
  %o = flash.finalize ins(%a, %m, %s : tensor<4x16xf32>, tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4x16xf16>) -> tensor<4x16xf32>
  return
}

// -----

func.func @f(%a: tensor<4x16xf32>, %m: tensor<4xf32>, %s: tensor<4xf32>, %e: tensor<4x16xf16>) {
  // expected-error @below {{a log-sum-exp result needs an init, and an init a result}}
  %o, %x = flash.finalize ins(%a, %m, %s : tensor<4x16xf32>, tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4x16xf16>) -> (tensor<4x16xf16>, tensor<4xf32>)
  return
}

// -----

func.func @f(%a: tensor<4x16xf32>, %m: tensor<4xf32>, %s: tensor<4xf32>, %e: tensor<4x16xf16>, %l: tensor<4xf32>) {
  // expected-error @below {{a log-sum-exp result needs an init, and an init a result}}
  %o = flash.finalize ins(%a, %m, %s : tensor<4x16xf32>, tensor<4xf32>, tensor<4xf32>) outs(%e, %l : tensor<4x16xf16>, tensor<4xf32>) -> tensor<4x16xf16>
  return
}

// -----

func.func @f(%a: tensor<4x16xf32>, %m: tensor<4xf32>, %s: tensor<4xf32>, %e: tensor<4x16xf16>, %l: tensor<4xf32>) {
  // expected-error @below {{log-sum-exp must have the type of its init}}
  %o, %x = flash.finalize ins(%a, %m, %s : tensor<4x16xf32>, tensor<4xf32>, tensor<4xf32>) outs(%e, %l : tensor<4x16xf16>, tensor<4xf32>) -> (tensor<4x16xf16>, tensor<?xf32>)
  return
}

// -----

func.func @f(%a: tensor<4x16xf32>, %m: tensor<4xf32>, %s: tensor<4xf32>, %e: tensor<4x16xf16>) {
  // expected-error @below {{unit must be between 2^-64 and 2^64}}
  %o = flash.finalize ins(%a, %m, %s : tensor<4x16xf32>, tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4x16xf16>) unit(-1.0) -> tensor<4x16xf16>
  return
}

// -----

func.func @f(%a: tensor<4x16xf32>, %m: tensor<4xf32>, %s: tensor<4xf32>, %e: tensor<4x16xf16>, %l: tensor<5xf32>) {
  // expected-error @below {{log-sum-exp must have type 'tensor<4xf32>', got 'tensor<5xf32>'}}
  %o, %x = flash.finalize ins(%a, %m, %s : tensor<4x16xf32>, tensor<4xf32>, tensor<4xf32>) outs(%e, %l : tensor<4x16xf16>, tensor<5xf32>) -> (tensor<4x16xf16>, tensor<5xf32>)
  return
}

// -----

func.func @f(%s: tensor<2x8x64xf16>) {
  // expected-error @below {{needs scores of rank 2 (rows of one head), got rank 3}}
  %p = flash.softmax %s : tensor<2x8x64xf16> -> tensor<2x8x64xf16>
  return
}

// -----

func.func @f(%s: tensor<8x64xf16>) {
  // expected-error @below {{must give the type of its scores, 'tensor<8x64xf16>'}}
  %p = flash.softmax %s : tensor<8x64xf16> -> tensor<8x64xf32>
  return
}

// -----

func.func @f(%s: tensor<8x64xf16>) {
  // expected-error @below {{must give one log-sum-exp for each row, not 'tensor<4xf32>'}}
  %p, %l = flash.softmax %s : tensor<8x64xf16> -> (tensor<8x64xf16>, tensor<4xf32>)
  return
}

// -----

func.func @f(%o: tensor<4x2x8x64xf32>, %l: tensor<4x8xf32>) {
  // expected-error @below {{needs outputs of rank 3 (splits of the keys, rows, value head dimension), got rank 4}}
  %x = flash.combine %o, %l : (tensor<4x2x8x64xf32>, tensor<4x8xf32>) -> tensor<8x64xf16>
  return
}

// -----

func.func @f(%o: tensor<4x8x64xf32>, %l: tensor<4x8xf32>) {
  // expected-error @below {{adds 1 to 8 splits in a step, got 9}}
  %x = flash.combine %o, %l step(9) : (tensor<4x8x64xf32>, tensor<4x8xf32>) -> tensor<8x64xf16>
  return
}

// -----

func.func @f(%o: tensor<4x8x60xf32>, %l: tensor<4x8xf32>) {
  // expected-error @below {{value head dimension must be a multiple of 8 from 8 to 576, got 60; the nearest supported size is 64}}
  %x = flash.combine %o, %l : (tensor<4x8x60xf32>, tensor<4x8xf32>) -> tensor<8x60xf16>
  return
}

// -----

func.func @f(%o: tensor<4x8x64xf32>, %l: tensor<3x8xf32>) {
  // expected-error @below {{log-sum-exps must have type 'tensor<4x8xf32>', got 'tensor<3x8xf32>'}}
  %x = flash.combine %o, %l : (tensor<4x8x64xf32>, tensor<3x8xf32>) -> tensor<8x64xf16>
  return
}

// -----

func.func @f(%o: tensor<4x8x64xf32>, %l: tensor<4x8xf32>) {
  // expected-error @below {{output must have type 'tensor<8x64xf16>', got 'tensor<4x8x64xf16>'}}
  %x = flash.combine %o, %l : (tensor<4x8x64xf32>, tensor<4x8xf32>) -> tensor<4x8x64xf16>
  return
}

// -----

func.func @f(%o: tensor<4x8x64xf32>, %l: tensor<4x8xf32>) {
  // expected-error @below {{log-sum-exp must have type 'tensor<8xf32>', got 'tensor<4xf32>'}}
  %x, %y = flash.combine %o, %l : (tensor<4x8x64xf32>, tensor<4x8xf32>) -> (tensor<8x64xf16>, tensor<4xf32>)
  return
}

// -----

func.func @f(%q: tensor<1x1x8x8xbf16>) {
  // expected-error @below {{precision(tf32) rounds operands of f32, got 'bf16'; leave it out, operands of 16 bits are not rounded}}
  %o = flash.attention %q, %q, %q precision(tf32)
      : (tensor<1x1x8x8xbf16>, tensor<1x1x8x8xbf16>, tensor<1x1x8x8xbf16>) -> tensor<1x1x8x8xbf16>
  return
}

// -----

func.func @f(%x: tensor<16x16xf16>, %a: tensor<16x16xf32>, %r: tensor<16xf32>) {
  // expected-error @below {{precision(tf32) rounds operands of f32, got 'f16'; leave it out, operands of 16 bits are not rounded}}
  %0:3 = flash.online_attention ins(%x, %x, %x : tensor<16x16xf16>, tensor<16x16xf16>, tensor<16x16xf16>)
      outs(%a, %r, %r : tensor<16x16xf32>, tensor<16xf32>, tensor<16xf32>)
      at[0, 0, 0, 0] of[16, 16] scale(1.0) precision(tf32)
  return
}

// -----

func.func @f(%q: tensor<1x1x8x8xf32>) {
  // expected-error @below {{expected string or keyword containing one of the following enum values for attribute 'precision' [tf32, fp8]}}
  %o = flash.attention %q, %q, %q precision(f16)
      : (tensor<1x1x8x8xf32>, tensor<1x1x8x8xf32>, tensor<1x1x8x8xf32>) -> tensor<1x1x8x8xf32>
  return
}

// -----

// Indices that are known.
func.func @behind(%q: tensor<1x2x8x16xf32>, %t: tensor<5xf32>) -> tensor<1x2x8x16xf32> {
  %o = flash.attention %q, %q, %q score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %c = arith.constant 5 : index
    // expected-error @below {{'tensor.extract' op index of dimension 0 must be from 0 to 4, got 5}}
    %x = tensor.extract %t[%c] : tensor<5xf32>
    flash.yield %s : f32
  } : (tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>) -> tensor<1x2x8x16xf32>
  return %o : tensor<1x2x8x16xf32>
}

// -----

func.func @before(%q: tensor<1x2x8x16xf32>, %t: tensor<5x?xf32>) -> tensor<1x2x8x16xf32> {
  %o = flash.attention %q, %q, %q score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %c = arith.constant -1 : i32
    %n = arith.index_cast %c : i32 to index
    // expected-error @below {{'tensor.extract' op index of dimension 1 must not be negative, got -1}}
    %x = tensor.extract %t[%h, %n] : tensor<5x?xf32>
    flash.yield %s : f32
  } : (tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>) -> tensor<1x2x8x16xf32>
  return %o : tensor<1x2x8x16xf32>
}

// -----

func.func @none(%q: tensor<1x2x8x16xf32>, %t: tensor<0xf32>) -> tensor<1x2x8x16xf32> {
  %o = flash.attention %q, %q, %q score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %c = arith.constant 0 : index
    // expected-error @below {{'tensor.extract' op index of dimension 0 reads what is empty}}
    %x = tensor.extract %t[%c] : tensor<0xf32>
    flash.yield %s : f32
  } : (tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>) -> tensor<1x2x8x16xf32>
  return %o : tensor<1x2x8x16xf32>
}

// -----

func.func @no_such_dimension(%q: tensor<1x2x8x16xf32>, %t: tensor<5xf32>) -> tensor<1x2x8x16xf32> {
  %o = flash.attention %q, %q, %q score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %c = arith.constant 1 : index
    // expected-error @below {{'tensor.dim' op dimension must be from 0 to 0, got 1}}
    %x = tensor.dim %t, %c : tensor<5xf32>
    flash.yield %s : f32
  } : (tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>) -> tensor<1x2x8x16xf32>
  return %o : tensor<1x2x8x16xf32>
}

// -----

// Positions of which there are more than elements.
func.func @too_few_for_queries(%q: tensor<1x2x8x16xf32>, %t: tensor<2x7xf32>) -> tensor<1x2x8x16xf32> {
  %o = flash.attention %q, %q, %q score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    // expected-error @below {{'tensor.extract' op reads dimension 1 at the index of the query: its size is 7, and must be at least 8}}
    %x = tensor.extract %t[%h, %i] : tensor<2x7xf32>
    flash.yield %s : f32
  } : (tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>) -> tensor<1x2x8x16xf32>
  return %o : tensor<1x2x8x16xf32>
}

// -----

func.func @too_few_for_heads(%q: tensor<1x2x8x16xf32>, %t: tensor<1xf32>) -> tensor<1x2x8x16xf32> {
  %o = flash.attention %q, %q, %q score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    // expected-error @below {{'tensor.extract' op reads dimension 0 at the index of the head: its size is 1, and must be at least 2}}
    %x = tensor.extract %t[%h] : tensor<1xf32>
    flash.yield %s : f32
  } : (tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>) -> tensor<1x2x8x16xf32>
  return %o : tensor<1x2x8x16xf32>
}

// -----

// Without a dimension of batches there is one.
func.func @one_batch(%q: tensor<2x8x16xf32>, %t: tensor<1xf32>, %u: tensor<1xf32>) -> tensor<2x8x16xf32> {
  %o = flash.attention %q, %q, %q score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %t[%b] : tensor<1xf32>
    // expected-error @below {{reads dimension 0 at the index of the head: its size is 1, and must be at least 2}}
    %y = tensor.extract %u[%h] : tensor<1xf32>
    flash.yield %y : f32
  } : (tensor<2x8x16xf32>, tensor<2x8x16xf32>, tensor<2x8x16xf32>) -> tensor<2x8x16xf32>
  return %o : tensor<2x8x16xf32>
}

// -----

func.func @f(%v: tensor<4x8xi32>) {
  // expected-error @below {{operand #0 must be 2D tensor without encoding of 16-bit float or bfloat16 type or 32-bit float values, but got 'tensor<4x8xi32>'}}
  %f = flash.is_finite %v : tensor<4x8xi32>
  return
}

// -----

func.func @f(%k: tensor<4x8xi32>) {
  // expected-error @below {{'flash.zero_nonfinite' op operand #0 must be 2D tensor without encoding of 16-bit float or bfloat16 type or 32-bit float values, but got 'tensor<4x8xi32>'}}
  %f = flash.zero_nonfinite %k : tensor<4x8xi32>
  return
}

// -----

func.func @f(%v: tensor<8xf32>) {
  // expected-error @below {{operand #0 must be 2D tensor without encoding}}
  %f = flash.is_finite %v : tensor<8xf32>
  return
}

// -----

// expected-error @below {{'func.func' op has an attribute 'flash.precision', which belongs to 'linalg.contract'}}
func.func @f() attributes {flash.precision = #flash.precision<tf32>} {
  return
}

// -----

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
func.func @f(%x: tensor<8x8xf16>, %y: tensor<8x8xf32>) {
  // expected-error @below {{'linalg.contract' op "flash.precision" belongs to a linalg.contract of f32}}
  %0 = linalg.contract indexing_maps = [#a, #b, #c] {flash.precision = #flash.precision<tf32>} ins(%x, %x : tensor<8x8xf16>, tensor<8x8xf16>) outs(%y : tensor<8x8xf32>) -> tensor<8x8xf32>
  return
}

// -----

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
func.func @f(%x: tensor<8x8xf32>) {
  // expected-error @below {{'linalg.contract' op needs a #flash.precision as attribute 'flash.precision', got "tf32"}}
  %0 = linalg.contract indexing_maps = [#a, #b, #c] {flash.precision = "tf32"} ins(%x, %x : tensor<8x8xf32>, tensor<8x8xf32>) outs(%x : tensor<8x8xf32>) -> tensor<8x8xf32>
  return
}

// -----

// expected-error @below {{'func.func' op has an attribute 'flash.precise' that dialect 'flash' does not declare; the nearest is 'flash.precision'}}
func.func @f() attributes {flash.precise} {
  return
}

// -----

func.func @misspelt(%q: tensor<2x8x16xf32>) -> tensor<2x8x16xf32> {
  // expected-error @below {{'flash.attention' op has no attribute 'scal'; the nearest is 'scale'}}
  %o = flash.attention %q, %q, %q {scal = 0.5} : (tensor<2x8x16xf32>, tensor<2x8x16xf32>, tensor<2x8x16xf32>) -> tensor<2x8x16xf32>
  return %o : tensor<2x8x16xf32>
}

// -----

// expected-error @below {{'func.func' op has an attribute 'flash.tile' that dialect 'flash' does not declare; the nearest is 'flash.to_end'}}
func.func @function() attributes {flash.tile = 64} {
  return
}

// -----

// expected-error @below {{'func.func' op has an attribute 'flash.query' of argument 0; dialect 'flash' declares none for arguments}}
func.func @argument(%q: tensor<2x8x16xf32> {flash.query}) {
  return
}

// -----

// expected-error @below {{'func.func' op has an attribute 'flash.output' of result 0; dialect 'flash' declares none for results}}
func.func private @result() -> (tensor<2x8x16xf32> {flash.output})

// -----

func.func @multiples(%q: tensor<1x2x96x16xf32>) -> tensor<1x2x96x16xf32> {
  // expected-error @below {{'flash.attention' op has 96 queries, no multiple of 64}}
  %o = flash.attention %q, %q, %q multiples([64, 32]) : (tensor<1x2x96x16xf32>, tensor<1x2x96x16xf32>, tensor<1x2x96x16xf32>) -> tensor<1x2x96x16xf32>
  return %o : tensor<1x2x96x16xf32>
}

// -----

func.func @multiples(%q: tensor<1x2x?x16xf32>) -> tensor<1x2x?x16xf32> {
  // expected-error @below {{'flash.attention' op multiples are two positive numbers, of queries and of keys}}
  %o = flash.attention %q, %q, %q multiples([64]) : (tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>) -> tensor<1x2x?x16xf32>
  return %o : tensor<1x2x?x16xf32>
}

// -----

func.func @multiples(%q: tensor<1x2x?x16xf32>) -> tensor<1x2x?x16xf32> {
  // expected-error @below {{'flash.attention' op multiples are two positive numbers, of queries and of keys}}
  %o = flash.attention %q, %q, %q multiples([64, 0]) : (tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>) -> tensor<1x2x?x16xf32>
  return %o : tensor<1x2x?x16xf32>
}

// -----

func.func @multiples(%q: tensor<1x2x?x16xf32>, %k: tensor<1x2x40x16xf32>, %a: tensor<1x2x?x16xf32>, %r: tensor<1x2x?xf32>, %n: index) {
  // expected-error @below {{'flash.online_attention' op has 40 keys, no multiple of 16}}
  %s:3 = flash.online_attention ins(%q, %k, %k : tensor<1x2x?x16xf32>, tensor<1x2x40x16xf32>, tensor<1x2x40x16xf32>)
      outs(%a, %r, %r : tensor<1x2x?x16xf32>, tensor<1x2x?xf32>, tensor<1x2x?xf32>) at[0, 0, 0, 0] of[%n, 40] scale(1.0) multiples([1, 16])
  return
}

// -----

func.func @multiples(%q: tensor<16x16xf32>, %r: tensor<16xf32>) {
  // expected-error @below {{'flash.online_attention' op multiples are of whole tensors (rank 4)}}
  %s:3 = flash.online_attention ins(%q, %q, %q : tensor<16x16xf32>, tensor<16x16xf32>, tensor<16x16xf32>)
      outs(%q, %r, %r : tensor<16x16xf32>, tensor<16xf32>, tensor<16xf32>) at[0, 0, 0, 0] of[16, 16] scale(1.0) multiples([16, 16])
  return
}

// -----

// expected-error @below {{'builtin.module' op needs a #flash.target as attribute 'flash.target', got "sm_90a"}}
module attributes {flash.target = "sm_90a"} {}

// -----

// expected-error @below {{'func.func' op has an attribute 'flash.target', which belongs to 'builtin.module'}}
func.func private @f() attributes {flash.target = #flash.target<sm_90a>}

// -----

// expected-error @below {{there is no target 'sm_91'; the targets are cpu, emulate, sm_75, sm_80, sm_86, sm_89, sm_90a and sm_120}}
module attributes {flash.target = #flash.target<sm_91>} {}

// -----

// expected-error @below {{the target cpu has no keys; GPUs have}}
module attributes {flash.target = #flash.target<cpu, registers = 7>} {}

// -----

// expected-error @below {{unknown key 'regs'; the keys are multiprocessors, registers, registers_per_thread, shared_bytes_per_block, portable_shared_bytes_per_block, reserved_shared_bytes_per_block, products, copies, converts_e4m3, dependent_launches}}
module attributes {flash.target = #flash.target<sm_80, regs = 7>} {}

// -----

// expected-error @below {{multiprocessors must be from 1 to 4096, got 0}}
module attributes {flash.target = #flash.target<sm_80, multiprocessors = 0>} {}

// -----

// expected-error @below {{registers is given twice}}
module attributes {flash.target = #flash.target<sm_80, registers = 7, registers = 7>} {}

// -----

// expected-error @below {{products must be at most m16n8k8 for sm_75, whose chip lacks the instructions, got m16n8k16}}
module attributes {flash.target = #flash.target<sm_75, products = m16n8k16>} {}

// -----

// expected-error @below {{multiprocessors must be from 1 to 4096, got 99999999999999999999999}}
module attributes {flash.target = #flash.target<sm_80, multiprocessors = 99999999999999999999999>} {}

// -----

// expected-error @below {{products is one of none, m16n8k8, m16n8k16, warpgroup; got wgmma}}
module attributes {flash.target = #flash.target<sm_80, products = wgmma>} {}

// -----

func.func @packed_tensor(%q: tensor<2x4x128x64xf32>, %k: tensor<2x4x128x64xf32>, %a: tensor<2x4x128x64xf32>, %m: tensor<2x4x128xf32>) {
  // expected-error @below {{packed is the number of heads of a tile (rank 2), at least 1; on whole tensors the schedule has packed_heads}}
  %0:3 = flash.online_attention ins(%q, %k, %k : tensor<2x4x128x64xf32>, tensor<2x4x128x64xf32>, tensor<2x4x128x64xf32>)
      outs(%a, %m, %m : tensor<2x4x128x64xf32>, tensor<2x4x128xf32>, tensor<2x4x128xf32>) at[0, 0, 0, 0] of[128, 128] packed(2) scale(1.0)
  return
}

// -----

func.func @packed_rows(%q: tensor<16x64xf32>, %a: tensor<16x64xf32>, %m: tensor<16xf32>) {
  // expected-error @below {{packs 17 heads into a tile of 16 rows, which has one for each at least}}
  %0:3 = flash.online_attention ins(%q, %q, %q : tensor<16x64xf32>, tensor<16x64xf32>, tensor<16x64xf32>)
      outs(%a, %m, %m : tensor<16x64xf32>, tensor<16xf32>, tensor<16xf32>) at[0, 0, 0, 0] of[128, 128] packed(17) scale(1.0)
  return
}

// -----

func.func @f(%q: tensor<1x2x4x8xf32>, %k: tensor<1x1x6x16xf32>, %v: tensor<1x1x6x16xf32>, %o: tensor<1x2x4x16xf32>, %lse: tensor<1x2x4xf32>, %do: tensor<1x2x4x16xf32>) {
  // expected-error @below {{head dimensions of query and key must agree, got 8 and 16}}
  %0:3 = flash.attention_grad %q, %k, %v, %o, %lse, %do
      : (tensor<1x2x4x8xf32>, tensor<1x1x6x16xf32>, tensor<1x1x6x16xf32>, tensor<1x2x4x16xf32>, tensor<1x2x4xf32>, tensor<1x2x4x16xf32>)
      -> (tensor<1x2x4x8xf32>, tensor<1x1x6x16xf32>, tensor<1x1x6x16xf32>)
  return
}

// -----

func.func @f(%q: tensor<1x2x4x8xf32>, %k: tensor<1x1x6x8xf32>, %v: tensor<1x1x6x16xf32>, %o: tensor<1x2x4x16xf32>, %lse: tensor<1x2x4xf32>, %do: tensor<1x2x4x16xf32>, %s: tensor<3xf32>) {
  // expected-error @below {{query heads and number of sinks must agree, got 2 and 3}}
  %0:4 = flash.attention_grad %q, %k, %v, %o, %lse, %do sink(%s : tensor<3xf32>)
      : (tensor<1x2x4x8xf32>, tensor<1x1x6x8xf32>, tensor<1x1x6x16xf32>, tensor<1x2x4x16xf32>, tensor<1x2x4xf32>, tensor<1x2x4x16xf32>)
      -> (tensor<1x2x4x8xf32>, tensor<1x1x6x8xf32>, tensor<1x1x6x16xf32>, tensor<3xf32>)
  return
}

// -----

func.func @f(%q: tensor<1x2x4x8xf32>, %k: tensor<1x1x6x8xf32>, %v: tensor<1x1x6x16xf32>, %o: tensor<1x2x4x16xf16>, %lse: tensor<1x2x4xf32>, %do: tensor<1x2x4x16xf32>) {
  // expected-error @below {{output must have the operands' element type 'f32', got 'f16'}}
  %0:3 = flash.attention_grad %q, %k, %v, %o, %lse, %do
      : (tensor<1x2x4x8xf32>, tensor<1x1x6x8xf32>, tensor<1x1x6x16xf32>, tensor<1x2x4x16xf16>, tensor<1x2x4xf32>, tensor<1x2x4x16xf32>)
      -> (tensor<1x2x4x8xf32>, tensor<1x1x6x8xf32>, tensor<1x1x6x16xf32>)
  return
}

// -----

func.func @f(%q: tensor<1x2x4x8xf32>, %k: tensor<1x1x6x8xf32>, %v: tensor<1x1x6x16xf32>, %o: tensor<1x2x4x8xf32>, %lse: tensor<1x2x4xf32>, %do: tensor<1x2x4x16xf32>) {
  // expected-error @below {{output must have type 'tensor<1x2x4x16xf32>', got 'tensor<1x2x4x8xf32>'}}
  %0:3 = flash.attention_grad %q, %k, %v, %o, %lse, %do
      : (tensor<1x2x4x8xf32>, tensor<1x1x6x8xf32>, tensor<1x1x6x16xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4xf32>, tensor<1x2x4x16xf32>)
      -> (tensor<1x2x4x8xf32>, tensor<1x1x6x8xf32>, tensor<1x1x6x16xf32>)
  return
}

// -----

func.func @f(%q: tensor<1x2x4x8xf32>, %k: tensor<1x1x6x8xf32>, %v: tensor<1x1x6x16xf32>, %o: tensor<1x2x4x16xf32>, %lse: tensor<1x2x5xf32>, %do: tensor<1x2x4x16xf32>) {
  // expected-error @below {{log-sum-exp must have type 'tensor<1x2x4xf32>', got 'tensor<1x2x5xf32>'}}
  %0:3 = flash.attention_grad %q, %k, %v, %o, %lse, %do
      : (tensor<1x2x4x8xf32>, tensor<1x1x6x8xf32>, tensor<1x1x6x16xf32>, tensor<1x2x4x16xf32>, tensor<1x2x5xf32>, tensor<1x2x4x16xf32>)
      -> (tensor<1x2x4x8xf32>, tensor<1x1x6x8xf32>, tensor<1x1x6x16xf32>)
  return
}

// -----

func.func @f(%q: tensor<1x2x4x8xf32>, %k: tensor<1x1x6x8xf32>, %v: tensor<1x1x6x16xf32>, %o: tensor<1x2x4x16xf32>, %lse: tensor<1x2x4xf16>, %do: tensor<1x2x4x16xf32>) {
  // expected-error @below {{operand #4 must be ranked tensor without encoding of 32-bit float values, but got 'tensor<1x2x4xf16>'}}
  %0:3 = flash.attention_grad %q, %k, %v, %o, %lse, %do
      : (tensor<1x2x4x8xf32>, tensor<1x1x6x8xf32>, tensor<1x1x6x16xf32>, tensor<1x2x4x16xf32>, tensor<1x2x4xf16>, tensor<1x2x4x16xf32>)
      -> (tensor<1x2x4x8xf32>, tensor<1x1x6x8xf32>, tensor<1x1x6x16xf32>)
  return
}

// -----

func.func @f(%q: tensor<1x2x4x8xf32>, %k: tensor<1x1x6x8xf32>, %v: tensor<1x1x6x16xf32>, %o: tensor<1x2x4x16xf32>, %lse: tensor<1x2x4xf32>, %do: tensor<1x2x4x16xbf16>) {
  // expected-error @below {{gradient of the output must have the operands' element type 'f32', got 'bf16'}}
  %0:3 = flash.attention_grad %q, %k, %v, %o, %lse, %do
      : (tensor<1x2x4x8xf32>, tensor<1x1x6x8xf32>, tensor<1x1x6x16xf32>, tensor<1x2x4x16xf32>, tensor<1x2x4xf32>, tensor<1x2x4x16xbf16>)
      -> (tensor<1x2x4x8xf32>, tensor<1x1x6x8xf32>, tensor<1x1x6x16xf32>)
  return
}

// -----

func.func @f(%q: tensor<1x2x4x8xf32>, %k: tensor<1x1x6x8xf32>, %v: tensor<1x1x6x16xf32>, %o: tensor<1x2x4x16xf32>, %lse: tensor<1x2x4xf32>, %do: tensor<1x2x3x16xf32>) {
  // expected-error @below {{gradient of the output must have type 'tensor<1x2x4x16xf32>', got 'tensor<1x2x3x16xf32>'}}
  %0:3 = flash.attention_grad %q, %k, %v, %o, %lse, %do
      : (tensor<1x2x4x8xf32>, tensor<1x1x6x8xf32>, tensor<1x1x6x16xf32>, tensor<1x2x4x16xf32>, tensor<1x2x4xf32>, tensor<1x2x3x16xf32>)
      -> (tensor<1x2x4x8xf32>, tensor<1x1x6x8xf32>, tensor<1x1x6x16xf32>)
  return
}

// -----

func.func @f(%q: tensor<1x2x4x8xf32>, %k: tensor<1x1x6x8xf32>, %v: tensor<1x1x6x16xf32>, %o: tensor<1x2x4x16xf32>, %lse: tensor<1x2x4xf32>, %do: tensor<1x2x4x16xf32>, %x: tensor<1x2xf32>) {
  // expected-error @below {{gradient of the log-sum-exp must have type 'tensor<1x2x4xf32>', got 'tensor<1x2xf32>'}}
  %0:3 = flash.attention_grad %q, %k, %v, %o, %lse, %do lse_grad(%x : tensor<1x2xf32>)
      : (tensor<1x2x4x8xf32>, tensor<1x1x6x8xf32>, tensor<1x1x6x16xf32>, tensor<1x2x4x16xf32>, tensor<1x2x4xf32>, tensor<1x2x4x16xf32>)
      -> (tensor<1x2x4x8xf32>, tensor<1x1x6x8xf32>, tensor<1x1x6x16xf32>)
  return
}

// -----

func.func @f(%q: tensor<1x2x4x8xf32>, %k: tensor<1x1x6x8xf32>, %v: tensor<1x1x6x16xf32>, %o: tensor<1x2x4x16xf32>, %lse: tensor<1x2x4xf32>, %do: tensor<1x2x4x16xf32>) {
  // expected-error @below {{the gradient of the query must have type 'tensor<1x2x4x8xf32>', got 'tensor<1x2x4x16xf32>'}}
  %0:3 = flash.attention_grad %q, %k, %v, %o, %lse, %do
      : (tensor<1x2x4x8xf32>, tensor<1x1x6x8xf32>, tensor<1x1x6x16xf32>, tensor<1x2x4x16xf32>, tensor<1x2x4xf32>, tensor<1x2x4x16xf32>)
      -> (tensor<1x2x4x16xf32>, tensor<1x1x6x8xf32>, tensor<1x1x6x16xf32>)
  return
}

// -----

func.func @f(%q: tensor<1x2x4x8xf32>, %k: tensor<1x1x6x8xf32>, %v: tensor<1x1x6x16xf32>, %o: tensor<1x2x4x16xf32>, %lse: tensor<1x2x4xf32>, %do: tensor<1x2x4x16xf32>) {
  // expected-error @below {{the gradient of the key must have type 'tensor<1x1x6x8xf32>', got 'tensor<1x2x6x8xf32>'}}
  %0:3 = flash.attention_grad %q, %k, %v, %o, %lse, %do
      : (tensor<1x2x4x8xf32>, tensor<1x1x6x8xf32>, tensor<1x1x6x16xf32>, tensor<1x2x4x16xf32>, tensor<1x2x4xf32>, tensor<1x2x4x16xf32>)
      -> (tensor<1x2x4x8xf32>, tensor<1x2x6x8xf32>, tensor<1x1x6x16xf32>)
  return
}

// -----

func.func @f(%q: tensor<1x2x4x8xf32>, %k: tensor<1x1x6x8xf32>, %v: tensor<1x1x6x16xf32>, %o: tensor<1x2x4x16xf32>, %lse: tensor<1x2x4xf32>, %do: tensor<1x2x4x16xf32>) {
  // expected-error @below {{the gradient of the value must have type 'tensor<1x1x6x16xf32>', got 'tensor<1x1x6x16xf16>'}}
  %0:3 = flash.attention_grad %q, %k, %v, %o, %lse, %do
      : (tensor<1x2x4x8xf32>, tensor<1x1x6x8xf32>, tensor<1x1x6x16xf32>, tensor<1x2x4x16xf32>, tensor<1x2x4xf32>, tensor<1x2x4x16xf32>)
      -> (tensor<1x2x4x8xf32>, tensor<1x1x6x8xf32>, tensor<1x1x6x16xf16>)
  return
}

// -----

func.func @f(%q: tensor<1x2x4x8xf32>, %k: tensor<1x1x6x8xf32>, %v: tensor<1x1x6x16xf32>, %o: tensor<1x2x4x16xf32>, %lse: tensor<1x2x4xf32>, %do: tensor<1x2x4x16xf32>, %s: tensor<2xf32>) {
  // expected-error @below {{the gradient of the sink must have type 'tensor<2xf32>', got 'tensor<1xf32>'}}
  %0:4 = flash.attention_grad %q, %k, %v, %o, %lse, %do sink(%s : tensor<2xf32>)
      : (tensor<1x2x4x8xf32>, tensor<1x1x6x8xf32>, tensor<1x1x6x16xf32>, tensor<1x2x4x16xf32>, tensor<1x2x4xf32>, tensor<1x2x4x16xf32>)
      -> (tensor<1x2x4x8xf32>, tensor<1x1x6x8xf32>, tensor<1x1x6x16xf32>, tensor<1xf32>)
  return
}

// -----

func.func @f(%q: tensor<1x2x4x8xf32>, %k: tensor<1x1x6x8xf32>, %v: tensor<1x1x6x16xf32>, %o: tensor<1x2x4x16xf32>, %lse: tensor<1x2x4xf32>, %do: tensor<1x2x4x16xf32>) {
  // expected-error @below {{has 0 tensors in wrt, but 1 gradients of such}}
  %0:4 = flash.attention_grad %q, %k, %v, %o, %lse, %do
      : (tensor<1x2x4x8xf32>, tensor<1x1x6x8xf32>, tensor<1x1x6x16xf32>, tensor<1x2x4x16xf32>, tensor<1x2x4xf32>, tensor<1x2x4x16xf32>)
      -> (tensor<1x2x4x8xf32>, tensor<1x1x6x8xf32>, tensor<1x1x6x16xf32>, tensor<2xf32>)
  return
}

// -----

func.func @f(%q: tensor<1x2x4x8xf32>, %k: tensor<1x1x6x8xf32>, %v: tensor<1x1x6x16xf32>, %o: tensor<1x2x4x16xf32>, %lse: tensor<1x2x4xf32>, %do: tensor<1x2x4x16xf32>, %a: tensor<2xf32>) {
  // expected-error @below {{has tensors in wrt, but no score region that could read them; leave out wrt, their gradients are 0}}
  %0:4 = flash.attention_grad %q, %k, %v, %o, %lse, %do wrt(%a : tensor<2xf32>)
      : (tensor<1x2x4x8xf32>, tensor<1x1x6x8xf32>, tensor<1x1x6x16xf32>, tensor<1x2x4x16xf32>, tensor<1x2x4xf32>, tensor<1x2x4x16xf32>)
      -> (tensor<1x2x4x8xf32>, tensor<1x1x6x8xf32>, tensor<1x1x6x16xf32>, tensor<2xf32>)
  return
}

// -----

func.func @f(%q: tensor<1x2x4x8xf32>, %k: tensor<1x1x6x8xf32>, %v: tensor<1x1x6x16xf32>, %o: tensor<1x2x4x16xf32>, %lse: tensor<1x2x4xf32>, %do: tensor<1x2x4x16xf32>, %a: tensor<2xf32>) {
  // expected-error @below {{tensor #1 of wrt is named a second time}}
  %0:5 = flash.attention_grad %q, %k, %v, %o, %lse, %do wrt(%a, %a : tensor<2xf32>, tensor<2xf32>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %a[%h] : tensor<2xf32>
    %r = arith.addf %s, %x : f32
    flash.yield %r : f32
  }
      : (tensor<1x2x4x8xf32>, tensor<1x1x6x8xf32>, tensor<1x1x6x16xf32>, tensor<1x2x4x16xf32>, tensor<1x2x4xf32>, tensor<1x2x4x16xf32>)
      -> (tensor<1x2x4x8xf32>, tensor<1x1x6x8xf32>, tensor<1x1x6x16xf32>, tensor<2xf32>, tensor<2xf32>)
  return
}

// -----

func.func @f(%q: tensor<1x2x4x8xf32>, %k: tensor<1x1x6x8xf32>, %v: tensor<1x1x6x16xf32>, %o: tensor<1x2x4x16xf32>, %lse: tensor<1x2x4xf32>, %do: tensor<1x2x4x16xf32>, %a: tensor<2xf32>) {
  // expected-error @below {{the gradient of tensor #0 of wrt must have type 'tensor<2xf32>', got 'tensor<2xf16>'}}
  %0:4 = flash.attention_grad %q, %k, %v, %o, %lse, %do wrt(%a : tensor<2xf32>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %a[%h] : tensor<2xf32>
    %r = arith.addf %s, %x : f32
    flash.yield %r : f32
  }
      : (tensor<1x2x4x8xf32>, tensor<1x1x6x8xf32>, tensor<1x1x6x16xf32>, tensor<1x2x4x16xf32>, tensor<1x2x4xf32>, tensor<1x2x4x16xf32>)
      -> (tensor<1x2x4x8xf32>, tensor<1x1x6x8xf32>, tensor<1x1x6x16xf32>, tensor<2xf16>)
  return
}

// -----

func.func @f(%q: tensor<1x2x4x8xf32>, %k: tensor<1x1x6x8xf32>, %v: tensor<1x1x6x16xf32>, %o: tensor<1x2x4x16xf32>, %lse: tensor<1x2x4xf32>, %do: tensor<1x2x4x16xf32>, %a: tensor<2xi32>) {
  // expected-error @below {{operand #6 must be variadic of ranked tensor without encoding of 16-bit float or bfloat16 type or 32-bit float values, but got 'tensor<2xi32>'}}
  %0:4 = flash.attention_grad %q, %k, %v, %o, %lse, %do wrt(%a : tensor<2xi32>)
      : (tensor<1x2x4x8xf32>, tensor<1x1x6x8xf32>, tensor<1x1x6x16xf32>, tensor<1x2x4x16xf32>, tensor<1x2x4xf32>, tensor<1x2x4x16xf32>)
      -> (tensor<1x2x4x8xf32>, tensor<1x1x6x8xf32>, tensor<1x1x6x16xf32>, tensor<2xf32>)
  return
}

// -----

func.func @f(%q: tensor<1x1x4x8xf32>, %lse: tensor<1x1x4xf32>) {
  // expected-error @below {{operand group #0 must have one operand, got 0}}
  %0:3 = "flash.attention_grad"(%q, %q, %q, %q, %lse, %q) <{operandSegmentSizes = array<i32: 0, 2, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 1, 1, 0, 0>}> ({
  }) : (tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4xf32>, tensor<1x1x4x8xf32>) -> (tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>)
  return
}

// -----

func.func @f(%q: tensor<1x1x4x8xf32>, %lse: tensor<1x1x4xf32>) {
  // expected-error @below {{result group #0 must have one result, got 2}}
  %0:3 = "flash.attention_grad"(%q, %q, %q, %q, %lse, %q) <{operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 2, 1, 0, 0, 0>}> ({
  }) : (tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4xf32>, tensor<1x1x4x8xf32>) -> (tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>)
  return
}

// -----

func.func @f(%q: tensor<1x1x4x8xf32>, %lse: tensor<1x1x4xf32>) {
  // expected-error @below {{a sink has a gradient, and a gradient of the sink needs a sink}}
  %0:4 = "flash.attention_grad"(%q, %q, %q, %q, %lse, %q) <{operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 1, 1, 1, 0>}> ({
  }) : (tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4xf32>, tensor<1x1x4x8xf32>) -> (tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1xf32>)
  return
}

// -----

func.func @f(%q: tensor<4x8xf16>, %k: tensor<6x8xf16>, %v: tensor<6x16xf16>, %do: tensor<4x16xf16>, %shift: tensor<4xf32>, %delta: tensor<4xf32>, %dq: tensor<4x16xf32>) {
  // expected-error @below {{gradient of the query must have type 'tensor<4x8xf32>', got 'tensor<4x16xf32>'}}
  %0 = flash.query_grad_step ins(%q, %k, %v, %do, %shift, %delta : tensor<4x8xf16>, tensor<6x8xf16>, tensor<6x16xf16>, tensor<4x16xf16>, tensor<4xf32>, tensor<4xf32>)
      outs(%dq : tensor<4x16xf32>) at[0, 0, 0, 0] of[4, 6] scale(1.0)
  return
}

// -----

func.func @f(%q: tensor<4x8xf16>, %k: tensor<6x8xf16>, %v: tensor<6x16xf16>, %do: tensor<4x8xf16>, %shift: tensor<4xf32>, %delta: tensor<4xf32>, %dq: tensor<4x8xf32>) {
  // expected-error @below {{gradient of the output must have type 'tensor<4x16xf16>', got 'tensor<4x8xf16>'}}
  %0 = flash.query_grad_step ins(%q, %k, %v, %do, %shift, %delta : tensor<4x8xf16>, tensor<6x8xf16>, tensor<6x16xf16>, tensor<4x8xf16>, tensor<4xf32>, tensor<4xf32>)
      outs(%dq : tensor<4x8xf32>) at[0, 0, 0, 0] of[4, 6] scale(1.0)
  return
}

// -----

func.func @f(%q: tensor<4x8xf16>, %k: tensor<6x8xf16>, %v: tensor<6x16xf16>, %do: tensor<4x16xf32>, %shift: tensor<4xf32>, %delta: tensor<4xf32>, %dq: tensor<4x8xf32>) {
  // expected-error @below {{gradient of the output must have the operands' element type 'f16', got 'f32'}}
  %0 = flash.query_grad_step ins(%q, %k, %v, %do, %shift, %delta : tensor<4x8xf16>, tensor<6x8xf16>, tensor<6x16xf16>, tensor<4x16xf32>, tensor<4xf32>, tensor<4xf32>)
      outs(%dq : tensor<4x8xf32>) at[0, 0, 0, 0] of[4, 6] scale(1.0)
  return
}

// -----

func.func @f(%q: tensor<4x8xf16>, %k: tensor<6x8xf16>, %v: tensor<6x16xf16>, %do: tensor<4x16xf16>, %shift: tensor<6xf32>, %delta: tensor<4xf32>, %dq: tensor<4x8xf32>) {
  // expected-error @below {{lse_log2 must have type 'tensor<4xf32>', got 'tensor<6xf32>'}}
  %0 = flash.query_grad_step ins(%q, %k, %v, %do, %shift, %delta : tensor<4x8xf16>, tensor<6x8xf16>, tensor<6x16xf16>, tensor<4x16xf16>, tensor<6xf32>, tensor<4xf32>)
      outs(%dq : tensor<4x8xf32>) at[0, 0, 0, 0] of[4, 6] scale(1.0)
  return
}

// -----

func.func @f(%q: tensor<4x8xf16>, %k: tensor<6x8xf16>, %v: tensor<6x16xf16>, %do: tensor<4x16xf16>, %shift: tensor<4xf32>, %delta: tensor<6xf32>, %dq: tensor<4x8xf32>) {
  // expected-error @below {{delta must have type 'tensor<4xf32>', got 'tensor<6xf32>'}}
  %0 = flash.query_grad_step ins(%q, %k, %v, %do, %shift, %delta : tensor<4x8xf16>, tensor<6x8xf16>, tensor<6x16xf16>, tensor<4x16xf16>, tensor<4xf32>, tensor<6xf32>)
      outs(%dq : tensor<4x8xf32>) at[0, 0, 0, 0] of[4, 6] scale(1.0)
  return
}

// -----

func.func @f(%q: tensor<4x8xf16>, %k: tensor<6x8xf16>, %v: tensor<6x16xf16>, %do: tensor<4x16xf16>, %shift: tensor<4xf32>, %delta: tensor<4xf32>, %dq: tensor<4x8xf32>) {
  // expected-error @below {{'at' takes the four indices [b, h, i, j]}}
  %0 = flash.query_grad_step ins(%q, %k, %v, %do, %shift, %delta : tensor<4x8xf16>, tensor<6x8xf16>, tensor<6x16xf16>, tensor<4x16xf16>, tensor<4xf32>, tensor<4xf32>)
      outs(%dq : tensor<4x8xf32>) at[0, 0, 0] of[4, 6] scale(1.0)
  return
}

// -----

func.func @f(%q: tensor<4x8xf16>, %k: tensor<6x8xf16>, %v: tensor<6x16xf16>, %do: tensor<4x16xf16>, %shift: tensor<4xf32>, %delta: tensor<4xf32>, %dq: tensor<4x8xf32>) {
  // expected-error @below {{scale must be finite}}
  %0 = flash.query_grad_step ins(%q, %k, %v, %do, %shift, %delta : tensor<4x8xf16>, tensor<6x8xf16>, tensor<6x16xf16>, tensor<4x16xf16>, tensor<4xf32>, tensor<4xf32>)
      outs(%dq : tensor<4x8xf32>) at[0, 0, 0, 0] of[4, 6] scale(0x7FF0000000000000)
  return
}

// -----

func.func @f(%q: tensor<4x8xf16>, %k: tensor<6x8xf16>, %v: tensor<6x16xf16>, %do: tensor<4x16xf16>, %shift: tensor<4xf32>, %delta: tensor<4xf32>, %dk: tensor<4x8xf32>, %dv: tensor<6x16xf32>) {
  // expected-error @below {{gradient of the key must have type 'tensor<6x8xf32>', got 'tensor<4x8xf32>'}}
  %0:2 = flash.key_grad_step ins(%q, %k, %v, %do, %shift, %delta : tensor<4x8xf16>, tensor<6x8xf16>, tensor<6x16xf16>, tensor<4x16xf16>, tensor<4xf32>, tensor<4xf32>)
      outs(%dk, %dv : tensor<4x8xf32>, tensor<6x16xf32>) at[0, 0, 0, 0] of[4, 6] scale(1.0)
  return
}

// -----

func.func @f(%q: tensor<4x8xf16>, %k: tensor<6x8xf16>, %v: tensor<6x16xf16>, %do: tensor<4x16xf16>, %shift: tensor<4xf32>, %delta: tensor<4xf32>, %dk: tensor<6x8xf32>, %dv: tensor<6x8xf32>) {
  // expected-error @below {{gradient of the value must have type 'tensor<6x16xf32>', got 'tensor<6x8xf32>'}}
  %0:2 = flash.key_grad_step ins(%q, %k, %v, %do, %shift, %delta : tensor<4x8xf16>, tensor<6x8xf16>, tensor<6x16xf16>, tensor<4x16xf16>, tensor<4xf32>, tensor<4xf32>)
      outs(%dk, %dv : tensor<6x8xf32>, tensor<6x8xf32>) at[0, 0, 0, 0] of[4, 6] scale(1.0)
  return
}

// -----

func.func @f(%q: tensor<4x8xf16>, %k: tensor<6x8xf16>, %v: tensor<6x16xf16>, %do: tensor<4x16xf16>, %shift: tensor<4xf32>, %delta: tensor<4xf32>, %dk: tensor<6x8xf32>, %dv: tensor<6x16xf32>) {
  // expected-error @below {{precision(tf32) rounds operands of f32, got 'f16'}}
  %0:2 = flash.key_grad_step ins(%q, %k, %v, %do, %shift, %delta : tensor<4x8xf16>, tensor<6x8xf16>, tensor<6x16xf16>, tensor<4x16xf16>, tensor<4xf32>, tensor<4xf32>)
      outs(%dk, %dv : tensor<6x8xf32>, tensor<6x16xf32>) at[0, 0, 0, 0] of[4, 6] scale(1.0) precision(tf32)
  return
}

// -----

func.func @f(%q: tensor<4x8xf16>, %k: tensor<6x8xf16>, %v: tensor<6x16xf32>, %do: tensor<4x16xf16>, %shift: tensor<4xf32>, %delta: tensor<4xf32>, %dk: tensor<6x8xf32>, %dv: tensor<6x16xf32>) {
  // expected-error @below {{query, key and value must have one element type, got 'f16', 'f16' and 'f32'}}
  %0:2 = flash.key_grad_step ins(%q, %k, %v, %do, %shift, %delta : tensor<4x8xf16>, tensor<6x8xf16>, tensor<6x16xf32>, tensor<4x16xf16>, tensor<4xf32>, tensor<4xf32>)
      outs(%dk, %dv : tensor<6x8xf32>, tensor<6x16xf32>) at[0, 0, 0, 0] of[4, 6] scale(1.0)
  return
}

// -----

func.func @f(%q: tensor<2x4x300x16xf32>, %n: tensor<2xi32>, %m: tensor<3xi32>, %d: index) {
  // expected-note @below {{the map is made here}}
  %t, %c = flash.block_map of[1, 1, 300, 300] tiles([64, 32]) : tensor<1x1x5x10xi32>, tensor<1x1x5x2xi32>
  // expected-error @below {{has blocks of another tile size: the schedule must say query_tile = 64, key_tile = 32}}
  %o = flash.attention %q, %q, %q blocks(%t, %c : tensor<1x1x5x10xi32>, tensor<1x1x5x2xi32>) schedule(<query_tile = 64, key_tile = 64>)
      : (tensor<2x4x300x16xf32>, tensor<2x4x300x16xf32>, tensor<2x4x300x16xf32>) -> tensor<2x4x300x16xf32>
  return
}

// -----

func.func @f(%q: tensor<2x4x300x16xf32>, %n: tensor<2xi32>, %m: tensor<3xi32>, %d: index) {
  // expected-note @below {{the map is made here}}
  %t, %c = flash.block_map of[1, 1, 300, 300] tiles([64, 32]) : tensor<1x1x5x10xi32>, tensor<1x1x5x2xi32>
  // expected-error @below {{has blocks of another mask}}
  %o = flash.attention %q, %q, %q mask(#flash.causal) blocks(%t, %c : tensor<1x1x5x10xi32>, tensor<1x1x5x2xi32>) schedule(<query_tile = 64, key_tile = 32>)
      : (tensor<2x4x300x16xf32>, tensor<2x4x300x16xf32>, tensor<2x4x300x16xf32>) -> tensor<2x4x300x16xf32>
  return
}

// -----

func.func @f(%q: tensor<2x4x300x16xf32>, %n: tensor<2xi32>, %m: tensor<3xi32>, %d: index) {
  // expected-note @below {{the map is made here}}
  %t, %c = flash.block_map of[1, 1, 300, 300] tiles([64, 32]) : tensor<1x1x5x10xi32>, tensor<1x1x5x2xi32>
  // expected-error @below {{has blocks of another number of keys: its lengths are not the attention's}}
  %o = flash.attention %q, %q, %q lengths(%n : tensor<2xi32>) blocks(%t, %c : tensor<1x1x5x10xi32>, tensor<1x1x5x2xi32>) schedule(<query_tile = 64, key_tile = 32>)
      : (tensor<2x4x300x16xf32>, tensor<2x4x300x16xf32>, tensor<2x4x300x16xf32>) -> tensor<2x4x300x16xf32>
  return
}

// -----

func.func @f(%q: tensor<2x4x300x16xf32>, %n: tensor<2xi32>, %m: tensor<3xi32>, %d: index) {
  // expected-note @below {{the map is made here}}
  %t, %c = flash.block_map of[1, 1, 200, 300] tiles([64, 32]) : tensor<1x1x4x10xi32>, tensor<1x1x4x2xi32>
  // expected-error @below {{has blocks of another number of queries: 200, not 300}}
  %o = flash.attention %q, %q, %q blocks(%t, %c : tensor<1x1x4x10xi32>, tensor<1x1x4x2xi32>) schedule(<query_tile = 64, key_tile = 32>)
      : (tensor<2x4x300x16xf32>, tensor<2x4x300x16xf32>, tensor<2x4x300x16xf32>) -> tensor<2x4x300x16xf32>
  return
}

// -----

func.func @f(%q: tensor<2x4x300x16xf32>, %n: tensor<2xi32>, %m: tensor<3xi32>, %d: index) {
  // expected-note @below {{the map is made here}}
  %t, %c = flash.block_map of[1, 3, 300, 300] tiles([64, 32]) : tensor<1x3x5x10xi32>, tensor<1x3x5x2xi32>
  // expected-error @below {{has blocks of another number of heads: 3, not 4}}
  %o = flash.attention %q, %q, %q blocks(%t, %c : tensor<1x3x5x10xi32>, tensor<1x3x5x2xi32>) schedule(<query_tile = 64, key_tile = 32>)
      : (tensor<2x4x300x16xf32>, tensor<2x4x300x16xf32>, tensor<2x4x300x16xf32>) -> tensor<2x4x300x16xf32>
  return
}

// -----

func.func @f(%q: tensor<2x4x300x16xf32>, %k: tensor<2x1x300x16xf32>) {
  // expected-note @below {{the map is made here}}
  %t, %c = flash.block_map of[1, 1, 300, 300] tiles([64, 32]) : tensor<1x1x5x10xi32>, tensor<1x1x5x2xi32>
  // expected-error @below {{has blocks of another tile size: the schedule must say query_tile = 256, key_tile = 32}}
  %o = flash.attention %q, %k, %k blocks(%t, %c : tensor<1x1x5x10xi32>, tensor<1x1x5x2xi32>) schedule(<query_tile = 64, key_tile = 32, packed_heads = 4>)
      : (tensor<2x4x300x16xf32>, tensor<2x1x300x16xf32>, tensor<2x1x300x16xf32>) -> tensor<2x4x300x16xf32>
  return
}

// -----

func.func @f(%q: tensor<2x4x300x16xf32>, %k: tensor<2x1x300x16xf32>) {
  // expected-note @below {{the map is made here}}
  %t, %c = flash.block_map of[1, 4, 300, 300] tiles([32, 32]) packed(2) : tensor<1x2x10x10xi32>, tensor<1x2x10x2xi32>
  // expected-error @below {{has blocks of another number of heads that share tiles: the schedule must say packed_heads = 2}}
  %o = flash.attention %q, %k, %k blocks(%t, %c : tensor<1x2x10x10xi32>, tensor<1x2x10x2xi32>) schedule(<query_tile = 64, key_tile = 32, packed_heads = 4>)
      : (tensor<2x4x300x16xf32>, tensor<2x1x300x16xf32>, tensor<2x1x300x16xf32>) -> tensor<2x4x300x16xf32>
  return
}

// -----

func.func @f() {
  // expected-error @below {{packs 3 heads, which must divide how many have a map, 4}}
  %t, %c = flash.block_map of[1, 4, 300, 300] tiles([32, 32]) packed(3) : tensor<1x1x10x10xi32>, tensor<1x1x10x2xi32>
  return
}

// -----

func.func @f(%h: index) {
  // expected-error @below {{packs 2 heads, which must divide how many have a map, ?}}
  %t, %c = flash.block_map of[1, %h, 300, 300] tiles([32, 32]) packed(2) : tensor<1x?x10x10xi32>, tensor<1x?x10x2xi32>
  return
}

// -----

func.func @f(%given: tensor<1x1x5x9xi32>, %n: tensor<1x1x5x2xi32>) {
  // expected-error @below {{a map that is given is tensors of the types of the results}}
  %t, %c = flash.block_map of[1, 1, 300, 300] tiles([64, 32]) given(%given, %n : tensor<1x1x5x9xi32>, tensor<1x1x5x2xi32>) : tensor<1x1x5x10xi32>, tensor<1x1x5x2xi32>
  return
}

// -----

func.func @f(%q: tensor<2x4x300x16xf32>, %n: tensor<2xi32>, %m: tensor<3xi32>, %d: index) {
  %t, %c = flash.block_map of[1, 1, 300, 300] tiles([64, 32]) : tensor<1x1x5x10xi32>, tensor<1x1x5x2xi32>
  // expected-error @below {{blocks are the results of one flash.block_map of the same function, in their order; of lists that are given, say the sizes of their blocks, such as 'of [128, 128]'}}
  %o = flash.attention %q, %q, %q blocks(%t, %t : tensor<1x1x5x10xi32>, tensor<1x1x5x10xi32>) schedule(<query_tile = 64, key_tile = 32>)
      : (tensor<2x4x300x16xf32>, tensor<2x4x300x16xf32>, tensor<2x4x300x16xf32>) -> tensor<2x4x300x16xf32>
  return
}

// -----

func.func @f(%q: tensor<4x300x16xf32>) {
  %t, %c = flash.block_map of[1, 1, 300, 300] tiles([64, 32]) : tensor<1x1x5x10xi32>, tensor<1x1x5x2xi32>
  // expected-error @below {{blocks are for operands of rank 4}}
  %o = flash.attention %q, %q, %q blocks(%t, %c : tensor<1x1x5x10xi32>, tensor<1x1x5x2xi32>) schedule(<query_tile = 64, key_tile = 32>)
      : (tensor<4x300x16xf32>, tensor<4x300x16xf32>, tensor<4x300x16xf32>) -> tensor<4x300x16xf32>
  return
}

// -----

func.func @f(%q: tensor<2x4x300x16xf32>, %n: tensor<2xi32>, %m: tensor<3xi32>, %d: index) {
  // expected-note @below {{the map is made here}}
  %t, %c = flash.block_map of[1, 1, 300, 300] tiles([64, 32]) keep {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %x = arith.cmpi sle, %i, %j : index
    flash.yield %x : i1
  } : tensor<1x1x5x10xi32>, tensor<1x1x5x2xi32>
  // expected-error @below {{has blocks of another mask: what its region keeps is not what the score region does}}
  %o = flash.attention %q, %q, %q blocks(%t, %c : tensor<1x1x5x10xi32>, tensor<1x1x5x2xi32>) schedule(<query_tile = 64, key_tile = 32>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = arith.cmpi sle, %j, %i : index
    flash.yield %s keep %x : f32
  } : (tensor<2x4x300x16xf32>, tensor<2x4x300x16xf32>, tensor<2x4x300x16xf32>) -> tensor<2x4x300x16xf32>
  return
}

// -----

func.func @f(%q: tensor<2x4x300x16xf32>, %n: tensor<2xi32>, %m: tensor<3xi32>, %d: index) {
  %o = flash.attention %q, %q, %q score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = arith.cmpf olt, %s, %s : f32
    // expected-error @below {{keeps elements by what depends on their score; give such a score the value -inf instead}}
    flash.yield %s keep %x : f32
  } : (tensor<2x4x300x16xf32>, tensor<2x4x300x16xf32>, tensor<2x4x300x16xf32>) -> tensor<2x4x300x16xf32>
  return
}

// -----

func.func @f(%q: tensor<2x4x300x16xf32>, %n: tensor<2xi32>, %m: tensor<3xi32>, %d: index) {
  // expected-error @below {{'of' takes the four sizes [batches, heads, queries, keys]}}
  %t, %c = flash.block_map of[1, 1, 300] tiles([64, 32]) : tensor<1x1x5x10xi32>, tensor<1x1x5x2xi32>
  return
}

// -----

func.func @f(%q: tensor<2x4x300x16xf32>, %n: tensor<2xi32>, %m: tensor<3xi32>, %d: index) {
  // expected-error @below {{'of' needs one operand per dynamic size}}
  %t, %c = "flash.block_map"() <{operandSegmentSizes = array<i32: 0, 0, 0, 0, 0>, static_sizes = array<i64: 1, 1, 300, -9223372036854775808>, tiles = array<i64: 64, 32>}> ({}) : () -> (tensor<1x1x5x?xi32>, tensor<1x1x5x2xi32>)
  return
}

// -----

func.func @f(%q: tensor<2x4x300x16xf32>, %n: tensor<2xi32>, %m: tensor<3xi32>, %d: index) {
  // expected-error @below {{sizes must not be negative, got -1}}
  %t, %c = flash.block_map of[1, 1, 300, -1] tiles([64, 32]) : tensor<1x1x5x10xi32>, tensor<1x1x5x2xi32>
  return
}

// -----

func.func @f(%q: tensor<2x4x300x16xf32>, %n: tensor<2xi32>, %m: tensor<3xi32>, %d: index) {
  // expected-error @below {{tiles are two positive numbers, of queries and of keys}}
  %t, %c = flash.block_map of[1, 1, 300, 300] tiles([64]) : tensor<1x1x5x10xi32>, tensor<1x1x5x2xi32>
  return
}

// -----

func.func @f(%q: tensor<2x4x300x16xf32>, %n: tensor<2xi32>, %m: tensor<3xi32>, %d: index) {
  // expected-error @below {{key_tiles must have type 'tensor<1x1x5x?xi32>', got 'tensor<1x1x5x10xi32>'}}
  %t, %c = flash.block_map of[1, 1, 300, %d] tiles([64, 32]) : tensor<1x1x5x10xi32>, tensor<1x1x5x2xi32>
  return
}

// -----

func.func @f(%q: tensor<2x4x300x16xf32>, %n: tensor<2xi32>, %m: tensor<3xi32>, %d: index) {
  // expected-error @below {{counts must have type 'tensor<1x1x5x2xi32>', got 'tensor<1x1x5x3xi32>'}}
  %t, %c = flash.block_map of[1, 1, 300, 300] tiles([64, 32]) : tensor<1x1x5x10xi32>, tensor<1x1x5x3xi32>
  return
}

// -----

func.func @f(%q: tensor<2x4x300x16xf32>, %n: tensor<2xi32>, %m: tensor<3xi32>, %d: index) {
  // expected-error @below {{number of batches and number of lengths must agree, got 2 and 3}}
  %t, %c = flash.block_map of[2, 1, 300, 300] tiles([64, 32]) lengths(%m : tensor<3xi32>) : tensor<2x1x5x10xi32>, tensor<2x1x5x2xi32>
  return
}

// -----

func.func @f(%q: tensor<2x4x300x16xf32>, %n: tensor<2xi32>, %m: tensor<3xi32>, %d: index) {
  // expected-error @below {{the region takes (batch: index, head: index, query: index, key: index)}}
  %t, %c = flash.block_map of[1, 1, 300, 300] tiles([64, 32]) keep {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = arith.cmpi sle, %i, %j : index
    flash.yield %x : i1
  } : tensor<1x1x5x10xi32>, tensor<1x1x5x2xi32>
  return
}

// -----

func.func @f(%q: tensor<2x4x300x16xf32>, %n: tensor<2xi32>, %m: tensor<3xi32>, %d: index) {
  // expected-error @below {{the region must end with flash.yield of an i1}}
  %t, %c = flash.block_map of[1, 1, 300, 300] tiles([64, 32]) keep {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %x = arith.constant 1.0 : f32
    flash.yield %x : f32
  } : tensor<1x1x5x10xi32>, tensor<1x1x5x2xi32>
  return
}

// -----

func.func @f(%q: tensor<2x4x300x16xf32>, %n: tensor<2xi32>, %m: tensor<3xi32>, %d: index) {
  %t, %c = flash.block_map of[1, 1, 300, 300] tiles([64, 32]) keep {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    // expected-error @below {{is not allowed in the region of a block map}}
    %x = func.call @g() : () -> i1
    flash.yield %x : i1
  } : tensor<1x1x5x10xi32>, tensor<1x1x5x2xi32>
  return
}
func.func private @g() -> i1

// -----

func.func @f(%q: tensor<4x8xf16>, %k: tensor<6x8xf16>, %rows: tensor<4xf32>, %bias: tensor<4x6xf32>, %0: tensor<4xf32>) {
  // expected-error @below {{'reads' names no read of the tensor}}
  %1 = flash.captured_grad_step of(%bias : tensor<4x6xf32>) reads([])
      ins(%q, %k, %k, %q, %rows, %rows : tensor<4x8xf16>, tensor<6x8xf16>, tensor<6x8xf16>, tensor<4x8xf16>, tensor<4xf32>, tensor<4xf32>)
      outs(%0 : tensor<4xf32>) at[0, 0, 0, 0] of[4, 6] scale(1.0) score {
  ^bb0(%s: f32, %b: index, %h: index, %r: index, %c: index):
    %e = tensor.extract %bias[%r, %c] : tensor<4x6xf32>
    %x = arith.addf %s, %e : f32
    flash.yield %x : f32
  }
  return
}

// -----

func.func @f(%q: tensor<4x8xf16>, %k: tensor<6x8xf16>, %rows: tensor<4xf32>, %bias: tensor<4x6xf32>, %0: tensor<4xf32>) {
  // expected-error @below {{has no read 1: the score region reads the tensor 1 times}}
  %1 = flash.captured_grad_step of(%bias : tensor<4x6xf32>) reads([0, 1])
      ins(%q, %k, %k, %q, %rows, %rows : tensor<4x8xf16>, tensor<6x8xf16>, tensor<6x8xf16>, tensor<4x8xf16>, tensor<4xf32>, tensor<4xf32>)
      outs(%0 : tensor<4xf32>) at[0, 0, 0, 0] of[4, 6] scale(1.0) score {
  ^bb0(%s: f32, %b: index, %h: index, %r: index, %c: index):
    %e = tensor.extract %bias[%r, %c] : tensor<4x6xf32>
    %x = arith.addf %s, %e : f32
    flash.yield %x : f32
  }
  return
}

// -----

func.func @f(%q: tensor<4x8xf16>, %k: tensor<6x8xf16>, %rows: tensor<4xf32>, %bias: tensor<4x6xf32>, %0: tensor<4xf32>) {
  // expected-error @below {{has no read 0: the score region reads the tensor 0 times}}
  %1 = flash.captured_grad_step of(%bias : tensor<4x6xf32>) reads([0])
      ins(%q, %k, %k, %q, %rows, %rows : tensor<4x8xf16>, tensor<6x8xf16>, tensor<6x8xf16>, tensor<4x8xf16>, tensor<4xf32>, tensor<4xf32>)
      outs(%0 : tensor<4xf32>) at[0, 0, 0, 0] of[4, 6] scale(1.0)
  return
}

// -----

func.func @f(%q: tensor<4x8xf16>, %k: tensor<6x8xf16>, %rows: tensor<4xf32>, %bias: tensor<4x6xf32>, %0: tensor<6xf32>) {
  // expected-error @below {{the sum must have the shape 4 or 4x6, got 'tensor<6xf32>'}}
  %1 = flash.captured_grad_step of(%bias : tensor<4x6xf32>) reads([0])
      ins(%q, %k, %k, %q, %rows, %rows : tensor<4x8xf16>, tensor<6x8xf16>, tensor<6x8xf16>, tensor<4x8xf16>, tensor<4xf32>, tensor<4xf32>)
      outs(%0 : tensor<6xf32>) at[0, 0, 0, 0] of[4, 6] scale(1.0) score {
  ^bb0(%s: f32, %b: index, %h: index, %r: index, %c: index):
    %e = tensor.extract %bias[%r, %c] : tensor<4x6xf32>
    %x = arith.addf %s, %e : f32
    flash.yield %x : f32
  }
  return
}

// -----

func.func @f(%q: tensor<4x8xf16>, %k: tensor<6x8xf16>, %rows: tensor<4xf32>, %bias: tensor<4x6xf32>, %0: tensor<4x6xf32>) {
  // expected-error @below {{the sum must have the shape 6 or 6x4, got 'tensor<4x6xf32>'}}
  %1 = flash.captured_grad_step of(%bias : tensor<4x6xf32>) reads([0])
      ins(%q, %k, %k, %q, %rows, %rows : tensor<4x8xf16>, tensor<6x8xf16>, tensor<6x8xf16>, tensor<4x8xf16>, tensor<4xf32>, tensor<4xf32>)
      outs(%0 : tensor<4x6xf32>) at[0, 0, 0, 0] of[4, 6] over_queries scale(1.0) score {
  ^bb0(%s: f32, %b: index, %h: index, %r: index, %c: index):
    %e = tensor.extract %bias[%r, %c] : tensor<4x6xf32>
    %x = arith.addf %s, %e : f32
    flash.yield %x : f32
  }
  return
}

// -----

func.func @f(%q: tensor<2x4x300x16xf32>) {
  %t, %c = flash.block_map of[1, 1, 300, 300] tiles([64, 32]) : tensor<1x1x5x10xi32>, tensor<1x1x5x2xi32>
  // expected-error @below {{split_keys makes ranges of keys, and blocks are lists of tiles; write num_splits instead, with every n-th tile of a list in a split}}
  %o = flash.attention %q, %q, %q blocks(%t, %c : tensor<1x1x5x10xi32>, tensor<1x1x5x2xi32>) schedule(<query_tile = 64, key_tile = 32, split_keys = 128>)
      : (tensor<2x4x300x16xf32>, tensor<2x4x300x16xf32>, tensor<2x4x300x16xf32>) -> tensor<2x4x300x16xf32>
  return
}

// -----

!t = tensor<1x1x128x16xf32>
!l = tensor<1x1x128xf32>
!b = tensor<1x1x2x4xi32>
!n = tensor<1x1x2x2xi32>
func.func @map_of_keys(%q: !t, %l: !l) -> !t {
  %t, %c = flash.block_map of[1, 1, 128, 128] tiles([64, 32]) : !b, !n
  // expected-error @below {{query_blocks takes a map of tiles of queries, which a flash.block_map with over_queries makes}}
  %0, %1, %2 = flash.attention_grad %q, %q, %q, %q, %l, %q query_blocks(%t, %c : !b, !n)
      schedule(<query_tile = 64, key_tile = 32>) : (!t, !t, !t, !t, !l, !t) -> (!t, !t, !t)
  return %0 : !t
}

// -----

!t = tensor<1x1x128x16xf32>
!b = tensor<1x1x4x2xi32>
!n = tensor<1x1x4x2xi32>
func.func @map_of_queries(%q: !t) -> !t {
  %t, %c = flash.block_map of[1, 1, 128, 128] tiles([64, 32]) over_queries : !b, !n
  // expected-error @below {{blocks takes a map of tiles of keys, which a flash.block_map without over_queries makes}}
  %0 = flash.attention %q, %q, %q blocks(%t, %c : !b, !n) schedule(<query_tile = 64, key_tile = 32>) : (!t, !t, !t) -> !t
  return %0 : !t
}

// -----

!t = tensor<1x1x128x16xf32>
!l = tensor<1x1x128xf32>
!b = tensor<1x1x2x4xi32>
!n = tensor<1x1x2x2xi32>
func.func @grad_of_other_steps(%q: !t, %l: !l) -> !t {
  // expected-note @below {{the map is made here}}
  %t, %c = flash.block_map of[1, 1, 128, 128] tiles([64, 32]) : !b, !n
  // expected-error @below {{has blocks of another tile size: the schedule must say query_tile = 64, key_step = 32}}
  %0, %1, %2 = flash.attention_grad %q, %q, %q, %q, %l, %q blocks(%t, %c : !b, !n)
      schedule(<query_tile = 64, key_tile = 32, key_step = 16>) : (!t, !t, !t, !t, !l, !t) -> (!t, !t, !t)
  return %0 : !t
}

// -----

!t = tensor<1x1x128x16xf32>
!l = tensor<1x1x128xf32>
!b = tensor<1x1x4x2xi32>
!n = tensor<1x1x4x2xi32>
func.func @grad_of_other_query_steps(%q: !t, %l: !l) -> !t {
  // expected-note @below {{the map is made here}}
  %t, %c = flash.block_map of[1, 1, 128, 128] tiles([64, 32]) over_queries : !b, !n
  // expected-error @below {{has blocks of another tile size: the schedule must say query_step = 64, key_tile = 32}}
  %0, %1, %2 = flash.attention_grad %q, %q, %q, %q, %l, %q query_blocks(%t, %c : !b, !n)
      schedule(<query_tile = 64, key_tile = 32, query_step = 16>) : (!t, !t, !t, !t, !l, !t) -> (!t, !t, !t)
  return %0 : !t
}

// -----

!t = tensor<1x1x128x16xf32>
!l = tensor<1x1x128xf32>
!b = tensor<1x1x4x6xi32>
!n = tensor<1x1x4x2xi32>
func.func @grad_of_other_turns(%q: !t, %l: !l) -> !t {
  %t, %c, %ranks = flash.block_map of[1, 1, 128, 128] tiles([64, 32]) over_queries : !b, !n, !n
  %u, %d, %others = flash.block_map of[1, 1, 128, 128] tiles([64, 32]) over_queries : !b, !n, !n
  // expected-error @below {{query_blocks takes the ranks of its own flash.block_map}}
  %0, %1, %2 = flash.attention_grad %q, %q, %q, %q, %l, %q query_blocks(%t, %c, %others : !b, !n, !n)
      schedule(<query_tile = 64, key_tile = 32>) : (!t, !t, !t, !t, !l, !t) -> (!t, !t, !t)
  return %0 : !t
}

// -----

!t = tensor<1x1x128x16xf32>
!l = tensor<1x1x128xf32>
func.func @ranks_alone(%q: !t, %l: !l, %ranks: tensor<1x1x4x2xi32>) {
  // expected-error @below {{query_blocks takes the ranks of its own flash.block_map}}
  %0:3 = "flash.attention_grad"(%q, %q, %q, %q, %l, %q, %ranks) ({}) {operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0>, resultSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (!t, !t, !t, !t, !l, !t, tensor<1x1x4x2xi32>) -> (!t, !t, !t)
  return
}

// -----

func.func @given_ranks_alone(%ranks: tensor<1x1x4x2xi32>) {
  // expected-error @below {{a map that is given is tensors of the types of the results}}
  %0:3 = "flash.block_map"(%ranks) ({}) {operandSegmentSizes = array<i32: 0, 0, 0, 0, 1>, static_sizes = array<i64: 1, 1, 128, 128>, tiles = array<i64: 64, 32>, over_queries} : (tensor<1x1x4x2xi32>) -> (tensor<1x1x4x6xi32>, tensor<1x1x4x2xi32>, tensor<1x1x4x2xi32>)
  return
}

// -----

func.func @turns_of_queries() -> tensor<1x1x2x4xi32> {
  // expected-error @below {{ranks are of tiles of keys: write over_queries, or leave them out}}
  %t, %c, %ranks = flash.block_map of[1, 1, 128, 128] tiles([64, 32]) : tensor<1x1x2x4xi32>, tensor<1x1x2x2xi32>, tensor<1x1x2x4xi32>
  return %ranks : tensor<1x1x2x4xi32>
}

// -----

func.func @turns_of_other_type() -> tensor<1x1x4x3xi32> {
  // expected-error @below {{ranks must have type 'tensor<1x1x4x2xi32>', got 'tensor<1x1x4x3xi32>'}}
  %t, %c, %ranks = flash.block_map of[1, 1, 128, 128] tiles([64, 32]) over_queries : tensor<1x1x4x6xi32>, tensor<1x1x4x2xi32>, tensor<1x1x4x3xi32>
  return %ranks : tensor<1x1x4x3xi32>
}

// -----

func.func @lists_for_runs() -> tensor<1x1x4x2xi32> {
  // expected-error @below {{key_tiles must have type 'tensor<1x1x4x6xi32>', got 'tensor<1x1x4x2xi32>'}}
  %t, %c, %ranks = flash.block_map of[1, 1, 128, 128] tiles([64, 32]) over_queries : tensor<1x1x4x2xi32>, tensor<1x1x4x2xi32>, tensor<1x1x4x2xi32>
  return %ranks : tensor<1x1x4x2xi32>
}

// -----

func.func @given_without_turns(%t: tensor<1x1x4x6xi32>, %n: tensor<1x1x4x2xi32>) -> tensor<1x1x4x2xi32> {
  // expected-error @below {{a map that is given is tensors of the types of the results}}
  %0, %1, %2 = flash.block_map of[1, 1, 128, 128] tiles([64, 32]) over_queries given(%t, %n : tensor<1x1x4x6xi32>, tensor<1x1x4x2xi32>)
      : tensor<1x1x4x6xi32>, tensor<1x1x4x2xi32>, tensor<1x1x4x2xi32>
  return %2 : tensor<1x1x4x2xi32>
}

// -----

func.func @packed_lists_of_queries() -> tensor<1x1x4x2xi32> {
  // expected-error @below {{lists of queries are not packed: leave out packed or over_queries}}
  %t, %c = flash.block_map of[1, 2, 128, 128] tiles([64, 32]) packed(2) over_queries : tensor<1x1x4x2xi32>, tensor<1x1x4x2xi32>
  return %t : tensor<1x1x4x2xi32>
}

// -----

func.func @f(%q: tensor<4x8xf16>, %k: tensor<6x8xf16>, %v: tensor<6x16xf16>, %do: tensor<4x16xf16>, %shift: tensor<4xf32>, %delta: tensor<4xf32>, %dk: tensor<6x8xf32>, %dv: tensor<6x16xf32>, %dq: tensor<8x8xf32>) {
  // expected-error @below {{gradient of the query must have type 'tensor<8x4xf32>', got 'tensor<8x8xf32>'}}
  %0:3 = flash.key_grad_step ins(%q, %k, %v, %do, %shift, %delta : tensor<4x8xf16>, tensor<6x8xf16>, tensor<6x16xf16>, tensor<4x16xf16>, tensor<4xf32>, tensor<4xf32>)
      outs(%dk, %dv, %dq : tensor<6x8xf32>, tensor<6x16xf32>, tensor<8x8xf32>) at[0, 0, 0, 0] of[4, 6] scale(1.0)
  return
}

// -----

func.func @f(%q: tensor<4x8xf16>, %k: tensor<6x8xf16>, %v: tensor<6x16xf16>, %do: tensor<4x16xf16>, %shift: tensor<4xf32>, %delta: tensor<4xf32>, %dk: tensor<6x8xf32>, %dv: tensor<6x16xf32>) {
  // expected-error @below {{gives the gradients of scores beside that of the query alone}}
  %0:3 = flash.key_grad_step ins(%q, %k, %v, %do, %shift, %delta : tensor<4x8xf16>, tensor<6x8xf16>, tensor<6x16xf16>, tensor<4x16xf16>, tensor<4xf32>, tensor<4xf32>)
      outs(%dk, %dv : tensor<6x8xf32>, tensor<6x16xf32>) score_grads at[0, 0, 0, 0] of[4, 6] scale(1.0)
  return
}

// -----

func.func @f(%t: tensor<4x8xf32>, %to: tensor<2x12xf32>, %i: index) {
  // expected-error @below {{inserts a whole row, so it takes 1 indices, got 2}}
  %0 = flash.insert_diagonals %t into %to[%i, %i] : tensor<4x8xf32> into tensor<2x12xf32>
  return
}

// -----

func.func @f(%t: tensor<4x8xf32>, %to: tensor<2x11xf32>, %i: index) {
  // expected-error @below {{inserts a row of 12 sums, as many as its tile has rows and columns together, into 'tensor<2x11xf32>'}}
  %0 = flash.insert_diagonals %t into %to[%i] : tensor<4x8xf32> into tensor<2x11xf32>
  return
}

// -----

func.func @f(%t: tensor<4x8xf32>, %to: tensor<2x4x8xf32>, %i: index) {
  // expected-error @below {{sums of tiles have rank 5 (batches, heads, tiles, and the rows and columns of a tile), got rank 3}}
  %0 = flash.contribute %t to %to[%i, %i, %i] among(%i to %i) : tensor<4x8xf32> to tensor<2x4x8xf32>
  return
}

// -----

func.func @f(%t: tensor<4x8xf32>, %to: tensor<1x1x2x4x8xf32>, %i: index) {
  // expected-error @below {{the position of a tile is its batch, its head and its number, got 2 indices}}
  %0 = flash.contribute %t to %to[%i, %i] among(%i to %i) : tensor<4x8xf32> to tensor<1x1x2x4x8xf32>
  return
}

// -----

func.func @f(%t: tensor<4x8xf32>, %to: tensor<1x1x2x4x8xf32>, %i: index) {
  // expected-error @below {{needs either among or behind, which say which iterations add to the tile}}
  %0 = flash.contribute %t to %to[%i, %i, %i] among(%i to %i) behind(%i) : tensor<4x8xf32> to tensor<1x1x2x4x8xf32>
  return
}

// -----

func.func @f(%t: tensor<4x8xf32>, %to: tensor<1x1x2x4x8xf32>, %i: index) {
  // expected-error @below {{needs either among or behind, which say which iterations add to the tile}}
  %0 = flash.contribute %t to %to[%i, %i, %i] : tensor<4x8xf32> to tensor<1x1x2x4x8xf32>
  return
}

// -----

func.func @f(%t: tensor<4x8xf32>, %to: tensor<1x1x2x4x8xf32>, %i: index) {
  // expected-error @below {{needs either among or behind, which say which iterations add to the tile}}
  %0 = "flash.contribute"(%t, %to, %i, %i, %i, %i) {operandSegmentSizes = array<i32: 1, 1, 3, 1, 0, 0>} : (tensor<4x8xf32>, tensor<1x1x2x4x8xf32>, index, index, index, index) -> tensor<1x1x2x4x8xf32>
  return
}

// -----

func.func @f(%t: tensor<4x8xf32>, %to: tensor<1x1x2x8x4xf32>, %i: index) {
  // expected-error @below {{tile must have type 'tensor<8x4xf32>', got 'tensor<4x8xf32>'}}
  %0 = flash.contribute %t to %to[%i, %i, %i] among(%i to %i) : tensor<4x8xf32> to tensor<1x1x2x8x4xf32>
  return
}

// -----

func.func @f(%to: tensor<1x1x2x8x4xf32>, %n: tensor<1x1x1xi32>) {
  // expected-error @below {{counts must have type 'tensor<1x1x2xi32>', got 'tensor<1x1x1xi32>'}}
  flash.parallel_add %to to %to counting %n : tensor<1x1x2x8x4xf32>, tensor<1x1x1xi32>
  return
}

// -----

func.func @f(%to: tensor<1x1x2x8x4xf32>, %n: tensor<1x1x2xi32>) {
  // expected-error @below {{stands in flash.store, or in the terminator of an scf.forall, alone}}
  flash.parallel_add %to to %to counting %n : tensor<1x1x2x8x4xf32>, tensor<1x1x2xi32>
  return
}

// -----

// expected-error @below {{products must be 5 or 7, got 6}}
func.func private @f() attributes {flash.schedule = #flash.schedule<products = 6>}

// -----

// expected-error @below {{products = 5 makes one program, and key_programs = 2 makes several; leave out one of the keys}}
func.func private @f() attributes {flash.schedule = #flash.schedule<products = 5, key_programs = 2>}

// -----

// What was parsed before must not use a value of the region, which goes where
// the rest of the operation is malformed.
!q = tensor<1x1x8x8xf16>
func.func @f(%q: !q, %n: index) -> !q {
  // expected-error @below {{uses a value of a region that it is not in}}
  %x = arith.addi %i, %n : index
  %o = flash.attention %q, %q, %q score {
  // expected-note @below {{the value}}
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    flash.yield %s : f32
  } : (q, !q, !q) -> !q
  return %o : !q
}

// -----

func.func @f(%n: index) -> (tensor<1x1x1x1xi32>, tensor<1x1x1xi32>) {
  // expected-error @below {{uses a value of a region that it is not in}}
  %x = arith.addi %later, %n : index
  %tiles, %counts = flash.block_map of[1, 1, 64, 64] tiles([64, 64]) keep {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    // expected-note @below {{the value}}
    %later = arith.addi %i, %j : index
    %keep = arith.cmpi eq, %later, %n : index
    flash.yield %keep : i1
  } : tensor<1x1x1x1xi32>, nonsense
  return %tiles, %counts : tensor<1x1x1x1xi32>, tensor<1x1x1xi32>
}

// -----

// A region of which a second block is malformed.
!q = tensor<1x1x8x8xf16>
func.func @f(%q: !q, %n: index) -> !q {
  %x = arith.addi %i, %n : index
  %o = flash.attention %q, %q, %q score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    flash.yield %s : f32
  // expected-error @below {{expected non-function type}}
  ^bb1(%y: nonsense):
  } : (!q, !q, !q) -> !q
  return %o : !q
}

// -----

!t = tensor<2x4x300x16xf32>
!l = tensor<1x1x3x5xi32>
!n = tensor<1x1x3x2xi32>
func.func @f(%q: !t, %l: !l, %n: !n) {
  // expected-error @below {{blocks are of two positive numbers, of queries and of keys, got [128]}}
  %o = flash.attention %q, %q, %q blocks(%l, %n : !l, !n) of [128] : (!t, !t, !t) -> !t
  return
}

// -----

!t = tensor<2x4x300x16xf32>
!l = tensor<1x1x3x5xi32>
!n = tensor<1x1x3x2xi32>
func.func @f(%q: !t, %l: !l, %n: !n) {
  // expected-error @below {{blocks are of two positive numbers, of queries and of keys, got [128, 0]}}
  %o = flash.attention %q, %q, %q blocks(%l, %n : !l, !n) of [128, 0] : (!t, !t, !t) -> !t
  return
}

// -----

!t = tensor<2x4x300x16xf32>
func.func @f(%q: !t) {
  // expected-error @below {{has sizes of blocks, and needs blocks, which list the blocks}}
  %o = flash.attention %q, %q, %q of [128, 128] : (!t, !t, !t) -> !t
  return
}

// -----

!t = tensor<4x300x16xf32>
!l = tensor<1x1x3x5xi32>
!n = tensor<1x1x3x2xi32>
func.func @f(%q: !t, %l: !l, %n: !n) {
  // expected-error @below {{blocks are for operands of rank 4}}
  %o = flash.attention %q, %q, %q blocks(%l, %n : !l, !n) of [128, 128] : (!t, !t, !t) -> !t
  return
}

// -----

!t = tensor<2x4x300x16xf32>
!l = tensor<1x3x3x5xi32>
!n = tensor<1x3x3x2xi32>
func.func @f(%q: !t, %l: !l, %n: !n) {
  // expected-error @below {{blocks are of 3 heads, and there are 4; 1 serves all}}
  %o = flash.attention %q, %q, %q blocks(%l, %n : !l, !n) of [128, 128] : (!t, !t, !t) -> !t
  return
}

// -----

!t = tensor<2x4x300x16xf32>
!l = tensor<1x1x3x5xi32>
!n = tensor<1x1x3x2xi32>
func.func @f(%q: !t, %l: !l, %n: !n) {
  // expected-error @below {{blocks are of 3 blocks of queries, and there are 5}}
  %o = flash.attention %q, %q, %q blocks(%l, %n : !l, !n) of [64, 128] : (!t, !t, !t) -> !t
  return
}

// -----

!t = tensor<2x4x300x16xf32>
!l = tensor<1x1x3x5xi32>
!n = tensor<1x1x3x3xi32>
func.func @f(%q: !t, %l: !l, %n: !n) {
  // expected-error @below {{blocks have two counts, of the blocks that are listed in part and of all, got 3}}
  %o = flash.attention %q, %q, %q blocks(%l, %n : !l, !n) of [128, 128] : (!t, !t, !t) -> !t
  return
}

// -----

!t = tensor<2x4x300x16xf32>
!l = tensor<1x1x3x5xi32>
!n = tensor<1x4x3x2xi32>
func.func @f(%q: !t, %l: !l, %n: !n) {
  // expected-error @below {{blocks and their counts differ: 'tensor<1x1x3x5xi32>' and 'tensor<1x4x3x2xi32>'}}
  %o = flash.attention %q, %q, %q blocks(%l, %n : !l, !n) of [128, 128] : (!t, !t, !t) -> !t
  return
}

// -----

!t = tensor<2x4x300x16xf32>
!s = tensor<2x4x300xf32>
!l = tensor<1x1x3x5xi32>
!n = tensor<1x1x3x2xi32>
func.func @f(%q: !t, %lse: !s, %l: !l, %n: !n) {
  // expected-error @below {{has sizes of blocks, and needs query_blocks, which list the blocks}}
  %dq, %dk, %dv = flash.attention_grad %q, %q, %q, %q, %lse, %q blocks(%l, %n : !l, !n) of [128, 128] : (!t, !t, !t, !t, !s, !t) -> (!t, !t, !t)
  return
}

// -----

!t = tensor<2x4x300x16xf32>
!s = tensor<2x4x300xf32>
!l = tensor<1x1x3x5xi32>
!n = tensor<1x1x3x2xi32>
func.func @f(%q: !t, %lse: !s, %l: !l, %n: !n) {
  // expected-error @below {{query_blocks are of 3 blocks of keys, and there are 5}}
  %dq, %dk, %dv = flash.attention_grad %q, %q, %q, %q, %lse, %q blocks(%l, %n : !l, !n) query_blocks(%l, %n : !l, !n) of [128, 64] : (!t, !t, !t, !t, !s, !t) -> (!t, !t, !t)
  return
}

// -----

!t = tensor<2x4x300x16xf32>
!s = tensor<2x4x300xf32>
!l = tensor<1x1x3x5xi32>
!n = tensor<1x1x3x2xi32>
func.func @f(%q: !t, %lse: !s, %l: !l, %n: !n) {
  // expected-error @below {{lists of blocks that are given have no ranks}}
  %dq, %dk, %dv = flash.attention_grad %q, %q, %q, %q, %lse, %q blocks(%l, %n : !l, !n) query_blocks(%l, %n, %l : !l, !n, !l) of [128, 128] : (!t, !t, !t, !t, !s, !t) -> (!t, !t, !t)
  return
}
