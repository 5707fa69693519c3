// Wide heads: columns of values that warpgroups divide, or blocks of them, smaller tiles, and gradients of keys and of values apart.
// RUN: flash-opt %s --flash-attach-target=target=sm_80 --flash-select-schedule | FileCheck %s --check-prefix=SM80
// RUN: flash-opt %s --flash-attach-target=target=sm_90a --flash-select-schedule | FileCheck %s --check-prefix=SM90
// RUN: flash-opt %s --flash-attach-target=target=cpu --flash-select-schedule | FileCheck %s --check-prefix=CPU
// RUN: not flash-opt %s --flash-attach-target=target=sm_86 --flash-select-schedule 2>&1 | FileCheck %s --check-prefix=SM86
// RUN: not flash-opt %s --flash-attach-target=target=sm_80 --flash-select-schedule='schedule=value_columns=216' 2>&1 | FileCheck %s --check-prefix=COLUMNS
// RUN: not flash-opt %s --flash-attach-target=target=sm_80 --flash-select-schedule='schedule=value_columns=600' 2>&1 | FileCheck %s --check-prefix=RANGE
// RUN: not flash-opt %s --flash-attach-target=target=sm_90a --flash-select-schedule='schedule=value_columns=512,features=specialize_warps' 2>&1 | FileCheck %s --check-prefix=REGISTERS
// RUN: flash-opt %s --flash-attach-target=target=sm_90a --flash-select-schedule='schedule=features=-divide_columns' | FileCheck %s --check-prefix=BLOCKS
// RUN: not flash-opt %s --flash-attach-target=target=sm_90a --flash-select-schedule='schedule=value_columns=256,features=specialize_warps|divide_columns' 2>&1 | FileCheck %s --check-prefix=NARROW
// RUN: not flash-opt %s --flash-attach-target=target=sm_90a --flash-select-schedule='schedule=query_tile=128,value_columns=256,features=specialize_warps|divide_columns' 2>&1 | FileCheck %s --check-prefix=NARROW
// RUN: not flash-opt %s --flash-attach-target=target=sm_90a --flash-select-schedule='schedule=query_tile=128,features=specialize_warps|divide_columns' 2>&1 | FileCheck %s --check-prefix=QUERIES
// RUN: not flash-opt %s --flash-attach-target='target=sm_90a keys=shared_bytes_per_block=101376' --flash-select-schedule='schedule=features=specialize_warps' 2>&1 | FileCheck %s --check-prefix=SHARED
// COLUMNS: 'flash.attention' op cannot be scheduled: blocks of value_columns = 216 of 512 columns of values do not begin multiples of 8 columns apart; the nearest is 224
// RANGE: value_columns must be a multiple of 8 from 8 to 576, got 600; the nearest is 576
// REGISTERS: need {{[0-9]+}} registers of a thread, and with 1 warpgroups there are 240; choose a smaller key_tile or fewer value_columns, such as value_columns = {{[0-9]+}}
// NARROW: divide_columns is of blocks with more than 256 and up to 512 columns of values, got 256; leave it out of the features
// QUERIES: divide_columns is of 64 queries that two warpgroups share, so query_tile must be 64, got 128
// SHARED: the features specialize_warps need
// SM86: 'flash.attention_grad' op cannot be scheduled: tiles and steps of gradients need 131072 bytes of shared memory, and a block may have 101376; choose elements of 16 bits, or cpu

// SM80-LABEL: @prefill
// SM80:         query_tile = 64, key_tile = 16, value_columns = 256, warps = 4, stages = 1
// SM90-LABEL: @prefill
// SM90:         query_tile = 64, key_tile = 32, warps = 4, stages = 2
// SM90-SAME:    features = specialize_warps|overlap|persistent|bulk_store|divide_columns
// BLOCKS-LABEL: @prefill
// BLOCKS:       query_tile = 64, key_tile = 48, value_columns = 256, warps = 4, stages = 2
// BLOCKS-SAME:  features = specialize_warps|overlap|lazy_rescale
// CPU-LABEL:  @prefill
// CPU-NOT:      value_columns
func.func @prefill(%q: tensor<4x16x4096x512xbf16>, %k: tensor<4x16x4096x512xbf16>, %v: tensor<4x16x4096x512xbf16>) -> tensor<4x16x4096x512xbf16> {
  %o = flash.attention %q, %k, %v : (tensor<4x16x4096x512xbf16>, tensor<4x16x4096x512xbf16>, tensor<4x16x4096x512xbf16>) -> tensor<4x16x4096x512xbf16>
  return %o : tensor<4x16x4096x512xbf16>
}

