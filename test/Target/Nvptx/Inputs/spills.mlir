llvm.func @spills(%p: !llvm.ptr<1>, %o: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.maxntid = array<i32: 128>, nvvm.maxnreg = 24 : i32} {
  %x0 = llvm.load %p : !llvm.ptr<1> -> vector<16xf32>
  %p1 = llvm.getelementptr %p[64] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8
  %x1 = llvm.load %p1 : !llvm.ptr<1> -> vector<16xf32>
  nvvm.barrier
  llvm.store %x1, %o : vector<16xf32>, !llvm.ptr<1>
  %o1 = llvm.getelementptr %o[64] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8
  llvm.store %x0, %o1 : vector<16xf32>, !llvm.ptr<1>
  llvm.return
}
