// Gradients of what a score reads beside sequences that lie behind each other: of heads, rows, pairs and distances, each a sum over all sequences or of one.
// Arrays are as long as the longest sequence of these offsets; nobody reads behind them, nor rows of no sequence, which are NaN.
// DEFINE: %{offsets} = --fill 3=3@0 --fill 3=80@1 --fill 3=81@2 --fill 3=81@3 --fill 3=151@4 --fill 4=0@0 --fill 4=60@1 --fill 4=70@2 --fill 4=140@3 --fill 4=150@4
// DEFINE: %{sizes} = --shape 0=1x4x160x64 --shape 1=1x2x155x64 --shape 2=1x2x155x48 --shape 5=1x4x160x48
// DEFINE: %{poison} = --fill 0=nan@2 --fill 0=nan@151 --fill 0=nan@152 --fill 1=nan@150 --fill 1=nan@151 --fill 2=nan@150 --fill 5=nan@2 --fill 5=nan@151
// RUN: flash-run %s --function=heads --target=cpu,emulate,emulate:sm_90a %{sizes} %{offsets} %{poison} --check
// RUN: flash-run %s --function=pairs --target=cpu,emulate,emulate:sm_90a %{sizes} %{offsets} %{poison} --check
// RUN: flash-run %s --function=distances --target=cpu,emulate,emulate:sm_90a %{sizes} %{offsets} %{poison} --check
// No queries, and no keys.
// RUN: flash-run %s --function=heads --target=emulate:sm_90a --shape 0=1x4x0x64 --shape 1=1x2x40x64 --shape 2=1x2x40x48 --shape 5=1x4x0x48 --check
// RUN: flash-run %s --function=distances --target=emulate --shape 0=1x4x30x64 --shape 1=1x2x0x64 --shape 2=1x2x0x48 --shape 5=1x4x30x48 --check
// Batches that are sequences of their own without being packed, of whose keys not all take part.
// DEFINE: %{padded} = --shape 0=3x4x150x64 --shape 1=3x2x100x64 --fill 2=77@0 --fill 2=0@1 --fill 2=130@2 --fill 3=70@0 --fill 3=5@1 --fill 3=66@2 --fill 4=65@0 --fill 4=5@1 --fill 4=90@2
// RUN: flash-run %s --function=padded --target=cpu,emulate,emulate:sm_90a %{padded} --check
// Keys of packed sequences, of which not all take part.
// DEFINE: %{shorter} = %{offsets} %{poison} --fill 7=1 --fill 7=44@0 --fill 7=0@3
// RUN: flash-run %s --function=shorter --target=cpu,emulate,emulate:sm_90a %{sizes} %{shorter} --check

!q = tensor<1x4x?x64xf16>
!k = tensor<1x2x?x64xf16>
!v = tensor<1x2x?x48xf16>
!o = tensor<1x4x?x48xf16>
!qs = tensor<4x4x?x64xf16>
!ks = tensor<4x2x?x64xf16>
!vs = tensor<4x2x?x48xf16>
!os = tensor<4x4x?x48xf16>
!ls = tensor<4x4x?xf32>
!n = tensor<4xi32>

!slopes = tensor<4xf32>
!ofQueries = tensor<4x77xf32>
!ofKeys = tensor<4x4x70xf32>
func.func @heads(%q: !q, %k: !k, %v: !v, %of_queries: tensor<5xi32>, %of_keys: tensor<5xi64>, %do: !o, %slopes: !slopes, %x: !ofQueries, %y: !ofKeys)
    -> (!slopes, !ofQueries, !ofKeys) {
  %qs, %nq = flash.unpack %q by %of_queries : !q, tensor<5xi32> -> !qs, !n
  %ks, %nk = flash.unpack %k by %of_keys : !k, tensor<5xi64> -> !ks, !n
  %vs, %nv = flash.unpack %v by %of_keys : !v, tensor<5xi64> -> !vs, !n
  %dos, %no = flash.unpack %do by %of_queries : !o, tensor<5xi32> -> !os, !n
  %os, %ls = flash.attention %qs, %ks, %vs mask(#flash.causal) query_lengths(%nq : !n) key_lengths(%nk : !n) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %slope = tensor.extract %slopes[%h] : !slopes
    %a = arith.mulf %s, %slope : f32
    %of_query = tensor.extract %x[%b, %i] : !ofQueries
    %of_key = tensor.extract %y[%b, %h, %j] : !ofKeys
    %c = arith.mulf %of_query, %a : f32
    %r = arith.addf %c, %of_key : f32
    flash.yield %r : f32
  } : (!qs, !ks, !vs) -> (!os, !ls)
  %0:6 = flash.attention_grad %qs, %ks, %vs, %os, %ls, %dos mask(#flash.causal) query_lengths(%nq : !n) key_lengths(%nk : !n)
      wrt(%slopes, %x, %y : !slopes, !ofQueries, !ofKeys) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %slope = tensor.extract %slopes[%h] : !slopes
    %a = arith.mulf %s, %slope : f32
    %of_query = tensor.extract %x[%b, %i] : !ofQueries
    %of_key = tensor.extract %y[%b, %h, %j] : !ofKeys
    %c = arith.mulf %of_query, %a : f32
    %r = arith.addf %c, %of_key : f32
    flash.yield %r : f32
  } : (!qs, !ks, !vs, !os, !ls, !os) -> (!qs, !ks, !vs, !slopes, !ofQueries, !ofKeys)
  return %0#3, %0#4, %0#5 : !slopes, !ofQueries, !ofKeys
}

