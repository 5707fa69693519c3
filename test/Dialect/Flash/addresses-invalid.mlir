// RUN: flash-opt %s --split-input-file --verify-diagnostics

func.func @unpack(%x: tensor<2x4x9x8xf16>, %o: tensor<3xi32>) {
  // expected-error @below {{rows that lie behind each other are [1, H, T, D] or [1, H, T], got 'tensor<2x4x9x8xf16>'}}
  %0:2 = flash.unpack %x by %o : tensor<2x4x9x8xf16>, tensor<3xi32> -> tensor<2x4x9x8xf16>, tensor<2xi32>
  return
}

// -----

func.func @unpack(%x: tensor<1x4x9x8xf16>, %o: tensor<0xi32>) {
  // expected-error @below {{offsets have one element more than there are sequences, got 'tensor<0xi32>'}}
  %0:2 = flash.unpack %x by %o : tensor<1x4x9x8xf16>, tensor<0xi32> -> tensor<0x4x9x8xf16>, tensor<0xi32>
  return
}

// -----

func.func @unpack(%x: tensor<1x4x9x8xf16>, %o: tensor<3xi32>) {
  // expected-error @below {{the view of 'tensor<1x4x9x8xf16>' by 'tensor<3xi32>' is 'tensor<2x4x9x8xf16>', got 'tensor<3x4x9x8xf16>'}}
  %0:2 = flash.unpack %x by %o : tensor<1x4x9x8xf16>, tensor<3xi32> -> tensor<3x4x9x8xf16>, tensor<3xi32>
  return
}

// -----

func.func @unpack(%x: tensor<1x4x9x8xf16>, %o: tensor<3xi32>) {
  // expected-error @below {{has a length for each sequence of 'tensor<2x4x9x8xf16>', got 'tensor<3xi32>'}}
  %0:2 = flash.unpack %x by %o : tensor<1x4x9x8xf16>, tensor<3xi32> -> tensor<2x4x9x8xf16>, tensor<3xi32>
  return
}

// -----

func.func @pack(%x: tensor<2x4x9x8xf16>, %o: tensor<3xi32>, %to: tensor<1x4x7x8xf16>) {
  // expected-error @below {{the view of 'tensor<1x4x7x8xf16>' by 'tensor<3xi32>' is 'tensor<2x4x7x8xf16>', got 'tensor<2x4x9x8xf16>'}}
  %0 = flash.pack %x by %o into %to : tensor<2x4x9x8xf16>, tensor<3xi32> into tensor<1x4x7x8xf16>
  return
}

// -----

func.func @lengths(%q: tensor<1x4x9x8xf16>, %k: tensor<2x4x9x8xf16>, %o: tensor<3xi32>) {
  %qs, %n = flash.unpack %q by %o : tensor<1x4x9x8xf16>, tensor<3xi32> -> tensor<2x4x9x8xf16>, tensor<2xi32>
  // expected-error @below {{takes rows of flash.unpack, and needs query_lengths that are the lengths of the same offsets}}
  %0 = flash.attention %qs, %k, %k : (tensor<2x4x9x8xf16>, tensor<2x4x9x8xf16>, tensor<2x4x9x8xf16>) -> tensor<2x4x9x8xf16>
  return
}

// -----

func.func @lengths(%q: tensor<2x4x9x8xf16>, %k: tensor<1x4x9x8xf16>, %o: tensor<3xi32>, %other: tensor<3xi32>) {
  %ks, %n = flash.unpack %k by %o : tensor<1x4x9x8xf16>, tensor<3xi32> -> tensor<2x4x9x8xf16>, tensor<2xi32>
  %vs, %m = flash.unpack %k by %other : tensor<1x4x9x8xf16>, tensor<3xi32> -> tensor<2x4x9x8xf16>, tensor<2xi32>
  // expected-error @below {{takes rows of flash.unpack, and needs key_lengths that are the lengths of the same offsets}}
  %0 = flash.attention %q, %ks, %vs key_lengths(%n : tensor<2xi32>) : (tensor<2x4x9x8xf16>, tensor<2x4x9x8xf16>, tensor<2x4x9x8xf16>) -> tensor<2x4x9x8xf16>
  return
}

// -----

func.func @packed(%q: tensor<1x4x9x8xf16>, %o: tensor<3xi32>, %other: tensor<3xi32>) {
  %qs, %n = flash.unpack %q by %o : tensor<1x4x9x8xf16>, tensor<3xi32> -> tensor<2x4x9x8xf16>, tensor<2xi32>
  %0 = flash.attention %qs, %qs, %qs query_lengths(%n : tensor<2xi32>) key_lengths(%n : tensor<2xi32>)
      : (tensor<2x4x9x8xf16>, tensor<2x4x9x8xf16>, tensor<2x4x9x8xf16>) -> tensor<2x4x9x8xf16>
  // expected-error @below {{packs a result of flash.attention, which needs query_lengths that are the lengths of the same offsets}}
  %1 = flash.pack %0 by %other into %q : tensor<2x4x9x8xf16>, tensor<3xi32> into tensor<1x4x9x8xf16>
  return
}

// -----

func.func @packed_grad(%q: tensor<2x4x9x8xf16>, %k: tensor<1x4x9x8xf16>, %o: tensor<3xi32>, %lse: tensor<2x4x9xf32>) {
  %ks, %n = flash.unpack %k by %o : tensor<1x4x9x8xf16>, tensor<3xi32> -> tensor<2x4x9x8xf16>, tensor<2xi32>
  %0:3 = flash.attention_grad %q, %ks, %ks, %q, %lse, %q key_lengths(%n : tensor<2xi32>)
      : (tensor<2x4x9x8xf16>, tensor<2x4x9x8xf16>, tensor<2x4x9x8xf16>, tensor<2x4x9x8xf16>, tensor<2x4x9xf32>, tensor<2x4x9x8xf16>)
      -> (tensor<2x4x9x8xf16>, tensor<2x4x9x8xf16>, tensor<2x4x9x8xf16>)
  %1 = flash.pack %0#1 by %o into %k : tensor<2x4x9x8xf16>, tensor<3xi32> into tensor<1x4x9x8xf16>
  // expected-error @below {{packs a result of flash.attention_grad, which needs query_lengths that are the lengths of the same offsets}}
  %2 = flash.pack %0#0 by %o into %k : tensor<2x4x9x8xf16>, tensor<3xi32> into tensor<1x4x9x8xf16>
  return
}
