// What has no translation to a block program: the operation, and the rule.
// RUN: flash-opt %s --convert-linalg-to-tile --split-input-file --verify-diagnostics

// What a loop writes starts empty, or its blocks write all of it.

// expected-note @below {{the values}}
func.func @f(%x: tensor<32x16xf32>, %init: tensor<32x16xf32>) -> tensor<32x16xf32> {
  // expected-error @below {{'scf.forall' op has no translation to a block program: an output of it starts with values, and its blocks may not write all of it; start from tensor.empty}}
  %r = scf.forall (%i) in (1) shared_outs(%o = %init) -> (tensor<32x16xf32>) {
    %0 = arith.addf %x, %x : tensor<32x16xf32>
    %1 = tensor.extract_slice %0[0, 0] [16, 16] [1, 1] : tensor<32x16xf32> to tensor<16x16xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %1 into %o[0, 0] [16, 16] [1, 1] : tensor<16x16xf32> into tensor<32x16xf32>
    }
  }
  return %r : tensor<32x16xf32>
}

// -----

func.func @f(%m: memref<f32>) -> tensor<16x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16x16xf32>
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<16x16xf32>) {
    %0 = tensor.empty() : tensor<16x16xf32>
    %1 = linalg.fill ins(%zero : f32) outs(%0 : tensor<16x16xf32>) -> tensor<16x16xf32>
    // expected-error @below {{'memref.store' op has no translation to a block program: blocks have loops, conditions, linalg, slices, paddings and arithmetic on tiles, and arithmetic on scalars}}
    memref.store %zero, %m[] : memref<f32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %1 into %o[0, 0] [16, 16] [1, 1] : tensor<16x16xf32> into tensor<16x16xf32>
    }
  }
  return %r : tensor<16x16xf32>
}

// -----

func.func @f(%x: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %e = tensor.empty() : tensor<16x16xf32>
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<16x16xf32>) {
    // expected-error @below {{'scf.while' op has no translation to a block program: blocks have loops}}
    %0 = scf.while (%a = %x) : (tensor<16x16xf32>) -> tensor<16x16xf32> {
      %no = arith.constant false
      scf.condition(%no) %a : tensor<16x16xf32>
    } do {
    ^bb0(%a: tensor<16x16xf32>):
      scf.yield %a : tensor<16x16xf32>
    }
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %0 into %o[0, 0] [16, 16] [1, 1] : tensor<16x16xf32> into tensor<16x16xf32>
    }
  }
  return %r : tensor<16x16xf32>
}

// -----

// Tiles of registers. Those of products and of shared memory are fragments.

func.func @f(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %e = tensor.empty() : tensor<8x16xf32>
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<8x16xf32>) {
    // expected-error @below {{'arith.addf' op has no translation to a block program: 'tensor<8x16xf32>' is no tile of 1 warps, which has rows in multiples of 16 and columns in multiples of 8}}
    %0 = arith.addf %x, %x : tensor<8x16xf32>
    %finite = flash.is_finite %x : tensor<8x16xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %0 into %o[0, 0] [8, 16] [1, 1] : tensor<8x16xf32> into tensor<8x16xf32>
    }
  }
  return %r : tensor<8x16xf32>
}

// -----

func.func @f(%x: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %e = tensor.empty() : tensor<16x16xf32>
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<16x16xf32>) {
    %0 = arith.addf %x, %x : tensor<16x16xf32>
    // expected-error @below {{'flash.zero_nonfinite' op has no translation to a block program: a tile is made finite as it is copied from memory, not from registers}}
    %f = flash.zero_nonfinite %0 : tensor<16x16xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %0 into %o[0, 0] [16, 16] [1, 1] : tensor<16x16xf32> into tensor<16x16xf32>
    }
  }
  return %r : tensor<16x16xf32>
}

// -----

func.func @f(%x: tensor<16x4xf32>) -> tensor<16x4xf32> {
  %e = tensor.empty() : tensor<16x4xf32>
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<16x4xf32>) {
    // expected-error @below {{'arith.addf' op has no translation to a block program: 'tensor<16x4xf32>' is no tile of 1 warps}}
    %0 = arith.addf %x, %x : tensor<16x4xf32>
    %finite = flash.is_finite %x : tensor<16x4xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %0 into %o[0, 0] [16, 4] [1, 1] : tensor<16x4xf32> into tensor<16x4xf32>
    }
  }
  return %r : tensor<16x4xf32>
}

// -----

func.func @f(%x: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %e = tensor.empty() : tensor<16x16xf32>
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<16x16xf32>) {
    // expected-error @below {{'arith.addf' op has no translation to a block program: 'tensor<16x16xf32>' is no tile of 2 warps, which has rows in multiples of 32}}
    %0 = arith.addf %x, %x : tensor<16x16xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %0 into %o[0, 0] [16, 16] [1, 1] : tensor<16x16xf32> into tensor<16x16xf32>
    }
  } {flash.schedule = #flash.schedule<warps = 2>}
  return %r : tensor<16x16xf32>
}

// -----

func.func @f(%x: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %e = tensor.empty() : tensor<16x16xf32>
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<16x16xf32>) {
    %0 = tensor.empty() : tensor<16x16xf32>
    // expected-error @below {{'arith.addf' op has no translation to a block program: it reads elements that nothing has written; fill the tile first}}
    %1 = arith.addf %0, %x : tensor<16x16xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %1 into %o[0, 0] [16, 16] [1, 1] : tensor<16x16xf32> into tensor<16x16xf32>
    }
  }
  return %r : tensor<16x16xf32>
}

// -----

func.func @f(%x: tensor<32x16xf32>) -> tensor<16x16xf32> {
  %e = tensor.empty() : tensor<16x16xf32>
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<16x16xf32>) {
    %0 = arith.addf %x, %x : tensor<32x16xf32>
    %1 = tensor.extract_slice %0[0, 0] [16, 16] [1, 1] : tensor<32x16xf32> to tensor<16x16xf32>
    // expected-error @below {{'arith.addf' op has no translation to a block program: it reads a tile that is not in registers}}
    %2 = arith.addf %1, %1 : tensor<16x16xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %2 into %o[0, 0] [16, 16] [1, 1] : tensor<16x16xf32> into tensor<16x16xf32>
    }
  }
  return %r : tensor<16x16xf32>
}

// -----

// A vector has one layout.