!ofAll = tensor<4x77x70xf32>
!ofEach = tensor<4x4x77x70xf32>
func.func @pairs(%q: !q, %k: !k, %v: !v, %of_queries: tensor<5xi32>, %of_keys: tensor<5xi64>, %do: !o, %x: !ofAll, %y: !ofEach)
    -> (!ofAll, !ofEach) {
  %qs, %nq = flash.unpack %q by %of_queries : !q, tensor<5xi32> -> !qs, !n
  %ks, %nk = flash.unpack %k by %of_keys : !k, tensor<5xi64> -> !ks, !n
  %vs, %nv = flash.unpack %v by %of_keys : !v, tensor<5xi64> -> !vs, !n
  %dos, %no = flash.unpack %do by %of_queries : !o, tensor<5xi32> -> !os, !n
  %os, %ls = flash.attention %qs, %ks, %vs mask(#flash.window<left = 50>) query_lengths(%nq : !n) key_lengths(%nk : !n) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %of_all = tensor.extract %x[%h, %i, %j] : !ofAll
    %of_each = tensor.extract %y[%b, %h, %i, %j] : !ofEach
    %a = arith.addf %s, %of_all : f32
    %r = arith.addf %a, %of_each : f32
    flash.yield %r : f32
  } : (!qs, !ks, !vs) -> (!os, !ls)
  %0:5 = flash.attention_grad %qs, %ks, %vs, %os, %ls, %dos mask(#flash.window<left = 50>) query_lengths(%nq : !n) key_lengths(%nk : !n)
      wrt(%x, %y : !ofAll, !ofEach) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %of_all = tensor.extract %x[%h, %i, %j] : !ofAll
    %of_each = tensor.extract %y[%b, %h, %i, %j] : !ofEach
    %a = arith.addf %s, %of_all : f32
    %r = arith.addf %a, %of_each : f32
    flash.yield %r : f32
  } : (!qs, !ks, !vs, !os, !ls, !os) -> (!qs, !ks, !vs, !ofAll, !ofEach)
  return %0#3, %0#4 : !ofAll, !ofEach
}

// By distance from the first row, and from the last one, which is another number of rows away in each sequence.
!table = tensor<4x146xf32>
func.func @distances(%q: !q, %k: !k, %v: !v, %of_queries: tensor<5xi32>, %of_keys: tensor<5xi64>, %do: !o, %x: !table, %y: !table)
    -> (!table, !table) {
  %c69 = arith.constant 69 : index
  %c75 = arith.constant 75 : index
  %qs, %nq = flash.unpack %q by %of_queries : !q, tensor<5xi32> -> !qs, !n
  %ks, %nk = flash.unpack %k by %of_keys : !k, tensor<5xi64> -> !ks, !n
  %vs, %nv = flash.unpack %v by %of_keys : !v, tensor<5xi64> -> !vs, !n
  %dos, %no = flash.unpack %do by %of_queries : !o, tensor<5xi32> -> !os, !n
  %os, %ls = flash.attention %qs, %ks, %vs mask(#flash.causal) query_lengths(%nq : !n) key_lengths(%nk : !n) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %apart = arith.subi %i, %j : index
    %at = arith.addi %apart, %c69 : index
    %of_first = tensor.extract %x[%h, %at] : !table
    %count = tensor.extract %nq[%b] : !n
    %keys = tensor.extract %nk[%b] : !n
    %more = arith.subi %keys, %count : i32
    %behind = arith.index_cast %more : i32 to index
    %aligned = arith.addi %apart, %behind : index
    %of_end = arith.addi %aligned, %c75 : index
    %of_last = tensor.extract %y[%h, %of_end] : !table
    %a = arith.addf %s, %of_first : f32
    %r = arith.addf %a, %of_last : f32
    flash.yield %r : f32
  } : (!qs, !ks, !vs) -> (!os, !ls)
  %0:5 = flash.attention_grad %qs, %ks, %vs, %os, %ls, %dos mask(#flash.causal) query_lengths(%nq : !n) key_lengths(%nk : !n)
      wrt(%x, %y : !table, !table) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %apart = arith.subi %i, %j : index
    %at = arith.addi %apart, %c69 : index
    %of_first = tensor.extract %x[%h, %at] : !table
    %count = tensor.extract %nq[%b] : !n
    %keys = tensor.extract %nk[%b] : !n
    %more = arith.subi %keys, %count : i32
    %behind = arith.index_cast %more : i32 to index
    %aligned = arith.addi %apart, %behind : index
    %of_end = arith.addi %aligned, %c75 : index
    %of_last = tensor.extract %y[%h, %of_end] : !table
    %a = arith.addf %s, %of_first : f32
    %r = arith.addf %a, %of_last : f32
    flash.yield %r : f32
  } : (!qs, !ks, !vs, !os, !ls, !os) -> (!qs, !ks, !vs, !table, !table)
  return %0#3, %0#4 : !table, !table
}

