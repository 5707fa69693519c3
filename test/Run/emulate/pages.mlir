// Keys and values in pages, of 16 and of 64 rows, beside a batch of queries: a causal mask aligned to the end of each sequence, scores
// by positions inside it, a sink. Pages of no sequence, and rows behind the last one of a sequence, are NaN; the table has -1 there.
// DEFINE: %{sizes} = --function=paged --shape 0=3x4x37x64 --shape 1=40x2x16x64 --shape 2=11x2x64x48 --shape 3=3x12 --shape 4=3x3
// RUN: flash-run %s --target=cpu %{sizes} --check
// RUN: flash-run %s --target=cpu %{sizes} --schedule=query_tile=16,key_tile=16 --check --seed 1
// RUN: flash-run %s --target=emulate %{sizes} --check --seed 2
// RUN: flash-run %s --target=emulate:sm_90a %{sizes} --check --seed 3
// No row, one, and all but one; all sequences without rows; no page; lengths that are none.
// RUN: flash-run %s --target=cpu %{sizes} --fill 5=0@0 --fill 5=1@1 --fill 5=191@2 --check
// RUN: flash-run %s --target=emulate %{sizes} --fill 5=0@0 --fill 5=1@1 --fill 5=191@2 --check --schedule=query_tile=64,key_tile=32
// RUN: flash-run %s --target=emulate:sm_90a %{sizes} --fill 5=0@0 --fill 5=1@1 --fill 5=191@2 --check --schedule=query_tile=64,key_tile=64
// RUN: flash-run %s --target=emulate %{sizes} --fill 5=0 --check
// RUN: flash-run %s --target=emulate:sm_90a --function=paged --shape 0=3x4x37x64 --shape 1=0x2x16x64 --shape 2=0x2x64x48 --shape 3=3x0 --shape 4=3x0 --check
// RUN: flash-run %s --target=emulate %{sizes} --fill 5=-7@0 --fill 5=1000@1 --check

// Of a table that is not as long as sequences, and one that names pages that there are not.
// RUN: not flash-run %s --target=cpu %{sizes} --fill 5=20 --fill 3=40@1 2>&1 | FileCheck %s --check-prefix=BEYOND
// BEYOND: argument 3 says which of the 40 pages of argument 1 a sequence has, but page 0 of sequence 1 is 40; pages in which there are rows are from 0 and below 40
// RUN: not flash-run %s --target=cpu %{sizes} --fill 5=20 --fill 4=-1@2 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: argument 4 says which of the 11 pages of argument 2 a sequence has, but page 0 of sequence 2 is -1; pages in which there are rows are from 0 and below 11

// Fewer lengths than the table has sequences; pages of which no tile of the models is a part or several.
// DEFINE: %{few} = --function=rows --shape 0=3x4x5x64 --shape 1=40x2x3x64 --shape 2=3x12
// RUN: not flash-run %s --target=cpu %{few} --shape 3=2 --check 2>&1 | FileCheck %s --check-prefix=FEW
// RUN: flash-run %s --target=cpu %{few} --shape 3=3 --check
// FEW: argument 3 has a length for each of the 3 sequences of argument 2, got 2

// One token of each sequence, whose keys are split, with heads that share a tile; and queries that are packed.
// DEFINE: %{token} = --function=token --shape 1=70x2x16x64 --shape 2=4x20 --fill 3=320@0 --fill 3=5@1 --fill 3=0@2
// RUN: flash-run %s --target=cpu %{token} --check
// RUN: flash-run %s --target=emulate %{token} --schedule=split_ctas=64,key_tile=32 --check
// RUN: flash-run %s --target=emulate:sm_90a %{token} --check
// RUN: flash-run %s --target=emulate:sm_90a %{token} --schedule=num_splits=3,packed_heads=4 --check
// RUN: flash-run %s --target=emulate:sm_90a %{token} --schedule=key_tile=64,split_keys=128,packed_heads=4 --check
// RUN: flash-run %s --target=emulate %{token} --schedule=key_tile=32,split_keys=32,features=none --check
// DEFINE: %{packed} = --function=packed --shape 0=1x8x90x64 --shape 1=70x2x16x64 --shape 3=4x20 --fill 4=320@0 --fill 4=5@1 --fill 4=0@2
// RUN: flash-run %s --target=cpu,emulate,emulate:sm_90a %{packed} --check
// Lists of blocks that the caller gives, also of blocks behind the last row; tiles that are claimed.
// DEFINE: %{blocks} = --function=blocks --shape 4=2x4x2x3 --shape 5=2x4x2x2
// RUN: flash-run %s --target=cpu %{blocks} --fill 3=100@0 --check
// RUN: flash-run %s --target=emulate %{blocks} --fill 3=384@0 --check
// RUN: flash-run %s --target=emulate:sm_90a %{blocks} --fill 3=100@0 --check
// RUN: flash-run %s --target=emulate:sm_90a %{packed} --schedule="features=specialize_warps|overlap|persistent|claim_tiles" --check

