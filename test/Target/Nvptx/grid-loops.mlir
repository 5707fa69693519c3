// Where the loops inside of that over tiles take all registers, each tile reads the number
// of the block and that of all blocks again.
// RUN: flash-translate %s | FileCheck %s

// CHECK-LABEL: .entry tiles(
// CHECK-NOT:   ctaid
// CHECK:       [[STEPS:\$L__.*]]:
// CHECK-NOT:   ctaid
// CHECK:       bra $L__
// CHECK-NOT:   ctaid
// CHECK:       begin inline asm
// CHECK-NEXT:  mov.u32 [[BLOCKS:%r[0-9]+]], %nctaid.x;
// CHECK:       mul.lo.s32 {{%r[0-9]+}}, {{%r[0-9]+}}, [[BLOCKS]];
// CHECK:       mov.u32 [[AGAIN:%r[0-9]+]], %nctaid.x;
// CHECK:       mov.u32 [[BLOCK:%r[0-9]+]], %ctaid.x;
// CHECK:       sub.s32 {{%r[0-9]+}}, [[AGAIN]], [[BLOCK]];
// CHECK:       ret;

// With few values carried, there are registers left.
// CHECK-LABEL: .entry few_values(
// CHECK-NOT:   inline asm
// CHECK:       ret;

// With 512 threads, whose share is smaller, sizes that are arguments are not added to the
// thread's number before the loop.
// CHECK-LABEL: .entry sizes(
// CHECK:       [[TILE:\$L__.*]]:
// CHECK:       begin inline asm
// CHECK-NEXT:  mov.u32 [[THREAD:%r[0-9]+]], %tid.x;
// CHECK:       shr.u32 {{%r[0-9]+}}, [[THREAD]], 2;
// CHECK:       ret;

// Known ones are.
// CHECK-LABEL: .entry known_sizes(
// CHECK-NOT:   inline asm
// CHECK:       ret;

// A loop that does not read the number of blocks may be one over keys.
// CHECK-LABEL: .entry other(
// CHECK-NOT:   inline asm
// CHECK:       ret;

llvm.func @tiles(%o: !llvm.ptr<1>, %n: i32, %m: i32) attributes {nvvm.kernel} {
  %c0 = llvm.mlir.constant(0 : i32) : i32
  %c1 = llvm.mlir.constant(1 : i32) : i32
  %block = nvvm.read.ptx.sreg.ctaid.x : i32
  %blocks = nvvm.read.ptx.sreg.nctaid.x : i32
  %mirrored = llvm.sub %blocks, %block : i32
  llvm.br ^tile(%c0 : i32)
^tile(%i: i32):
  %start = llvm.load volatile %o : !llvm.ptr<1> -> vector<16xi32>
  llvm.br ^step(%c0, %start, %start, %start, %start, %start, %start, %start : i32, vector<16xi32>, vector<16xi32>, vector<16xi32>, vector<16xi32>, vector<16xi32>, vector<16xi32>, vector<16xi32>)
^step(%j: i32, %x0: vector<16xi32>, %x1: vector<16xi32>, %x2: vector<16xi32>, %x3: vector<16xi32>, %x4: vector<16xi32>, %x5: vector<16xi32>, %x6: vector<16xi32>):
  %tile = llvm.load volatile %o : !llvm.ptr<1> -> vector<16xi32>
  %y0 = llvm.add %x0, %tile : vector<16xi32>
  %y1 = llvm.add %x1, %tile : vector<16xi32>
  %y2 = llvm.add %x2, %tile : vector<16xi32>
  %y3 = llvm.add %x3, %tile : vector<16xi32>
  %y4 = llvm.add %x4, %tile : vector<16xi32>
  %y5 = llvm.add %x5, %tile : vector<16xi32>
  %y6 = llvm.add %x6, %tile : vector<16xi32>
  %nextStep = llvm.add %j, %c1 : i32
  %moreSteps = llvm.icmp "slt" %nextStep, %m : i32
  llvm.cond_br %moreSteps, ^step(%nextStep, %y0, %y1, %y2, %y3, %y4, %y5, %y6 : i32, vector<16xi32>, vector<16xi32>, vector<16xi32>, vector<16xi32>, vector<16xi32>, vector<16xi32>, vector<16xi32>), ^store
^store:
  %wave = llvm.mul %i, %blocks : i32
  %number = llvm.xor %wave, %mirrored : i32
  %address = llvm.getelementptr %o[%number] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
  llvm.store volatile %y0, %address : vector<16xi32>, !llvm.ptr<1>
  llvm.store volatile %y1, %address : vector<16xi32>, !llvm.ptr<1>
  llvm.store volatile %y2, %address : vector<16xi32>, !llvm.ptr<1>
  llvm.store volatile %y3, %address : vector<16xi32>, !llvm.ptr<1>
  llvm.store volatile %y4, %address : vector<16xi32>, !llvm.ptr<1>
  llvm.store volatile %y5, %address : vector<16xi32>, !llvm.ptr<1>
  llvm.store volatile %y6, %address : vector<16xi32>, !llvm.ptr<1>
  %nextTile = llvm.add %i, %c1 : i32
  %more = llvm.icmp "slt" %nextTile, %n : i32
  llvm.cond_br %more, ^tile(%nextTile : i32), ^exit
^exit:
  llvm.return
}

