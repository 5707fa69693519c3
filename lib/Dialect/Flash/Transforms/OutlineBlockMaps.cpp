//===- OutlineBlockMaps.cpp - Block maps for many calls -------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Flash/IR/Flash.h"
#include "flash/Dialect/Flash/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/SymbolTable.h"

namespace flash {
#define GEN_PASS_DEF_OUTLINEBLOCKMAPS
#include "flash/Dialect/Flash/Transforms/Passes.h.inc"
} // namespace flash

using namespace mlir;
using namespace flash;

/// The maps that a function computes, in their order.
static FailureOr<SmallVector<BlockMapOp>> getMaps(func::FuncOp func) {
  SmallVector<BlockMapOp> maps;
  WalkResult walk = func.walk([&](BlockMapOp map) {
    if (map.getGivenTiles())
      return WalkResult::advance();
    if (map->getParentOp() != func) {
      map.emitOpError("cannot be computed by a function of its own: whether "
                      "there is a map is a choice of the program");
      return WalkResult::interrupt();
    }
    maps.push_back(map);
    return WalkResult::advance();
  });
  if (walk.wasInterrupted())
    return failure();
  return maps;
}

/// Makes a function return its maps, and nothing else.
static void returnMaps(func::FuncOp func, ArrayRef<BlockMapOp> maps) {
  SmallVector<Value> results;
  for (BlockMapOp map : maps)
    llvm::append_range(results, map->getResults());
  Operation *end = func.front().getTerminator();
  end->setOperands(results);
  func.setFunctionType(FunctionType::get(
      func.getContext(), func.getArgumentTypes(), TypeRange(results)));
  func.setResAttrsAttr({});
}

/// Makes a function take its maps as arguments behind the others.
static LogicalResult takeMaps(func::FuncOp func, ArrayRef<BlockMapOp> maps) {
  for (BlockMapOp map : maps) {
    auto insert = [&](StringRef name, Type type) -> Value {
      unsigned index = func.getNumArguments();
      Location loc =
          NameLoc::get(StringAttr::get(func.getContext(), name), map.getLoc());
      if (failed(func.insertArgument(index, type, {}, loc)))
        return {};
      return func.getArgument(index);
    };
    // Each new operand moves the ranges behind it, so each is read when needed.
    auto take = [&](StringRef name, Value result,
                    MutableOperandRange (BlockMapOp::*getGiven)()) {
      if (!result)
        return true;
      Value argument = insert(name, result.getType());
      if (argument)
        (map.*getGiven)().assign(argument);
      return static_cast<bool>(argument);
    };
    if (!take("key_tiles", map.getKeyTiles(),
              &BlockMapOp::getGivenTilesMutable) ||
        !take("tile_counts", map.getCounts(),
              &BlockMapOp::getGivenCountsMutable) ||
        !take("tile_ranks", map.getRanks(), &BlockMapOp::getGivenRanksMutable))
      return failure();
  }
  return success();
}

namespace {
struct OutlineBlockMaps : flash::impl::OutlineBlockMapsBase<OutlineBlockMaps> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    SmallVector<func::FuncOp> funcs;
    for (auto func : getOperation().getOps<func::FuncOp>())
      if (func.isPublic() && !func.isExternal())
        funcs.push_back(func);
    for (func::FuncOp func : funcs) {
      FailureOr<SmallVector<BlockMapOp>> maps = getMaps(func);
      if (failed(maps))
        return signalPassFailure();
      if (maps->empty())
        continue;
      std::string name = (func.getSymName() + "_plan").str();
      if (symbols.lookup(name)) {
        func.emitOpError("has block maps, and there is a @")
            << name << " already, which would compute them";
        return signalPassFailure();
      }
      func::FuncOp plan = func.clone();
      plan.setSymName(name);
      symbols.insert(plan, std::next(Block::iterator(func)));
      returnMaps(plan, *getMaps(plan));
      if (failed(takeMaps(func, *maps)))
        return signalPassFailure();
    }
  }
};
} // namespace
