// RUN: flash-opt %s --flash-gpu=target=sm_80 --split-input-file --verify-diagnostics
// RUN: flash-opt %s --flash-emulate --split-input-file --verify-diagnostics

func.func @product(%x: tensor<64x64xf32>, %e: tensor<64x64xf32>) -> tensor<64x64xf32> {
  // expected-error @below {{'linalg.matmul' op runs on the CPU only: of a program, attention, softmaxes along the last dimension and parallel loops over tiles run on a GPU; use --target=cpu}}
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

// -----

func.func @element(%x: tensor<64xi64>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  // expected-error @below {{'tensor.extract' op runs on the CPU only}}
  %n = tensor.extract %x[%c0] : tensor<64xi64>
  %size = arith.index_cast %n : i64 to index
  %y = tensor.empty(%size) : tensor<?xf32>
  return %y : tensor<?xf32>
}

// -----

func.func @constant() -> tensor<2xf32> {
  // expected-error @below {{'arith.constant' op runs on the CPU only}}
  %y = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  return %y : tensor<2xf32>
}

// -----

// What folding has made has no location of its own.

func.func @folded() -> tensor<2xf32> {
  %y = arith.constant dense<[1.0, 2.0]> : tensor<2xf32> loc(unknown)
  // expected-error @below {{'arith.constant' op runs on the CPU only}}
  return %y : tensor<2xf32>
}

// -----

func.func private @other()

// expected-error @below {{'func.call' op runs on the CPU only}}
func.func @calls() {
  func.call @other() : () -> () loc(unknown)
  return
}

// -----

func.func @argument(%x: tensor<8x64xf32>) -> (tensor<8xf32>, tensor<4x64xf32>) {
  %e = tensor.empty() : tensor<8xf32>
  %y = tensor.extract_slice %x[4, 0] [4, 64] [1, 1] : tensor<8x64xf32> to tensor<4x64xf32>
  // expected-error @below {{'func.return' op cannot return result 1 on a GPU: it is memory of argument 0; leave it out, or use --target=cpu}}
  return %e, %y : tensor<8xf32>, tensor<4x64xf32>
}

// -----

// expected-error @below {{'func.func' op branches, which runs on the CPU only}}
func.func @branch(%c: i1, %n: index) -> tensor<?xf32> {
  cf.cond_br %c, ^a, ^b
^a:
  %x = tensor.empty(%n) : tensor<?xf32>
  return %x : tensor<?xf32>
^b:
  %m = arith.addi %n, %n : index
  %y = tensor.empty(%m) : tensor<?xf32>
  cf.br ^c
^c:
  return %y : tensor<?xf32>
}
