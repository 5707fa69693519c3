// RUN: flash-opt %s --convert-flash-to-tile --split-input-file --verify-diagnostics

func.func @attention(%arg0: tensor<1x1x64x16xf16>, %arg1: tensor<1x1x64x16xf16>, %arg2: tensor<1x1x64x16xf16>, %m: memref<f32>) -> tensor<1x1x64x16xf16> {
  %c16 = arith.constant 16 : index
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %low = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %0 = tensor.empty() : tensor<1x1x64x16xf16>
  %1 = scf.forall (%i) = (0) to (64) step (16) shared_outs(%out = %0) -> (tensor<1x1x64x16xf16>) {
    %q = tensor.extract_slice %arg0[0, 0, %i, 0] [1, 1, 16, 16] [1, 1, 1, 1] : tensor<1x1x64x16xf16> to tensor<16x16xf16>
    %2 = tensor.empty() : tensor<16x16xf32>
    %3 = linalg.fill ins(%zero : f32) outs(%2 : tensor<16x16xf32>) -> tensor<16x16xf32>
    %4 = tensor.empty() : tensor<16xf32>
    %5 = linalg.fill ins(%low : f32) outs(%4 : tensor<16xf32>) -> tensor<16xf32>
    %6 = linalg.fill ins(%zero : f32) outs(%4 : tensor<16xf32>) -> tensor<16xf32>
    // expected-error @below {{'memref.store' op has no translation to a block program}}
    memref.store %zero, %m[] : memref<f32>
    %7:3 = scf.for %j = %c0 to %c64 step %c16 iter_args(%acc = %3, %max = %5, %sum = %6) -> (tensor<16x16xf32>, tensor<16xf32>, tensor<16xf32>) {
      %k = tensor.extract_slice %arg1[0, 0, %j, 0] [1, 1, 16, 16] [1, 1, 1, 1] : tensor<1x1x64x16xf16> to tensor<16x16xf16>
      %v = tensor.extract_slice %arg2[0, 0, %j, 0] [1, 1, 16, 16] [1, 1, 1, 1] : tensor<1x1x64x16xf16> to tensor<16x16xf16>
      %acc1, %max1, %sum1 = flash.online_attention ins(%q, %k, %v : tensor<16x16xf16>, tensor<16x16xf16>, tensor<16x16xf16>) outs(%acc, %max, %sum : tensor<16x16xf32>, tensor<16xf32>, tensor<16xf32>) at[%c0, %c0, %i, %j] of[64, 64] scale(2.500000e-01) schedule(<query_tile = 16, key_tile = 16>)
      scf.yield %acc1, %max1, %sum1 : tensor<16x16xf32>, tensor<16xf32>, tensor<16xf32>
    }
    %8 = tensor.empty() : tensor<16x16xf16>
    %output = flash.finalize ins(%7#0, %7#1, %7#2 : tensor<16x16xf32>, tensor<16xf32>, tensor<16xf32>) outs(%8 : tensor<16x16xf16>) -> tensor<16x16xf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %output into %out[0, 0, %i, 0] [1, 1, 16, 16] [1, 1, 1, 1] : tensor<16x16xf16> into tensor<1x1x64x16xf16>
    }
  }
  return %1 : tensor<1x1x64x16xf16>
}

// -----