func.func @f(%x: tensor<16x16xf32>, %v: tensor<16xf32>) -> tensor<16x16xf32> {
  %e = tensor.empty() : tensor<16x16xf32>
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<16x16xf32>) {
    %0 = arith.addf %v, %v : tensor<16xf32>
    %1 = tensor.empty() : tensor<16x16xf32>
    // expected-error @below {{'linalg.generic' op has no translation to a block program: it takes a value for each row as one for each column, or the other way round}}
    %2 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%x, %0, %0 : tensor<16x16xf32>, tensor<16xf32>, tensor<16xf32>) outs(%1 : tensor<16x16xf32>) {
    ^bb0(%a: f32, %b: f32, %c: f32, %unused: f32):
      %3 = arith.mulf %b, %c : f32
      %4 = arith.addf %a, %3 : f32
      linalg.yield %4 : f32
    } -> tensor<16x16xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %2 into %o[0, 0] [16, 16] [1, 1] : tensor<16x16xf32> into tensor<16x16xf32>
    }
  }
  return %r : tensor<16x16xf32>
}

// -----

func.func @f(%x: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %e = tensor.empty() : tensor<16x16xf32>
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<16x16xf32>) {
    // expected-error @below {{'arith.constant' op has no translation to a block program: a constant tile has the same value everywhere}}
    %0 = arith.constant sparse<[[0, 0]], [1.0]> : tensor<16x16xf32>
    %1 = arith.addf %x, %0 : tensor<16x16xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %1 into %o[0, 0] [16, 16] [1, 1] : tensor<16x16xf32> into tensor<16x16xf32>
    }
  }
  return %r : tensor<16x16xf32>
}

// -----

func.func @f(%x: tensor<16x16xi32>) -> tensor<16x16xi32> {
  %e = tensor.empty() : tensor<16x16xi32>
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<16x16xi32>) {
    // expected-error @below {{'arith.addi' op has no translation to a block program: arithmetic on tiles is of f16, bf16, f32 and i1}}
    %0 = arith.addi %x, %x : tensor<16x16xi32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %0 into %o[0, 0] [16, 16] [1, 1] : tensor<16x16xi32> into tensor<16x16xi32>
    }
  }
  return %r : tensor<16x16xi32>
}

// -----

func.func @f(%x: tensor<16x16xf32>, %y: tensor<16xf32>) -> tensor<16xf32> {
  %e = tensor.empty() : tensor<16xf32>
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<16xf32>) {
    %c0 = arith.constant 0 : index
    %0 = arith.addf %x, %x : tensor<16x16xf32>
    // expected-error @below {{'tensor.extract' op has no translation to a block program: it takes one element of a tile, which a block's threads hold each for themselves}}
    %1 = tensor.extract %0[%c0, %c0] : tensor<16x16xf32>
    %2 = tensor.empty() : tensor<16xf32>
    %3 = linalg.fill ins(%1 : f32) outs(%2 : tensor<16xf32>) -> tensor<16xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %3 into %o[0] [16] [1] : tensor<16xf32> into tensor<16xf32>
    }
  }
  return %r : tensor<16xf32>
}

// -----

// Also in the body of an operation, and of a slice of memory.

func.func @f(%x: tensor<16x16xf32>, %table: tensor<64xf32>) -> tensor<16x16xf32> {
  %e = tensor.empty() : tensor<16x16xf32>
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<16x16xf32>) {
    %slice = tensor.extract_slice %table[%i] [16] [1] : tensor<64xf32> to tensor<16xf32>
    %0 = tensor.empty() : tensor<16x16xf32>
    %2 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<16x16xf32>) outs(%0 : tensor<16x16xf32>) {
    ^bb0(%a: f32, %unused: f32):
      %at = linalg.index 0 : index
      // expected-error @below {{'tensor.extract' op has no translation to a block program: it takes one element of a tile}}
      %3 = tensor.extract %slice[%at] : tensor<16xf32>
      %4 = arith.addf %a, %3 : f32
      linalg.yield %4 : f32
    } -> tensor<16x16xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %2 into %o[0, 0] [16, 16] [1, 1] : tensor<16x16xf32> into tensor<16x16xf32>
    }
  }
  return %r : tensor<16x16xf32>
}

// -----

func.func @f(%x: tensor<64x16xf32>, %n: index) -> tensor<16x16xf32> {
  %e = tensor.empty() : tensor<16x16xf32>
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<16x16xf32>) {
    %c0 = arith.constant 0 : index
    %slice = tensor.extract_slice %x[%i, 0] [%n, 16] [1, 1] : tensor<64x16xf32> to tensor<?x16xf32>
    // expected-error @below {{'tensor.dim' op has no translation to a block program: it reads the size of a tile; use the size that the slice of the tile has as an operand}}
    %size = tensor.dim %slice, %c0 : tensor<?x16xf32>
    %0 = tensor.extract_slice %x[%size, 0] [16, 16] [1, 1] : tensor<64x16xf32> to tensor<16x16xf32>
    %1 = arith.addf %0, %0 : tensor<16x16xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %1 into %o[0, 0] [16, 16] [1, 1] : tensor<16x16xf32> into tensor<16x16xf32>
    }
  }
  return %r : tensor<16x16xf32>
}

// -----

// Tiles of memory.

func.func @f(%x: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %e = tensor.empty() : tensor<16x16xf32>
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<16x16xf32>) {
    // expected-error @below {{'tensor.extract_slice' op has no translation to a block program: it reads an output of the loop, which other blocks write; take what it starts from as an input}}
    %0 = tensor.extract_slice %o[0, 0] [16, 16] [1, 1] : tensor<16x16xf32> to tensor<16x16xf32>
    %1 = arith.addf %0, %x : tensor<16x16xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %1 into %o[0, 0] [16, 16] [1, 1] : tensor<16x16xf32> into tensor<16x16xf32>
    }
  }
  return %r : tensor<16x16xf32>
}

// -----

func.func @f(%x: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %e = tensor.empty() : tensor<16x16xf32>
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<16x16xf32>) {
    // expected-error @below {{'arith.addf' op has no translation to a block program: it reads an output of the loop, which other blocks write; take what it starts from as an input}}
    %1 = arith.addf %o, %x : tensor<16x16xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %1 into %o[0, 0] [16, 16] [1, 1] : tensor<16x16xf32> into tensor<16x16xf32>
    }
  }
  return %r : tensor<16x16xf32>
}

// -----

