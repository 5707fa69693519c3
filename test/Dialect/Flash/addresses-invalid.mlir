// RUN: flash-opt %s --split-input-file --verify-diagnostics

func.func @unpack(%x: tensor<4x9xf16>, %o: tensor<3xi32>) {
  // expected-error @below {{rows that lie behind each other are [M, H, T, D] or [M, H, T], got 'tensor<4x9xf16>'}}
  %0:2 = flash.unpack %x by %o : tensor<4x9xf16>, tensor<3xi32> -> tensor<2x9xf16>, tensor<2xi32>
  return
}

// -----

func.func @unpack(%x: tensor<2x4x9x8xf16>, %o: tensor<3xi32>, %n: index) {
  // expected-error @below {{of[...] are the two sizes M and T of memory, got 1}}
  %0:2 = flash.unpack %x by %o of[%n] : tensor<2x4x9x8xf16>, tensor<3xi32> -> tensor<2x4x9x8xf16>, tensor<2xi32>
  return
}

// -----

func.func @unpack(%x: tensor<2x4x9x8xf16>, %o: tensor<3xi32>, %n: tensor<2xi32>) {
  // expected-error @below {{has a count of one element, got 'tensor<2xi32>'}}
  %0:2 = flash.unpack %x by %o count(%n : tensor<2xi32>) : tensor<2x4x9x8xf16>, tensor<3xi32> -> tensor<2x4x9x8xf16>, tensor<2xi32>
  return
}

// -----