// expected-error @below {{this initial state of an online softmax has no translation to a block program: only fills and values for each head have}}
func.func @attention(%arg0: tensor<1x1x64x16xf16>, %arg1: tensor<1x1x64x16xf16>, %arg2: tensor<1x1x64x16xf16>, %initial: tensor<16x16xf32>) -> tensor<1x1x64x16xf16> {
  %c16 = arith.constant 16 : index
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %low = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %0 = tensor.empty() : tensor<1x1x64x16xf16>
  %1 = scf.forall (%i) = (0) to (64) step (16) shared_outs(%out = %0) -> (tensor<1x1x64x16xf16>) {
    %q = tensor.extract_slice %arg0[0, 0, %i, 0] [1, 1, 16, 16] [1, 1, 1, 1] : tensor<1x1x64x16xf16> to tensor<16x16xf16>
    %2 = tensor.empty() : tensor<16x16xf32>
    %3 = linalg.fill ins(%zero : f32) outs(%2 : tensor<16x16xf32>) -> tensor<16x16xf32>
    %4 = tensor.empty() : tensor<16xf32>
    %5 = linalg.fill ins(%low : f32) outs(%4 : tensor<16xf32>) -> tensor<16xf32>
    %6 = linalg.fill ins(%zero : f32) outs(%4 : tensor<16xf32>) -> tensor<16xf32>
    %7:3 = scf.for %j = %c0 to %c64 step %c16 iter_args(%acc = %initial, %max = %5, %sum = %6) -> (tensor<16x16xf32>, tensor<16xf32>, tensor<16xf32>) {
      %k = tensor.extract_slice %arg1[0, 0, %j, 0] [1, 1, 16, 16] [1, 1, 1, 1] : tensor<1x1x64x16xf16> to tensor<16x16xf16>
      %v = tensor.extract_slice %arg2[0, 0, %j, 0] [1, 1, 16, 16] [1, 1, 1, 1] : tensor<1x1x64x16xf16> to tensor<16x16xf16>
      %acc1, %max1, %sum1 = flash.online_attention ins(%q, %k, %v : tensor<16x16xf16>, tensor<16x16xf16>, tensor<16x16xf16>) outs(%acc, %max, %sum : tensor<16x16xf32>, tensor<16xf32>, tensor<16xf32>) at[%c0, %c0, %i, %j] of[64, 64] scale(2.500000e-01) schedule(<query_tile = 16, key_tile = 16>)
      scf.yield %acc1, %max1, %sum1 : tensor<16x16xf32>, tensor<16xf32>, tensor<16xf32>
    }
    %8 = tensor.empty() : tensor<16x16xf16>
    %output = flash.finalize ins(%7#0, %7#1, %7#2 : tensor<16x16xf32>, tensor<16xf32>, tensor<16xf32>) outs(%8 : tensor<16x16xf16>) -> tensor<16x16xf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %output into %out[0, 0, %i, 0] [1, 1, 16, 16] [1, 1, 1, 1] : tensor<16x16xf16> into tensor<1x1x64x16xf16>
    }
  }
  return %1 : tensor<1x1x64x16xf16>
}

// -----

func.func @attention(%arg0: tensor<1x1x64x16xf16>, %arg1: tensor<1x1x64x16xf16>, %arg2: tensor<1x1x64x16xf16>) -> tensor<1x1x64x16xf16> {
  %c16 = arith.constant 16 : index
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %low = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %0 = tensor.empty() : tensor<1x1x64x16xf16>
  %1 = scf.forall (%i) = (0) to (64) step (16) shared_outs(%out = %0) -> (tensor<1x1x64x16xf16>) {
    %q = tensor.extract_slice %arg0[0, 0, %i, 0] [1, 1, 16, 16] [1, 1, 1, 1] : tensor<1x1x64x16xf16> to tensor<16x16xf16>
    %2 = tensor.empty() : tensor<16x16xf32>
    %3 = linalg.fill ins(%zero : f32) outs(%2 : tensor<16x16xf32>) -> tensor<16x16xf32>
    %4 = tensor.empty() : tensor<16xf32>
    %5 = linalg.fill ins(%low : f32) outs(%4 : tensor<16xf32>) -> tensor<16xf32>
    %6 = linalg.fill ins(%zero : f32) outs(%4 : tensor<16xf32>) -> tensor<16xf32>
    %7:3 = scf.for %j = %c0 to %c64 step %c16 iter_args(%acc = %3, %max = %5, %sum = %6) -> (tensor<16x16xf32>, tensor<16xf32>, tensor<16xf32>) {
      %k = tensor.empty() : tensor<16x16xf16>
      %v = tensor.extract_slice %arg2[0, 0, %j, 0] [1, 1, 16, 16] [1, 1, 1, 1] : tensor<1x1x64x16xf16> to tensor<16x16xf16>
      // expected-error @below {{'flash.online_attention' op reads a tile that is no slice of an operand}}
      %acc1, %max1, %sum1 = flash.online_attention ins(%q, %k, %v : tensor<16x16xf16>, tensor<16x16xf16>, tensor<16x16xf16>) outs(%acc, %max, %sum : tensor<16x16xf32>, tensor<16xf32>, tensor<16xf32>) at[%c0, %c0, %i, %j] of[64, 64] scale(2.500000e-01) schedule(<query_tile = 16, key_tile = 16>)
      scf.yield %acc1, %max1, %sum1 : tensor<16x16xf32>, tensor<16xf32>, tensor<16xf32>
    }
    %8 = tensor.empty() : tensor<16x16xf16>
    %output = flash.finalize ins(%7#0, %7#1, %7#2 : tensor<16x16xf32>, tensor<16xf32>, tensor<16xf32>) outs(%8 : tensor<16x16xf16>) -> tensor<16x16xf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %output into %out[0, 0, %i, 0] [1, 1, 16, 16] [1, 1, 1, 1] : tensor<16x16xf16> into tensor<1x1x64x16xf16>
    }
  }
  return %1 : tensor<1x1x64x16xf16>
}