func.func @f(%x: tensor<16x16xf64>) -> tensor<16x16xf32> {
  %e = tensor.empty() : tensor<16x16xf32>
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<16x16xf32>) {
    // expected-error @below {{'tensor.extract_slice' op has no translation to a block program: tiles are of f16, bf16, f32 and f8E4M3FN}}
    %0 = tensor.extract_slice %x[0, 0] [16, 16] [1, 1] : tensor<16x16xf64> to tensor<16x16xf64>
    %1 = tensor.empty() : tensor<16x16xf32>
    %2 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%0 : tensor<16x16xf64>) outs(%1 : tensor<16x16xf32>) {
    ^bb0(%a: f64, %unused: f32):
      %3 = arith.truncf %a : f64 to f32
      linalg.yield %3 : f32
    } -> tensor<16x16xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %2 into %o[0, 0] [16, 16] [1, 1] : tensor<16x16xf32> into tensor<16x16xf32>
    }
  }
  return %r : tensor<16x16xf32>
}

// -----

func.func @f(%x: tensor<8x16xf32>) -> tensor<32x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<32x16xf32>
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<32x16xf32>) {
    %0 = tensor.pad %x low[0, 0] high[8, 0] {
    ^bb0(%a: index, %b: index):
      tensor.yield %zero : f32
    } : tensor<8x16xf32> to tensor<16x16xf32>
    // expected-error @below {{'tensor.pad' op has no translation to a block program: it pads a tile that is padded; pad once}}
    %1 = tensor.pad %0 low[0, 0] high[16, 0] {
    ^bb0(%a: index, %b: index):
      tensor.yield %zero : f32
    } : tensor<16x16xf32> to tensor<32x16xf32>
    %2 = arith.addf %1, %1 : tensor<32x16xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %2 into %o[0, 0] [32, 16] [1, 1] : tensor<32x16xf32> into tensor<32x16xf32>
    }
  }
  return %r : tensor<32x16xf32>
}

// -----

func.func @f(%x: tensor<8x16xf32>) -> tensor<16x16xf32> {
  %e = tensor.empty() : tensor<16x16xf32>
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<16x16xf32>) {
    // expected-error @below {{'tensor.pad' op has no translation to a block program: it pads with what depends on the position; pad with one value}}
    %0 = tensor.pad %x low[0, 0] high[8, 0] {
    ^bb0(%a: index, %b: index):
      %n = arith.index_cast %a : index to i32
      %f = arith.sitofp %n : i32 to f32
      tensor.yield %f : f32
    } : tensor<8x16xf32> to tensor<16x16xf32>
    %1 = arith.addf %0, %0 : tensor<16x16xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %1 into %o[0, 0] [16, 16] [1, 1] : tensor<16x16xf32> into tensor<16x16xf32>
    }
  }
  return %r : tensor<16x16xf32>
}

// -----

func.func @f(%x: tensor<8x32xf32>) -> tensor<16x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16x16xf32>
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<16x16xf32>) {
    %0 = tensor.pad %x low[0, 0] high[24, 0] {
    ^bb0(%a: index, %b: index):
      tensor.yield %zero : f32
    } : tensor<8x32xf32> to tensor<32x32xf32>
    // expected-error @below {{'tensor.extract_slice' op has no translation to a block program: it takes part of a padded tile; pad what it takes}}
    %1 = tensor.extract_slice %0[0, 16] [16, 16] [1, 1] : tensor<32x32xf32> to tensor<16x16xf32>
    %2 = arith.addf %1, %1 : tensor<16x16xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %2 into %o[0, 0] [16, 16] [1, 1] : tensor<16x16xf32> into tensor<16x16xf32>
    }
  }
  return %r : tensor<16x16xf32>
}

// -----

// Insertions.

func.func @f(%x: tensor<16x16xf32>) -> tensor<32x16xf32> {
  %e = tensor.empty() : tensor<32x16xf32>
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<32x16xf32>) {
    %0 = arith.addf %x, %x : tensor<16x16xf32>
    scf.forall.in_parallel {
      // expected-error @below {{'tensor.parallel_insert_slice' op has no translation to a block program: it stores to elements that are not neighbours; insert with strides of 1}}
      tensor.parallel_insert_slice %0 into %o[0, 0] [16, 16] [2, 1] : tensor<16x16xf32> into tensor<32x16xf32>
    }
  }
  return %r : tensor<32x16xf32>
}

// -----

func.func @f(%x: tensor<32x16xf32>) -> tensor<16x16xf32> {
  %e = tensor.empty() : tensor<16x16xf32>
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<16x16xf32>) {
    %0 = arith.addf %x, %x : tensor<32x16xf32>
    // expected-error @below {{'tensor.extract_slice' op has no translation to a block program: of a tile only the first rows and columns can be stored by themselves}}
    %1 = tensor.extract_slice %0[16, 0] [16, 16] [1, 1] : tensor<32x16xf32> to tensor<16x16xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %1 into %o[0, 0] [16, 16] [1, 1] : tensor<16x16xf32> into tensor<16x16xf32>
    }
  }
  return %r : tensor<16x16xf32>
}

// -----

// Products.

func.func @f(%x: tensor<2x16x16xf32>, %v: tensor<2x16xf32>) -> tensor<2x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x16xf32>
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<2x16xf32>) {
    %0 = tensor.empty() : tensor<2x16xf32>
    %1 = linalg.fill ins(%zero : f32) outs(%0 : tensor<2x16xf32>) -> tensor<2x16xf32>
    // expected-error @below {{'linalg.batch_matvec' op has no translation to a block program: a product is of two matrices, without a batch}}
    %2 = linalg.batch_matvec ins(%x, %v : tensor<2x16x16xf32>, tensor<2x16xf32>) outs(%1 : tensor<2x16xf32>) -> tensor<2x16xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %2 into %o[0, 0] [2, 16] [1, 1] : tensor<2x16xf32> into tensor<2x16xf32>
    }
  }
  return %r : tensor<2x16xf32>
}

// -----

// Parts of columns are of a second operand, and the first one is transposed.
func.func @f(%x: tensor<16x16xf16>, %y: tensor<16x32xf16>) -> tensor<32x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<32x16xf32>
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<32x16xf32>) {
    %0 = tensor.empty() : tensor<2x16x16xf32>
    %1 = linalg.fill ins(%zero : f32) outs(%0 : tensor<2x16x16xf32>) -> tensor<2x16x16xf32>
    %parts = tensor.expand_shape %y [[0], [1, 2]] output_shape [16, 2, 16] : tensor<16x32xf16> into tensor<16x2x16xf16>
    // expected-error @below {{'linalg.contract' op has no translation to a block program: a product with parts of columns, multiples of 16 bytes, gives them one below the other, of a first operand that is transposed, and adds nothing}}
    %2 = linalg.contract indexing_maps = [affine_map<(p, q, c, k) -> (q, k)>, affine_map<(p, q, c, k) -> (k, p, c)>, affine_map<(p, q, c, k) -> (p, q, c)>]
      ins(%x, %parts : tensor<16x16xf16>, tensor<16x2x16xf16>) outs(%1 : tensor<2x16x16xf32>) -> tensor<2x16x16xf32>
    %3 = tensor.collapse_shape %2 [[0, 1], [2]] : tensor<2x16x16xf32> into tensor<32x16xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %3 into %o[0, 0] [32, 16] [1, 1] : tensor<32x16xf32> into tensor<32x16xf32>
    }
  }
  return %r : tensor<32x16xf32>
}