!pq = tensor<3x4x?x64xf16>
!pk = tensor<3x2x?x64xf16>
!pl = tensor<3x4x?xf32>
!pn = tensor<3xi32>
!distances = tensor<200xf32>
!pairs = tensor<4x130x70xf32>
!keys = tensor<70xf32>
func.func @padded(%q: !pq, %k: !pk, %nq: !pn, %nk: !pn, %lengths: !pn, %do: tensor<3x4x150x64xf16>, %slopes: !slopes, %x: !distances, %y: !pairs, %z: !keys)
    -> (!slopes, !distances, !pairs, !keys) {
  %c69 = arith.constant 69 : index
  %o, %lse = flash.attention %q, %k, %k mask(#flash.causal) lengths(%lengths : !pn) query_lengths(%nq : !pn) key_lengths(%nk : !pn) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %slope = tensor.extract %slopes[%h] : !slopes
    %apart = arith.subi %i, %j : index
    %at = arith.addi %apart, %c69 : index
    %x0 = tensor.extract %x[%at] : !distances
    %y0 = tensor.extract %y[%h, %i, %j] : !pairs
    %z0 = tensor.extract %z[%j] : !keys
    %s0 = arith.mulf %s, %slope : f32
    %s1 = arith.addf %s0, %x0 : f32
    %s2 = arith.addf %s1, %y0 : f32
    %r = arith.addf %s2, %z0 : f32
    flash.yield %r : f32
  } : (!pq, !pk, !pk) -> (!pq, !pl)
  %g = tensor.cast %do : tensor<3x4x150x64xf16> to !pq
  %0:7 = flash.attention_grad %q, %k, %k, %o, %lse, %g mask(#flash.causal) lengths(%lengths : !pn) query_lengths(%nq : !pn) key_lengths(%nk : !pn)
      wrt(%slopes, %x, %y, %z : !slopes, !distances, !pairs, !keys) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %slope = tensor.extract %slopes[%h] : !slopes
    %apart = arith.subi %i, %j : index
    %at = arith.addi %apart, %c69 : index
    %x0 = tensor.extract %x[%at] : !distances
    %y0 = tensor.extract %y[%h, %i, %j] : !pairs
    %z0 = tensor.extract %z[%j] : !keys
    %s0 = arith.mulf %s, %slope : f32
    %s1 = arith.addf %s0, %x0 : f32
    %s2 = arith.addf %s1, %y0 : f32
    %r = arith.addf %s2, %z0 : f32
    flash.yield %r : f32
  } : (!pq, !pk, !pk, !pq, !pl, !pq) -> (!pq, !pk, !pk, !slopes, !distances, !pairs, !keys)
  return %0#3, %0#4, %0#5, %0#6 : !slopes, !distances, !pairs, !keys
}

func.func @shorter(%q: !q, %k: !k, %v: !v, %of_queries: tensor<5xi32>, %of_keys: tensor<5xi64>, %do: !o, %slopes: !slopes, %lengths: !n) -> !slopes {
  %qs, %nq = flash.unpack %q by %of_queries : !q, tensor<5xi32> -> !qs, !n
  %ks, %nk = flash.unpack %k by %of_keys : !k, tensor<5xi64> -> !ks, !n
  %vs, %nv = flash.unpack %v by %of_keys : !v, tensor<5xi64> -> !vs, !n
  %dos, %no = flash.unpack %do by %of_queries : !o, tensor<5xi32> -> !os, !n
  %os, %ls = flash.attention %qs, %ks, %vs lengths(%lengths : !n) query_lengths(%nq : !n) key_lengths(%nk : !n) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %slope = tensor.extract %slopes[%h] : !slopes
    %a = arith.mulf %s, %slope : f32
    flash.yield %a : f32
  } : (!qs, !ks, !vs) -> (!os, !ls)
  %0:4 = flash.attention_grad %qs, %ks, %vs, %os, %ls, %dos lengths(%lengths : !n) query_lengths(%nq : !n) key_lengths(%nk : !n)
      wrt(%slopes : !slopes) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %slope = tensor.extract %slopes[%h] : !slopes
    %a = arith.mulf %s, %slope : f32
    flash.yield %a : f32
  } : (!qs, !ks, !vs, !os, !ls, !os) -> (!qs, !ks, !vs, !slopes)
  return %0#3 : !slopes
}
