!q = tensor<?x?x?x32xf16>
func.func @attention(%q: !q, %k: !q) -> !q {
  %o = flash.attention %q, %k, %k : (!q, !q, !q) -> !q
  return %o : !q
}