// -----

func.func @f(%x: tensor<16x16xf16>) -> tensor<16x16xf16> {
  %zero = arith.constant 0.0 : f16
  %e = tensor.empty() : tensor<16x16xf16>
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<16x16xf16>) {
    %0 = tensor.empty() : tensor<16x16xf16>
    %1 = linalg.fill ins(%zero : f16) outs(%0 : tensor<16x16xf16>) -> tensor<16x16xf16>
    // expected-error @below {{'linalg.matmul' op has no translation to a block program: a product is of two matrices of f16, bf16 or f32, and sums in f32}}
    %2 = linalg.matmul ins(%x, %x : tensor<16x16xf16>, tensor<16x16xf16>) outs(%1 : tensor<16x16xf16>) -> tensor<16x16xf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %2 into %o[0, 0] [16, 16] [1, 1] : tensor<16x16xf16> into tensor<16x16xf16>
    }
  }
  return %r : tensor<16x16xf16>
}

// -----

func.func @f(%x: tensor<16x16xf32>, %z: tensor<16x8xf16>) -> tensor<16x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16x16xf32>
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<16x16xf32>) {
    %0 = tensor.empty() : tensor<16x16xf32>
    %1 = linalg.fill ins(%zero : f32) outs(%0 : tensor<16x16xf32>) -> tensor<16x16xf32>
    %y = arith.addf %z, %z : tensor<16x8xf16>
    // expected-error @below {{'linalg.contract' op has no translation to a block program: a tile that goes from registers through shared memory has elements of f16 or bf16 and a multiple of 16 columns, or of f32 and a multiple of 8, not 'tensor<16x8xf16, #tile.fragment<1>>'}}
    %2 = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
        ins(%z, %y : tensor<16x8xf16>, tensor<16x8xf16>) outs(%1 : tensor<16x16xf32>) -> tensor<16x16xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %2 into %o[0, 0] [16, 16] [1, 1] : tensor<16x16xf32> into tensor<16x16xf32>
    }
  }
  return %r : tensor<16x16xf32>
}

// -----

func.func @f(%x: tensor<16x8xf16>, %y: tensor<8x16xf16>) -> tensor<16x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16x16xf32>
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<16x16xf32>) {
    %0 = tensor.empty() : tensor<16x16xf32>
    %1 = linalg.fill ins(%zero : f32) outs(%0 : tensor<16x16xf32>) -> tensor<16x16xf32>
    // expected-error @below {{'linalg.matmul' op has no translation to a block program: a product of f16 or bf16 is over a multiple of 16 rows, not the 8 of 'tensor<8x16xf16>'}}
    %2 = linalg.matmul ins(%x, %y : tensor<16x8xf16>, tensor<8x16xf16>) outs(%1 : tensor<16x16xf32>) -> tensor<16x16xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %2 into %o[0, 0] [16, 16] [1, 1] : tensor<16x16xf32> into tensor<16x16xf32>
    }
  }
  return %r : tensor<16x16xf32>
}

// -----

// Sums of terms.

func.func @f(%x: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16x16xf32>
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<16x16xf32>) {
    %0 = tensor.empty() : tensor<16x16xf32>
    %1 = linalg.fill ins(%zero : f32) outs(%0 : tensor<16x16xf32>) -> tensor<16x16xf32>
    // expected-error @below {{'linalg.generic' op has no translation to a block program: a sum is over the columns of one matrix and the rows of another}}
    %2 = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %x : tensor<16x16xf32>, tensor<16x16xf32>) outs(%1 : tensor<16x16xf32>) {
    ^bb0(%a: f32, %b: f32, %c: f32):
      %3 = arith.addf %a, %b : f32
      %4 = arith.maxnumf %c, %3 : f32
      linalg.yield %4 : f32
    } -> tensor<16x16xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %2 into %o[0, 0] [16, 16] [1, 1] : tensor<16x16xf32> into tensor<16x16xf32>
    }
  }
  return %r : tensor<16x16xf32>
}

// -----

// Elements.

func.func @f(%x: tensor<2x16x16xf32>) -> tensor<2x16x16xf32> {
  %e = tensor.empty() : tensor<2x16x16xf32>
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<2x16x16xf32>) {
    %0 = tensor.empty() : tensor<2x16x16xf32>
    // expected-error @below {{'linalg.generic' op has no translation to a block program: tiles are matrices and vectors, which take one loop or two}}
    %2 = linalg.generic {indexing_maps = [affine_map<(h, i, j) -> (h, i, j)>, affine_map<(h, i, j) -> (h, i, j)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x : tensor<2x16x16xf32>) outs(%0 : tensor<2x16x16xf32>) {
    ^bb0(%a: f32, %b: f32):
      linalg.yield %a : f32
    } -> tensor<2x16x16xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %2 into %o[0, 0, 0] [2, 16, 16] [1, 1, 1] : tensor<2x16x16xf32> into tensor<2x16x16xf32>
    }
  }
  return %r : tensor<2x16x16xf32>
}

// -----

func.func @f(%x: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %e = tensor.empty() : tensor<16x16xf32>
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<16x16xf32>) {
    %0 = tensor.empty() : tensor<16x16xf32>
    // expected-error @below {{'linalg.generic' op has no translation to a block program: it writes with its dimensions in another order}}
    %2 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j, i)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<16x16xf32>) outs(%0 : tensor<16x16xf32>) {
    ^bb0(%a: f32, %b: f32):
      linalg.yield %a : f32
    } -> tensor<16x16xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %2 into %o[0, 0] [16, 16] [1, 1] : tensor<16x16xf32> into tensor<16x16xf32>
    }
  }
  return %r : tensor<16x16xf32>
}

// -----

func.func @f(%x: tensor<31xf32>) -> tensor<16x16xf32> {
  %e = tensor.empty() : tensor<16x16xf32>
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<16x16xf32>) {
    %0 = tensor.empty() : tensor<16x16xf32>
    // expected-error @below {{'linalg.generic' op has no translation to a block program: an operand needs an element for each element, each row or each column of the tile}}
    %2 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i + j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<31xf32>) outs(%0 : tensor<16x16xf32>) {
    ^bb0(%a: f32, %b: f32):
      linalg.yield %a : f32
    } -> tensor<16x16xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %2 into %o[0, 0] [16, 16] [1, 1] : tensor<16x16xf32> into tensor<16x16xf32>
    }
  }
  return %r : tensor<16x16xf32>
}

