// What docs/schedules.md shows between passes: f16, D = 256.
func.func @attention(%q: tensor<4x8x4096x256xf16>, %k: tensor<4x8x4096x256xf16>, %v: tensor<4x8x4096x256xf16>) -> tensor<4x8x4096x256xf16> {
  %o = flash.attention %q, %k, %v schedule(<query_tile = 128, key_tile = 64, features = specialize_warps|overlap|ping_pong|lazy_rescale|persistent|bulk_store>)
      : (tensor<4x8x4096x256xf16>, tensor<4x8x4096x256xf16>, tensor<4x8x4096x256xf16>) -> tensor<4x8x4096x256xf16>
  return %o : tensor<4x8x4096x256xf16>
}
