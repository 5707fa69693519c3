// A map that one function computes and another is given, for another query; of other sizes it is refused.
// RUN: %python -c "import numpy as np; r = np.random.default_rng(0); s = lambda name, x: np.save('%t-' + name, x); s('ids', r.integers(0, 3, 300).astype('i4')); s('more', np.zeros(400, 'i4')); s('q', r.standard_normal((2, 4, 300, 64)).astype('f2')); s('longer', np.zeros((2, 4, 400, 64), 'f2'))"
// RUN: flash-run %s --function=plan --target=cpu --inputs=%t-ids.npy --outputs=%t-tiles.npy,%t-counts.npy
// RUN: flash-run %s --function=use --target=cpu --check --inputs=%t-q.npy,%t-ids.npy,%t-tiles.npy,%t-counts.npy | FileCheck %s
// RUN: flash-run %s --function=use --target=emulate --check --inputs=%t-q.npy,%t-ids.npy,%t-tiles.npy,%t-counts.npy | FileCheck %s
// RUN: flash-run %s --function=use --target=emulate:sm_90a --check --inputs=%t-q.npy,%t-ids.npy,%t-tiles.npy,%t-counts.npy | FileCheck %s
// CHECK: check: ok
// RUN: not flash-run %s --function=use --target=cpu --inputs=%t-longer.npy,%t-more.npy,%t-tiles.npy,%t-counts.npy 2>&1 | FileCheck %s --check-prefix=SIZE
// SIZE: flash.block_map at {{.*}}given.mlir:{{.*}}: the map that is given is of another number of tiles of queries

!t = tensor<2x4x?x64xf16>

func.func @plan(%ids: tensor<?xi32>) -> (tensor<1x1x?x?xi32>, tensor<1x1x?x2xi32>) {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %ids, %c0 : tensor<?xi32>
  %tiles, %counts = flash.block_map of[1, 1, %n, %n] tiles([64, 64]) keep {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %ids[%i] : tensor<?xi32>
    %y = tensor.extract %ids[%j] : tensor<?xi32>
    %less = arith.cmpi sle, %x, %y : i32
    flash.yield %less : i1
  } : tensor<1x1x?x?xi32>, tensor<1x1x?x2xi32>
  return %tiles, %counts : tensor<1x1x?x?xi32>, tensor<1x1x?x2xi32>
}

func.func @use(%q: !t, %ids: tensor<?xi32>, %given: tensor<1x1x?x?xi32>, %of: tensor<1x1x?x2xi32>) -> !t {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %ids, %c0 : tensor<?xi32>
  %tiles, %counts = flash.block_map of[1, 1, %n, %n] tiles([64, 64])
      given(%given, %of : tensor<1x1x?x?xi32>, tensor<1x1x?x2xi32>) keep {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %ids[%i] : tensor<?xi32>
    %y = tensor.extract %ids[%j] : tensor<?xi32>
    %less = arith.cmpi sle, %x, %y : i32
    flash.yield %less : i1
  } : tensor<1x1x?x?xi32>, tensor<1x1x?x2xi32>
  %o = flash.attention %q, %q, %q blocks(%tiles, %counts : tensor<1x1x?x?xi32>, tensor<1x1x?x2xi32>)
      schedule(<query_tile = 64, key_tile = 64>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %ids[%i] : tensor<?xi32>
    %y = tensor.extract %ids[%j] : tensor<?xi32>
    %less = arith.cmpi sle, %x, %y : i32
    flash.yield %s keep %less : f32
  } : (!t, !t, !t) -> !t
  return %o : !t
}
