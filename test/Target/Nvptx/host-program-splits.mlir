// One program for all sizes: the number of splits of the keys is arithmetic of the
// host, and the kernel that combines is not launched where there is one.
// RUN: split-file %s %t
// RUN: flash-opt %t/program.mlir --flash-gpu=target=sm_80 | host-program-opt --test-host-program=calls=%t/calls -o /dev/null | FileCheck %s

// Two query tiles and 64 key tiles: 20 splits of the keys.
// CHECK-LABEL: {{^}}1x1x200x64
// CHECK-NEXT:  result 1:12800 1:12800 200:64 64:1
// CHECK-NEXT:  workspace 1040128
// CHECK-NEXT:  launch attention 40 1 1 128 1 1
// CHECK-NEXT:  launch attention_0 25 1 1 128 1 1

// Few keys.
// CHECK-LABEL: {{^}}1x1x200x64
// CHECK-NEXT:  result
// CHECK-NEXT:  workspace 0
// CHECK-NEXT:  launch attention 2 1 1 128 1 1
// CHECK-NOT:   launch

// Many query tiles.
// CHECK-LABEL: {{^}}4x8x200x64
// CHECK-NEXT:  result
// CHECK-NEXT:  workspace 0
// CHECK-NEXT:  launch attention 64 1 1 128 1 1
// CHECK-NOT:   launch

// No query, so no CTA.
// CHECK-LABEL: {{^}}1x1x0x64
// CHECK-NEXT:  result
// CHECK-NOT:   launch

//--- calls
1x1x200x64 1x1x2048x64 1x1x2048x64
1x1x200x64 1x1x224x64 1x1x224x64
4x8x200x64 4x8x2048x64 4x8x2048x64
1x1x0x64 1x1x2048x64 1x1x2048x64
//--- program.mlir
func.func @attention(%q: tensor<?x?x?x64xf16>, %k: tensor<?x?x?x64xf16>, %v: tensor<?x?x?x64xf16>) -> tensor<?x?x?x64xf16> {
  %o = flash.attention %q, %k, %v schedule(<query_tile = 128, key_tile = 32, split_ctas = 41>)
      : (tensor<?x?x?x64xf16>, tensor<?x?x?x64xf16>, tensor<?x?x?x64xf16>) -> tensor<?x?x?x64xf16>
  return %o : tensor<?x?x?x64xf16>
}