llvm.func @few_values(%o: !llvm.ptr<1>, %n: i32, %m: i32) attributes {nvvm.kernel} {
  %c0 = llvm.mlir.constant(0 : i32) : i32
  %c1 = llvm.mlir.constant(1 : i32) : i32
  %block = nvvm.read.ptx.sreg.ctaid.x : i32
  %blocks = nvvm.read.ptx.sreg.nctaid.x : i32
  %mirrored = llvm.sub %blocks, %block : i32
  llvm.br ^tile(%c0 : i32)
^tile(%i: i32):
  %start = llvm.load volatile %o : !llvm.ptr<1> -> vector<16xi32>
  llvm.br ^step(%c0, %start : i32, vector<16xi32>)
^step(%j: i32, %x0: vector<16xi32>):
  %tile = llvm.load volatile %o : !llvm.ptr<1> -> vector<16xi32>
  %y0 = llvm.add %x0, %tile : vector<16xi32>
  %nextStep = llvm.add %j, %c1 : i32
  %moreSteps = llvm.icmp "slt" %nextStep, %m : i32
  llvm.cond_br %moreSteps, ^step(%nextStep, %y0 : i32, vector<16xi32>), ^store
^store:
  %wave = llvm.mul %i, %blocks : i32
  %number = llvm.xor %wave, %mirrored : i32
  %address = llvm.getelementptr %o[%number] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
  llvm.store volatile %y0, %address : vector<16xi32>, !llvm.ptr<1>
  %nextTile = llvm.add %i, %c1 : i32
  %more = llvm.icmp "slt" %nextTile, %n : i32
  llvm.cond_br %more, ^tile(%nextTile : i32), ^exit
^exit:
  llvm.return
}