// -----

func.func @f(%x: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %e = tensor.empty() : tensor<16x16xf32>
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<16x16xf32>) {
    %0 = tensor.empty() : tensor<16x16xi1>
    // expected-error @below {{'linalg.generic' op has no translation to a block program: a tile computed from positions has elements of f16, bf16 or f32; compare and choose in the same operation}}
    %2 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} outs(%0 : tensor<16x16xi1>) {
    ^bb0(%b: i1):
      %at = linalg.index 0 : index
      %key = linalg.index 1 : index
      %c = arith.cmpi sge, %at, %key : index
      linalg.yield %c : i1
    } -> tensor<16x16xi1>
    %3 = arith.select %2, %x, %x : tensor<16x16xi1>, tensor<16x16xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %3 into %o[0, 0] [16, 16] [1, 1] : tensor<16x16xf32> into tensor<16x16xf32>
    }
  }
  return %r : tensor<16x16xf32>
}

// -----

func.func @f(%x: tensor<16x16xf32>, %m: memref<f32>) -> tensor<16x16xf32> {
  %e = tensor.empty() : tensor<16x16xf32>
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<16x16xf32>) {
    %0 = tensor.empty() : tensor<16x16xf32>
    %2 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<16x16xf32>) outs(%0 : tensor<16x16xf32>) {
    ^bb0(%a: f32, %b: f32):
      // expected-error @below {{'memref.store' op has no translation to a block program: the body of an operation on tiles has no regions and no effects}}
      memref.store %a, %m[] : memref<f32>
      linalg.yield %a : f32
    } -> tensor<16x16xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %2 into %o[0, 0] [16, 16] [1, 1] : tensor<16x16xf32> into tensor<16x16xf32>
    }
  }
  return %r : tensor<16x16xf32>
}

// -----

func.func @f(%x: tensor<16x16xf32>, %c: i1) -> tensor<16x16xf32> {
  %e = tensor.empty() : tensor<16x16xf32>
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<16x16xf32>) {
    %0 = tensor.empty() : tensor<16x16xf32>
    %2 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<16x16xf32>) outs(%0 : tensor<16x16xf32>) {
    ^bb0(%a: f32, %b: f32):
      // expected-error @below {{'scf.if' op has no translation to a block program: the body of an operation on tiles has no regions and no effects}}
      %3 = scf.if %c -> (f32) {
        scf.yield %a : f32
      } else {
        %4 = arith.negf %a : f32
        scf.yield %4 : f32
      }
      linalg.yield %3 : f32
    } -> tensor<16x16xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %2 into %o[0, 0] [16, 16] [1, 1] : tensor<16x16xf32> into tensor<16x16xf32>
    }
  }
  return %r : tensor<16x16xf32>
}

// -----

func.func @f(%x: tensor<16x16xf32>, %m: memref<16x16xf32>) -> tensor<16x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16x16xf32>
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<16x16xf32>) {
    // expected-error @below {{'linalg.fill' op has no translation to a block program: it works on memory}}
    linalg.fill ins(%zero : f32) outs(%m : memref<16x16xf32>)
    %0 = arith.addf %x, %x : tensor<16x16xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %0 into %o[0, 0] [16, 16] [1, 1] : tensor<16x16xf32> into tensor<16x16xf32>
    }
  }
  return %r : tensor<16x16xf32>
}

// -----

// Reductions.

func.func @f(%x: tensor<16xf32>) -> tensor<16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16xf32>
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<16xf32>) {
    %0 = tensor.empty() : tensor<f32>
    %1 = linalg.fill ins(%zero : f32) outs(%0 : tensor<f32>) -> tensor<f32>
    // expected-error @below {{'linalg.dot' op has no translation to a block program: it gives one element; tiles have rows}}
    %2 = linalg.dot ins(%x, %x : tensor<16xf32>, tensor<16xf32>) outs(%1 : tensor<f32>) -> tensor<f32>
    %3 = arith.addf %x, %x : tensor<16xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %3 into %o[0] [16] [1] : tensor<16xf32> into tensor<16xf32>
    }
  }
  return %r : tensor<16xf32>
}

// -----

func.func @f(%x: tensor<16x16xf32>) -> tensor<16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16xf32>
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<16xf32>) {
    %0 = tensor.empty() : tensor<16xf32>
    %1 = linalg.fill ins(%zero : f32) outs(%0 : tensor<16xf32>) -> tensor<16xf32>
    // expected-error @below {{'linalg.generic' op has no translation to a block program: a reduction is of the rows or the columns of a matrix, by arith.addf, mulf, maxnumf, minnumf, maximumf or minimumf, each result by itself}}
    %2 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<16x16xf32>) outs(%1 : tensor<16xf32>) {
    ^bb0(%a: f32, %b: f32):
      %3 = arith.subf %b, %a : f32
      linalg.yield %3 : f32
    } -> tensor<16xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %2 into %o[0] [16] [1] : tensor<16xf32> into tensor<16xf32>
    }
  }
  return %r : tensor<16xf32>
}

// -----

func.func @f(%x: tensor<16x16xf32>) -> tensor<16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16xf32>
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<16xf32>) {
    %0 = tensor.empty() : tensor<16xf32>
    %1 = linalg.fill ins(%zero : f32) outs(%0 : tensor<16xf32>) -> tensor<16xf32>
    // expected-error @below {{'linalg.generic' op has no translation to a block program: a reduction is of the rows or the columns of a matrix, by arith.addf, mulf, maxnumf, minnumf, maximumf or minimumf, each result by itself}}
    %2 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<16x16xf32>) outs(%1 : tensor<16xf32>) {
    ^bb0(%a: f32, %b: f32):
      %3 = arith.mulf %b, %a : f32
      %4 = arith.addf %b, %3 : f32
      linalg.yield %4 : f32
    } -> tensor<16xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %2 into %o[0] [16] [1] : tensor<16xf32> into tensor<16xf32>
    }
  }
  return %r : tensor<16xf32>
}

// -----

