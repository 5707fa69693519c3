// Two tiles of queries and two of keys, 256 columns of f32 wide, have to fit into shared memory where gradients of a captured
// tensor are added up: 64 rows each do not.
// RUN: flash-run %s --target=emulate:sm_90a --schedule=query_tile=64,key_tile=16 --check
!t = tensor<1x1x32x256xf32>
!lse = tensor<1x1x32xf32>
func.func @gradients(%q: !t, %k: !t, %v: !t, %o: !t, %lse: !lse, %do: !t, %c: tensor<1xf32>) -> (!t, !t, !t, tensor<1xf32>) {
  %dq, %dk, %dv, %dc = flash.attention_grad %q, %k, %v, %o, %lse, %do
      wrt(%c : tensor<1xf32>)
      score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %c[%h] : tensor<1xf32>
    %y = arith.addf %s, %x : f32
    flash.yield %y : f32
  } : (!t, !t, !t, !t, !lse, !t) -> (!t, !t, !t, tensor<1xf32>)
  return %dq, %dk, %dv, %dc : !t, !t, !t, tensor<1xf32>
}
