// The length of splits: what decides the bits of a row is written, or left out by the model.
// RUN: flash-opt %s --flash-attach-target=target=sm_90a --flash-select-schedule="schedule=key_tile=64,split_keys=512" | FileCheck %s
// RUN: flash-opt %s --flash-attach-target=target=sm_90a --flash-select-schedule="schedule=key_tile=64,split_keys=512,features=specialize_warps|lazy_rescale" | FileCheck %s --check-prefix=LAZY
// RUN: flash-opt %s --flash-select-schedule="schedule=key_tile=64,split_keys=512" | FileCheck %s --check-prefix=CPU
// RUN: flash-opt %s --flash-attach-target=target=emulate --flash-select-schedule="schedule=key_tile=64,split_keys=512" | FileCheck %s --check-prefix=EMULATE
// RUN: not flash-opt %s --flash-attach-target=target=sm_90a --flash-select-schedule="schedule=split_keys=512" 2>&1 | FileCheck %s --check-prefix=TILE
// RUN: flash-opt %s --flash-attach-target=target=sm_90a --flash-specialize="sizes=1x8x1x64,1x2x9000x64 schedule=key_tile=64,split_keys=512" | FileCheck %s --check-prefix=VERSION

// CHECK: schedule(<query_tile = {{[0-9]+}}, key_tile = 64,
// CHECK-NOT: lazy_rescale
// CHECK-SAME: split_keys = 512>)
// LAZY: features = specialize_warps|lazy_rescale, split_keys = 512>)
// CPU: schedule(<query_tile = {{[0-9]+}}, key_tile = 64>)
// EMULATE: schedule(<query_tile = {{[0-9]+}}, key_tile = 64, split_keys = 512>)
// TILE: cannot be scheduled: split_keys needs key_tile, on which the bits of a row depend, too
// VERSION: tensor<?x8x1x64xf16>
// VERSION: key_tile = 64, packed_heads = 4,
// VERSION-NOT: lazy_rescale
// VERSION-SAME: split_keys = 512>)
func.func @f(%q: tensor<?x?x?x64xf16>, %k: tensor<?x?x?x64xf16>) -> tensor<?x?x?x64xf16> {
  %o = flash.attention %q, %k, %k : (tensor<?x?x?x64xf16>, tensor<?x?x?x64xf16>, tensor<?x?x?x64xf16>) -> tensor<?x?x?x64xf16>
  return %o : tensor<?x?x?x64xf16>
}