func.func @f(%x: tensor<16x16xf16>) -> tensor<16xf16> {
  %zero = arith.constant 0.0 : f16
  %e = tensor.empty() : tensor<16xf16>
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<16xf16>) {
    %0 = tensor.empty() : tensor<16xf16>
    %1 = linalg.fill ins(%zero : f16) outs(%0 : tensor<16xf16>) -> tensor<16xf16>
    // expected-error @below {{'linalg.generic' op has no translation to a block program: a reduction combines elements of f32}}
    %2 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<16x16xf16>) outs(%1 : tensor<16xf16>) {
    ^bb0(%a: f16, %b: f16):
      %3 = arith.addf %b, %a : f16
      linalg.yield %3 : f16
    } -> tensor<16xf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %2 into %o[0] [16] [1] : tensor<16xf16> into tensor<16xf16>
    }
  }
  return %r : tensor<16xf16>
}

// -----

// Whole rows, and parts of outputs.

func.func @f(%x: tensor<8x64xf32>) -> tensor<8x64xf32> {
  %e = tensor.empty() : tensor<8x64xf32>
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> tensor<8x64xf32> {
    // expected-error @below {{'flash.softmax' op has no translation to a block program: blocks have loops, conditions, linalg}}
    %p = flash.softmax %x : tensor<8x64xf32> -> tensor<8x64xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %p into %o[0, 0] [8, 64] [1, 1] : tensor<8x64xf32> into tensor<8x64xf32>
    }
  }
  return %r : tensor<8x64xf32>
}

// -----

// A value of 16 bits for each row, which no layout of rows holds.

#m = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func @f(%x: tensor<6x40xf32>, %y: tensor<6xf16>) -> tensor<6x40xf32> {
  %e = tensor.empty() : tensor<6x40xf32>
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<6x40xf32>) {
    // expected-error @below {{'tensor<6x40xf32>' is no tile of 1 warps, which has rows in multiples of 16}}
    %0 = linalg.generic {indexing_maps = [#m, #row, #m], iterator_types = ["parallel", "parallel"]}
        ins(%x, %y : tensor<6x40xf32>, tensor<6xf16>) outs(%e : tensor<6x40xf32>) {
    ^bb0(%a: f32, %b: f16, %unused: f32):
      %square = arith.mulf %b, %b : f16
      %1 = arith.extf %square : f16 to f32
      %2 = arith.mulf %a, %1 : f32
      linalg.yield %2 : f32
    } -> tensor<6x40xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %0 into %o[0, 0] [6, 40] [1, 1] : tensor<6x40xf32> into tensor<6x40xf32>
    }
  }
  return %r : tensor<6x40xf32>
}

// -----

func.func @f(%x: tensor<8x64xf32>) -> tensor<8x64xf32> {
  %e = tensor.empty() : tensor<8x64xf32>
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<8x64xf32>) {
    %0 = arith.negf %x : tensor<8x64xf32>
    %1 = tensor.empty() : tensor<8x128xf32>
    // expected-error @below {{it inserts into a tile that is in registers; insert into a slice of an output of the loop}}
    %2 = tensor.insert_slice %0 into %1[0, 0] [8, 64] [1, 1] : tensor<8x64xf32> into tensor<8x128xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %0 into %o[0, 0] [8, 64] [1, 1] : tensor<8x64xf32> into tensor<8x64xf32>
    }
  }
  return %r : tensor<8x64xf32>
}

// -----

func.func @f(%x: tensor<8x64xf32>) -> tensor<8x128xf32> {
  %e = tensor.empty() : tensor<8x128xf32>
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<8x128xf32>) {
    %0 = arith.negf %x : tensor<8x64xf32>
    %part = tensor.extract_slice %o[0, 0] [8, 128] [1, 1] : tensor<8x128xf32> to tensor<8x128xf32>
    // expected-error @below {{it takes a part of an output that something else takes, too; write tiles to it one after the other}}
    %1 = tensor.insert_slice %0 into %part[0, 0] [8, 64] [1, 1] : tensor<8x64xf32> into tensor<8x128xf32>
    %2 = tensor.insert_slice %0 into %part[0, 64] [8, 64] [1, 1] : tensor<8x64xf32> into tensor<8x128xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %1 into %o[0, 0] [8, 128] [1, 1] : tensor<8x128xf32> into tensor<8x128xf32>
    }
  }
  return %r : tensor<8x128xf32>
}

// -----

func.func @f(%x: tensor<8x64xf32>) -> tensor<8x128xf32> {
  %e = tensor.empty() : tensor<8x128xf32>
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<8x128xf32>) {
    %0 = arith.negf %x : tensor<8x64xf32>
    %part = tensor.extract_slice %o[0, 0] [8, 64] [1, 1] : tensor<8x128xf32> to tensor<8x64xf32>
    %1 = tensor.insert_slice %0 into %part[0, 0] [8, 64] [1, 1] : tensor<8x64xf32> into tensor<8x64xf32>
    scf.forall.in_parallel {
      // expected-error @below {{it stores a part of an output elsewhere than it is from}}
      tensor.parallel_insert_slice %1 into %o[0, 64] [8, 64] [1, 1] : tensor<8x64xf32> into tensor<8x128xf32>
    }
  }
  return %r : tensor<8x128xf32>
}

// -----

func.func @f(%x: tensor<8x64xf32>) -> tensor<8x64xf32> {
  %e = tensor.empty() : tensor<8x64xf32>
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<8x64xf32>) {
    %0 = arith.negf %x : tensor<8x64xf32>
    %part = tensor.extract_slice %o[0, 0] [8, 64] [1, 1] : tensor<8x64xf32> to tensor<8x64xf32>
    // expected-error @below {{nothing stores the part of an output that it gives}}
    %1 = tensor.insert_slice %0 into %part[0, 0] [8, 64] [1, 1] : tensor<8x64xf32> into tensor<8x64xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %0 into %o[0, 0] [8, 64] [1, 1] : tensor<8x64xf32> into tensor<8x64xf32>
    }
  }
  return %r : tensor<8x64xf32>
}

// -----

func.func @f(%x: tensor<8x64xf32>) -> tensor<8x64xf32> {
  %e = tensor.empty() : tensor<8x64xf32>
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<8x64xf32>) {
    %0 = arith.negf %x : tensor<8x64xf32>
    %part = tensor.extract_slice %o[0, 0] [8, 64] [1, 1] : tensor<8x64xf32> to tensor<8x64xf32>
    %1 = tensor.insert_slice %0 into %part[0, 0] [8, 64] [1, 1] : tensor<8x64xf32> into tensor<8x64xf32>
    // expected-error @below {{it takes a part of an output; insert tiles into it, in loops or not, and store it where it is from}}
    %2 = arith.negf %1 : tensor<8x64xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %2 into %o[0, 0] [8, 64] [1, 1] : tensor<8x64xf32> into tensor<8x64xf32>
    }
  }
  return %r : tensor<8x64xf32>
}

