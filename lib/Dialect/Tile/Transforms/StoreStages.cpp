//===- StoreStages.cpp - What bulk stores go through ----------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StoreStages.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace flash::tile;

SmallVector<StoreStage> flash::tile::getStoreStages(gpu::GPUFuncOp kernel) {
  SmallVector<StoreStage> stages;
  kernel.walk([&](StoreBulkOp store) {
    if (store.getReused())
      return;
    int64_t bytes = store.getStageType().getAlignedBytes();
    auto shared = llvm::find_if(stages, [&](const StoreStage &stage) {
      return store.canShareStage(stage.stores.front());
    });
    if (shared == stages.end()) {
      stages.push_back({{store}, bytes});
      return;
    }
    shared->stores.push_back(store);
    shared->bytes = std::max(shared->bytes, bytes);
  });
  return stages;
}
