// A barrier is not duplicated into the two ways on which threads come to it,
// although LLVM could then drop the second branch.
// RUN: flash-translate %s | FileCheck %s --implicit-check-not=barrier.sync

// CHECK: @%p{{[0-9]+}} bra
// CHECK: st.volatile.global
// CHECK: barrier.sync 1;
// CHECK: @%p{{[0-9]+}} bra
// CHECK: st.volatile.global
llvm.func @kernel(%o: !llvm.ptr<1>, %x: f32) attributes {nvvm.kernel} {
  %c0 = llvm.mlir.constant(0 : i32) : i32
  %true = llvm.mlir.constant(true) : i1
  %false = llvm.mlir.constant(false) : i1
  %tid = nvvm.read.ptx.sreg.tid.x : i32
  %first = llvm.icmp "eq" %tid, %c0 : i32
  llvm.cond_br %first, ^write, ^meet(%false : i1)
^write:
  llvm.store volatile %x, %o : f32, !llvm.ptr<1>
  llvm.br ^meet(%true : i1)
^meet(%wrote: i1):
  llvm.inline_asm has_side_effects asm_dialect = att "barrier.sync 1;", "~{memory}" : () -> ()
  llvm.cond_br %wrote, ^again, ^exit
^again:
  llvm.store volatile %x, %o : f32, !llvm.ptr<1>
  llvm.br ^exit
^exit:
  llvm.return
}
