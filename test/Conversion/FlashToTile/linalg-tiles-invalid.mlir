// RUN: flash-opt %s --convert-flash-to-tile --split-input-file --verify-diagnostics

#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> (k, j)>
#c = affine_map<(i, j, k) -> (i, j)>
func.func @rows(%x: tensor<8x8xf32>, %e: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> tensor<8x8xf32> {
    // expected-error @below {{only products of two slices of operands have, with static sums of f32, whose rows are a multiple of 16 (the same in all products) and columns of 8}}
    %p = linalg.contract indexing_maps = [#a, #b, #c] ins(%x, %x : tensor<8x8xf32>, tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %p into %o[0, 0] [8, 8] [1, 1] : tensor<8x8xf32> into tensor<8x8xf32>
    }
  }
  return %r : tensor<8x8xf32>
}

// -----

func.func @whole(%x: tensor<8x64xf32>, %e: tensor<8x64xf32>) -> tensor<8x64xf32> {
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> tensor<8x64xf32> {
    // expected-error @below {{has no translation to a block program: its input is no slice of a matrix}}
    %p = flash.softmax %x : tensor<8x64xf32> -> tensor<8x64xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %p into %o[0, 0] [8, 64] [1, 1] : tensor<8x64xf32> into tensor<8x64xf32>
    }
  }
  return %r : tensor<8x64xf32>
}

// -----

func.func @parts(%o: tensor<2x8x64xf32>, %l: tensor<2x8xf32>, %e: tensor<8x64xf32>) -> tensor<8x64xf32> {
  %r = scf.forall (%i) in (1) shared_outs(%x = %e) -> tensor<8x64xf32> {
    // expected-error @below {{has no translation to a block program: its inputs are no slices of parts of batches of heads}}
    %c = flash.combine %o, %l : (tensor<2x8x64xf32>, tensor<2x8xf32>) -> tensor<8x64xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %c into %x[0, 0] [8, 64] [1, 1] : tensor<8x64xf32> into tensor<8x64xf32>
    }
  }
  return %r : tensor<8x64xf32>
}
