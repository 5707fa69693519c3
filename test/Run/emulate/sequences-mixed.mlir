// Batches that are sequences of their own without being packed: queries that do not exist have results of 0 and a log-sum-exp of -inf.
// RUN: flash-run %s --function=padded --target=cpu --shape 0=3x4x200x64 --shape 1=3x2x150x64 --check
// RUN: flash-run %s --function=padded --target=emulate --shape 0=3x4x200x64 --shape 1=3x2x150x64 --fill 2=0@1 --check
// RUN: flash-run %s --function=padded --target=emulate:sm_90a --shape 0=3x4x200x64 --shape 1=3x2x150x64 --fill 3=0@0 --check
// Such queries have no sink, either.
// RUN: flash-run %s --function=sunk --target=cpu --shape 0=3x4x20x64 --fill 1=3@1 --check
// RUN: flash-run %s --function=sunk --target=emulate:sm_90a --shape 0=3x4x20x64 --fill 1=0@2 --check
// Of an output that is packed and a log-sum-exp that is not, each is stored as it is.
// RUN: flash-run %s --function=mixed --target=cpu,emulate,emulate:sm_90a --shape 0=1x4x301x64 --check
// Gradients take what was packed from where it lies, in one program of a GPU.
// RUN: flash-run %s --function=train --target=emulate:sm_90a --shape 0=1x4x60x64 --shape 2=1x4x60x64 --check
// On the CPU views, lengths and packed rows are tensors, too.
// RUN: flash-run %s --function=tensors --target=cpu --shape 0=1x4x30x64 --shape 2=4x4x20x64 --shape 3=1x4x20x64 --check
// RUN: not flash-run %s --function=empty --target=cpu --shape 0=1x4x30x64 --shape 1=0 2>&1 | FileCheck %s
// CHECK: argument 1 says where sequences start, and where the last one ends, and has no element; it has one more than there are sequences: tensor<?xi32>
// RUN: flash-run %s --function=empty --target=cpu --shape 0=1x4x30x64 --shape 1=1 --check
// RUN: flash-run %s --function=unused --target=emulate:sm_90a --shape 0=1x4x301x64 --check
// Rows before the first sequence and behind the last one are of none: tiles that would have them alone store nothing.
// RUN: flash-run %s --function=kept --target=cpu --shape 0=1x4x500x64 --shape 2=1x4x500x64 --fill 1=290@0 --fill 1=291@1 --fill 1=300@2 --fill 1=300@3 --fill 1=310@4 --check
// RUN: flash-run %s --function=constant --target=cpu --check

