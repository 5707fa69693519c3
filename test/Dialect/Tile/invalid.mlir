// Every rule of the verifiers and parsers, with its message.
// RUN: flash-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{a layout is spread over 1 to 32 warps, got 0}}
func.func @f(%x: tensor<16x8xf32, #tile.fragment<0>>)

// -----

// expected-error @below {{a layout is spread over 1 to 32 warps, got 33}}
func.func @f(%x: tensor<16xf32, #tile.rows<33>>)

// -----

// expected-error @below {{a layout is spread over 1 to 32 warps, got -1}}
func.func @f(%x: tensor<16x4xf32, #tile.lanes<-1>>)

// -----

// expected-error @below {{this layout is of static tensors of rank 2}}
func.func @f(%x: tensor<?x8xf32, #tile.fragment<1>>)

// -----

// expected-error @below {{this layout is of static tensors of rank 1}}
func.func @f(%x: tensor<16x8xf32, #tile.rows<1>>)

// -----

// expected-error @below {{this layout is of static tensors of rank 2}}
func.func @f(%x: tensor<16xf32, #tile.lanes<1>>)

// -----

// expected-error @below {{the rows of a tile over 4 warps must be a multiple of 64, got 32}}
func.func @f(%x: tensor<32x8xf32, #tile.fragment<4>>)

// -----

// expected-error @below {{the columns of a fragment must be a multiple of 8, got 12}}
func.func @f(%x: tensor<16x12xf32, #tile.fragment<1>>)

// -----

// expected-error @below {{the columns of a wide fragment must be a multiple of 16, got 24}}
func.func @f(%x: tensor<16x24xf32, #tile.wide_fragment<1>>)

// -----

// expected-error @below {{a layout is spread over 1 to 32 warps, got 0}}
func.func @f(%x: tensor<16x16xf32, #tile.wide_fragment<0>>)

// -----

// expected-error @below {{the rows of a tile over 2 warps must be a multiple of 32, got 16}}
func.func @f(%x: tensor<16x16xf32, #tile.wide_fragment<2>>)

// -----

// expected-error @below {{four lanes share a row, got 8 columns}}
func.func @f(%x: tensor<16x8xf32, #tile.lanes<1>>)

// -----

// expected-error @below {{shared-memory tiles hold f16, bf16, f32, f8E4M3FN or i8, got 'f64'}}
func.func @f(%x: !tile.smem<16x8xf64, swizzle = 32>)

// -----

// expected-error @below {{rows and columns of a shared-memory tile must be positive multiples of 8, got 16 x 4}}
func.func @f(%x: !tile.smem<16x4xf32, swizzle = 32>)

// -----

// expected-error @below {{rows and columns of a shared-memory tile must be positive multiples of 8, got 0 x 8}}
func.func @f(%x: !tile.smem<0x8xf32, swizzle = 32>)

// -----

// expected-error @below {{the swizzle must be 16, 32, 64 or 128 bytes, got 8}}
func.func @f(%x: !tile.smem<16x8xf32, swizzle = 8>)

// -----

// expected-error @below {{a shared-memory tile has 2 dimensions, got 3}}
func.func @f(%x: !tile.smem<2x16x8xf32, swizzle = 32>)

// -----

// expected-error @below {{expected 'swizzle'}}
func.func @f(%x: !tile.smem<16x8xf32, bank = 32>)

// -----

func.func @f() {
  // expected-error @below {{has row_stages, which need one stage with a multiple of 64 rows, neither checked nor finite, got '!tile.ring<2, <128x64xf16, swizzle = 128>>'}}
  %r = tile.ring row_stages = 3 : !tile.ring<2, !tile.smem<128x64xf16, swizzle = 128>>
  return
}

// -----

func.func @f() {
  // expected-error @below {{has tiles that are made finite, which need no check}}
  %r = tile.ring checked finite : !tile.ring<1, !tile.smem<128x64xf16, swizzle = 128>>
  return
}

// -----

func.func @f() {
  // expected-error @below {{has row_stages, which need one stage with a multiple of 64 rows, neither checked nor finite}}
  %r = tile.ring finite row_stages = 3 : !tile.ring<1, !tile.smem<128x64xf16, swizzle = 128>>
  return
}

// -----

func.func @f() {
  // expected-error @below {{needs a row stage for each warpgroup, 2, got 1}}
  %r = tile.ring row_stages = 1 : !tile.ring<1, !tile.smem<128x64xf16, swizzle = 128>>
  return
}

// -----

func.func @f(%x: tensor<128x64xf16, #tile.fragment<8>>, %s: memref<?x64xf16>, %i: index) {
  %r = tile.ring : !tile.ring<1, !tile.smem<128x64xf16, swizzle = 128>>
  %t = tile.ring.wait %r[%i] : !tile.ring<1, !tile.smem<128x64xf16, swizzle = 128>>
  // expected-error @below {{reuses the memory of '!tile.smem<128x64xf16, swizzle = 128>' for '!tile.smem<64x64xf16, swizzle = 128>'; the types must be the same, unless the tile belongs to a ring with row_stages}}
  tile.store_bulk %x, %s[%i] through !tile.smem<64x64xf16, swizzle = 128> in %t : !tile.smem<128x64xf16, swizzle = 128> : tensor<128x64xf16, #tile.fragment<8>> to memref<?x64xf16>
  return
}

// -----

func.func @f(%x: tensor<128x128xf16, #tile.fragment<8>>, %s: memref<?x128xf16>, %t: !tile.smem<128x128xf16, swizzle = 128>, %i: index) {
  // expected-error @below {{stores all columns in a row stage, which has 64 of 128}}
  tile.store_bulk %x, %s[%i] through !tile.smem<64x64xf16, swizzle = 128> in %t : !tile.smem<128x128xf16, swizzle = 128> : tensor<128x128xf16, #tile.fragment<8>> to memref<?x128xf16>
  return
}

// -----

// expected-error @below {{a ring has 1 to 16 stages, got 17}}
func.func @f(%x: !tile.ring<17, !tile.smem<16x8xf32, swizzle = 32>>)

// -----

func.func @f(%x: memref<?x16x8xf32>, %i: index) {
  // expected-error @below {{needs an index for each dimension but the columns: 2, got 1}}
  %t = tile.fetch %x[%i] : memref<?x16x8xf32> to !tile.smem<16x8xf32, swizzle = 32>
  return
}

// -----

func.func @f(%x: memref<16x8xf32>, %i: index) {
  // expected-error @below {{copies elements of 'f32' into a tile of 'f16'}}
  %t = tile.fetch %x[%i] : memref<16x8xf32> to !tile.smem<16x8xf16, swizzle = 32>
  return
}

// -----

func.func @f(%x: memref<16x16xf32>, %r: !tile.ring<1, !tile.smem<16x8xf32, swizzle = 32>>, %i: index) {
  // expected-error @below {{needs as many columns in memory as in the tile, 8}}
  tile.copy_async %x[%i] to %r[%i] : memref<16x16xf32> to !tile.ring<1, !tile.smem<16x8xf32, swizzle = 32>>
  return
}

// -----

func.func @f(%x: memref<16x8xf32, strided<[1, 16]>>, %i: index) {
  // expected-error @below {{needs memory whose last dimension is contiguous}}
  %t = tile.fetch %x[%i] : memref<16x8xf32, strided<[1, 16]>> to !tile.smem<16x8xf32, swizzle = 32>
  return
}

// -----

func.func @f(%x: memref<16x8xf64>, %i: index) {
  // expected-error @below {{operand #0 must be memref of 16-bit float or bfloat16 type or 32-bit float or f8E4M3FN type or 8-bit signless integer values without a memory space, but got 'memref<16x8xf64>'}}
  %t = tile.fetch %x[%i] : memref<16x8xf64> to !tile.smem<16x8xf32, swizzle = 32>
  return
}

// -----

func.func @f(%x: tensor<16xf32, #tile.rows<1>>, %m: memref<?x?xf32>, %i: index) {
  // expected-error @below {{needs an index for each dimension but the columns: 2, got 1}}
  tile.store %x, %m[%i] : tensor<16xf32, #tile.rows<1>> to memref<?x?xf32>
  return
}

// -----

func.func @f(%x: tensor<16x4xf32, #tile.lanes<1>>, %m: memref<?x4xf32>, %i: index) {
  // expected-error @below {{operand #0 must be tensor in the layout FragmentAttr or tensor in the layout WideFragmentAttr or tensor in the layout RowsAttr}}
  tile.store %x, %m[%i] : tensor<16x4xf32, #tile.lanes<1>> to memref<?x4xf32>
  return
}

// -----

func.func @f(%a: !tile.smem<16x8xf32, swizzle = 32>) {
  // expected-error @below {{gives a fragment of f32, not 'tensor<16x16xf32>'}}
  %d = tile.mma_async %a, %a transpose_b : !tile.smem<16x8xf32, swizzle = 32>, !tile.smem<16x8xf32, swizzle = 32>
      -> !tile.pending<tensor<16x16xf32>>
  return
}

// -----

func.func @f(%a: tensor<32x8xf16, #tile.fragment<2>>, %b: !tile.smem<16x8xf16, swizzle = 32>) {
  // expected-error @below {{needs operands and result over the same warps}}
  %d = tile.mma_async %a, %b transpose_b : tensor<32x8xf16, #tile.fragment<2>>, !tile.smem<16x8xf16, swizzle = 32>
      -> !tile.pending<tensor<32x16xf32, #tile.fragment<1>>>
  return
}

// -----

func.func @f(%a: !tile.smem<16x8xf32, swizzle = 32>, %b: !tile.smem<16x8xf16, swizzle = 32>) {
  // expected-error @below {{multiplies elements of 'f32' by elements of 'f16'}}
  %d = tile.mma_async %a, %b transpose_b : !tile.smem<16x8xf32, swizzle = 32>, !tile.smem<16x8xf16, swizzle = 32>
      -> !tile.pending<tensor<16x16xf32, #tile.fragment<1>>>
  return
}

// -----

func.func @f(%a: !tile.smem<16x8xf16, swizzle = 32>) {
  // expected-error @below {{rounds operands of f32 only to tf32, not of 'f16'}}
  %d = tile.mma_async %a, %a transpose_b tf32 : !tile.smem<16x8xf16, swizzle = 32>, !tile.smem<16x8xf16, swizzle = 32>
      -> !tile.pending<tensor<16x16xf32, #tile.fragment<1>>>
  return
}

// -----

func.func @f(%a: !tile.smem<16x8xf16, swizzle = 32>) {
  // expected-error @below {{contracts 8 columns of a with 16 of b}}
  %d = tile.mma_async %a, %a : !tile.smem<16x8xf16, swizzle = 32>, !tile.smem<16x8xf16, swizzle = 32>
      -> !tile.pending<tensor<16x8xf32, #tile.fragment<1>>>
  return
}

// -----

func.func @f(%a: !tile.smem<16x8xf16, swizzle = 32>, %b: !tile.smem<8x16xf16, swizzle = 32>) {
  // expected-error @below {{contracts rows of 16-bit elements, which are a multiple of 16, not 8}}
  %d = tile.mma_async %a, %b : !tile.smem<16x8xf16, swizzle = 32>, !tile.smem<8x16xf16, swizzle = 32>
      -> !tile.pending<tensor<16x16xf32, #tile.fragment<1>>>
  return
}

// -----

func.func @f(%a: !tile.smem<16x8xf16, swizzle = 32>) {
  // expected-error @below {{gives a tile of 16 x 16, not 'tensor<16x8xf32, #tile.fragment<1>>'}}
  %d = tile.mma_async %a, %a transpose_b : !tile.smem<16x8xf16, swizzle = 32>, !tile.smem<16x8xf16, swizzle = 32>
      -> !tile.pending<tensor<16x8xf32, #tile.fragment<1>>>
  return
}

// -----

func.func @f(%a: !tile.smem<16x8xf16, swizzle = 32>, %c: tensor<16x16xf16, #tile.fragment<1>>) {
  // expected-error @below {{adds to a tile of another type than its result: 'tensor<16x16xf16, #tile.fragment<1>>'}}
  %d = tile.mma_async %a, %a add %c transpose_b : !tile.smem<16x8xf16, swizzle = 32>, !tile.smem<16x8xf16, swizzle = 32>,
      tensor<16x16xf16, #tile.fragment<1>> -> !tile.pending<tensor<16x16xf32, #tile.fragment<1>>>
  return
}

// -----

func.func @f(%x: !tile.smem<16x8xf16, swizzle = 32>) {
  // expected-error @below {{gives a tensor of another shape or element type than '!tile.smem<16x8xf16, swizzle = 32>'}}
  %r = tile.load %x : !tile.smem<16x8xf16, swizzle = 32> to tensor<16x8xf32, #tile.fragment<1>>
  return
}

// -----

func.func @f(%x: !tile.smem<8x16xf32, swizzle = 64>) {
  // expected-error @below {{takes a value of f32 for each of 128 columns from '!tile.smem<8x16xf32, swizzle = 64>'; they lie eight in a row, not transposed}}
  %r = tile.load %x : !tile.smem<8x16xf32, swizzle = 64> to tensor<128xf32, #tile.columns<1>>
  return
}

// -----

func.func @f(%x: !tile.smem<16x8xf32, swizzle = 32>) {
  // expected-error @below {{takes a value of f32 for each of 64 rows from '!tile.smem<16x8xf32, swizzle = 32>'; they lie eight in a row, not transposed}}
  %r = tile.load %x : !tile.smem<16x8xf32, swizzle = 32> to tensor<64xf32, #tile.rows<4 from 4>>
  return
}

// -----

func.func @f(%x: tensor<64xf32, #tile.rows<4>>) {
  // expected-error @below {{puts a value of f32 for each row, eight in a row, not 'tensor<64xf32, #tile.rows<4>>' to '!tile.smem<64x8xf32, swizzle = 32>'}}
  %r = tile.share %x : tensor<64xf32, #tile.rows<4>> to !tile.smem<64x8xf32, swizzle = 32>
  return
}

// -----

// expected-error @below {{a layout over 4 of a block's 32 warps is from one of the first 29 on, got 30}}
func.func private @f(tensor<64x8xf32, #tile.fragment<4 from 30>>)

// -----

func.func @f(%x: tensor<64xf32, #tile.rows<4>>) {
  // expected-error @below {{needs as many rows and warps in its result, a matrix, as in its operand, which is a vector}}
  %r = tile.broadcast %x : tensor<64xf32, #tile.rows<4>> to tensor<64x8xf32, #tile.fragment<4 from 4>>
  return
}

// -----

func.func @f(%x: f32) {
  // expected-error @below {{does not convert elements to 'f16'}}
  %r = tile.broadcast %x : f32 to tensor<16x8xf16, #tile.fragment<1>>
  return
}

// -----

func.func @f(%x: tensor<16xf32, #tile.rows<1>>) {
  // expected-error @below {{needs as many rows and warps in its result, a matrix, as in its operand, which is a vector}}
  %r = tile.broadcast %x : tensor<16xf32, #tile.rows<1>> to tensor<32x8xf32, #tile.fragment<1>>
  return
}

// -----

func.func @f(%x: tensor<8x32xf32, #tile.warp_rows<8, 1>>) {
  // expected-error @below {{needs as many rows and warps in its result, a matrix, as in its operand, which is a vector}}
  %r = tile.broadcast %x : tensor<8x32xf32, #tile.warp_rows<8, 1>> to tensor<8x64xf32, #tile.warp_rows<8, 2>>
  return
}

// -----

func.func @f(%x: tensor<32x8xf32, #tile.fragment<2>>, %l: tensor<32x4xf32, #tile.lanes<1>>) {
  // expected-error @below {{needs rows, warps and elements alike in its operands}}
  %r = tile.fold add %x into %l : tensor<32x8xf32, #tile.fragment<2>> into tensor<32x4xf32, #tile.lanes<1>>
  return
}

// -----

func.func @f(%x: tensor<16x8xf32, #tile.fragment<1>>, %l: tensor<16x4xf32, #tile.lanes<1>>) {
  // expected-error @+2 {{expected ::flash::tile::Reduction to be one of: add, max, min, mul, maximum, minimum}}
  // expected-error @+1 {{failed to parse Tile_ReductionAttr parameter}}
  %r = tile.fold least %x into %l : tensor<16x8xf32, #tile.fragment<1>> into tensor<16x4xf32, #tile.lanes<1>>
  return
}

// -----

func.func @f(%x: tensor<16x8xf16, #tile.fragment<1>>, %l: tensor<16x4xf16, #tile.lanes<1>>) {
  // expected-error @below {{combines elements of f32, not of 'f16'}}
  %r = tile.fold add %x into %l : tensor<16x8xf16, #tile.fragment<1>> into tensor<16x4xf16, #tile.lanes<1>>
  return
}

// -----

func.func @f(%x: tensor<16x4xbf16, #tile.lanes<1>>) {
  // expected-error @below {{combines elements of f32, not of 'bf16'}}
  %r = tile.reduce add %x : tensor<16x4xbf16, #tile.lanes<1>> to tensor<16xbf16, #tile.rows<1>>
  return
}

// -----

func.func @f(%x: tensor<32x4xf32, #tile.lanes<1>>) {
  // expected-error @below {{needs rows, warps and elements alike in its operand and result}}
  %r = tile.reduce add %x : tensor<32x4xf32, #tile.lanes<1>> to tensor<16xf32, #tile.rows<1>>
  return
}

// -----

func.func @f(%x: tensor<16x8xf32, #tile.fragment<1>>) {
  // expected-error @below {{needs a region with an argument of 'f32' for each of 1 tiles and of index for each of 2 dimensions}}
  %r = tile.map %x : (tensor<16x8xf32, #tile.fragment<1>>) -> tensor<16x8xf32, #tile.fragment<1>> {
  ^bb0(%e: f32):
    tile.yield %e : f32
  }
  return
}

// -----

func.func @f(%x: tensor<16x8xf32, #tile.fragment<1>>) {
  // expected-error @below {{needs a region that yields 'f32'}}
  %r = tile.map %x : (tensor<16x8xf32, #tile.fragment<1>>) -> tensor<16x8xf32, #tile.fragment<1>> {
  ^bb0(%e: f32, %i: index, %j: index):
    tile.yield %i : index
  }
  return
}

// -----

func.func @f(%x: tensor<16x8xf32, #tile.fragment<1>>, %y: tensor<16x8xf32, #tile.fragment<1>>) {
  // expected-error @below {{needs a region with an argument of 'f32' for each of 2 tiles and of index for each of 2 dimensions}}
  %r = tile.map %x, %y : (tensor<16x8xf32, #tile.fragment<1>>, tensor<16x8xf32, #tile.fragment<1>>) -> tensor<16x8xf32, #tile.fragment<1>> {
  ^bb0(%e: f32, %i: index, %j: index):
    tile.yield %e : f32
  }
  return
}

// -----

// A vector has one position.
func.func @f(%x: tensor<16xf32, #tile.rows<1>>) {
  // expected-error @below {{needs a region with an argument of 'f32' for each of 1 tiles and of index for each of 1 dimensions}}
  %r = tile.map %x : (tensor<16xf32, #tile.rows<1>>) -> tensor<16xf32, #tile.rows<1>> {
  ^bb0(%e: f32, %i: index, %j: index):
    tile.yield %e : f32
  }
  return
}

// -----

func.func @f(%x: tensor<16x8xf32, #tile.fragment<1>>, %y: tensor<16xf32, #tile.rows<1>>) {
  // expected-error @below {{takes tiles of the same type as it gives, not 'tensor<16xf32, #tile.rows<1>>'}}
  %r = tile.map %x, %y : (tensor<16x8xf32, #tile.fragment<1>>, tensor<16xf32, #tile.rows<1>>) -> tensor<16x8xf32, #tile.fragment<1>> {
  ^bb0(%e: f32, %f: f32, %i: index, %j: index):
    tile.yield %e : f32
  }
  return
}

// -----

func.func @f() {
  // expected-error @below {{gives a tile of f32 in a layout of fragments or warp rows, not 'tensor<16x8xf16, #tile.fragment<1>>'}}
  %r = tile.map : () -> tensor<16x8xf16, #tile.fragment<1>> {
  ^bb0(%i: index, %j: index):
    %e = arith.constant 0.0 : f16
    tile.yield %e : f16
  }
  return
}

// -----

func.func @f() {
  // expected-error @below {{gives a tile of f32 in a layout of fragments or warp rows, not 'tensor<16x4xf32, #tile.lanes<1>>'}}
  %r = "tile.map"() ({
  ^bb0(%i: index, %j: index):
    %e = arith.constant 0.0 : f32
    tile.yield %e : f32
  }) : () -> tensor<16x4xf32, #tile.lanes<1>>
  return
}

// -----

// A value for each column.

func.func @f(%x: tensor<16x8xf32, #tile.fragment<1>>) {
  // expected-error @below {{gives an f32 for each column of a tile of f32, over the same warps, not 'tensor<16xf32, #tile.columns<1>>' for 'tensor<16x8xf32, #tile.fragment<1>>'}}
  %r = tile.reduce_rows add %x : tensor<16x8xf32, #tile.fragment<1>> to tensor<16xf32, #tile.columns<1>>
  return
}

// -----

func.func @f(%x: tensor<32x8xf32, #tile.fragment<2>>) {
  // expected-error @below {{gives an f32 for each column of a tile of f32, over the same warps, not}}
  %r = tile.reduce_rows add %x : tensor<32x8xf32, #tile.fragment<2>> to tensor<8xf32, #tile.columns<1>>
  return
}

// -----

func.func @f(%x: tensor<16x8xf16, #tile.fragment<1>>) {
  // expected-error @below {{gives an f32 for each column of a tile of f32, over the same warps, not}}
  %r = tile.reduce_rows max %x : tensor<16x8xf16, #tile.fragment<1>> to tensor<8xf32, #tile.columns<1>>
  return
}

// -----

func.func @f(%x: tensor<8xf32, #tile.columns<1>>) {
  // expected-error @below {{needs a fragment over the same warps with as many columns as its operand has elements}}
  %r = tile.broadcast %x : tensor<8xf32, #tile.columns<1>> to tensor<16x16xf32, #tile.fragment<1>>
  return
}

// -----

func.func @f(%x: tensor<8xf32, #tile.columns<2>>) {
  // expected-error @below {{needs a fragment over the same warps with as many columns as its operand has elements}}
  %r = tile.broadcast %x : tensor<8xf32, #tile.columns<2>> to tensor<16x8xf32, #tile.fragment<1>>
  return
}

// -----

func.func @f(%x: tensor<16xf32, #tile.columns<1>>) {
  // expected-error @below {{needs a fragment over the same warps with as many columns as its operand has elements}}
  %r = tile.broadcast %x : tensor<16xf32, #tile.columns<1>> to tensor<16x4xf32, #tile.lanes<1>>
  return
}

// -----

// expected-error @below {{this layout is of static vectors with a multiple of 8 elements}}
func.func @f(%x: tensor<12xf32, #tile.columns<1>>)

// -----

// expected-error @below {{this layout is of static vectors with a multiple of 8 elements}}
func.func @f(%x: tensor<8x8xf32, #tile.columns<1>>)

// -----

func.func @f(%m: memref<?xf32>, %i: index) {
  // expected-error @below {{reads a vector, which has no columns and is read one by one}}
  %x = tile.read %m[%i] columns(%i) : memref<?xf32> to tensor<8xf32, #tile.warp_rows<8, 1>>
  return
}

// -----

func.func @f(%m: memref<?x?xf32>, %i: index) {
  // expected-error @below {{needs an index for each dimension but the columns: 2, got 1}}
  %x = tile.read %m[%i] : memref<?x?xf32> to tensor<8xf32, #tile.warp_rows<8, 1>>
  return
}

// -----

func.func @f(%m: memref<?xf32>, %i: index) {
  // expected-error @below {{result #0 must be tensor in the layout WarpRowsAttr, but got 'tensor<16xf32, #tile.rows<1>>'}}
  %x = tile.read %m[%i] : memref<?xf32> to tensor<16xf32, #tile.rows<1>>
  return
}

// -----

func.func @f(%x: f32) {
  // expected-error @below {{expects parent op to be one of 'tile.map, tile.dequantize, tile.mma_quantized, tile.ring.dequantize, tile.put_dequantized'}}
  tile.yield %x : f32
}

// -----

// expected-error @below {{a lane holds 1, 2, 4 or 8 neighbouring elements, got 3}}
func.func @f(%x: tensor<8x96xf32, #tile.warp_rows<8, 3>>)

// -----

// expected-error @below {{a layout is spread over 1 to 32 warps, got 0}}
func.func @f(%x: tensor<8x32xf32, #tile.warp_rows<0, 1>>)

// -----

// expected-error @below {{a lane holds pairs of elements of 'f16'}}
func.func @f(%x: tensor<8x32xf16, #tile.warp_rows<8, 1>>)

// -----

// expected-error @below {{this layout is of static tensors of rank 1 or 2}}
func.func @f(%x: tensor<8x?xf32, #tile.warp_rows<8, 1>>)

// -----

// expected-error @below {{the rows of #tile.warp_rows over 8 warps must be a multiple of 8, got 4}}
func.func @f(%x: tensor<4x32xf32, #tile.warp_rows<8, 1>>)

// -----

// expected-error @below {{a row of warp rows over 8 warps is in a power of two of lanes up to 32, or in whole warps that are an equal part of all, got 96 lanes}}
func.func @f(%x: tensor<8x32xf32, #tile.warp_rows<8, 1, 96>>)

// -----

// expected-error @below {{the rows of #tile.warp_rows over 8 warps must be a multiple of 4, got 2}}
func.func @f(%x: tensor<2x32xf32, #tile.warp_rows<8, 1, 64>>)

// -----

func.func @f(%x: tensor<2x64xf32, #tile.warp_rows<8, 1, 128>>) {
  // expected-error @below {{needs rows, warps and elements alike in its operand and result}}
  %r = tile.reduce add %x : tensor<2x64xf32, #tile.warp_rows<8, 1, 128>> to tensor<2xf32, #tile.warp_rows<8, 1, 128>>
  return
}

// -----

// expected-error @below {{warp rows have at least one column}}
func.func @f(%x: tensor<8x0xf32, #tile.warp_rows<8, 4>>)

// -----

func.func @f(%s: memref<?x?xf32>, %i: index) {
  // expected-error @below {{needs memory of rank 2 or more and an index for each dimension: 2, got 1}}
  %x = tile.read %s[%i] columns(%i) : memref<?x?xf32> to tensor<8x128xf32, #tile.warp_rows<8, 4>>
  return
}

// -----

func.func @f(%s: memref<?x?xf16>, %i: index) {
  // expected-error @below {{gives elements as they are in memory, of 'f16', not 'f32'}}
  %x = tile.read %s[%i, %i] columns(%i) : memref<?x?xf16> to tensor<8x256xf32, #tile.warp_rows<8, 8>>
  return
}

// -----

func.func @f(%s: memref<?x?xf32>, %i: index, %p: f16) {
  // expected-error @below {{is padded with an element, of 'f32', not 'f16'}}
  %x = tile.read %s[%i, %i] padding(%p : f16) : memref<?x?xf32> to tensor<8x128xf32, #tile.warp_rows<8, 4>>
  return
}

// -----

func.func @f(%s: memref<?x?xf32>, %i: index) {
  // expected-error @below {{reads a vector, which has no columns and is read one by one}}
  %x = tile.read %s[%i, %i] aligned : memref<?x?xf32> to tensor<8xf32, #tile.warp_rows<8, 1>>
  return
}

// -----

func.func @f(%s: memref<?x?xf16>, %i: index) {
  // expected-error @below {{copies elements of 'f16' into a tile of 'f32'}}
  %x = tile.read %s[%i, %i] : memref<?x?xf16> to tensor<8xf32, #tile.warp_rows<8, 1>>
  return
}

// -----

func.func @f(%s: memref<?x?xf16, strided<[1, ?]>>, %i: index) {
  // expected-error @below {{needs memory whose last dimension is contiguous}}
  %x = tile.read %s[%i, %i] columns(%i) : memref<?x?xf16, strided<[1, ?]>> to tensor<8x256xf16, #tile.warp_rows<8, 8>>
  return
}

// -----

func.func @f(%s: memref<?x?xf32>, %x: tensor<16xf32, #tile.rows<1>>, %i: index) {
  // expected-error @below {{ends at a column, which only a matrix does}}
  tile.store %x, %s[%i, %i] columns(%i) : tensor<16xf32, #tile.rows<1>> to memref<?x?xf32>
  return
}

// -----

// Two neighbours are stored at once, unless columns are left out.

func.func @f(%s: memref<?x?xf32, strided<[?, ?]>>, %x: tensor<16x8xf32, #tile.fragment<1>>, %i: index) {
  tile.store %x, %s[%i, %i] columns(%i) : tensor<16x8xf32, #tile.fragment<1>> to memref<?x?xf32, strided<[?, ?]>>
  // expected-error @below {{needs memory whose last dimension is contiguous}}
  tile.store %x, %s[%i, %i] : tensor<16x8xf32, #tile.fragment<1>> to memref<?x?xf32, strided<[?, ?]>>
  return
}

// -----

func.func @f(%s: !tile.smem<16x8xf32, swizzle = 32>) {
  // expected-error @below {{gives a tensor of another shape or element type than}}
  %x = tile.load %s transpose : !tile.smem<16x8xf32, swizzle = 32> to tensor<16x8xf32, #tile.fragment<1>>
  return
}

// -----

func.func @f(%x: tensor<8x128xf32, #tile.warp_rows<8, 4>>, %l: tensor<8x128xf32, #tile.warp_rows<8, 1>>) {
  // expected-error @below {{needs rows, warps and elements alike in its operands}}
  %f = tile.fold max %x into %l : tensor<8x128xf32, #tile.warp_rows<8, 4>> into tensor<8x128xf32, #tile.warp_rows<8, 1>>
  return
}

// -----

func.func @f(%s: memref<?x8xf32>, %x: tensor<64x8xf32, #tile.fragment<4>>, %i: index) {
  // expected-error @below {{stores elements of 16 bits or f32, through a tile of the same type, not 'f32' through 'f16'}}
  tile.store_bulk %x, %s[%i] through !tile.smem<64x64xf16, swizzle = 128> : tensor<64x8xf32, #tile.fragment<4>> to memref<?x8xf32>
  return
}

// -----

func.func @f(%s: memref<?x8xf16>, %x: tensor<64x8xf16, #tile.fragment<4>>, %i: index) {
  // expected-error @below {{stores a multiple of 16 columns through a tile of 64 rows with whole panels, not}}
  tile.store_bulk %x, %s[%i] through !tile.smem<64x64xf16, swizzle = 128> : tensor<64x8xf16, #tile.fragment<4>> to memref<?x8xf16>
  return
}

// -----

func.func @f(%s: memref<?x64xf16>, %x: tensor<64x64xf16, #tile.fragment<4>>, %i: index) {
  // expected-error @below {{takes whole rows of memory of rank 2 or more, with an index for each dimension but the columns: 1, got 2}}
  tile.store_bulk %x, %s[%i, %i] through !tile.smem<64x64xf16, swizzle = 128> : tensor<64x64xf16, #tile.fragment<4>> to memref<?x64xf16>
  return
}

// -----

func.func @f(%s: memref<?x?x?x?x?x64xf16>, %x: tensor<64x64xf16, #tile.fragment<4>>, %i: index) {
  // expected-error @below {{stores a tile to memory of at most 5 dimensions, not 'memref<?x?x?x?x?x64xf16>'}}
  tile.store_bulk %x, %s[%i, %i, %i, %i, %i] through !tile.smem<64x64xf16, swizzle = 128> : tensor<64x64xf16, #tile.fragment<4>> to memref<?x?x?x?x?x64xf16>
  return
}

// -----

func.func @f(%s: memref<?x?x?x?x64xf16>, %x: tensor<64x64xf16, #tile.fragment<4>>, %i: index) {
  // expected-error @below {{stores some rows of a tile to memory of at most 4 dimensions, not 'memref<?x?x?x?x64xf16>'}}
  tile.store_bulk %x, %s[%i, %i, %i, %i] rows(%i) through !tile.smem<64x64xf16, swizzle = 128> : tensor<64x64xf16, #tile.fragment<4>> to memref<?x?x?x?x64xf16>
  return
}

// -----

func.func @f(%x: tensor<64x64xf16, #tile.fragment<4>>, %i: index) {
  // expected-error @below {{gives an f32 for each row of a tile of floats, over the same warps as}}
  %c = tile.column %x[%i] : tensor<64x64xf16, #tile.fragment<4>> to tensor<64xf32, #tile.rows<2>>
  return
}

// -----

func.func @f(%x: tensor<64x16xf32, #tile.fragment<4>>, %at: !tile.smem<64x64xf16, swizzle = 128>) {
  // expected-error @below {{writes elements of 16 bits or f32 to a tile of the same type, not 'f32' to 'f16'}}
  tile.put %x, %at {column = 0} : tensor<64x16xf32, #tile.fragment<4>> to !tile.smem<64x64xf16, swizzle = 128>
  return
}

// -----

func.func @f(%x: tensor<64x8xf16, #tile.fragment<4>>, %at: !tile.smem<64x64xf16, swizzle = 128>) {
  // expected-error @below {{writes a multiple of 16 columns to the same rows, or 64 of each warpgroup, not}}
  tile.put %x, %at {column = 0} : tensor<64x8xf16, #tile.fragment<4>> to !tile.smem<64x64xf16, swizzle = 128>
  return
}

// -----

func.func @f(%x: tensor<64x64xf16, #tile.fragment<4>>, %at: !tile.smem<64x64xf16, swizzle = 128>) {
  // expected-error @below {{begins at a multiple of 16 below 64, got 64}}
  tile.put %x, %at {column = 64} : tensor<64x64xf16, #tile.fragment<4>> to !tile.smem<64x64xf16, swizzle = 128>
  return
}

// -----

func.func @f(%x: tensor<64x16xf32, #tile.fragment<4>>, %at: !tile.smem<64x16xf32, swizzle = 64>) {
  // expected-error @below {{alternates between columns of f32 that fill a panel with a swizzle of 128 bytes, not}}
  tile.put %x, %at {alternate, column = 0} : tensor<64x16xf32, #tile.fragment<4>> to !tile.smem<64x16xf32, swizzle = 64>
  return
}

// -----

func.func @f(%t: !tile.smem<64x64xf16, swizzle = 128>) {
  // expected-error @below {{is done by 1 to 32 warps, got 0}}
  tile.clear %t warps(0) : !tile.smem<64x64xf16, swizzle = 128>
  return
}

// -----

func.func @f(%n: index) {
  // expected-error @below {{needs a grid of at least one dimension}}
  tile.position %n of () linear
  return
}

// -----

func.func @f(%n: index) {
  // expected-error @below {{expected an order of tiles, one of linear, longest_first, snake, pairs, heads_fastest, reverse, interleaved, both_ways, backwards, halves}}
  %i = tile.position %n of (%n) shortest_first
  return
}

// -----

func.func @f(%n: index) {
  // expected-error @below {{'tile.position' op additions say how many heads interleaved, reverse and both_ways take together; leave them out of the order linear}}
  %i = tile.position %n of (%n) linear additions(%n)
  return
}

// -----

func.func @f(%n: index) {
  // expected-error @below {{'arith.addi' op has an attribute 'tile.order', which belongs to 'scf.forall'}}
  %i = arith.addi %n, %n {tile.order = #tile.order<linear>} : index
  return
}

// -----

func.func @f(%n: index) {
  // expected-error @below {{'scf.forall' op needs a #tile.order as attribute 'tile.order', got "linear"}}
  scf.forall (%i) in (%n) {
  } {tile.order = "linear"}
  return
}

// -----

gpu.module @m {
  // expected-error @below {{'gpu.func' op has an attribute 'tile.orders' that dialect 'tile' does not declare; the nearest is 'tile.order'}}
  gpu.func @f() kernel attributes {tile.orders} {
    gpu.return
  }
}

// -----

// expected-error @below {{'func.func' op has an attribute 'tile.order', which belongs to 'scf.forall'}}
func.func @f() attributes {tile.order} {
  return
}

// -----

// expected-error @below {{'func.func' op has an attribute 'tile.order' of argument 1; dialect 'tile' declares none for arguments}}
func.func @f(%x: f32, %y: f32 {tile.order = 2}) {
  return
}

// -----

// expected-error @below {{'func.func' op has an attribute 'tile.order' of result 0; dialect 'tile' declares none for results}}
func.func private @f() -> (f32 {tile.order = 2})

// -----

func.func @f() {
  // expected-error @below {{'tile.ring' op has no attribute 'barrier'; the nearest is 'barriers'}}
  %r = tile.ring {barrier = 4096} : !tile.ring<2, !tile.smem<64x64xf16, swizzle = 128>>
  return
}

// -----

func.func @f() {
  // expected-error @below {{'tile.ping_pong.wait' op has no attribute 'warps'; it has none at all}}
  tile.ping_pong.wait {warps = 4}
  return
}

// -----

// Those of other dialects are theirs to judge.
func.func @f() {
  tile.ping_pong.wait {test.note}
  return
}

// -----

// expected-error @below {{cannot be filled by 3 copies: each fills a multiple of 8 rows of a stage, without row_stages, not of '!tile.ring<2, <64x64xf16, swizzle = 128>>'}}
%r = tile.ring copies = 3 : !tile.ring<2, !tile.smem<64x64xf16, swizzle = 128>>

// -----

// expected-error @below {{cannot be filled by 9223372036854775807 copies}}
%r = tile.ring copies = 9223372036854775807 : !tile.ring<2, !tile.smem<64x64xf16, swizzle = 128>>

// -----

func.func @f(%x: tensor<64x64xf32, #tile.fragment<4>>, %r: !tile.ring<2, !tile.smem<64x64xf16, swizzle = 128>>, %t: index) {
  // expected-error @below {{writes elements of 16 bits or f32 to a tile of the same type, not 'f32' to 'f16'}}
  tile.ring.put %x to %r[%t] : tensor<64x64xf32, #tile.fragment<4>> to !tile.ring<2, !tile.smem<64x64xf16, swizzle = 128>>
  return
}

// -----

func.func @f(%x: tensor<64x32xf16, #tile.fragment<4>>, %r: !tile.ring<2, !tile.smem<64x64xf16, swizzle = 128>>, %t: index) {
  // expected-error @below {{fills a tile of as many rows and columns, a multiple of 16, not '!tile.smem<64x64xf16, swizzle = 128>' with}}
  tile.ring.put %x to %r[%t] : tensor<64x32xf16, #tile.fragment<4>> to !tile.ring<2, !tile.smem<64x64xf16, swizzle = 128>>
  return
}

// -----

func.func @f(%x: tensor<64x64xi32, #tile.fragment<4>>, %m: memref<?x64xi32>, %i: index) {
  // expected-error @below {{stores integers of rows, not of a matrix, 'tensor<64x64xi32, #tile.fragment<4>>'}}
  tile.store %x, %m[%i] : tensor<64x64xi32, #tile.fragment<4>> to memref<?x64xi32>
  return
}

// -----

func.func @f(%x: tensor<64x64xf16, #tile.fragment<4>>, %m: memref<?x64xf16>, %i: index) {
  // expected-error @below {{adds a fragment of f32, not 'tensor<64x64xf16, #tile.fragment<4>>'}}
  tile.store add %x, %m[%i] : tensor<64x64xf16, #tile.fragment<4>> to memref<?x64xf16>
  return
}

// -----

func.func @f(%x: tensor<64x64xf16, #tile.fragment<4>>, %m: memref<?x64xf16>, %i: index) {
  // expected-error @below {{adds elements of f32, not 'f16'}}
  tile.store_bulk add %x, %m[%i] through !tile.smem<64x64xf16, swizzle = 128> : tensor<64x64xf16, #tile.fragment<4>> to memref<?x64xf16>
  return
}

// -----

func.func @f(%x: tensor<64x32xf16, #tile.fragment<4>>) {
  // expected-error @below {{fills a tile of as many rows and columns, a multiple of 16, not '!tile.smem<64x64xf16, swizzle = 128>' with}}
  %t = tile.share %x : tensor<64x32xf16, #tile.fragment<4>> to !tile.smem<64x64xf16, swizzle = 128>
  return
}

// -----

func.func @f(%x: memref<16x8xf32>, %i: index) {
  // expected-error @below {{packs 4 rows at a time of memory of rank 2; at least 1, along the last of two dimensions before the columns}}
  %t = tile.fetch %x[%i] packed(4) : memref<16x8xf32> to !tile.smem<16x8xf32, swizzle = 32>
  return
}

// -----

func.func @f(%x: memref<4x16x8xf32>, %i: index) {
  // expected-error @below {{packs 0 rows at a time of memory of rank 3}}
  %t = tile.fetch %x[%i, %i] packed(0) : memref<4x16x8xf32> to !tile.smem<16x8xf32, swizzle = 32>
  return
}

// -----

func.func @f(%x: tensor<16xf32, #tile.rows<1>>, %m: memref<16xf32>, %i: index) {
  // expected-error @below {{packs 4 rows at a time of memory of rank 1; at least 1, along the last of two dimensions}}
  tile.store %x, %m[%i] packed(4) : tensor<16xf32, #tile.rows<1>> to memref<16xf32>
  return
}

// -----

func.func @f(%x: tensor<8xf32, #tile.warp_rows<8, 1>>, %m: memref<4x16xf32>, %i: index) {
  // expected-error @below {{packs rows of fragments, not of 'tensor<8xf32, #tile.warp_rows<8, 1>>'}}
  tile.store %x, %m[%i, %i] packed(4) : tensor<8xf32, #tile.warp_rows<8, 1>> to memref<4x16xf32>
  return
}

// -----

!ring = !tile.ring<1, !tile.smem<128x64xf16, swizzle = 128>>
func.func @f(%x: memref<4x16x64xf16>, %i: index) {
  %r = tile.ring copies = 2 : !ring
  // expected-error @below {{copies packed rows to a ring with row_stages or copies; they go to whole stages}}
  tile.copy_async %x[%i, %i] packed(4) to %r[%i] part(%i) : memref<4x16x64xf16> to !ring
  return
}

// -----

func.func @f(%x: memref<4x16x64xf16>, %r: !tile.ring<1, !tile.smem<64x64xf16, swizzle = 128>>, %i: index) {
  // expected-error @below {{to_end says where the rows behind rows(...) lie, and all exist; leave it out}}
  tile.copy_async %x[%i, %i] to_end to %r[%i] : memref<4x16x64xf16> to !tile.ring<1, !tile.smem<64x64xf16, swizzle = 128>>
  return
}

// -----

func.func @f(%x: memref<4x16x64xf16>, %i: index) {
  // expected-error @below {{needs 'rows': of 64 rows, packed by 7, the last 1 do not exist}}
  %t = tile.fetch %x[%i, %i] packed(7) : memref<4x16x64xf16> to !tile.smem<64x64xf16, swizzle = 128>
  return
}

// -----

!ring = !tile.ring<1, !tile.smem<128x64xf16, swizzle = 128>>
func.func @f(%x: memref<4x16x64xf16>, %r: !ring, %i: index) {
  // expected-error @below {{needs 'rows': of 128 rows, packed by 3, the last 2 do not exist}}
  tile.copy_async %x[%i, %i] packed(3) to %r[%i] : memref<4x16x64xf16> to !ring
  return
}

// -----

func.func @f(%a: tensor<64x64xf16, #tile.fragment<4>>, %b: !tile.smem<64x64xf16, swizzle = 128>) {
  // expected-error @below {{transposes a tile of shared memory with elements of 16 bits, not 'tensor<64x64xf16, #tile.fragment<4>>'}}
  %d = tile.mma_async %a, %b transpose_a : tensor<64x64xf16, #tile.fragment<4>>, !tile.smem<64x64xf16, swizzle = 128>
      -> !tile.pending<tensor<64x64xf32, #tile.fragment<4>>>
  return
}

// -----

!tile = !tile.smem<64x64xf32, swizzle = 128>
func.func @f(%a: !tile) {
  // expected-error @below {{transposes a tile of shared memory with elements of 16 bits, not '!tile.smem<64x64xf32, swizzle = 128>'}}
  %d = tile.mma_async %a, %a transpose_a : !tile, !tile -> !tile.pending<tensor<64x64xf32, #tile.fragment<4>>>
  return
}

// -----

func.func @f(%a: !tile.smem<64x32xf16, swizzle = 64>, %b: !tile.smem<64x64xf16, swizzle = 128>) {
  // expected-error @below {{gives a tile of 32 x 64, not 'tensor<64x64xf32, #tile.fragment<4>>'}}
  %d = tile.mma_async %a, %b transpose_a : !tile.smem<64x32xf16, swizzle = 64>, !tile.smem<64x64xf16, swizzle = 128>
      -> !tile.pending<tensor<64x64xf32, #tile.fragment<4>>>
  return
}

// -----

func.func @f(%a: !tile.smem<128x64xf16, swizzle = 128>, %b: !tile.smem<128x80xf16, swizzle = 128>) {
  // expected-error @below {{divides the columns of a second operand that is not transposed, from panels on, among warpgroups that multiply 64 rows in shared memory by them}}
  %d = tile.mma_async %a, %b transpose_a divide_columns : !tile.smem<128x64xf16, swizzle = 128>, !tile.smem<128x80xf16, swizzle = 128>
      -> !tile.pending<tensor<128x40xf32, #tile.fragment<8>>>
  return
}

// -----

func.func @f(%a: !tile.smem<128x64xf16, swizzle = 128>, %b: !tile.smem<128x80xf16, swizzle = 16>) {
  // expected-error @below {{divides 80 columns of b, and gives 64}}
  %d = tile.mma_async %a, %b transpose_a divide_columns : !tile.smem<128x64xf16, swizzle = 128>, !tile.smem<128x80xf16, swizzle = 16>
      -> !tile.pending<tensor<128x32xf32, #tile.fragment<8>>>
  return
}

// -----

func.func @f(%a: !tile.smem<128x64xf16, swizzle = 128>, %b: !tile.smem<64x64xf16, swizzle = 128>) {
  // expected-error @below {{contracts 128 rows of a with 64 of b}}
  %d = tile.mma_async %a, %b transpose_a : !tile.smem<128x64xf16, swizzle = 128>, !tile.smem<64x64xf16, swizzle = 128>
      -> !tile.pending<tensor<64x64xf32, #tile.fragment<4>>>
  return
}

// -----

!tile = !tile.smem<64x32xf32, swizzle = 128>
func.func @f(%t: !tile, %s: memref<?x?x32xf32>, %c: memref<?xi32>, %i: index) {
  // expected-error @below {{takes whole rows of memory of rank 2 or more, with an index for each dimension but the columns: 2, got 3}}
  tile.add_in_order %t, %s[%i, %i, %i] rank(%i) of %c[%i] : !tile to memref<?x?x32xf32>, memref<?xi32>
  return
}

// -----

!tile = !tile.smem<64x32xf32, swizzle = 128>
func.func @f(%t: !tile, %s: memref<?x?x64xf32>, %c: memref<?xi32>, %i: index) {
  // expected-error @below {{needs as many columns in memory as in the tile, 32}}
  tile.add_in_order %t, %s[%i, %i] rank(%i) of %c[%i] : !tile to memref<?x?x64xf32>, memref<?xi32>
  return
}

// -----

!tile = !tile.smem<64x32xf32, swizzle = 128>
func.func @f(%t: !tile, %s: memref<?x?x32xf32>, %c: memref<?x?xi32>, %i: index) {
  // expected-error @below {{needs an index for each dimension of the counts: 2, got 1}}
  tile.add_in_order %t, %s[%i, %i] rank(%i) of %c[%i] : !tile to memref<?x?x32xf32>, memref<?x?xi32>
  return
}

// -----

func.func @f(%c: memref<?x?xi32>, %i: index) {
  // expected-error @below {{'tile.await_rank' op needs an index for each dimension of the counts: 2, got 1}}
  tile.await_rank %i of %c[%i] : memref<?x?xi32>
  return
}

// -----

func.func @f(%c: memref<?x?xi32>, %i: index) {
  // expected-error @below {{'tile.count_up' op needs an index for each dimension of the counts: 2, got 1}}
  %n = tile.count_up %c[%i] : memref<?x?xi32>
  return
}

// -----

func.func @f(%c: memref<?x?xi32>, %i: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %t = %c0 to %i step %c1 {
    // expected-error @below {{'tile.claim' op needs an index for each dimension of the counts: 2, got 1}}
    %n = tile.claim %t of %c[%i] : memref<?x?xi32>
  }
  return
}

// -----

func.func @f(%c: memref<?xi32>, %i: index) {
  // expected-error @below {{'tile.claim' op ends a loop over tiles; its step is what an scf.for around it counts, from 0 on in steps of 1}}
  %n = tile.claim %i of %c[%i] : memref<?xi32>
  return
}

// -----

func.func @f(%c: memref<?xi32>, %i: index) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  scf.for %t = %c0 to %i step %c2 {
    // expected-error @below {{'tile.claim' op ends a loop over tiles; its step is what an scf.for around it counts, from 0 on in steps of 1}}
    %n = tile.claim %t of %c[%i] : memref<?xi32>
  }
  return
}

// -----

func.func @f(%c: memref<?xi32>, %i: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %t = %c0 to %i step %c1 {
    // expected-error @below {{'tile.claim' op shares 2 scalars, and has no region that computes them}}
    %n, %s:2 = tile.claim %t of %c[%c0] : memref<?xi32> -> index, index
  }
  return
}

// -----

func.func @f(%c: memref<?xi32>, %i: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %t = %c0 to %i step %c1 {
    // expected-error @below {{'tile.claim' op needs a region that ends with a tile.share_scalars of as many scalars as it shares: 2}}
    %n, %s:2 = tile.claim %t of %c[%c0] shares {
    ^bb0(%m: index):
      tile.share_scalars %m : index
    } : memref<?xi32> -> index, index
  }
  return
}

// -----

func.func @f(%c: memref<?xi32>, %i: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %t = %c0 to %i step %c1 {
    // expected-error @below {{'tile.claim' op needs a region with one argument of type index, the number of the tile}}
    %n, %s = tile.claim %t of %c[%c0] shares {
    ^bb0(%m: index, %o: index):
      tile.share_scalars %m : index
    } : memref<?xi32> -> index
  }
  return
}

// -----

func.func @f(%c: memref<?xi32>, %i: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %t = %c0 to %i step %c1 {
    %n, %s = tile.claim %t of %c[%c0] shares {
    ^bb0(%m: index):
      // expected-error @below {{'tile.count_up' op does more than compute and read memory; the region of 'tile.claim' may do nothing else}}
      %u = tile.count_up %c[%m] : memref<?xi32>
      tile.share_scalars %m : index
    } : memref<?xi32> -> index
  }
  return
}

// -----

func.func @f(%c: memref<?xi32>, %i: index) {
  // expected-error @below {{'tile.finish_rank' op needs an index for each dimension of the counts: 1, got 2}}
  tile.finish_rank %i of %c[%i, %i] : memref<?xi32>
  return
}

// -----

module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @k(%x: memref<?xf32>) kernel {
      %c0 = arith.constant 0 : index
      // expected-note @below {{move it in front of this}}
      %s = memref.load %x[%c0] : memref<?xf32>
      // expected-error @below {{'tile.await_dependencies' op must come before anything that may read or write global memory}}
      tile.await_dependencies
      gpu.return
    }
  }
}

// -----

module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @k(%x: memref<?xf32>, %s: f32, %p: i1) kernel {
      %c0 = arith.constant 0 : index
      // expected-note @below {{move it in front of this}}
      scf.if %p {
        memref.store %s, %x[%c0] : memref<?xf32>
      }
      // expected-error @below {{'tile.await_dependencies' op must come before anything that may read or write global memory}}
      tile.await_dependencies
      gpu.return
    }
  }
}

// -----

module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @k(%p: i1) kernel {
      scf.if %p {
        // expected-error @below {{'tile.await_dependencies' op must stand in the body of a kernel, where all threads come to it; move it out of scf.if}}
        tile.await_dependencies
      }
      gpu.return
    }
  }
}

// -----

module attributes {gpu.container_module} {
  func.func @f(%n: index, %p: i1) {
    gpu.launch_func @kernels::@k blocks in (%n, %n, %n) threads in (%n, %n, %n)
    scf.if %p {
      // expected-error @below {{'gpu.launch_func' op depends on no launch, as there is none before it in its block; leave out tile.dependent}}
      gpu.launch_func @kernels::@k blocks in (%n, %n, %n) threads in (%n, %n, %n) {tile.dependent}
    }
    return
  }
  gpu.module @kernels {
    gpu.func @k() kernel {
      gpu.return
    }
  }
}

// -----

module attributes {gpu.container_module} {
  func.func @f(%n: index) {
    gpu.launch_func @kernels::@k blocks in (%n, %n, %n) threads in (%n, %n, %n)
    // expected-error @below {{a unit attribute}}
    gpu.launch_func @kernels::@k blocks in (%n, %n, %n) threads in (%n, %n, %n) {tile.dependent = 1 : i64}
    return
  }
  gpu.module @kernels {
    gpu.func @k() kernel {
      gpu.return
    }
  }
}

// -----

func.func @f(%t: !tile.smem<64x64xf16, swizzle = 128>, %s: memref<?x128xf32>, %i: index) {
  // expected-error @below {{adds up diagonals of tiles of 128 rows of 64 or 128 elements of 16 bits, swizzle = 128, got '!tile.smem<64x64xf16, swizzle = 128>'}}
  tile.store_diagonals %t, %s[%i] : !tile.smem<64x64xf16, swizzle = 128> to memref<?x128xf32>
  return
}

// -----

func.func @f(%t: !tile.smem<128x64xf16, swizzle = 128>, %s: memref<?x192xf32>, %i: index) {
  // expected-error @below {{takes whole rows of memory of rank 2 or more, with an index for each dimension but the columns: 1, got 2}}
  tile.store_diagonals %t, %s[%i, %i] : !tile.smem<128x64xf16, swizzle = 128> to memref<?x192xf32>
  return
}

// -----

func.func @f(%t: !tile.smem<128x64xf16, swizzle = 128>, %s: memref<?x191xf32>, %i: index) {
  // expected-error @below {{stores a row of 192 elements side by side, got 'memref<?x191xf32>'}}
  tile.store_diagonals %t, %s[%i] : !tile.smem<128x64xf16, swizzle = 128> to memref<?x191xf32>
  return
}

// -----

!x = tensor<16x64xf32, #tile.fragment<1>>
func.func @f(%x: !x, %n: index) {
  // expected-error @below {{uses a value of a region that it is not in}}
  %a = arith.addi %i, %n : index
  %y = tile.map %x : (!x) -> !x {
  // expected-note @below {{the value}}
  ^bb0(%e: f32, %i: index, %j: index):
    tile.yield %e : f32
  }
  return
}

// -----

func.func @f(%x: memref<4x8x64xf16>, %i: index) {
  // expected-error @below {{fetches 16 rows in 3 parts, at 6 indices; at least two, of as many rows and indices each, and not packed}}
  %t = tile.fetch %x[%i, %i, %i, %i, %i, %i] parts(3) : memref<4x8x64xf16> to !tile.smem<16x64xf16, swizzle = 128>
  return
}

// -----

func.func @f(%x: memref<4x8x64xf16>, %i: index) {
  // expected-error @below {{says of 1 parts how many rows exist, and has 2}}
  %t = tile.fetch %x[%i, %i, %i, %i] parts(2) rows(%i) : memref<4x8x64xf16> to !tile.smem<16x64xf16, swizzle = 128>
  return
}

// -----

func.func @f(%x: memref<4x8x64xf16>, %i: index) {
  // expected-error @below {{needs an index for each dimension but the columns: 2, got 1}}
  %t = tile.fetch %x[%i, %i] parts(2) : memref<4x8x64xf16> to !tile.smem<16x64xf16, swizzle = 128>
  return
}

// -----

gpu.module @kernels {
  gpu.func @k(%p: i1) kernel {
    scf.if %p {
      // expected-error @below {{'tile.end_block_if' op must stand in the body of a kernel, where all threads come to it; move it out of scf.if}}
      tile.end_block_if %p
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @k(%x: memref<?xf32>, %s: f32, %p: i1) kernel {
    %c0 = arith.constant 0 : index
    // expected-note @below {{move it in front of this}}
    memref.store %s, %x[%c0] : memref<?xf32>
    // expected-error @below {{'tile.end_block_if' op must come before anything that does more than to read}}
    tile.end_block_if %p
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @k(%n: index) kernel {
    // expected-error @below {{'tile.end_grid' op is written once, got several}}
    tile.end_grid %n
    tile.end_grid %n
    gpu.return
  }
}

// -----

func.func @f(%x: !tile.smem<16x32xi8, swizzle = 32>, %s: f32) {
  // expected-error @below {{gives a tile of f16 or bf16 with the rows and columns of '!tile.smem<16x32xi8, swizzle = 32>', not '!tile.smem<16x16xf16, swizzle = 32>'}}
  %r = tile.dequantize %x : !tile.smem<16x32xi8, swizzle = 32> to !tile.smem<16x16xf16, swizzle = 32> {
  ^bb0(%row: index):
    tile.yield %s : f32
  }
  return
}

// -----

func.func @f(%x: !tile.smem<16x24xi8, swizzle = 32>, %y: !tile.smem<16x24xf16, swizzle = 64>, %s: f32) {
  // expected-error @below {{converts 16 columns at a time, and '!tile.smem<16x24xi8, swizzle = 32>' has 24; the next multiple is 32}}
  tile.put_dequantized %x to %y : !tile.smem<16x24xi8, swizzle = 32> to !tile.smem<16x24xf16, swizzle = 64> {
  ^bb0(%row: index):
    tile.yield %s : f32
  }
  return
}

// -----

func.func @f(%x: !tile.smem<16x32xi8, swizzle = 32>, %s: f32) {
  %c0 = arith.constant 0 : index
  %ring = tile.ring : !tile.ring<1, !tile.smem<16x32xf16, swizzle = 64>>
  // expected-error @below {{has a region that takes a row, an index, and yields its scale, of f32}}
  tile.ring.dequantize %x to %ring[%c0] : !tile.smem<16x32xi8, swizzle = 32> to !tile.ring<1, !tile.smem<16x32xf16, swizzle = 64>> {
    tile.yield %s : f32
  }
  return
}

// -----

func.func @f(%x: !tile.smem<16x32xf16, swizzle = 64>, %s: f32) {
  // expected-error @below {{operand #0 must be shared-memory tile of f8E4M3FN or i8, but got '!tile.smem<16x32xf16, swizzle = 64>'}}
  %r = tile.dequantize %x : !tile.smem<16x32xf16, swizzle = 64> to !tile.smem<16x32xf16, swizzle = 64> {
  ^bb0(%row: index):
    tile.yield %s : f32
  }
  return
}

// -----

func.func @f(%a: !tile.smem<16x32xf16, swizzle = 64>, %b: !tile.smem<16x24xi8, swizzle = 32>, %s: f32) {
  // expected-error @below {{converts 16 columns at a time, and '!tile.smem<16x24xi8, swizzle = 32>' has 24; the next multiple is 32}}
  %r = tile.mma_quantized %a, %b transpose_b : !tile.smem<16x32xf16, swizzle = 64>, !tile.smem<16x24xi8, swizzle = 32> -> tensor<16x16xf32, #tile.fragment<1>> {
  ^bb0(%row: index):
    tile.yield %s : f32
  }
  return
}

// -----

func.func @f(%a: !tile.smem<16x32xf16, swizzle = 64>, %b: !tile.smem<8x32xi8, swizzle = 32>, %s: f32) {
  // expected-error @below {{multiplies by 16 rows at a time, and '!tile.smem<8x32xi8, swizzle = 32>' has 8; the next multiple is 16}}
  %r = tile.mma_quantized %a, %b transpose_b : !tile.smem<16x32xf16, swizzle = 64>, !tile.smem<8x32xi8, swizzle = 32> -> tensor<16x8xf32, #tile.fragment<1>> {
  ^bb0(%row: index):
    tile.yield %s : f32
  }
  return
}

// -----

func.func @f(%a: !tile.smem<16x32xf16, swizzle = 64>, %b: !tile.smem<16x32xi8, swizzle = 32>, %s: f32) {
  // expected-error @below {{gives a fragment of f32 with transpose_b, and a wide one without, not 'tensor<16x16xf32, #tile.wide_fragment<1>>'}}
  %r = tile.mma_quantized %a, %b transpose_b : !tile.smem<16x32xf16, swizzle = 64>, !tile.smem<16x32xi8, swizzle = 32> -> tensor<16x16xf32, #tile.wide_fragment<1>> {
  ^bb0(%row: index):
    tile.yield %s : f32
  }
  return
}

// -----

func.func @f(%a: tensor<16x16xf16, #tile.fragment<1>>, %b: !tile.smem<16x32xi8, swizzle = 32>, %s: f32) {
  // expected-error @below {{gives a fragment of f32 with transpose_b, and a wide one without, not 'tensor<16x32xf32, #tile.fragment<1>>'}}
  %r = tile.mma_quantized %a, %b : tensor<16x16xf16, #tile.fragment<1>>, !tile.smem<16x32xi8, swizzle = 32> -> tensor<16x32xf32, #tile.fragment<1>> {
  ^bb0(%row: index):
    tile.yield %s : f32
  }
  return
}

// -----

func.func @f(%a: tensor<16x16xf16, #tile.fragment<1 from 1>>, %b: !tile.smem<16x32xi8, swizzle = 32>, %s: f32) {
  // expected-error @below {{needs operands and result over the same warps}}
  %r = tile.mma_quantized %a, %b : tensor<16x16xf16, #tile.fragment<1 from 1>>, !tile.smem<16x32xi8, swizzle = 32> -> tensor<16x32xf32, #tile.wide_fragment<1>> {
  ^bb0(%row: index):
    tile.yield %s : f32
  }
  return
}

// -----

func.func @f(%a: !tile.smem<16x32xf32, swizzle = 128>, %b: !tile.smem<16x32xi8, swizzle = 32>, %s: f32) {
  // expected-error @below {{multiplies f16 or bf16, not 'f32'}}
  %r = tile.mma_quantized %a, %b transpose_b : !tile.smem<16x32xf32, swizzle = 128>, !tile.smem<16x32xi8, swizzle = 32> -> tensor<16x16xf32, #tile.fragment<1>> {
  ^bb0(%row: index):
    tile.yield %s : f32
  }
  return
}

// -----

func.func @f(%a: !tile.smem<16x32xf16, swizzle = 64>, %b: !tile.smem<16x32xi8, swizzle = 32>, %s: f32) {
  // expected-error @below {{contracts 32 columns of a with 16 of b}}
  %r = tile.mma_quantized %a, %b : !tile.smem<16x32xf16, swizzle = 64>, !tile.smem<16x32xi8, swizzle = 32> -> tensor<16x32xf32, #tile.wide_fragment<1>> {
  ^bb0(%row: index):
    tile.yield %s : f32
  }
  return
}

// -----

func.func @f(%a: tensor<16x16xf16, #tile.fragment<1>>, %b: !tile.smem<16x32xi8, swizzle = 32>, %s: f32) {
  // expected-error @below {{gives a tile of 16 x 32, not 'tensor<16x16xf32, #tile.wide_fragment<1>>'}}
  %r = tile.mma_quantized %a, %b : tensor<16x16xf16, #tile.fragment<1>>, !tile.smem<16x32xi8, swizzle = 32> -> tensor<16x16xf32, #tile.wide_fragment<1>> {
  ^bb0(%row: index):
    tile.yield %s : f32
  }
  return
}

// -----

func.func @f(%a: tensor<16x16xf16, #tile.fragment<1>>, %b: !tile.smem<16x32xi8, swizzle = 32>, %c: tensor<16x32xf32, #tile.fragment<1>>, %s: f32) {
  // expected-error @below {{adds to a tile of another type than its result: 'tensor<16x32xf32, #tile.fragment<1>>'}}
  %r = tile.mma_quantized %a, %b add %c : tensor<16x16xf16, #tile.fragment<1>>, !tile.smem<16x32xi8, swizzle = 32>, tensor<16x32xf32, #tile.fragment<1>> -> tensor<16x32xf32, #tile.wide_fragment<1>> {
  ^bb0(%row: index):
    tile.yield %s : f32
  }
  return
}

// -----

func.func @f(%x: !tile.smem<16x32xf8E4M3FN, swizzle = 32>) {
  // expected-error @below {{operand #0 must be shared-memory tile of f16, bf16 or f32, but got '!tile.smem<16x32xf8E4M3FN, swizzle = 32>'}}
  %r = tile.load %x : !tile.smem<16x32xf8E4M3FN, swizzle = 32> to tensor<16x32xf32, #tile.fragment<1>>
  return
}

// -----

!b = !tile.smem<32x192xf16, swizzle = 128>
func.func @f(%a: !tile.smem<16x32xf16, swizzle = 64>, %b: !b) {
  %two = arith.constant 2 : index
  // expected-error @below {{takes 128 columns from column 128 on of '!tile.smem<32x192xf16, swizzle = 128>'}}
  %d = tile.mma_async %a, %b panel(%two) : !tile.smem<16x32xf16, swizzle = 64>, !b -> !tile.pending<tensor<16x128xf32, #tile.fragment<1>>>
  return
}

// -----

!b = !tile.smem<32x64xf16, swizzle = 128>
func.func @f(%a: !tile.smem<16x32xf16, swizzle = 64>, %b: !b) {
  // expected-error @below {{takes 72 columns from column 0 on of '!tile.smem<32x64xf16, swizzle = 128>'}}
  %d = tile.mma_async %a, %b : !tile.smem<16x32xf16, swizzle = 64>, !b -> !tile.pending<tensor<16x72xf32, #tile.fragment<1>>>
  return
}

// -----

!b = !tile.smem<32x192xf16, swizzle = 128>
func.func @f(%a: !tile.smem<16x192xf16, swizzle = 128>, %b: !b, %p: index) {
  // expected-error @below {{takes columns from a panel on of a second operand that is not transposed}}
  %d = tile.mma_async %a, %b panel(%p) transpose_b : !tile.smem<16x192xf16, swizzle = 128>, !b -> !tile.pending<tensor<16x32xf32, #tile.fragment<1>>>
  return
}

// -----

func.func @f(%x: !tile.smem<32x192xf16, swizzle = 128>, %i: index) {
  %three = arith.constant 3 : index
  // expected-error @below {{takes 8 columns from column 192 on of '!tile.smem<32x192xf16, swizzle = 128>'}}
  %r = tile.load_row %x[%i] panel(%three) : !tile.smem<32x192xf16, swizzle = 128> to tensor<16x8xf32, #tile.fragment<1>>
  return
}

// -----

func.func @f(%x: !tile.smem<32x64xf16, swizzle = 128>, %i: index) {
  // expected-error @below {{gives a tensor of f32, not 'tensor<16x64xf16, #tile.fragment<1>>'}}
  %r = tile.load_row %x[%i] : !tile.smem<32x64xf16, swizzle = 128> to tensor<16x64xf16, #tile.fragment<1>>
  return
}

// -----

!t = !tile.smem<64x32xf8E4M3FN, swizzle = 32>
func.func @f(%a: !t, %b: !tile.smem<32x64xf8E4M3FN, swizzle = 64>) {
  // expected-error @below {{multiplies elements of 'f8E4M3FN' by a second operand with transpose_b alone}}
  %d = tile.mma_async %a, %b warpgroup : !t, !tile.smem<32x64xf8E4M3FN, swizzle = 64> -> !tile.pending<tensor<64x64xf32, #tile.fragment<4>>>
  return
}

// -----

!a = tensor<64x48xf8E4M3FN, #tile.fragment<4>>
!b = !tile.smem<64x48xf8E4M3FN, swizzle = 64>
func.func @f(%a: !a, %b: !b) {
  // expected-error @below {{interleaves columns of elements of 'f8E4M3FN' in registers, which are a multiple of 32, not 48}}
  %d = tile.mma_async %a, %b transpose_b warpgroup : !a, !b -> !tile.pending<tensor<64x64xf32, #tile.fragment<4>>>
  return
}

// -----

!t = !tile.smem<24x64xf8E4M3FN, swizzle = 64>
func.func @f(%t: !t, %m: memref<?x24xf8E4M3FN>, %i: index) {
  // expected-error @below {{interleaves a multiple of 16 rows, of elements as memory has them, got '!tile.smem<24x64xf8E4M3FN, swizzle = 64>' for 'memref<?x24xf8E4M3FN>'}}
  tile.store_interleaved %t, %m[%i] : !t to memref<?x24xf8E4M3FN>
  return
}

// -----

!t = !tile.smem<32x64xf8E4M3FN, swizzle = 64>
func.func @f(%t: !t, %m: memref<?x?x32xf8E4M3FN>, %i: index) {
  // expected-error @below {{takes whole rows of memory of rank 2 or more, with an index for each dimension but the columns: 2, got 1}}
  tile.store_interleaved %t, %m[%i] : !t to memref<?x?x32xf8E4M3FN>
  return
}

// -----

!t = !tile.smem<32x64xf8E4M3FN, swizzle = 64>
func.func @f(%t: !t, %m: memref<?x64xf8E4M3FN>, %i: index) {
  // expected-error @below {{stores rows of 32 elements side by side, got 'memref<?x64xf8E4M3FN>'}}
  tile.store_interleaved %t, %m[%i] : !t to memref<?x64xf8E4M3FN>
  return
}

// -----

// Kernels address global memory alone, be it read, copied, written or counted in.
func.func @f(%m: memref<?x64xf16, 3>, %i: index) {
  // expected-error @below {{'tile.read' op operand #0 must be memref of 16-bit float or bfloat16 type or 32-bit float or f8E4M3FN type or 8-bit signless integer values without a memory space, but got 'memref<?x64xf16, 3>'}}
  %x = tile.read %m[%i, %i] : memref<?x64xf16, 3> to tensor<8x64xf16, #tile.warp_rows<8, 2>>
  return
}

// -----

func.func @f(%m: memref<?xf32, #gpu.address_space<workgroup>>, %x: tensor<64xf32, #tile.rows<4>>, %i: index) {
  // expected-error @below {{'tile.store' op operand #1 must be memref of 16-bit float or bfloat16 type or 32-bit float or 32-bit signless integer values without a memory space}}
  tile.store %x, %m[%i] : tensor<64xf32, #tile.rows<4>> to memref<?xf32, #gpu.address_space<workgroup>>
  return
}

// -----

func.func @f(%c: memref<?xi32, 3>, %i: index) {
  // expected-error @below {{'tile.count_up' op operand #0 must be memref of 32-bit signless integer values without a memory space}}
  %n = tile.count_up %c[%i] : memref<?xi32, 3>
  return
}

// -----

func.func @f(%m: memref<?x32xf16>, %i: index) {
  // expected-error @below {{'tile.read' op takes 64 columns of 'memref<?x32xf16>'; take at most 32, or say with columns(...) how many exist}}
  %x = tile.read %m[%i, %i] : memref<?x32xf16> to tensor<8x64xf16, #tile.warp_rows<8, 2>>
  return
}

// -----

func.func @f(%m: memref<?x32xf16>, %x: tensor<64x64xf16, #tile.fragment<4>>, %i: index) {
  tile.store %x, %m[%i, %i] columns(%i) : tensor<64x64xf16, #tile.fragment<4>> to memref<?x32xf16>
  // expected-error @below {{'tile.store' op takes 64 columns of 'memref<?x32xf16>'; take at most 32, or say with columns(...) how many exist}}
  tile.store %x, %m[%i, %i] : tensor<64x64xf16, #tile.fragment<4>> to memref<?x32xf16>
  return
}

// -----

func.func @f(%m: memref<?x32xf16>, %i: index) {
  // expected-error @below {{'tile.fetch' op takes 64 columns of 'memref<?x32xf16>'; take at most 32}}
  %t = tile.fetch %m[%i, %i] : memref<?x32xf16> to !tile.smem<64x64xf16, swizzle = 128>
  return
}

// -----

func.func @f(%m: memref<64xf16>, %i: index) {
  // expected-error @below {{'tile.fetch' op takes rows and columns of memory of rank 2 or more, not of 'memref<64xf16>'}}
  %t = tile.fetch %m[] : memref<64xf16> to !tile.smem<64x64xf16, swizzle = 128>
  return
}

// -----

func.func @f(%m: memref<f32>) {
  // expected-error @below {{'tile.read' op takes elements of memory of rank 1 or more, not of 'memref<f32>'}}
  %x = tile.read %m[] : memref<f32> to tensor<8xf32, #tile.warp_rows<8, 1>>
  return
}

// -----

func.func @f(%m: memref<64xf16>, %x: tensor<64x64xf16, #tile.fragment<4>>) {
  // expected-error @below {{'tile.store_bulk' op takes whole rows of memory of rank 2 or more, with an index for each dimension but the columns: 1, got 0}}
  tile.store_bulk %x, %m[] through !tile.smem<64x64xf16, swizzle = 128> : tensor<64x64xf16, #tile.fragment<4>> to memref<64xf16>
  return
}

// -----

func.func @f(%m: memref<?x64xf32>, %t: !tile.smem<64x64xf16, swizzle = 128>, %i: index) {
  // expected-error @below {{'tile.copy' op copies elements of 'f32' into a tile of 'f16'}}
  tile.copy %m[%i] to %t : memref<?x64xf32> to !tile.smem<64x64xf16, swizzle = 128>
  return
}

// -----

func.func @f(%m: memref<?x64xf16>, %t: !tile.smem<64x64xf16, swizzle = 128>, %i: index) {
  // expected-error @below {{'tile.copy' op fills 1 to 64 rows of '!tile.smem<64x64xf16, swizzle = 128>', got 128}}
  tile.copy %m[%i] to %t[%i] {tile_rows = 128} : memref<?x64xf16> to !tile.smem<64x64xf16, swizzle = 128>
  return
}

// -----

func.func @f(%t: !tile.smem<64x64xf16, swizzle = 128>) {
  // expected-error @below {{'tile.is_finite' op is done by 1 to 32 warps, got 0}}
  %f = tile.is_finite %t warps(0) : !tile.smem<64x64xf16, swizzle = 128>
  return
}

// -----

func.func @f(%t: !tile.smem<64x64xf16, swizzle = 128>) {
  // expected-error @below {{'tile.make_finite' op is done by 1 to 32 warps, got 33}}
  tile.make_finite %t warps(33) : !tile.smem<64x64xf16, swizzle = 128>
  return
}

// -----

func.func @f(%x: tensor<64xf32, #tile.rows<4>>, %t: !tile.smem<8x8xf32, swizzle = 32>) {
  // expected-error @below {{'tile.put' op puts values of rows from column 0 on, without alternate, got column 16}}
  tile.put %x, %t {column = 16} : tensor<64xf32, #tile.rows<4>> to !tile.smem<8x8xf32, swizzle = 32>
  return
}

// -----

func.func @f(%x: tensor<16xf32, #tile.rows<1>>) {
  // expected-error @below {{'tile.broadcast' op needs as many rows and warps in its result, a matrix, as in its operand, which is a vector}}
  %c = tile.broadcast %x : tensor<16xf32, #tile.rows<1>> to tensor<16xf32, #tile.columns<1>>
  return
}

// -----

func.func @f(%x: tensor<64x64xi32, #tile.fragment<4>>, %i: index) {
  // expected-error @below {{'tile.column' op gives an f32 for each row of a tile of floats, over the same warps as}}
  %c = tile.column %x[%i] : tensor<64x64xi32, #tile.fragment<4>> to tensor<64xf32, #tile.rows<4>>
  return
}

// -----

// expected-error @below {{this layout is of integers or floats of some number of bits, such as i32, not 'index'}}
func.func @f(%x: tensor<16x8xindex, #tile.fragment<1>>)

// -----

// expected-error @below {{this layout is of integers or floats of some number of bits, such as i32, not 'index'}}
func.func @f(%x: tensor<16xindex, #tile.columns<1>>)

// -----

// expected-error @below {{this layout is of integers or floats of some number of bits, such as i32, not 'index'}}
func.func @f(%x: tensor<4x64xindex, #tile.warp_rows<1, 2>>)

// -----

func.func @f(%a: tensor<16x32xbf16, #tile.fragment<1>>, %t: !tile.smem<32x64xi8, swizzle = 64>, %s: memref<?xf32>) {
  %o = tile.mma_quantized %a, %t : tensor<16x32xbf16, #tile.fragment<1>>, !tile.smem<32x64xi8, swizzle = 64> -> tensor<16x64xf32, #tile.wide_fragment<1>> {
  ^bb0(%row: index):
    %scale = memref.load %s[%row] : memref<?xf32>
    // expected-error @below {{'gpu.barrier' op does more than compute and read memory; the region of 'tile.mma_quantized' may do nothing else}}
    gpu.barrier
    tile.yield %scale : f32
  }
  return
}

// -----

func.func @f(%t: !tile.smem<64x128xi8, swizzle = 128>, %s: memref<?xf32>) {
  %d = tile.dequantize %t : !tile.smem<64x128xi8, swizzle = 128> to !tile.smem<64x128xf16, swizzle = 128> {
  ^bb0(%row: index):
    %scale = memref.load %s[%row] : memref<?xf32>
    // expected-error @below {{'memref.store' op does more than compute and read memory; the region of 'tile.dequantize' may do nothing else}}
    memref.store %scale, %s[%row] : memref<?xf32>
    tile.yield %scale : f32
  }
  return
}

// -----

func.func @f(%x: tensor<16x16xf32, #tile.fragment<1>>, %s: memref<?xf32>) {
  %y = tile.map %x : (tensor<16x16xf32, #tile.fragment<1>>) -> tensor<16x16xf32, #tile.fragment<1>> {
  ^bb0(%e: f32, %i: index, %j: index):
    // expected-error @below {{'memref.store' op does more than compute and read memory; the region of 'tile.map' may do nothing else}}
    memref.store %e, %s[%i] : memref<?xf32>
    tile.yield %e : f32
  }
  return
}

// -----

!tile = !tile.smem<32x64xf16, swizzle = 128>
!other = !tile.smem<64x64xf16, swizzle = 128>
func.func @f(%t: !tile, %o: !other) {
  // expected-error @below {{copies a tile of '!tile.smem<32x64xf16, swizzle = 128>' to one of '!tile.smem<64x64xf16, swizzle = 128>'; both have the same type}}
  tile.make_finite %t copy(%o : !other) warps(8) : !tile
  return
}

// -----

!tile = !tile.smem<32x64xf16, swizzle = 128>
func.func @f(%t: !tile, %o: !tile) {
  // expected-error @below {{copies a tile, and needs warps(N), of which each copies a share}}
  tile.make_finite %t copy(%o : !tile) : !tile
  return
}

// -----

!tile = !tile.smem<32x64xf16, swizzle = 128>
func.func @f(%t: !tile, %f: i1, %r: !tile.ring<1, !tile.smem<32x64xf16, swizzle = 128>>, %i: index) {
  // expected-error @below {{copies a tile that tile.ring.wait has not given}}
  %k = tile.ring.copy_finite %t unless %f in %r[%i] : !tile in !tile.ring<1, !tile.smem<32x64xf16, swizzle = 128>>
  return
}

// -----

!tile = !tile.smem<32x64xf16, swizzle = 128>
!ring = !tile.ring<1, !tile.smem<32x64xf16, swizzle = 128>>
!small = !tile.ring<1, !tile.smem<16x64xf16, swizzle = 128>>
func.func @f(%keys: !ring, %f: i1, %i: index) {
  %small = tile.ring : !small
  %t = tile.ring.wait %keys[%i] : !ring
  // expected-error @below {{copies a tile of 4096 bytes to a stage of 2048}}
  %k = tile.ring.copy_finite %t unless %f in %small[%i] : !tile in !small
  return
}