// -----

func.func @f(%x: tensor<8x64xf32>, %yes: i1) -> tensor<8x64xf32> {
  %e = tensor.empty() : tensor<8x64xf32>
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<8x64xf32>) {
    %0 = arith.negf %x : tensor<8x64xf32>
    %part = tensor.extract_slice %o[0, 0] [8, 64] [1, 1] : tensor<8x64xf32> to tensor<8x64xf32>
    // expected-error @below {{it gives a part of an output; give the tile that is to be inserted}}
    %1 = scf.if %yes -> tensor<8x64xf32> {
      %2 = tensor.insert_slice %0 into %part[0, 0] [8, 64] [1, 1] : tensor<8x64xf32> into tensor<8x64xf32>
      scf.yield %2 : tensor<8x64xf32>
    } else {
      scf.yield %part : tensor<8x64xf32>
    }
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %1 into %o[0, 0] [8, 64] [1, 1] : tensor<8x64xf32> into tensor<8x64xf32>
    }
  }
  return %r : tensor<8x64xf32>
}

// -----

func.func @f(%x: tensor<8x64xf32>, %n: index) -> tensor<8x64xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %e = tensor.empty() : tensor<8x64xf32>
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<8x64xf32>) {
    %part = tensor.extract_slice %o[0, 0] [8, 64] [1, 1] : tensor<8x64xf32> to tensor<8x64xf32>
    // expected-error @below {{it carries a part of an output, and yields something else}}
    %all = scf.for %j = %c0 to %n step %c1 iter_args(%b = %part) -> tensor<8x64xf32> {
      %0 = arith.negf %x : tensor<8x64xf32>
      scf.yield %0 : tensor<8x64xf32>
    }
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %all into %o[0, 0] [8, 64] [1, 1] : tensor<8x64xf32> into tensor<8x64xf32>
    }
  }
  return %r : tensor<8x64xf32>
}

// -----

// Of an output that starts with values a kernel would lose those that the loop
// within does not write.

// expected-note @below {{the values}}
func.func @f(%x: tensor<8x64xf32>, %start: tensor<8x128xf32>) -> tensor<8x128xf32> {
  // expected-error @below {{an output of it starts with values, and its blocks may not write all of it; start from tensor.empty}}
  %r = scf.forall (%i) in (1) shared_outs(%o = %start) -> (tensor<8x128xf32>) {
    %0 = arith.negf %x : tensor<8x64xf32>
    %part = tensor.extract_slice %o[0, 0] [8, 128] [1, 1] : tensor<8x128xf32> to tensor<8x128xf32>
    %1 = tensor.insert_slice %0 into %part[0, 0] [8, 64] [1, 1] : tensor<8x64xf32> into tensor<8x128xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %1 into %o[0, 0] [8, 128] [1, 1] : tensor<8x128xf32> into tensor<8x128xf32>
    }
  }
  return %r : tensor<8x128xf32>
}

// -----

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
func.func @divergent(%q: tensor<64x64xf16>, %l: tensor<64xf32>) -> tensor<64x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x64xf32>
  %r = scf.forall (%i) = (0) to (64) step (64) shared_outs(%o = %e) -> (tensor<64x64xf32>) {
    %t = tensor.extract_slice %q[%i, 0] [64, 64] [1, 1] : tensor<64x64xf16> to tensor<64x64xf16>
    %x = tensor.empty() : tensor<64x64xf32>
    %z = linalg.fill ins(%zero : f32) outs(%x : tensor<64x64xf32>) -> tensor<64x64xf32>
    %v = linalg.fill ins(%zero : f32) outs(%l : tensor<64xf32>) -> tensor<64xf32>
    %above = arith.cmpf ogt, %v, %v : tensor<64xf32>
    %any = flash.any %above : tensor<64xi1>
    %s = scf.if %any -> tensor<64x64xf32> {
      // expected-error @below {{it takes all warps of a block, where a flash.any of the warp decides}}
      %p = linalg.contract indexing_maps = [#a, #b, #c] ins(%t, %t : tensor<64x64xf16>, tensor<64x64xf16>) outs(%z : tensor<64x64xf32>) -> tensor<64x64xf32>
      scf.yield %p : tensor<64x64xf32>
    } else {
      scf.yield %z : tensor<64x64xf32>
    }
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %s into %o[%i, 0] [64, 64] [1, 1] : tensor<64x64xf32> into tensor<64x64xf32>
    }
  }
  return %r : tensor<64x64xf32>
}

// -----

func.func @f(%x: f32) -> tensor<16x16xf32> {
  %c0 = arith.constant 0 : index
  %e = tensor.empty() : tensor<16x16xf32>
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<16x16xf32>) {
    %0 = tensor.empty() : tensor<16x16xf32>
    %1 = linalg.fill ins(%x : f32) outs(%0 : tensor<16x16xf32>) -> tensor<16x16xf32>
    // expected-error @below {{'tensor.insert' op has no translation to a block program: it inserts elements into a tile that is in registers; insert into a slice of an output of the loop}}
    %2 = tensor.insert %x into %1[%c0, %c0] : tensor<16x16xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %2 into %o[0, 0] [16, 16] [1, 1] : tensor<16x16xf32> into tensor<16x16xf32>
    }
  }
  return %r : tensor<16x16xf32>
}

// -----

func.func @f(%x: i32) -> tensor<4x16xi32> {
  %c0 = arith.constant 0 : index
  %e = tensor.empty() : tensor<4x16xi32>
  %r = scf.forall (%i) in (4) shared_outs(%o = %e) -> (tensor<4x16xi32>) {
    %row = tensor.extract_slice %o[%i, 0] [1, 8] [1, 2] : tensor<4x16xi32> to tensor<8xi32>
    // expected-error @below {{'tensor.insert' op has no translation to a block program: it inserts elements into a slice whose elements are not neighbours}}
    %1 = tensor.insert %x into %row[%c0] : tensor<8xi32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %1 into %o[%i, 0] [1, 8] [1, 2] : tensor<8xi32> into tensor<4x16xi32>
    }
  }
  return %r : tensor<4x16xi32>
}

// -----

