// A padded batch with a mask, all of whose sizes but those of the heads' elements are open.
func.func @attention(%q: tensor<?x?x?x64xf16>, %k: tensor<?x?x?x64xf16>, %v: tensor<?x?x?x48xf16>, %n: tensor<?xi32>)
    -> (tensor<?x?x?x48xf16>, tensor<?x?x?xf32>) {
  %o, %l = flash.attention %q, %k, %v mask(#flash.causal) lengths(%n : tensor<?xi32>)
      : (tensor<?x?x?x64xf16>, tensor<?x?x?x64xf16>, tensor<?x?x?x48xf16>) -> (tensor<?x?x?x48xf16>, tensor<?x?x?xf32>)
  return %o, %l : tensor<?x?x?x48xf16>, tensor<?x?x?xf32>
}
