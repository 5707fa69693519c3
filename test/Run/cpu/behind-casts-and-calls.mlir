// Arguments that reach an address through casts and calls are offsets, too: random ones do not decrease, others are refused, and rows of no
// sequence are not compared.
// RUN: flash-run %s --target=cpu --function=behind_cast --shape 0=1x2x50x16 --check | FileCheck %s
// RUN: flash-run %s --target=cpu --function=behind_call --shape 0=1x2x50x16 --check | FileCheck %s
// RUN: flash-run %s --target=cpu --function=behind_cast --shape 0=1x2x50x16 --check --fill=1=9 --fill=1=20@1 --fill=1=20@2 --fill=1=30@3 | FileCheck %s
// RUN: flash-run %s --target=cpu --function=behind_call --shape 0=1x2x50x16 --check --fill=1=9 --fill=1=20@1 --fill=1=20@2 --fill=1=30@3 | FileCheck %s
// CHECK: check: ok
// RUN: not flash-run %s --target=cpu --function=behind_cast --shape 0=1x2x50x16 --fill=1=51@3 2>&1 | FileCheck %s --check-prefix=REFUSED
// RUN: not flash-run %s --target=cpu --function=behind_call --shape 0=1x2x50x16 --fill=1=51@3 2>&1 | FileCheck %s --check-prefix=REFUSED
// REFUSED: argument 1 says where sequences start among 50 rows, but offset 3 is 51

// Gradients that a call returns are compared as gradients, to which other tolerances belong.
// RUN: flash-run %s --target=cpu --function=gradients_behind_call --check | FileCheck %s --check-prefix=GRADIENT
// GRADIENT: check: ok {{.*}}(tolerance 0.002)

// Lists of blocks are made, too.
// RUN: flash-run %s --target=cpu --function=lists --check | FileCheck %s
// RUN: flash-run %s --target=cpu --function=lists --check --seed=1 | FileCheck %s

// So are tables of pages.
// RUN: flash-run %s --target=cpu --function=pages --check --fill 2=20@0 | FileCheck %s
// RUN: not flash-run %s --target=cpu --function=pages --fill 2=20@0 --fill 1=40@0 2>&1 | FileCheck %s --check-prefix=PAGE
// PAGE: argument 1 says which of the 40 pages of argument 0 a sequence has, but page 0 of sequence 0 is 40

!m = tensor<1x2x?x16xf32>
!v = tensor<?x2x?x16xf32>
func.func @behind_cast(%q: !m, %offsets: tensor<4xi32>) -> !m {
  %o = tensor.cast %offsets : tensor<4xi32> to tensor<?xi32>
  %qs, %n = flash.unpack %q by %o : !m, tensor<?xi32> -> !v, tensor<?xi32>
  %r = flash.attention %qs, %qs, %qs query_lengths(%n : tensor<?xi32>) key_lengths(%n : tensor<?xi32>) : (!v, !v, !v) -> !v
  %c2 = arith.constant 2 : index
  %rows = tensor.dim %q, %c2 : !m
  %empty = tensor.empty(%rows) : !m
  %packed = flash.pack %r by %o into %empty : !v, tensor<?xi32> into !m
  return %packed : !m
}

// The arguments are in another order.
func.func private @callee(%offsets: tensor<?xi32>, %q: !m) -> !m {
  %qs, %n = flash.unpack %q by %offsets : !m, tensor<?xi32> -> !v, tensor<?xi32>
  %r = flash.attention %qs, %qs, %qs query_lengths(%n : tensor<?xi32>) key_lengths(%n : tensor<?xi32>) : (!v, !v, !v) -> !v
  %c2 = arith.constant 2 : index
  %rows = tensor.dim %q, %c2 : !m
  %empty = tensor.empty(%rows) : !m
  %packed = flash.pack %r by %offsets into %empty : !v, tensor<?xi32> into !m
  return %packed : !m
}

func.func @behind_call(%q: !m, %offsets: tensor<4xi32>) -> !m {
  %o = tensor.cast %offsets : tensor<4xi32> to tensor<?xi32>
  %r = call @callee(%o, %q) : (tensor<?xi32>, !m) -> !m
  return %r : !m
}

!x = tensor<1x2x300x16xf32>
func.func @lists(%q: !x, %list: tensor<1x2x3x3xi32>, %counts: tensor<1x2x3x2xi32>) -> !x {
  %l = tensor.cast %list : tensor<1x2x3x3xi32> to tensor<1x?x3x?xi32>
  %r = flash.attention %q, %q, %q blocks(%l, %counts : tensor<1x?x3x?xi32>, tensor<1x2x3x2xi32>) of [128, 128] : (!x, !x, !x) -> !x
  return %r : !x
}

!y = tensor<1x2x50x64xf16>
func.func private @gradients(%do: !y, %q: !y) -> (!y, !y, !y) {
  %r, %lse = flash.attention %q, %q, %q : (!y, !y, !y) -> (!y, tensor<1x2x50xf32>)
  %dq, %dk, %dv = flash.attention_grad %q, %q, %q, %r, %lse, %do : (!y, !y, !y, !y, tensor<1x2x50xf32>, !y) -> (!y, !y, !y)
  return %dq, %dk, %dv : !y, !y, !y
}

func.func @gradients_behind_call(%q: !y, %do: !y) -> (!y, !y, !y) {
  %dq, %dk, %dv = call @gradients(%do, %q) : (!y, !y) -> (!y, !y, !y)
  return %dq, %dk, %dv : !y, !y, !y
}

!cache = tensor<40x2x16x16xf32>
func.func @pages(%cache: !cache, %table: tensor<3x4xi32>, %n: tensor<3xi32>) -> tensor<3x2x64x16xf32> {
  %open = tensor.cast %table : tensor<3x4xi32> to tensor<?x?xi32>
  %lengths = tensor.cast %n : tensor<3xi32> to tensor<?xi32>
  %view = flash.unpage %cache by %open lengths(%lengths : tensor<?xi32>) : !cache, tensor<?x?xi32> -> tensor<?x2x?x16xf32>
  %rows = tensor.cast %view : tensor<?x2x?x16xf32> to tensor<3x2x64x16xf32>
  %twice = arith.addf %rows, %rows : tensor<3x2x64x16xf32>
  return %twice : tensor<3x2x64x16xf32>
}