!q = tensor<3x4x?x64xf16>
!k = tensor<3x2x?x64xf16>
!l = tensor<3x4x?xf32>
!n = tensor<3xi32>
func.func @padded(%q: !q, %k: !k, %nq: !n, %nk: !n, %do: tensor<3x4x200x64xf16>) -> (!q, !l, !q, !k, !k) {
  %o, %lse = flash.attention %q, %k, %k mask(#flash.causal) query_lengths(%nq : !n) key_lengths(%nk : !n) : (!q, !k, !k) -> (!q, !l)
  %g = tensor.cast %do : tensor<3x4x200x64xf16> to !q
  %0:3 = flash.attention_grad %q, %k, %k, %o, %lse, %g mask(#flash.causal) query_lengths(%nq : !n) key_lengths(%nk : !n)
      : (!q, !k, !k, !q, !l, !q) -> (!q, !k, !k)
  return %o, %lse, %0#0, %0#1, %0#2 : !q, !l, !q, !k, !k
}

func.func @sunk(%q: !q, %n: !n, %sink: tensor<4xf32>) -> (!q, !l) {
  %o, %lse = flash.attention %q, %q, %q query_lengths(%n : !n) sink(%sink : tensor<4xf32>) : (!q, !q, !q) -> (!q, !l)
  return %o, %lse : !q, !l
}

!memory = tensor<1x4x?x64xf16>
!view = tensor<4x4x?x64xf16>
!lses = tensor<4x4x?xf32>
!lengths = tensor<4xi32>
func.func @mixed(%x: !memory, %offsets: tensor<5xi32>) -> (!memory, !lses) {
  %c2 = arith.constant 2 : index
  %xs, %n = flash.unpack %x by %offsets : !memory, tensor<5xi32> -> !view, !lengths
  %os, %lse = flash.attention %xs, %xs, %xs query_lengths(%n : !lengths) key_lengths(%n : !lengths) : (!view, !view, !view) -> (!view, !lses)
  %t = tensor.dim %x, %c2 : !memory
  %e = tensor.empty(%t) : !memory
  %o = flash.pack %os by %offsets into %e : !view, tensor<5xi32> into !memory
  return %o, %lse : !memory, !lses
}

func.func @unused(%x: !memory, %offsets: tensor<5xi32>) -> !memory {
  %c2 = arith.constant 2 : index
  %xs, %n = flash.unpack %x by %offsets : !memory, tensor<5xi32> -> !view, !lengths
  %os, %lse = flash.attention %xs, %xs, %xs query_lengths(%n : !lengths) key_lengths(%n : !lengths) : (!view, !view, !view) -> (!view, !lses)
  %t = tensor.dim %x, %c2 : !memory
  %e = tensor.empty(%t) : !memory
  %o = flash.pack %os by %offsets into %e : !view, tensor<5xi32> into !memory
  return %o : !memory
}

func.func @kept(%x: !memory, %offsets: tensor<5xi32>, %e: !memory) -> !memory {
  %xs, %n = flash.unpack %x by %offsets : !memory, tensor<5xi32> -> !view, !lengths
  %os = flash.attention %xs, %xs, %xs query_lengths(%n : !lengths) key_lengths(%n : !lengths) : (!view, !view, !view) -> !view
  %o = flash.pack %os by %offsets into %e : !view, tensor<5xi32> into !memory
  return %o : !memory
}

func.func @tensors(%x: !memory, %of_x: tensor<5xi32>, %y: !view, %into: !memory, %of_y: tensor<5xi32>) -> (!view, !lengths, !memory) {
  %xs, %n = flash.unpack %x by %of_x : !memory, tensor<5xi32> -> !view, !lengths
  %packed = flash.pack %y by %of_y into %into : !view, tensor<5xi32> into !memory
  return %xs, %n, %packed : !view, !lengths, !memory
}

func.func @empty(%x: !memory, %offsets: tensor<?xi32>) -> tensor<?x4x?x64xf16> {
  %xs, %n = flash.unpack %x by %offsets : !memory, tensor<?xi32> -> tensor<?x4x?x64xf16>, tensor<?xi32>
  return %xs : tensor<?x4x?x64xf16>
}

func.func @train(%x: !memory, %offsets: tensor<5xi32>, %do: !memory) -> (!memory, !memory) {
  %c2 = arith.constant 2 : index
  %xs, %n = flash.unpack %x by %offsets : !memory, tensor<5xi32> -> !view, !lengths
  %dos, %nd = flash.unpack %do by %offsets : !memory, tensor<5xi32> -> !view, !lengths
  %os, %lse = flash.attention %xs, %xs, %xs query_lengths(%n : !lengths) key_lengths(%n : !lengths) : (!view, !view, !view) -> (!view, !lses)
  %t = tensor.dim %x, %c2 : !memory
  %e = tensor.empty(%t) : !memory
  %o = flash.pack %os by %offsets into %e : !view, tensor<5xi32> into !memory
  %f = tensor.empty(%t) : tensor<1x4x?xf32>
  %p = flash.pack %lse by %offsets into %f : !lses, tensor<5xi32> into tensor<1x4x?xf32>
  %us, %nu = flash.unpack %o by %offsets : !memory, tensor<5xi32> -> !view, !lengths
  %ps, %np = flash.unpack %p by %offsets : tensor<1x4x?xf32>, tensor<5xi32> -> !lses, !lengths
  %dq, %dk, %dv = flash.attention_grad %xs, %xs, %xs, %us, %ps, %dos query_lengths(%n : !lengths) key_lengths(%n : !lengths)
      : (!view, !view, !view, !view, !lses, !view) -> (!view, !view, !view)
  %d = flash.pack %dk by %offsets into %e : !view, tensor<5xi32> into !memory
  return %o, %d : !memory, !memory
}

func.func @constant(%x: tensor<1x4x30x64xf16>) -> tensor<1x4x30x64xf16> {
  %offsets = arith.constant dense<[5, 10, 10, 20, 29]> : tensor<5xi64>
  %xs, %n = flash.unpack %x by %offsets : tensor<1x4x30x64xf16>, tensor<5xi64> -> tensor<4x4x30x64xf16>, !lengths
  %os = flash.attention %xs, %xs, %xs query_lengths(%n : !lengths) key_lengths(%n : !lengths)
      : (tensor<4x4x30x64xf16>, tensor<4x4x30x64xf16>, tensor<4x4x30x64xf16>) -> tensor<4x4x30x64xf16>
  %e = tensor.empty() : tensor<1x4x30x64xf16>
  %o = flash.pack %os by %offsets into %e : tensor<4x4x30x64xf16>, tensor<5xi64> into tensor<1x4x30x64xf16>
  return %o : tensor<1x4x30x64xf16>
}
