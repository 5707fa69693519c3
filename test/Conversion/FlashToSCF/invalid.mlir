// RUN: flash-opt %s --convert-flash-to-scf --split-input-file --verify-diagnostics

func.func @no_step(%n: index, %x: tensor<16xf32>) -> tensor<16xf32> {
  %c0 = arith.constant 0 : index
  // expected-error @below {{says which tiles a mask leaves, but its region has no single step that has the mask}}
  %0 = flash.visit keys tile(16) from %c0 to %n by %n exist(%n) tiles(<hi = []>) init(%x : tensor<16xf32>) {
  ^bb0(%at: index, %rows: index, %s: tensor<16xf32>):
    flash.next %s : tensor<16xf32>
  }
  return %0 : tensor<16xf32>
}