func.func @documents(%ids: tensor<2x9xi32>, %n: index) {
  // expected-error @below {{has a count of one element, got 'tensor<3xi32>'}}
  %0:2 = flash.document_offsets %ids of[%n, %n] most(%n) : tensor<2x9xi32> -> tensor<?xi32>, tensor<3xi32>
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

// -----

func.func @decreases(%x: tensor<1x4x?x64xf16>) -> tensor<3x4x?x64xf16> {
  %offsets = arith.constant dense<[2, 9, 8, 10]> : tensor<4xi32>
  // expected-error @below {{has offsets that do not decrease and are from 0 to the number of rows, got 8 as number 2}}
  %v, %n = flash.unpack %x by %offsets : tensor<1x4x?x64xf16>, tensor<4xi32> -> tensor<3x4x?x64xf16>, tensor<3xi32>
  return %v : tensor<3x4x?x64xf16>
}

// -----

func.func @negative(%x: tensor<1x4x?x64xf16>) -> tensor<1x4x?x64xf16> {
  %offsets = arith.constant dense<[-1, 9]> : tensor<2xi64>
  // expected-error @below {{got -1 as number 0}}
  %v, %n = flash.unpack %x by %offsets : tensor<1x4x?x64xf16>, tensor<2xi64> -> tensor<1x4x?x64xf16>, tensor<1xi32>
  return %v : tensor<1x4x?x64xf16>
}

// -----

func.func @beyond(%v: tensor<2x4x8xf32>, %x: tensor<1x4x8xf32>) -> tensor<1x4x8xf32> {
  %offsets = arith.constant dense<[0, 8, 9]> : tensor<3xi32>
  // expected-error @below {{has offsets that do not decrease and are from 0 to 8, got 9 as number 2}}
  %p = flash.pack %v by %offsets into %x : tensor<2x4x8xf32>, tensor<3xi32> into tensor<1x4x8xf32>
  return %p : tensor<1x4x8xf32>
}

// -----

func.func @unpage(%x: tensor<9x4x?x8xf16>, %t: tensor<3x5xi32>, %n: tensor<3xi32>) {
  // expected-error @below {{pages are [P, H, page, D] or [P, H, page], of a number of rows that is static and at least 1, got 'tensor<9x4x?x8xf16>'}}
  %0 = flash.unpage %x by %t lengths(%n : tensor<3xi32>) : tensor<9x4x?x8xf16>, tensor<3x5xi32> -> tensor<3x4x?x8xf16>
  return
}

// -----

func.func @unpage(%x: tensor<9x4x16x8xf16>, %t: tensor<3x5xi32>, %n: tensor<3xi32>) {
  // expected-error @below {{the view of 'tensor<9x4x16x8xf16>' by 'tensor<3x5xi32>' is 'tensor<3x4x80x8xf16>', got 'tensor<3x4x16x8xf16>'}}
  %0 = flash.unpage %x by %t lengths(%n : tensor<3xi32>) : tensor<9x4x16x8xf16>, tensor<3x5xi32> -> tensor<3x4x16x8xf16>
  return
}

// -----

func.func @unpage(%x: tensor<9x4x16x8xf16>, %t: tensor<3x?xi32>, %n: tensor<2xi32>) {
  // expected-error @below {{has a length for each sequence of 'tensor<3x?xi32>', got 'tensor<2xi32>'}}
  %0 = flash.unpage %x by %t lengths(%n : tensor<2xi32>) : tensor<9x4x16x8xf16>, tensor<3x?xi32> -> tensor<3x4x?x8xf16>
  return
}

// -----

func.func @other_lengths(%q: tensor<3x4x9x8xf16>, %x: tensor<9x4x16x8xf16>, %t: tensor<3x5xi32>, %n: tensor<3xi32>, %m: tensor<3xi32>) {
  %0 = flash.unpage %x by %t lengths(%n : tensor<3xi32>) : tensor<9x4x16x8xf16>, tensor<3x5xi32> -> tensor<3x4x80x8xf16>
  // expected-error @below {{takes rows of flash.unpage, and needs key_lengths that are its lengths}}
  %1 = flash.attention %q, %0, %0 key_lengths(%m : tensor<3xi32>)
      : (tensor<3x4x9x8xf16>, tensor<3x4x80x8xf16>, tensor<3x4x80x8xf16>) -> tensor<3x4x9x8xf16>
  return
}

// -----

func.func @queries(%x: tensor<9x4x16x8xf16>, %t: tensor<3x5xi32>, %n: tensor<3xi32>) {
  %0 = flash.unpage %x by %t lengths(%n : tensor<3xi32>) : tensor<9x4x16x8xf16>, tensor<3x5xi32> -> tensor<3x4x80x8xf16>
  // expected-error @below {{takes rows of flash.unpage as queries, which lie in parts; keys and values of flash.attention alone do}}
  %1 = flash.attention %0, %0, %0 query_lengths(%n : tensor<3xi32>) key_lengths(%n : tensor<3xi32>)
      : (tensor<3x4x80x8xf16>, tensor<3x4x80x8xf16>, tensor<3x4x80x8xf16>) -> tensor<3x4x80x8xf16>
  return
}

// -----

func.func @gradient(%q: tensor<3x4x9x8xf16>, %x: tensor<9x4x16x8xf16>, %t: tensor<3x5xi32>, %n: tensor<3xi32>, %lse: tensor<3x4x9xf32>) {
  %0 = flash.unpage %x by %t lengths(%n : tensor<3xi32>) : tensor<9x4x16x8xf16>, tensor<3x5xi32> -> tensor<3x4x80x8xf16>
  // expected-error @below {{takes rows of flash.unpage, which lie in parts; keys and values of flash.attention alone do}}
  %1:3 = flash.attention_grad %q, %0, %0, %q, %lse, %q key_lengths(%n : tensor<3xi32>)
      : (tensor<3x4x9x8xf16>, tensor<3x4x80x8xf16>, tensor<3x4x80x8xf16>, tensor<3x4x9x8xf16>, tensor<3x4x9xf32>, tensor<3x4x9x8xf16>)
      -> (tensor<3x4x9x8xf16>, tensor<3x4x80x8xf16>, tensor<3x4x80x8xf16>)
  return
}

// -----

func.func @kernel(%x: tensor<9x4x16x8xf16>, %t: tensor<3x5xi32>, %n: tensor<3xi32>, %e: tensor<3x4x80x8xf16>) {
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c80 = arith.constant 80 : index
  %0 = flash.unpage %x by %t lengths(%n : tensor<3xi32>) : tensor<9x4x16x8xf16>, tensor<3x5xi32> -> tensor<3x4x80x8xf16>
  // expected-error @below {{over the rows of a view has a grid that ends in (batch, head, row), of one batch at a time, and a view in memory such as flash.unpack gives}}
  %1 = flash.kernel over(%c3, %c4, %c80) by [1, 1, 16] rows(%0 : tensor<3x4x80x8xf16>) outs(%e : tensor<3x4x80x8xf16>) {
  ^bb0(%i: index, %h: index, %row: index, %to: tensor<3x4x80x8xf16>):
    %tile = flash.load_rows %0[%i, %h, %row] : tensor<3x4x80x8xf16> -> tensor<16x8xf16>
    flash.store {
      flash.store_rows %tile into %to[%i, %h, %row] : tensor<16x8xf16> into tensor<3x4x80x8xf16>
    }
  }
  return
}