// -----

func.func @attention(%arg0: tensor<1x1x64x16xf16>, %arg1: tensor<1x1x64x16xf16>, %arg2: tensor<1x1x64x16xf16>, %m: memref<f32>) -> tensor<1x1x64x16xf16> {
  %c16 = arith.constant 16 : index
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %low = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %0 = tensor.empty() : tensor<1x1x64x16xf16>
  %1 = scf.forall (%i) = (0) to (64) step (16) shared_outs(%out = %0) -> (tensor<1x1x64x16xf16>) {
    %q = tensor.extract_slice %arg0[0, 0, %i, 0] [1, 1, 16, 16] [1, 1, 1, 1] : tensor<1x1x64x16xf16> to tensor<16x16xf16>
    %2 = tensor.empty() : tensor<16x16xf32>
    %3 = linalg.fill ins(%zero : f32) outs(%2 : tensor<16x16xf32>) -> tensor<16x16xf32>
    %4 = tensor.empty() : tensor<16xf32>
    %5 = linalg.fill ins(%low : f32) outs(%4 : tensor<16xf32>) -> tensor<16xf32>
    %6 = linalg.fill ins(%zero : f32) outs(%4 : tensor<16xf32>) -> tensor<16xf32>
    // expected-error @below {{'scf.for' op has no translation to a block program: it carries no state}}
    scf.for %x = %c0 to %c64 step %c16 {
      memref.store %zero, %m[] : memref<f32>
    }
    %7:3 = scf.for %j = %c0 to %c64 step %c16 iter_args(%acc = %3, %max = %5, %sum = %6) -> (tensor<16x16xf32>, tensor<16xf32>, tensor<16xf32>) {
      %k = tensor.extract_slice %arg1[0, 0, %j, 0] [1, 1, 16, 16] [1, 1, 1, 1] : tensor<1x1x64x16xf16> to tensor<16x16xf16>
      %v = tensor.extract_slice %arg2[0, 0, %j, 0] [1, 1, 16, 16] [1, 1, 1, 1] : tensor<1x1x64x16xf16> to tensor<16x16xf16>
      %acc1, %max1, %sum1 = flash.online_attention ins(%q, %k, %v : tensor<16x16xf16>, tensor<16x16xf16>, tensor<16x16xf16>) outs(%acc, %max, %sum : tensor<16x16xf32>, tensor<16xf32>, tensor<16xf32>) at[%c0, %c0, %i, %j] of[64, 64] scale(2.500000e-01) schedule(<query_tile = 16, key_tile = 16>)
      scf.yield %acc1, %max1, %sum1 : tensor<16x16xf32>, tensor<16xf32>, tensor<16xf32>
    }
    %8 = tensor.empty() : tensor<16x16xf16>
    %output = flash.finalize ins(%7#0, %7#1, %7#2 : tensor<16x16xf32>, tensor<16xf32>, tensor<16xf32>) outs(%8 : tensor<16x16xf16>) -> tensor<16x16xf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %output into %out[0, 0, %i, 0] [1, 1, 16, 16] [1, 1, 1, 1] : tensor<16x16xf16> into tensor<1x1x64x16xf16>
    }
  }
  return %1 : tensor<1x1x64x16xf16>
}

