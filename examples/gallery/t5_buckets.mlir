// T5: a learned bias for each bucket of distances, which are exact up to 8 and
// then by the logarithm.
func.func @attention(%q: tensor<1x4x128x32xf32>, %k: tensor<1x4x128x32xf32>,
                     %v: tensor<1x4x128x32xf32>, %table: tensor<16x4xf32>) -> tensor<1x4x128x32xf32> {
  %o = flash.attention %q, %k, %v mask(#flash.causal) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %exact = arith.constant 8 : index
    %most = arith.constant 7 : index
    %eight = arith.constant 8.0 : f32
    %factor = arith.constant 2.8853896 : f32
    %difference = arith.subi %i, %j : index
    %distance = arith.maxsi %difference, %zero : index
    %positive = arith.maxsi %distance, %one : index
    %integer = arith.index_cast %positive : index to i32
    %number = arith.sitofp %integer : i32 to f32
    %ratio = arith.divf %number, %eight : f32
    %log = math.log %ratio : f32
    %scaled = arith.mulf %log, %factor : f32
    %truncated = arith.fptosi %scaled : f32 to i32
    %steps = arith.index_cast %truncated : i32 to index
    %limited = arith.minsi %steps, %most : index
    %far = arith.addi %limited, %exact : index
    %is_near = arith.cmpi slt, %distance, %exact : index
    %bucket = arith.select %is_near, %distance, %far : index
    %bias = tensor.extract %table[%bucket, %h] : tensor<16x4xf32>
    %r = arith.addf %s, %bias : f32
    flash.yield %r : f32
  } : (tensor<1x4x128x32xf32>, tensor<1x4x128x32xf32>, tensor<1x4x128x32xf32>) -> tensor<1x4x128x32xf32>
  return %o : tensor<1x4x128x32xf32>
}
