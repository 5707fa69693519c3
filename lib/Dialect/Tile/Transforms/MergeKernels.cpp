//===- MergeKernels.cpp - Kernels that are equal are one ------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Tile/Transforms/Passes.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OperationSupport.h"

namespace flash::tile {
#define GEN_PASS_DEF_MERGEKERNELS
#include "flash/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace flash::tile

using namespace mlir;

/// Whether two kernels differ in nothing but their names.
static bool isEqual(gpu::GPUFuncOp a, gpu::GPUFuncOp b) {
  if (a.getFunctionType() != b.getFunctionType())
    return false;
  auto getRest = [](gpu::GPUFuncOp func) {
    NamedAttrList attributes(func->getAttrDictionary());
    attributes.erase(SymbolTable::getSymbolAttrName());
    return attributes.getDictionary(func.getContext());
  };
  return getRest(a) == getRest(b) &&
         OperationEquivalence::isRegionEquivalentTo(
             &a.getBody(), &b.getBody(), OperationEquivalence::IgnoreLocations);
}

namespace {
struct MergeKernels : flash::tile::impl::MergeKernelsBase<MergeKernels> {
  void runOnOperation() override {
    // By the name of a kernel that goes, the name of its equal.
    DenseMap<SymbolRefAttr, SymbolRefAttr> merged;
    for (auto module : getOperation().getOps<gpu::GPUModuleOp>()) {
      auto getName = [&](gpu::GPUFuncOp kernel) {
        return SymbolRefAttr::get(module.getNameAttr(),
                                  FlatSymbolRefAttr::get(kernel.getNameAttr()));
      };
      SmallVector<gpu::GPUFuncOp> kept;
      for (auto kernel :
           llvm::make_early_inc_range(module.getOps<gpu::GPUFuncOp>())) {
        auto *equal = llvm::find_if(
            kept, [&](gpu::GPUFuncOp other) { return isEqual(kernel, other); });
        if (equal == kept.end()) {
          kept.push_back(kernel);
          continue;
        }
        merged[getName(kernel)] = getName(*equal);
        kernel.erase();
      }
    }
    getOperation().walk([&](gpu::LaunchFuncOp launch) {
      if (SymbolRefAttr equal = merged.lookup(launch.getKernel()))
        launch.setKernelAttr(equal);
    });
  }
};
} // namespace