// Of 128 heads no tile has room for more than 64; values of keys leave room for longer tiles of these, which steps do not overlap.
// SM80-LABEL: @decode
// SM80:         query_tile = 64, key_tile = 16, packed_heads = 64, value_columns = 256
// SM90-LABEL: @decode
// SM90:         query_tile = 64, key_tile = 64, packed_heads = 64, warps = 4, stages = 2
// SM90-SAME:    features = specialize_warps|ping_pong|persistent|bulk_store|divide_columns
// BLOCKS-LABEL: @decode
// BLOCKS:       query_tile = 64, key_tile = 64, packed_heads = 64, value_columns = 256
// BLOCKS-SAME:  features = specialize_warps|lazy_rescale
// SM90-LABEL: @decode_values
// SM90:         query_tile = 64, key_tile = 32, packed_heads = 64, warps = 4, stages = 2
// SM90-SAME:    features = specialize_warps|overlap|persistent|bulk_store|divide_columns
func.func @decode(%q: tensor<128x128x1x576xbf16>, %k: tensor<128x1x4096x576xbf16>) -> tensor<128x128x1x512xbf16> {
  %v = tensor.extract_slice %k[0, 0, 0, 0] [128, 1, 4096, 512] [1, 1, 1, 1] : tensor<128x1x4096x576xbf16> to tensor<128x1x4096x512xbf16>
  %o = flash.attention %q, %k, %v : (tensor<128x128x1x576xbf16>, tensor<128x1x4096x576xbf16>, tensor<128x1x4096x512xbf16>) -> tensor<128x128x1x512xbf16>
  return %o : tensor<128x128x1x512xbf16>
}
func.func @decode_values(%q: tensor<128x128x1x576xbf16>, %k: tensor<128x1x4096x576xbf16>, %v: tensor<128x1x4096x512xbf16>) -> tensor<128x128x1x512xbf16> {
  %o = flash.attention %q, %k, %v : (tensor<128x128x1x576xbf16>, tensor<128x1x4096x576xbf16>, tensor<128x1x4096x512xbf16>) -> tensor<128x128x1x512xbf16>
  return %o : tensor<128x128x1x512xbf16>
}

// As versions of a program know some sizes, casts are between keys and values.
// SM90-LABEL: @version
// SM90:         query_tile = 64, key_tile = 64, packed_heads = 64, warps = 4, stages = 2
func.func @version(%q: tensor<?x128x1x576xbf16>, %k: tensor<?x1x?x576xbf16>) -> tensor<?x128x1x512xbf16> {
  %c1 = arith.constant 1 : index
  %open = tensor.cast %k : tensor<?x1x?x576xbf16> to tensor<?x?x?x576xbf16>
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %b = tensor.dim %k, %c0 : tensor<?x1x?x576xbf16>
  %n = tensor.dim %k, %c2 : tensor<?x1x?x576xbf16>
  %columns = tensor.extract_slice %open[0, 0, 0, 0] [%b, %c1, %n, 512] [1, 1, 1, 1] : tensor<?x?x?x576xbf16> to tensor<?x?x?x512xbf16>
  %v = tensor.cast %columns : tensor<?x?x?x512xbf16> to tensor<?x1x?x512xbf16>
  %o = flash.attention %q, %k, %v : (tensor<?x128x1x576xbf16>, tensor<?x1x?x576xbf16>, tensor<?x1x?x512xbf16>) -> tensor<?x128x1x512xbf16>
  return %o : tensor<?x128x1x512xbf16>
}

// SM80-LABEL: @gradients
// SM80:         query_tile = 16, key_tile = 16, query_step = 16, key_step = 16, key_programs = 2
// SM90-LABEL: @gradients
// SM90:         key_programs = 2
func.func @gradients(%q: tensor<1x2x4096x512xf32>, %lse: tensor<1x2x4096xf32>) -> tensor<1x2x4096x512xf32> {
  %dq, %dk, %dv = flash.attention_grad %q, %q, %q, %q, %lse, %q
    : (tensor<1x2x4096x512xf32>, tensor<1x2x4096x512xf32>, tensor<1x2x4096x512xf32>, tensor<1x2x4096x512xf32>, tensor<1x2x4096xf32>, tensor<1x2x4096x512xf32>)
    -> (tensor<1x2x4096x512xf32>, tensor<1x2x4096x512xf32>, tensor<1x2x4096x512xf32>)
  return %dq : tensor<1x2x4096x512xf32>
}
