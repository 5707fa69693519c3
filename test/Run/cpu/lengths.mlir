// Random lengths lie between 0 and the number of keys, and are taken off the
// work: with the full mask, at most 2 * (8 + 8) * 64 * 2 * 10 * 20 operations.
// RUN: flash-run --target=cpu %s --check --bench --json=%t.json | FileCheck %s
// RUN: %python -c "import json; r = json.load(open(r'%t.json')); flops = r['bench']['tflops'] * r['bench']['median_ms'] * 1e9; assert 0 < flops < 2 * 16 * 64 * 2 * 10 * 20 and round(flops) % (2 * 16 * 2 * 10) == 0, flops"
// CHECK: check: ok
func.func @attention(%q: tensor<64x2x10x8xf32>, %k: tensor<64x2x20x8xf32>, %v: tensor<64x2x20x8xf32>, %n: tensor<64xi32>) -> tensor<64x2x10x8xf32> {
  %o = flash.attention %q, %k, %v lengths(%n : tensor<64xi32>)
      : (tensor<64x2x10x8xf32>, tensor<64x2x20x8xf32>, tensor<64x2x20x8xf32>) -> tensor<64x2x10x8xf32>
  return %o : tensor<64x2x10x8xf32>
}