// -----

func.func @attention(%arg0: tensor<1x1x64x16xf16>, %arg1: tensor<1x1x64x16xf16>, %arg2: tensor<1x1x64x16xf16>, %m: memref<f32>, %c: i1) -> tensor<1x1x64x16xf16> {
  %c16 = arith.constant 16 : index
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %low = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %0 = tensor.empty() : tensor<1x1x64x16xf16>
  %1 = scf.forall (%i) = (0) to (64) step (16) shared_outs(%out = %0) -> (tensor<1x1x64x16xf16>) {
    %q = tensor.extract_slice %arg0[0, 0, %i, 0] [1, 1, 16, 16] [1, 1, 1, 1] : tensor<1x1x64x16xf16> to tensor<16x16xf16>
    %2 = tensor.empty() : tensor<16x16xf32>
    %3 = linalg.fill ins(%zero : f32) outs(%2 : tensor<16x16xf32>) -> tensor<16x16xf32>
    %4 = tensor.empty() : tensor<16xf32>
    %5 = linalg.fill ins(%low : f32) outs(%4 : tensor<16xf32>) -> tensor<16xf32>
    %6 = linalg.fill ins(%zero : f32) outs(%4 : tensor<16xf32>) -> tensor<16xf32>
    // expected-error @below {{'scf.if' op has no translation to a block program: it gives no state}}
    scf.if %c {
      memref.store %zero, %m[] : memref<f32>
    }
    %7:3 = scf.for %j = %c0 to %c64 step %c16 iter_args(%acc = %3, %max = %5, %sum = %6) -> (tensor<16x16xf32>, tensor<16xf32>, tensor<16xf32>) {
      %k = tensor.extract_slice %arg1[0, 0, %j, 0] [1, 1, 16, 16] [1, 1, 1, 1] : tensor<1x1x64x16xf16> to tensor<16x16xf16>
      %v = tensor.extract_slice %arg2[0, 0, %j, 0] [1, 1, 16, 16] [1, 1, 1, 1] : tensor<1x1x64x16xf16> to tensor<16x16xf16>
      %acc1, %max1, %sum1 = flash.online_attention ins(%q, %k, %v : tensor<16x16xf16>, tensor<16x16xf16>, tensor<16x16xf16>) outs(%acc, %max, %sum : tensor<16x16xf32>, tensor<16xf32>, tensor<16xf32>) at[%c0, %c0, %i, %j] of[64, 64] scale(2.500000e-01) schedule(<query_tile = 16, key_tile = 16>)
      scf.yield %acc1, %max1, %sum1 : tensor<16x16xf32>, tensor<16xf32>, tensor<16xf32>
    }
    %8 = tensor.empty() : tensor<16x16xf16>
    %output = flash.finalize ins(%7#0, %7#1, %7#2 : tensor<16x16xf32>, tensor<16xf32>, tensor<16xf32>) outs(%8 : tensor<16x16xf16>) -> tensor<16x16xf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %output into %out[0, 0, %i, 0] [1, 1, 16, 16] [1, 1, 1, 1] : tensor<16x16xf16> into tensor<1x1x64x16xf16>
    }
  }
  return %1 : tensor<1x1x64x16xf16>
}

// -----

