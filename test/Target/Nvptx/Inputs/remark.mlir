llvm.func @remark() attributes {nvvm.kernel} {
  nvvm.setmaxregister increase 240
  llvm.return
}
