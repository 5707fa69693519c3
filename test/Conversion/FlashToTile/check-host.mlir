// RUN: flash-opt %s --flash-sm80 --split-input-file --verify-diagnostics

func.func @product(%x: tensor<64x64xf32>, %e: tensor<64x64xf32>) -> tensor<64x64xf32> {
  // expected-error @below {{'linalg.matmul' op runs on the CPU only: of a program, attention and softmaxes along the last dimension run on a GPU; use --target=cpu}}
  %y = linalg.matmul ins(%x, %x : tensor<64x64xf32>, tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
  return %y : tensor<64x64xf32>
}

// -----

func.func @columns(%x: tensor<64x64xf32>, %e: tensor<64x64xf32>) -> tensor<64x64xf32> {
  // expected-error @below {{'linalg.softmax' op runs on the CPU only}}
  %y = linalg.softmax dimension(0) ins(%x : tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
  return %y : tensor<64x64xf32>
}

// -----

func.func @elementwise(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  // expected-error @below {{'arith.addf' op runs on the CPU only}}
  %y = arith.addf %x, %x : tensor<64x64xf32>
  return %y : tensor<64x64xf32>
}

// -----

func.func @pad(%x: tensor<64xf32>, %z: f32) -> tensor<65xf32> {
  // expected-error @below {{'tensor.pad' op runs on the CPU only}}
  %y = tensor.pad %x low[0] high[1] {
  ^bb0(%i: index):
    tensor.yield %z : f32
  } : tensor<64xf32> to tensor<65xf32>
  return %y : tensor<65xf32>
}
