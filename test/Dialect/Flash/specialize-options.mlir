// Sizes that are none.
// RUN: not flash-opt %s --flash-specialize="sizes=2x-1x64" 2>&1 | FileCheck %s
// RUN: not flash-opt %s --flash-specialize="sizes=2xx64" 2>&1 | FileCheck %s

// CHECK: 'func.func' op cannot be specialized: '2x{{.*}}' are no sizes; write them as 2x8x?x64, with ? for what stays open
func.func @f(%q: tensor<?x?x64xf32>) -> tensor<?x?x64xf32> {
  %o = flash.attention %q, %q, %q : (tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>) -> tensor<?x?x64xf32>
  return %o : tensor<?x?x64xf32>
}
