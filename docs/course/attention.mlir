// One head: 256 queries see 512 keys.
!q = tensor<1x1x256x64xf16>
!k = tensor<1x1x512x64xf16>
func.func @attention(%q: !q, %k: !k, %v: !k) -> !q {
  %o = flash.attention %q, %k, %v : (!q, !k, !k) -> !q
  return %o : !q
}
