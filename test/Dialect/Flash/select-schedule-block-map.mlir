// A mask that only the running program knows has a block map where the two kernels that make it take less than
// half of what attention to all tiles takes. It is said where it has none; a CPU launches nothing.
// RUN: flash-opt %s --flash-attach-target=target=sm_90a --flash-select-schedule | FileCheck %s
// RUN: flash-opt %s --flash-select-schedule | FileCheck %s --check-prefix=CPU
// RUN: flash-opt %s --flash-attach-target=target=sm_90a --flash-select-schedule='schedule=block_map=1' | FileCheck %s --check-prefix=GIVEN

!short = tensor<2x8x512x64xf16>
!long = tensor<2x8x8192x64xf16>
!open = tensor<?x?x?x64xf16>

// CHECK-LABEL: func @short(
// CHECK:       schedule(<{{.*}}block_map = 0
// CPU-LABEL:   func @short(
// CPU-NOT:     block_map
// GIVEN-LABEL: func @short(
// GIVEN:       schedule(<{{.*}}block_map = 1
func.func @short(%q: !short) -> !short {
  %o = flash.attention %q, %q, %q score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = arith.cmpi ne, %i, %j : index
    flash.yield %s keep %x : f32
  } : (!short, !short, !short) -> !short
  return %o : !short
}

// How long a list is only the data tell, so blocks claim their tiles.
// CHECK-LABEL: func @long(
// CHECK-NOT:   block_map
// CHECK:       |claim_tiles
func.func @long(%q: !long) -> !long {
  %o = flash.attention %q, %q, %q score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = arith.cmpi ne, %i, %j : index
    flash.yield %s keep %x : f32
  } : (!long, !long, !long) -> !long
  return %o : !long
}

// CHECK-LABEL: func @open(
// CHECK-NOT:   block_map
func.func @open(%q: !open) -> !open {
  %o = flash.attention %q, %q, %q score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = arith.cmpi ne, %i, %j : index
    flash.yield %s keep %x : f32
  } : (!open, !open, !open) -> !open
  return %o : !open
}

// The analysis knows this one.
// CHECK-LABEL: func @known(
// CHECK-NOT:   {{block_map|claim_tiles}}
func.func @known(%q: !short) -> !short {
  %o = flash.attention %q, %q, %q mask(#flash.causal) : (!short, !short, !short) -> !short
  return %o : !short
}

// Gradients have maps where attention has.
// CHECK-LABEL: func @short_gradients(
// CHECK:       schedule(<{{.*}}block_map = 0
// CPU-LABEL:   func @short_gradients(
// CPU-NOT:     block_map
// GIVEN-LABEL: func @short_gradients(
// GIVEN:       schedule(<{{.*}}block_map = 1
func.func @short_gradients(%q: !short, %l: tensor<2x8x512xf32>) -> !short {
  %0, %1, %2 = flash.attention_grad %q, %q, %q, %q, %l, %q score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = arith.cmpi ne, %i, %j : index
    flash.yield %s keep %x : f32
  } : (!short, !short, !short, !short, tensor<2x8x512xf32>, !short) -> (!short, !short, !short)
  return %0 : !short
}

// CHECK-LABEL: func @long_gradients(
// CHECK-NOT:   block_map
func.func @long_gradients(%q: !long, %l: tensor<2x8x8192xf32>) -> !long {
  %0, %1, %2 = flash.attention_grad %q, %q, %q, %q, %l, %q score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = arith.cmpi ne, %i, %j : index
    flash.yield %s keep %x : f32
  } : (!long, !long, !long, !long, tensor<2x8x8192xf32>, !long) -> (!long, !long, !long)
  return %0 : !long
}

// Tiles that are no range: a loop with a condition for each could not overlap steps.
// CHECK-LABEL: func @sinks(
// CHECK:       flash.attention {{.*}}block_map = 1
// CHECK:       flash.attention
// CHECK-NOT:   block_map
// CHECK:       return
// CPU-LABEL:   func @sinks(
// CPU-NOT:     block_map
func.func @sinks(%q: !long, %few: !short) -> (!long, !short) {
  %0 = flash.attention %q, %q, %q mask(#flash.all_of<[#flash.causal, #flash.any_of<[#flash.window<left = 1023>, #flash.prefix<4>]>]>)
      : (!long, !long, !long) -> !long
  %1 = flash.attention %few, %few, %few mask(#flash.all_of<[#flash.causal, #flash.any_of<[#flash.window<left = 99>, #flash.prefix<4>]>]>)
      : (!short, !short, !short) -> !short
  return %0, %1 : !long, !short
}
