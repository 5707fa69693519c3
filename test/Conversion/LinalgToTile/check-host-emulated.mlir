// A call on a GPU checks strides that are not known before, and an emulated one does not.
// RUN: flash-opt %s --pass-pipeline='builtin.module(func.func(flash-check-host))'
// RUN: not flash-opt %s --pass-pipeline='builtin.module(func.func(flash-check-host{emulated}))' 2>&1 | FileCheck %s

// CHECK: 'tensor.extract_slice' op may leave gaps between the elements of a row
func.func @step(%x: tensor<8x64xf16>, %step: index) -> index {
  %c0 = arith.constant 0 : index
  %s = tensor.extract_slice %x[0, 0] [8, 16] [1, %step] : tensor<8x64xf16> to tensor<8x16xf16>
  %n = tensor.dim %s, %c0 : tensor<8x16xf16>
  return %n : index
}