func.func @attention(%arg0: tensor<1x1x64x16xf16>, %arg1: tensor<1x1x64x16xf16>, %arg2: tensor<1x1x64x16xf16>) -> tensor<1x1x64x16xf16> {
  %c16 = arith.constant 16 : index
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %low = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %0 = tensor.empty() : tensor<1x1x64x16xf16>
  %1 = scf.forall (%i) = (0) to (64) step (16) shared_outs(%out = %0) -> (tensor<1x1x64x16xf16>) {
    %q = tensor.extract_slice %arg0[0, 0, %i, 0] [1, 1, 16, 16] [1, 1, 1, 1] : tensor<1x1x64x16xf16> to tensor<16x16xf16>
    %2 = tensor.empty() : tensor<16x16xf32>
    %3 = linalg.fill ins(%zero : f32) outs(%2 : tensor<16x16xf32>) -> tensor<16x16xf32>
    %4 = tensor.empty() : tensor<16xf32>
    %5 = linalg.fill ins(%low : f32) outs(%4 : tensor<16xf32>) -> tensor<16xf32>
    %6 = linalg.fill ins(%zero : f32) outs(%4 : tensor<16xf32>) -> tensor<16xf32>
    %7:3 = scf.for %j = %c0 to %c64 step %c16 iter_args(%acc = %3, %max = %5, %sum = %6) -> (tensor<16x16xf32>, tensor<16xf32>, tensor<16xf32>) {
      %k = tensor.extract_slice %arg1[0, 0, %j, 0] [1, 1, 16, 16] [1, 1, 1, 1] : tensor<1x1x64x16xf16> to tensor<16x16xf16>
      %v = tensor.extract_slice %arg2[0, 0, %j, 0] [1, 1, 16, 16] [1, 1, 1, 1] : tensor<1x1x64x16xf16> to tensor<16x16xf16>
      %acc1, %max1, %sum1 = flash.online_attention ins(%q, %k, %v : tensor<16x16xf16>, tensor<16x16xf16>, tensor<16x16xf16>) outs(%acc, %max, %sum : tensor<16x16xf32>, tensor<16xf32>, tensor<16xf32>) at[%c0, %c0, %i, %j] of[64, 64] scale(2.500000e-01) schedule(<query_tile = 16, key_tile = 16>)
      scf.yield %acc1, %max1, %sum1 : tensor<16x16xf32>, tensor<16xf32>, tensor<16xf32>
    }
    %8 = tensor.empty() : tensor<16x16xf16>
    %output = flash.finalize ins(%7#0, %7#1, %7#2 : tensor<16x16xf32>, tensor<16xf32>, tensor<16xf32>) outs(%8 : tensor<16x16xf16>) -> tensor<16x16xf16>
    scf.forall.in_parallel {
      // expected-error @below {{'tensor.parallel_insert_slice' op stores no tile that is in registers}}
      tensor.parallel_insert_slice %8 into %out[0, 0, %i, 0] [1, 1, 16, 16] [1, 1, 1, 1] : tensor<16x16xf16> into tensor<1x1x64x16xf16>
    }
  }
  return %1 : tensor<1x1x64x16xf16>
}

// -----

// Neither is a slice of a tensor of another rank.

func.func @attention(%arg0: tensor<1x1x64x16xf16>, %arg1: tensor<1x1x64x16xf16>, %arg2: tensor<1x1x64x16xf16>, %rank3: tensor<1x64x16xf16>) -> tensor<1x1x64x16xf16> {
  %c16 = arith.constant 16 : index
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %low = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %0 = tensor.empty() : tensor<1x1x64x16xf16>
  %1 = scf.forall (%i) = (0) to (64) step (16) shared_outs(%out = %0) -> (tensor<1x1x64x16xf16>) {
    %q = tensor.extract_slice %arg0[0, 0, %i, 0] [1, 1, 16, 16] [1, 1, 1, 1] : tensor<1x1x64x16xf16> to tensor<16x16xf16>
    %2 = tensor.empty() : tensor<16x16xf32>
    %3 = linalg.fill ins(%zero : f32) outs(%2 : tensor<16x16xf32>) -> tensor<16x16xf32>
    %4 = tensor.empty() : tensor<16xf32>
    %5 = linalg.fill ins(%low : f32) outs(%4 : tensor<16xf32>) -> tensor<16xf32>
    %6 = linalg.fill ins(%zero : f32) outs(%4 : tensor<16xf32>) -> tensor<16xf32>
    %7:3 = scf.for %j = %c0 to %c64 step %c16 iter_args(%acc = %3, %max = %5, %sum = %6) -> (tensor<16x16xf32>, tensor<16xf32>, tensor<16xf32>) {
      %k = tensor.extract_slice %rank3[0, %j, 0] [1, 16, 16] [1, 1, 1] : tensor<1x64x16xf16> to tensor<16x16xf16>
      %v = tensor.extract_slice %arg2[0, 0, %j, 0] [1, 1, 16, 16] [1, 1, 1, 1] : tensor<1x1x64x16xf16> to tensor<16x16xf16>
      // expected-error @below {{'flash.online_attention' op reads a tile that is no slice of an operand}}
      %acc1, %max1, %sum1 = flash.online_attention ins(%q, %k, %v : tensor<16x16xf16>, tensor<16x16xf16>, tensor<16x16xf16>) outs(%acc, %max, %sum : tensor<16x16xf32>, tensor<16xf32>, tensor<16xf32>) at[%c0, %c0, %i, %j] of[64, 64] scale(2.500000e-01) schedule(<query_tile = 16, key_tile = 16>)
      scf.yield %acc1, %max1, %sum1 : tensor<16x16xf32>, tensor<16xf32>, tensor<16xf32>
    }
    %8 = tensor.empty() : tensor<16x16xf16>
    %output = flash.finalize ins(%7#0, %7#1, %7#2 : tensor<16x16xf32>, tensor<16xf32>, tensor<16xf32>) outs(%8 : tensor<16x16xf16>) -> tensor<16x16xf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %output into %out[0, 0, %i, 0] [1, 1, 16, 16] [1, 1, 1, 1] : tensor<16x16xf16> into tensor<1x1x64x16xf16>
    }
  }
  return %1 : tensor<1x1x64x16xf16>
}

// -----

// Nor is one under a mask, where blocks of several heads have an order.

func.func @attention(%arg0: tensor<1x2x64x16xf16>, %arg1: tensor<1x2x64x16xf16>, %arg2: tensor<1x2x64x16xf16>) -> tensor<1x2x64x16xf16> {
  %c16 = arith.constant 16 : index
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %low = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %0 = tensor.empty() : tensor<1x2x64x16xf16>
  %1 = scf.forall (%h, %i) = (0, 0) to (2, 64) step (1, 16) shared_outs(%out = %0) -> (tensor<1x2x64x16xf16>) {
    %q = tensor.extract_slice %arg0[0, %h, %i, 0] [1, 1, 16, 16] [1, 1, 1, 1] : tensor<1x2x64x16xf16> to tensor<16x16xf16>
    %2 = tensor.empty() : tensor<16x16xf32>
    %3 = linalg.fill ins(%zero : f32) outs(%2 : tensor<16x16xf32>) -> tensor<16x16xf32>
    %4 = tensor.empty() : tensor<16xf32>
    %5 = linalg.fill ins(%low : f32) outs(%4 : tensor<16xf32>) -> tensor<16xf32>
    %6 = linalg.fill ins(%zero : f32) outs(%4 : tensor<16xf32>) -> tensor<16xf32>
    %7:3 = scf.for %j = %c0 to %c64 step %c16 iter_args(%acc = %3, %max = %5, %sum = %6) -> (tensor<16x16xf32>, tensor<16xf32>, tensor<16xf32>) {
      %k = tensor.empty() : tensor<16x16xf16>
      %v = tensor.extract_slice %arg2[0, %h, %j, 0] [1, 1, 16, 16] [1, 1, 1, 1] : tensor<1x2x64x16xf16> to tensor<16x16xf16>
      // expected-error @below {{'flash.online_attention' op reads a tile that is no slice of an operand}}
      %acc1, %max1, %sum1 = flash.online_attention ins(%q, %k, %v : tensor<16x16xf16>, tensor<16x16xf16>, tensor<16x16xf16>) outs(%acc, %max, %sum : tensor<16x16xf32>, tensor<16xf32>, tensor<16xf32>) at[%c0, %h, %i, %j] of[64, 64] scale(2.500000e-01) mask(#flash.causal) schedule(<query_tile = 16, key_tile = 16>)
      scf.yield %acc1, %max1, %sum1 : tensor<16x16xf32>, tensor<16xf32>, tensor<16xf32>
    }
    %8 = tensor.empty() : tensor<16x16xf16>
    %output = flash.finalize ins(%7#0, %7#1, %7#2 : tensor<16x16xf32>, tensor<16xf32>, tensor<16xf32>) outs(%8 : tensor<16x16xf16>) -> tensor<16x16xf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %output into %out[0, %h, %i, 0] [1, 1, 16, 16] [1, 1, 1, 1] : tensor<16x16xf16> into tensor<1x2x64x16xf16>
    }
  }
  return %1 : tensor<1x2x64x16xf16>
}

// -----

func.func @attention(%arg0: tensor<1x1x64x16xf16>, %arg1: tensor<1x1x64x16xf16>, %arg2: tensor<1x1x64x16xf16>) -> tensor<1x1x64x16xf16> {
  %c16 = arith.constant 16 : index
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %low = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %0 = tensor.empty() : tensor<1x1x64x16xf16>
  %1 = scf.forall (%i) = (0) to (64) step (16) shared_outs(%out = %0) -> (tensor<1x1x64x16xf16>) {
    // expected-error @below {{this tile has no translation to a block program: it is no slice of an operand}}
    %q = tensor.empty() : tensor<16x16xf16>
    %2 = tensor.empty() : tensor<16x16xf32>
    %3 = linalg.fill ins(%zero : f32) outs(%2 : tensor<16x16xf32>) -> tensor<16x16xf32>
    %4 = tensor.empty() : tensor<16xf32>
    %5 = linalg.fill ins(%low : f32) outs(%4 : tensor<16xf32>) -> tensor<16xf32>
    %6 = linalg.fill ins(%zero : f32) outs(%4 : tensor<16xf32>) -> tensor<16xf32>
    %7:3 = scf.for %j = %c0 to %c64 step %c16 iter_args(%acc = %3, %max = %5, %sum = %6) -> (tensor<16x16xf32>, tensor<16xf32>, tensor<16xf32>) {
      %k = tensor.extract_slice %arg1[0, 0, %j, 0] [1, 1, 16, 16] [1, 1, 1, 1] : tensor<1x1x64x16xf16> to tensor<16x16xf16>
      %v = tensor.extract_slice %arg2[0, 0, %j, 0] [1, 1, 16, 16] [1, 1, 1, 1] : tensor<1x1x64x16xf16> to tensor<16x16xf16>
      %acc1, %max1, %sum1 = flash.online_attention ins(%q, %k, %v : tensor<16x16xf16>, tensor<16x16xf16>, tensor<16x16xf16>) outs(%acc, %max, %sum : tensor<16x16xf32>, tensor<16xf32>, tensor<16xf32>) at[%c0, %c0, %i, %j] of[64, 64] scale(2.500000e-01) schedule(<query_tile = 16, key_tile = 16>)
      scf.yield %acc1, %max1, %sum1 : tensor<16x16xf32>, tensor<16xf32>, tensor<16xf32>
    }
    %8 = tensor.empty() : tensor<16x16xf16>
    %output = flash.finalize ins(%7#0, %7#1, %7#2 : tensor<16x16xf32>, tensor<16xf32>, tensor<16xf32>) outs(%8 : tensor<16x16xf16>) -> tensor<16x16xf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %output into %out[0, 0, %i, 0] [1, 1, 16, 16] [1, 1, 1, 1] : tensor<16x16xf16> into tensor<1x1x64x16xf16>
    }
  }
  return %1 : tensor<1x1x64x16xf16>
}
