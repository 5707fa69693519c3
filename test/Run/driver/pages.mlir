// Inputs in pages: tables name each page once, and no page behind a sequence's last one; rows of no sequence are NaN, and no other.
// RUN: flash-run %s --target=cpu --fill 2=20@0 --fill 2=0@1 --fill 2=33@2 --outputs=%t.cache.npy,%t.view.npy,%t.table.npy
// RUN: %python -c "import numpy as np; cache, view, table = (np.load('%t.' + n + '.npy') for n in ('cache', 'view', 'table')); \
// RUN:   assert np.isfinite(cache).all(axis=(1, 3)).sum() == 53 and np.isnan(cache).all(axis=(1, 3)).sum() == 40 * 16 - 53, cache; \
// RUN:   assert np.isfinite(view).all() and all((view[b, :, n - 1] != 0).all() and not view[b, :, n:].any() for b, n in ((0, 20), (2, 33))), view; \
// RUN:   assert [(row >= 0).sum() for row in table] == [2, 0, 3] and len(set(table[table >= 0])) == 5 and set(table[1]) == {-1}, table"
// A seed gives the same inputs, another one others.
// RUN: flash-run %s --target=cpu --seed 1 --outputs=%t.cache.npy,%t.view.npy,%t.1.npy && flash-run %s --target=cpu --seed 1 --outputs=%t.cache.npy,%t.view.npy,%t.2.npy
// RUN: cmp %t.1.npy %t.2.npy && not cmp %t.1.npy %t.table.npy
func.func @pages(%cache: tensor<40x2x16x8xf32>, %table: tensor<3x4xi32>, %n: tensor<3xi32>) -> (tensor<40x2x16x8xf32>, tensor<3x2x64x8xf32>, tensor<3x4xi32>) {
  %view = flash.unpage %cache by %table lengths(%n : tensor<3xi32>) : tensor<40x2x16x8xf32>, tensor<3x4xi32> -> tensor<3x2x64x8xf32>
  %twice = arith.addf %cache, %cache : tensor<40x2x16x8xf32>
  %zero = arith.constant dense<0> : tensor<3x4xi32>
  %same = arith.addi %table, %zero : tensor<3x4xi32>
  %rows = arith.addf %view, %view : tensor<3x2x64x8xf32>
  return %twice, %rows, %same : tensor<40x2x16x8xf32>, tensor<3x2x64x8xf32>, tensor<3x4xi32>
}
