// Programs that can have no versions.
// RUN: flash-opt %s --flash-attach-target=target=sm_80 --flash-make-versions="calls=2x8x1x64,2x8x300x64" --split-input-file --verify-diagnostics

// expected-error @below {{cannot have versions: it has no flash.attention}}
func.func @none(%q: tensor<?x8x?x64xf32>, %k: tensor<?x8x?x64xf32>) -> tensor<?x8x?x64xf32> {
  return %q : tensor<?x8x?x64xf32>
}

// -----

func.func @computed(%q: tensor<?x8x?x64xf32>, %k: tensor<?x8x?x64xf32>, %n: index) -> tensor<?x8x?x64xf32> {
  %some = tensor.extract_slice %k[0, 0, 0, 0] [2, 8, %n, 64] [1, 1, 1, 1] : tensor<?x8x?x64xf32> to tensor<2x8x?x64xf32>
  // expected-error @below {{cannot have versions: its number of keys is that of a tensor that is computed}}
  %o = flash.attention %q, %some, %some : (tensor<?x8x?x64xf32>, tensor<2x8x?x64xf32>, tensor<2x8x?x64xf32>) -> tensor<?x8x?x64xf32>
  return %o : tensor<?x8x?x64xf32>
}

// -----

// expected-error @below {{cannot have versions: it has branches}}
func.func @branches(%q: tensor<?x8x?x64xf32>, %k: tensor<?x8x?x64xf32>) -> tensor<?x8x?x64xf32> {
  cf.br ^bb1
^bb1:
  return %q : tensor<?x8x?x64xf32>
}

// -----

func.func @schedule(%q: tensor<?x8x?x64xf32>, %k: tensor<?x8x?x64xf32>) -> tensor<?x8x?x64xf32> {
  // expected-error @below {{cannot be scheduled: }}
  %o = flash.attention %q, %k, %k schedule(<query_tile = 24, key_tile = 32>)
      : (tensor<?x8x?x64xf32>, tensor<?x8x?x64xf32>, tensor<?x8x?x64xf32>) -> tensor<?x8x?x64xf32>
  return %o : tensor<?x8x?x64xf32>
}

// -----

// expected-error @below {{cannot have versions for the call '2x8x1x64,2x8x300x64': it says 2 of the batch size, which is 3}}
func.func @known(%q: tensor<?x8x?x64xf32>, %k: tensor<?x8x?x64xf32>) -> tensor<3x8x?x64xf32> {
  %three = tensor.cast %q : tensor<?x8x?x64xf32> to tensor<3x8x?x64xf32>
  %o = flash.attention %three, %k, %k : (tensor<3x8x?x64xf32>, tensor<?x8x?x64xf32>, tensor<?x8x?x64xf32>) -> tensor<3x8x?x64xf32>
  return %o : tensor<3x8x?x64xf32>
}