!q = tensor<3x4x?x64xf16>
!k = tensor<?x2x16x64xf16>
!v = tensor<?x2x64x48xf16>
!o = tensor<3x4x?x48xf16>
func.func @paged(%q: !q, %k: !k, %v: !v, %of_keys: tensor<3x?xi32>, %of_values: tensor<3x?xi32>, %n: tensor<3xi32>, %sinks: tensor<4xf32>)
    -> (!o, tensor<3x4x?xf32>) {
  %ks = flash.unpage %k by %of_keys lengths(%n : tensor<3xi32>) : !k, tensor<3x?xi32> -> tensor<3x2x?x64xf16>
  %vs = flash.unpage %v by %of_values lengths(%n : tensor<3xi32>) : !v, tensor<3x?xi32> -> tensor<3x2x?x48xf16>
  %o, %lse = flash.attention %q, %ks, %vs mask(#flash.causal) key_lengths(%n : tensor<3xi32>) sink(%sinks : tensor<4xf32>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %key = arith.index_cast %j : index to i32
    %at = arith.sitofp %key : i32 to f32
    %c = arith.constant 0.003 : f32
    %0 = arith.mulf %at, %c : f32
    %r = arith.addf %s, %0 : f32
    flash.yield %r : f32
  } : (!q, tensor<3x2x?x64xf16>, tensor<3x2x?x48xf16>) -> (!o, tensor<3x4x?xf32>)
  return %o, %lse : !o, tensor<3x4x?xf32>
}

!any = tensor<?x4x?x64xf16>
func.func @rows(%q: !any, %k: tensor<?x2x3x64xf16>, %table: tensor<?x?xi32>, %n: tensor<?xi32>) -> !any {
  %ks = flash.unpage %k by %table lengths(%n : tensor<?xi32>) : tensor<?x2x3x64xf16>, tensor<?x?xi32> -> tensor<?x2x?x64xf16>
  %o = flash.attention %q, %ks, %ks key_lengths(%n : tensor<?xi32>) : (!any, tensor<?x2x?x64xf16>, tensor<?x2x?x64xf16>) -> !any
  return %o : !any
}

!cache = tensor<?x2x16x64xf16>
!view = tensor<4x2x?x64xf16>
func.func @token(%q: tensor<4x8x1x64xf16>, %cache: !cache, %table: tensor<4x?xi32>, %n: tensor<4xi32>) -> tensor<4x8x1x64xf16> {
  %ks = flash.unpage %cache by %table lengths(%n : tensor<4xi32>) : !cache, tensor<4x?xi32> -> !view
  %o = flash.attention %q, %ks, %ks mask(#flash.causal) key_lengths(%n : tensor<4xi32>) : (tensor<4x8x1x64xf16>, !view, !view) -> tensor<4x8x1x64xf16>
  return %o : tensor<4x8x1x64xf16>
}

!rows = tensor<1x8x?x64xf16>
func.func @packed(%q: !rows, %cache: !cache, %offsets: tensor<5xi32>, %table: tensor<4x?xi32>, %n: tensor<4xi32>) -> !rows {
  %c2 = arith.constant 2 : index
  %qs, %nq = flash.unpack %q by %offsets : !rows, tensor<5xi32> -> tensor<4x8x?x64xf16>, tensor<4xi32>
  %ks = flash.unpage %cache by %table lengths(%n : tensor<4xi32>) : !cache, tensor<4x?xi32> -> tensor<4x2x?x64xf16>
  %os = flash.attention %qs, %ks, %ks mask(#flash.causal) query_lengths(%nq : tensor<4xi32>) key_lengths(%n : tensor<4xi32>)
      : (tensor<4x8x?x64xf16>, tensor<4x2x?x64xf16>, tensor<4x2x?x64xf16>) -> tensor<4x8x?x64xf16>
  %t = tensor.dim %q, %c2 : !rows
  %e = tensor.empty(%t) : !rows
  %o = flash.pack %os by %offsets into %e : tensor<4x8x?x64xf16>, tensor<5xi32> into !rows
  return %o : !rows
}

!l = tensor<?x?x?x?xi32>
!static = tensor<2x2x384x64xf16>
func.func @blocks(%q: tensor<2x4x256x64xf16>, %cache: tensor<9x2x128x64xf16>, %table: tensor<2x3xi32>, %n: tensor<2xi32>, %list: !l, %counts: !l)
    -> tensor<2x4x256x64xf16> {
  %ks = flash.unpage %cache by %table lengths(%n : tensor<2xi32>) : tensor<9x2x128x64xf16>, tensor<2x3xi32> -> !static
  %o = flash.attention %q, %ks, %ks key_lengths(%n : tensor<2xi32>) blocks(%list, %counts : !l, !l) of [128, 128]
      : (tensor<2x4x256x64xf16>, !static, !static) -> tensor<2x4x256x64xf16>
  return %o : tensor<2x4x256x64xf16>
}
