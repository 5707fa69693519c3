// Numbers that 32 bits do not hold: products of distances, and integers of 64 bits and without a sign.
!t = tensor<1x1x300x16xf16>

func.func @wide(%q: !t, %k: !t, %v: !t, %ids: tensor<300xi64>, %ends: tensor<300xi32>) -> !t {
  %o = flash.attention %q, %k, %v mask(#flash.window<left = 290>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %d = arith.subi %i, %j : index
    %x = arith.muli %d, %d : index
    %y = arith.muli %x, %x : index
    %scale = arith.constant 3000000000 : index
    %quotient = arith.divsi %y, %scale : index
    %low = arith.index_cast %quotient : index to i32
    %f = arith.sitofp %low : i32 to f32
    %r = arith.addf %s, %f : f32
    %id = tensor.extract %ids[%j] : tensor<300xi64>
    %end = tensor.extract %ends[%i] : tensor<300xi32>
    %c35 = arith.constant 35 : i64
    %shifted = arith.shli %id, %c35 : i64
    %left = arith.index_cast %shifted : i64 to index
    %right = arith.index_castui %end : i32 to index
    %keep = arith.cmpi slt, %left, %right : index
    flash.yield %r keep %keep : f32
  } : (!t, !t, !t) -> !t
  return %o : !t
}