llvm.func @sizes(%o: !llvm.ptr<1>, %n: i32, %m: i32) attributes {nvvm.kernel, nvvm.maxntid = array<i32: 512>} {
  %c0 = llvm.mlir.constant(0 : i32) : i32
  %c1 = llvm.mlir.constant(1 : i32) : i32
  %c2 = llvm.mlir.constant(2 : i32) : i32
  %c64 = llvm.mlir.constant(64 : i32) : i32
  %thread = nvvm.read.ptx.sreg.tid.x : i32
  %row = llvm.lshr %thread, %c2 : i32
  %blocks = nvvm.read.ptx.sreg.nctaid.x : i32
  llvm.br ^tile(%c0 : i32)
^tile(%i: i32):
  %start = llvm.load volatile %o : !llvm.ptr<1> -> vector<16xi32>
  llvm.br ^step(%c0, %start, %start, %start, %start, %start : i32, vector<16xi32>, vector<16xi32>, vector<16xi32>, vector<16xi32>, vector<16xi32>)
^step(%j: i32, %x0: vector<16xi32>, %x1: vector<16xi32>, %x2: vector<16xi32>, %x3: vector<16xi32>, %x4: vector<16xi32>):
  %tile = llvm.load volatile %o : !llvm.ptr<1> -> vector<16xi32>
  %y0 = llvm.add %x0, %tile : vector<16xi32>
  %y1 = llvm.add %x1, %tile : vector<16xi32>
  %y2 = llvm.add %x2, %tile : vector<16xi32>
  %y3 = llvm.add %x3, %tile : vector<16xi32>
  %y4 = llvm.add %x4, %tile : vector<16xi32>
  %nextStep = llvm.add %j, %c1 : i32
  %moreSteps = llvm.icmp "slt" %nextStep, %c64 : i32
  llvm.cond_br %moreSteps, ^step(%nextStep, %y0, %y1, %y2, %y3, %y4 : i32, vector<16xi32>, vector<16xi32>, vector<16xi32>, vector<16xi32>, vector<16xi32>), ^store
^store:
  %wave = llvm.mul %i, %blocks : i32
  %first = llvm.sub %wave, %m : i32
  %number = llvm.add %first, %row : i32
  %address = llvm.getelementptr %o[%number] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
  llvm.store volatile %y0, %address : vector<16xi32>, !llvm.ptr<1>
  llvm.store volatile %y1, %address : vector<16xi32>, !llvm.ptr<1>
  llvm.store volatile %y2, %address : vector<16xi32>, !llvm.ptr<1>
  llvm.store volatile %y3, %address : vector<16xi32>, !llvm.ptr<1>
  llvm.store volatile %y4, %address : vector<16xi32>, !llvm.ptr<1>
  %nextTile = llvm.add %i, %c1 : i32
  %more = llvm.icmp "slt" %nextTile, %c64 : i32
  llvm.cond_br %more, ^tile(%nextTile : i32), ^exit
^exit:
  llvm.return
}

llvm.func @known_sizes(%o: !llvm.ptr<1>, %n: i32, %m: i32) attributes {nvvm.kernel, nvvm.maxntid = array<i32: 512>} {
  %c0 = llvm.mlir.constant(0 : i32) : i32
  %c1 = llvm.mlir.constant(1 : i32) : i32
  %c2 = llvm.mlir.constant(2 : i32) : i32
  %c64 = llvm.mlir.constant(64 : i32) : i32
  %thread = nvvm.read.ptx.sreg.tid.x : i32
  %row = llvm.lshr %thread, %c2 : i32
  %blocks = nvvm.read.ptx.sreg.nctaid.x : i32
  llvm.br ^tile(%c0 : i32)
^tile(%i: i32):
  %start = llvm.load volatile %o : !llvm.ptr<1> -> vector<16xi32>
  llvm.br ^step(%c0, %start, %start, %start, %start, %start : i32, vector<16xi32>, vector<16xi32>, vector<16xi32>, vector<16xi32>, vector<16xi32>)
^step(%j: i32, %x0: vector<16xi32>, %x1: vector<16xi32>, %x2: vector<16xi32>, %x3: vector<16xi32>, %x4: vector<16xi32>):
  %tile = llvm.load volatile %o : !llvm.ptr<1> -> vector<16xi32>
  %y0 = llvm.add %x0, %tile : vector<16xi32>
  %y1 = llvm.add %x1, %tile : vector<16xi32>
  %y2 = llvm.add %x2, %tile : vector<16xi32>
  %y3 = llvm.add %x3, %tile : vector<16xi32>
  %y4 = llvm.add %x4, %tile : vector<16xi32>
  %nextStep = llvm.add %j, %c1 : i32
  %moreSteps = llvm.icmp "slt" %nextStep, %c64 : i32
  llvm.cond_br %moreSteps, ^step(%nextStep, %y0, %y1, %y2, %y3, %y4 : i32, vector<16xi32>, vector<16xi32>, vector<16xi32>, vector<16xi32>, vector<16xi32>), ^store
^store:
  %wave = llvm.mul %i, %blocks : i32
  %first = llvm.sub %wave, %c64 : i32
  %number = llvm.add %first, %row : i32
  %address = llvm.getelementptr %o[%number] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
  llvm.store volatile %y0, %address : vector<16xi32>, !llvm.ptr<1>
  llvm.store volatile %y1, %address : vector<16xi32>, !llvm.ptr<1>
  llvm.store volatile %y2, %address : vector<16xi32>, !llvm.ptr<1>
  llvm.store volatile %y3, %address : vector<16xi32>, !llvm.ptr<1>
  llvm.store volatile %y4, %address : vector<16xi32>, !llvm.ptr<1>
  %nextTile = llvm.add %i, %c1 : i32
  %more = llvm.icmp "slt" %nextTile, %c64 : i32
  llvm.cond_br %more, ^tile(%nextTile : i32), ^exit
^exit:
  llvm.return
}

