// What blocks need for one tile after the other is not kept in registers across the loops
// inside of that over tiles.
// RUN: flash-translate %s | FileCheck %s

// Each tile reads the number of the block again. An offset that only the end of a tile uses
// is computed there; the factor of the loop inside is computed once, as ever.
// CHECK-LABEL: .entry tiles(
// CHECK-NOT:   %ctaid
// CHECK:       mov.u32 [[ID:%r[0-9]+]], %tid.x;
// CHECK-NEXT:  mul.lo.s32 {{%r[0-9]+}}, [[ID]], [[ID]];
// CHECK-NOT:   shl.b32
// CHECK:       [[TILES:\$L__.*]]:
// CHECK:       begin inline asm
// CHECK-NEXT:  mov.u32 {{%r[0-9]+}}, %nctaid.x;
// CHECK:       mov.u32 [[BLOCKS:%r[0-9]+]], %nctaid.x;
// CHECK:       mov.u32 [[BLOCK:%r[0-9]+]], %ctaid.x;
// CHECK:       sub.s32 {{%r[0-9]+}}, [[BLOCKS]], [[BLOCK]];
// CHECK:       [[STEPS:\$L__.*]]:
// CHECK:       bra [[STEPS]];
// CHECK:       shl.b32 {{%r[0-9]+}}, [[ID]], 5;
// CHECK:       bra [[TILES]];

// A loop that does not ask for the number of blocks may be one over keys: what does not
// change stays before it.
// CHECK-LABEL: .entry other(
// CHECK-NOT:   inline asm
// CHECK:       sub.s32
// CHECK:       shl.b32
// CHECK:       [[ALL:\$L__.*]]:
// CHECK-NOT:   shl.b32
// CHECK:       bra [[ALL]];

llvm.func @tiles(%o: !llvm.ptr<1>, %n: i32, %m: i32) attributes {nvvm.kernel} {
  %c0 = llvm.mlir.constant(0 : i32) : i32
  %c1 = llvm.mlir.constant(1 : i32) : i32
  %c5 = llvm.mlir.constant(5 : i32) : i32
  %poison = llvm.mlir.poison : vector<8xi32>
  %tid = nvvm.read.ptx.sreg.tid.x : i32
  %block = nvvm.read.ptx.sreg.ctaid.x : i32
  %blocks = nvvm.read.ptx.sreg.nctaid.x : i32
  %mirrored = llvm.sub %blocks, %block : i32
  llvm.br ^tile(%c0 : i32)
^tile(%i: i32):
  %round = llvm.mul %i, %blocks : i32
  %number = llvm.xor %round, %mirrored : i32
  %one = llvm.insertelement %number, %poison[%c0 : i32] : vector<8xi32>
  %start = llvm.shufflevector %one, %poison [0, 0, 0, 0, 0, 0, 0, 0] : vector<8xi32>
  llvm.br ^step(%c0, %start : i32, vector<8xi32>)
^step(%j: i32, %x: vector<8xi32>):
  %factor = llvm.mul %tid, %tid : i32
  %next = llvm.add %factor, %j : i32
  %two = llvm.insertelement %next, %poison[%c0 : i32] : vector<8xi32>
  %all = llvm.shufflevector %two, %poison [0, 0, 0, 0, 0, 0, 0, 0] : vector<8xi32>
  %tile = llvm.load %o : !llvm.ptr<1> -> vector<8xi32>
  %sum = llvm.add %x, %tile : vector<8xi32>
  %y = llvm.mul %sum, %all : vector<8xi32>
  %nextStep = llvm.add %j, %c1 : i32
  %moreSteps = llvm.icmp "slt" %nextStep, %m : i32
  llvm.cond_br %moreSteps, ^step(%nextStep, %y : i32, vector<8xi32>), ^store
^store:
  %offset = llvm.shl %tid, %c5 : i32
  %where = llvm.xor %offset, %i : i32
  %address = llvm.getelementptr %o[%where] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
  llvm.store %y, %address : vector<8xi32>, !llvm.ptr<1>
  %nextTile = llvm.add %i, %c1 : i32
  %more = llvm.icmp "slt" %nextTile, %n : i32
  llvm.cond_br %more, ^tile(%nextTile : i32), ^exit
^exit:
  llvm.return
}

llvm.func @other(%o: !llvm.ptr<1>, %n: i32, %m: i32) attributes {nvvm.kernel} {
  %c0 = llvm.mlir.constant(0 : i32) : i32
  %c1 = llvm.mlir.constant(1 : i32) : i32
  %c5 = llvm.mlir.constant(5 : i32) : i32
  %poison = llvm.mlir.poison : vector<8xi32>
  %tid = nvvm.read.ptx.sreg.tid.x : i32
  %block = nvvm.read.ptx.sreg.ctaid.x : i32
  %blocks = nvvm.read.ptx.sreg.ctaid.y : i32
  %mirrored = llvm.sub %blocks, %block : i32
  llvm.br ^tile(%c0 : i32)
^tile(%i: i32):
  %round = llvm.mul %i, %blocks : i32
  %number = llvm.xor %round, %mirrored : i32
  %one = llvm.insertelement %number, %poison[%c0 : i32] : vector<8xi32>
  %start = llvm.shufflevector %one, %poison [0, 0, 0, 0, 0, 0, 0, 0] : vector<8xi32>
  llvm.br ^step(%c0, %start : i32, vector<8xi32>)
^step(%j: i32, %x: vector<8xi32>):
  %factor = llvm.mul %tid, %tid : i32
  %next = llvm.add %factor, %j : i32
  %two = llvm.insertelement %next, %poison[%c0 : i32] : vector<8xi32>
  %all = llvm.shufflevector %two, %poison [0, 0, 0, 0, 0, 0, 0, 0] : vector<8xi32>
  %tile = llvm.load %o : !llvm.ptr<1> -> vector<8xi32>
  %sum = llvm.add %x, %tile : vector<8xi32>
  %y = llvm.mul %sum, %all : vector<8xi32>
  %nextStep = llvm.add %j, %c1 : i32
  %moreSteps = llvm.icmp "slt" %nextStep, %m : i32
  llvm.cond_br %moreSteps, ^step(%nextStep, %y : i32, vector<8xi32>), ^store
^store:
  %offset = llvm.shl %tid, %c5 : i32
  %where = llvm.xor %offset, %i : i32
  %address = llvm.getelementptr %o[%where] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
  llvm.store %y, %address : vector<8xi32>, !llvm.ptr<1>
  %nextTile = llvm.add %i, %c1 : i32
  %more = llvm.icmp "slt" %nextTile, %n : i32
  llvm.cond_br %more, ^tile(%nextTile : i32), ^exit
^exit:
  llvm.return
}
