llvm.mlir.global internal @scratch() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<16 x f32>
llvm.func @plain(%o: !llvm.ptr<1>) attributes {nvvm.kernel} {
  %tid = nvvm.read.ptx.sreg.tid.x : i32
  %smem = llvm.mlir.addressof @scratch : !llvm.ptr<3>
  %from = llvm.getelementptr %smem[%tid] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
  %x = llvm.load volatile %from : !llvm.ptr<3> -> f32
  llvm.store %x, %o : f32, !llvm.ptr<1>
  llvm.return
}