!sums = tensor<1x2x4x64x32xf32>
!counts = tensor<1x2x4xi32>
func.func @f(%x: f32, %first: !sums) -> (!sums, !counts) {
  %c0 = arith.constant 0 : index
  %empty = tensor.empty() : !sums
  %n = tensor.empty() : !counts
  %r:2 = scf.forall (%h, %j) in (2, 4) shared_outs(%s = %empty, %c = %n) -> (!sums, !counts) {
    %e = tensor.empty() : tensor<64x32xf32>
    %t = linalg.fill ins(%x : f32) outs(%e : tensor<64x32xf32>) -> tensor<64x32xf32>
    %p = flash.contribute %t to %first[%c0, %h, %c0] among(%c0 to %j) : tensor<64x32xf32> to !sums
    scf.forall.in_parallel {
      // expected-error @below {{'flash.parallel_add' op has no translation to a block program: what a block adds begins as an empty tensor, to which flash.contribute puts tiles one after the other}}
      flash.parallel_add %p to %s counting %c : !sums, !counts
    }
  }
  return %r#0, %r#1 : !sums, !counts
}

// -----

!sums = tensor<1x2x4x64x32xf32>
!counts = tensor<1x2x4xi32>
func.func @f(%x: f32) -> (!sums, !counts) {
  %c0 = arith.constant 0 : index
  %empty = tensor.empty() : !sums
  %n = tensor.empty() : !counts
  %r:2 = scf.forall (%h, %j) in (2, 4) shared_outs(%s = %empty, %c = %n) -> (!sums, !counts) {
    %e = tensor.empty() : tensor<64x32xf32>
    %t = linalg.fill ins(%x : f32) outs(%e : tensor<64x32xf32>) -> tensor<64x32xf32>
    %none = tensor.empty() : !sums
    // expected-error @below {{'flash.contribute' op has no translation to a block program: a contribution with behind needs blocks that take the tiles of a head backwards, in the order reverse or longest_first}}
    %p = flash.contribute %t to %none[%c0, %h, %c0] behind(%c0) : tensor<64x32xf32> to !sums
    scf.forall.in_parallel {
      flash.parallel_add %p to %s counting %c : !sums, !counts
    }
  } {tile.order = #tile.order<both_ways>}
  return %r#0, %r#1 : !sums, !counts
}

// -----

// Without an order of their own, iterations of greater numbers come later.

!sums = tensor<1x2x4x64x32xf32>
!counts = tensor<1x2x4xi32>
func.func @f(%x: f32) -> (!sums, !counts) {
  %c0 = arith.constant 0 : index
  %empty = tensor.empty() : !sums
  %n = tensor.empty() : !counts
  %r:2 = scf.forall (%h, %j) in (2, 4) shared_outs(%s = %empty, %c = %n) -> (!sums, !counts) {
    %e = tensor.empty() : tensor<64x32xf32>
    %t = linalg.fill ins(%x : f32) outs(%e : tensor<64x32xf32>) -> tensor<64x32xf32>
    %none = tensor.empty() : !sums
    // expected-error @below {{'flash.contribute' op has no translation to a block program: a contribution with behind needs blocks that take the tiles of a head backwards, in the order reverse or longest_first}}
    %p = flash.contribute %t to %none[%c0, %h, %c0] behind(%c0) : tensor<64x32xf32> to !sums
    scf.forall.in_parallel {
      flash.parallel_add %p to %s counting %c : !sums, !counts
    }
  } {tile.order = #tile.order<heads_fastest>}
  return %r#0, %r#1 : !sums, !counts
}

// -----

!sums = tensor<1x2x4x64x32xf32>
!counts = tensor<1x2x4xi32>
func.func @f(%x: f32, %first: !sums) -> (!sums, !counts) {
  %c0 = arith.constant 0 : index
  %empty = tensor.empty() : !sums
  %n = tensor.empty() : !counts
  %r:2 = scf.forall (%h, %j) in (2, 4) shared_outs(%s = %empty, %c = %n) -> (!sums, !counts) {
    %e = tensor.empty() : tensor<64x32xf32>
    %t = linalg.fill ins(%x : f32) outs(%e : tensor<64x32xf32>) -> tensor<64x32xf32>
    %none = tensor.empty() : !sums
    %p = flash.contribute %t to %none[%c0, %h, %c0] among(%c0 to %j) : tensor<64x32xf32> to !sums
    scf.forall.in_parallel {
      // expected-error @below {{'flash.parallel_add' op has no translation to a block program: blocks that add in order take the tiles of a head one after the other, in the order linear, heads_fastest, interleaved, reverse, both_ways or longest_first}}
      flash.parallel_add %p to %s counting %c : !sums, !counts
    }
  } {tile.order = #tile.order<snake>}
  return %r#0, %r#1 : !sums, !counts
}

// -----

!sums = tensor<1x2x4x64x32xf32>
!counts = tensor<1x2x4xi32>
func.func @f(%x: f32, %first: !sums) -> (!sums, !counts) {
  %c0 = arith.constant 0 : index
  %empty = tensor.empty() : !sums
  %n = tensor.empty() : !counts
  %r:2 = scf.forall (%h, %j) in (2, 4) shared_outs(%s = %empty, %c = %n) -> (!sums, !counts) {
    %e = tensor.empty() : tensor<64x32xf32>
    %t = linalg.fill ins(%x : f32) outs(%e : tensor<64x32xf32>) -> tensor<64x32xf32>
    %p = tensor.empty() : !sums
    // expected-error @below {{'flash.contribute' op has no translation to a block program: a tile is put among contributions that nothing adds, or that something else takes, too}}
    %q = flash.contribute %t to %p[%c0, %h, %c0] among(%c0 to %j) : tensor<64x32xf32> to !sums
    scf.forall.in_parallel {
flash.parallel_add %p to %s counting %c : !sums, !counts
    }
  }
  return %r#0, %r#1 : !sums, !counts
}

// -----

// No register holds an index.
func.func @indices(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %e = tensor.empty() : tensor<64x64xf32>
  %r = scf.forall (%i) = (0) to (64) step (16) shared_outs(%o = %e) -> tensor<64x64xf32> {
    %te = tensor.empty() : tensor<16x64xindex>
    %ye = tensor.empty() : tensor<16x64xf32>
    %t = linalg.fill ins(%i : index) outs(%te : tensor<16x64xindex>) -> tensor<16x64xindex>
    // expected-error @below {{'tensor<16x64xindex>' is no tile of 1 warps}}
    %y = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (a, b)>], iterator_types = ["parallel", "parallel"]}
        ins(%t : tensor<16x64xindex>) outs(%ye : tensor<16x64xf32>) {
    ^bb0(%a: index, %b: f32):
      %j = arith.index_cast %a : index to i32
      %f = arith.sitofp %j : i32 to f32
      linalg.yield %f : f32
    } -> tensor<16x64xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %y into %o[%i, 0] [16, 64] [1, 1] : tensor<16x64xf32> into tensor<64x64xf32>
    }
  }
  return %r : tensor<64x64xf32>
}
