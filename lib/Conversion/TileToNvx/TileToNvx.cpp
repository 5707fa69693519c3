//===- TileToNvx.cpp - Distribute a block program over its threads --------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Patterns.h"

#include "flash/Conversion/Passes.h"
#include "flash/Dialect/Nvx/IR/Nvx.h"
#include "flash/Schedule/Schedule.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/Transforms/Patterns.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace flash {
#define GEN_PASS_DEF_CONVERTTILETONVX
#include "flash/Conversion/Passes.h.inc"
} // namespace flash

using namespace mlir;
using namespace flash;

namespace {
struct ConvertTileToNvx : flash::impl::ConvertTileToNvxBase<ConvertTileToNvx> {
  void runOnOperation() override {
    ThreadTypeConverter converter;
    ConversionTarget target(getContext());
    target.addIllegalDialect<tile::TileDialect>();
    target.addLegalOp<gpu::GPUFuncOp, UnrealizedConversionCastOp>();
    target.markUnknownOpDynamicallyLegal(
        [&](Operation *op) { return converter.isLegal(op); });

    RewritePatternSet patterns(&getContext());
    scf::populateSCFStructuralTypeConversionsAndLegality(converter, patterns,
                                                         target);
    populateRegisterPatterns(converter, patterns);
    populateMemoryPatterns(converter, patterns);
    populateDequantizePatterns(converter, patterns);
    populateInterleavePatterns(converter, patterns);
    populateDiagonalPatterns(converter, patterns);
    populateWarpRowsPatterns(converter, patterns);
    populateProductPatterns(converter, patterns);
    populateWarpgroupProductPatterns(converter, patterns);
    if (failed(
            applyFullConversion(getOperation(), target, std::move(patterns))))
      return signalPassFailure();
    // A thread has no schedule.
    getOperation()->removeDiscardableAttr(ScheduleAttr::name);
  }
};
} // namespace