llvm.func @other(%o: !llvm.ptr<1>, %n: i32, %m: i32) attributes {nvvm.kernel} {
  %c0 = llvm.mlir.constant(0 : i32) : i32
  %c1 = llvm.mlir.constant(1 : i32) : i32
  %block = nvvm.read.ptx.sreg.ctaid.x : i32
  %blocks = nvvm.read.ptx.sreg.ctaid.y : i32
  %mirrored = llvm.sub %blocks, %block : i32
  llvm.br ^tile(%c0 : i32)
^tile(%i: i32):
  %start = llvm.load volatile %o : !llvm.ptr<1> -> vector<16xi32>
  llvm.br ^step(%c0, %start, %start, %start, %start, %start, %start, %start : i32, vector<16xi32>, vector<16xi32>, vector<16xi32>, vector<16xi32>, vector<16xi32>, vector<16xi32>, vector<16xi32>)
^step(%j: i32, %x0: vector<16xi32>, %x1: vector<16xi32>, %x2: vector<16xi32>, %x3: vector<16xi32>, %x4: vector<16xi32>, %x5: vector<16xi32>, %x6: vector<16xi32>):
  %tile = llvm.load volatile %o : !llvm.ptr<1> -> vector<16xi32>
  %y0 = llvm.add %x0, %tile : vector<16xi32>
  %y1 = llvm.add %x1, %tile : vector<16xi32>
  %y2 = llvm.add %x2, %tile : vector<16xi32>
  %y3 = llvm.add %x3, %tile : vector<16xi32>
  %y4 = llvm.add %x4, %tile : vector<16xi32>
  %y5 = llvm.add %x5, %tile : vector<16xi32>
  %y6 = llvm.add %x6, %tile : vector<16xi32>
  %nextStep = llvm.add %j, %c1 : i32
  %moreSteps = llvm.icmp "slt" %nextStep, %m : i32
  llvm.cond_br %moreSteps, ^step(%nextStep, %y0, %y1, %y2, %y3, %y4, %y5, %y6 : i32, vector<16xi32>, vector<16xi32>, vector<16xi32>, vector<16xi32>, vector<16xi32>, vector<16xi32>, vector<16xi32>), ^store
^store:
  %wave = llvm.mul %i, %blocks : i32
  %number = llvm.xor %wave, %mirrored : i32
  %address = llvm.getelementptr %o[%number] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
  llvm.store volatile %y0, %address : vector<16xi32>, !llvm.ptr<1>
  llvm.store volatile %y1, %address : vector<16xi32>, !llvm.ptr<1>
  llvm.store volatile %y2, %address : vector<16xi32>, !llvm.ptr<1>
  llvm.store volatile %y3, %address : vector<16xi32>, !llvm.ptr<1>
  llvm.store volatile %y4, %address : vector<16xi32>, !llvm.ptr<1>
  llvm.store volatile %y5, %address : vector<16xi32>, !llvm.ptr<1>
  llvm.store volatile %y6, %address : vector<16xi32>, !llvm.ptr<1>
  %nextTile = llvm.add %i, %c1 : i32
  %more = llvm.icmp "slt" %nextTile, %n : i32
  llvm.cond_br %more, ^tile(%nextTile : i32), ^exit
^exit:
  llvm.return
}
