// RUN: flash-opt %s --pass-pipeline='builtin.module(func.func(flash-check-host))' --split-input-file --verify-diagnostics
// RUN: flash-opt %s --pass-pipeline='builtin.module(func.func(flash-check-host{emulated}))' --split-input-file --verify-diagnostics

func.func @step(%x: tensor<8x64xf16>) -> index {
  %c0 = arith.constant 0 : index
  // expected-error @below {{'tensor.extract_slice' op leaves gaps between the elements of a row, and a GPU takes rows without them: copy what is sliced, or use --target=cpu}}
  %s = tensor.extract_slice %x[0, 0] [8, 32] [1, 2] : tensor<8x64xf16> to tensor<8x32xf16>
  %n = tensor.dim %s, %c0 : tensor<8x32xf16>
  return %n : index
}

// -----

func.func @column(%x: tensor<8x64xf16>) -> index {
  %c0 = arith.constant 0 : index
  // expected-error @below {{leaves gaps between the elements of a row}}
  %s = tensor.extract_slice %x[0, 3] [8, 1] [1, 1] : tensor<8x64xf16> to tensor<8xf16>
  %n = tensor.dim %s, %c0 : tensor<8xf16>
  return %n : index
}

// -----

// Steps between rows, the only column, and one element have none.
func.func @rows(%x: tensor<8x64xf16>, %y: tensor<8x1xf16>) -> (index, index) {
  %c0 = arith.constant 0 : index
  %s = tensor.extract_slice %x[0, 8] [4, 32] [2, 1] : tensor<8x64xf16> to tensor<4x32xf16>
  %t = tensor.extract_slice %y[0, 0] [8, 1] [1, 1] : tensor<8x1xf16> to tensor<8xf16>
  %n = tensor.dim %s, %c0 : tensor<4x32xf16>
  %m = tensor.dim %t, %c0 : tensor<8xf16>
  return %n, %m : index, index
}
