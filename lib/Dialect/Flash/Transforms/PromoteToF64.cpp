//===- PromoteToF64.cpp - Compute in f64 ----------------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Flash/IR/Flash.h"
#include "flash/Dialect/Flash/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace flash {
#define GEN_PASS_DEF_PROMOTETOF64
#include "flash/Dialect/Flash/Transforms/Passes.h.inc"
} // namespace flash

using namespace mlir;

/// The types that are promoted.
static bool isNarrow(Type type) {
  return isa<Float16Type, BFloat16Type, Float32Type>(type);
}

static APFloat widen(APFloat value) {
  bool losesInfo = false;
  value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven,
                &losesInfo);
  return value;
}

namespace {
/// The dialects whose ops mean the same on f64 as on a narrower type.
constexpr StringRef knownDialects[] = {
    "affine", "arith", "bufferization", "builtin", "cf",     "func", "index",
    "linalg", "math",  "memref",        "scf",     "tensor", "ub",   "vector"};

class Promoter {
public:
  explicit Promoter(MLIRContext *context);

  LogicalResult check(Operation *op);
  void promote(Operation *op);

private:
  /// Whether promotion changes a type or an inherent attribute of `op`.
  bool isAffected(Operation *op);
  bool changes(Type type) { return replacer.replace(type) != type; }

  AttrTypeReplacer replacer;
};
} // namespace

Promoter::Promoter(MLIRContext *context) {
  Type f64 = Float64Type::get(context);
  replacer.addReplacement([=](Type type) -> std::optional<Type> {
    return isNarrow(type) ? std::optional<Type>(f64) : std::nullopt;
  });
  replacer.addReplacement([=](FloatAttr attr)
                              -> std::optional<
                                  std::pair<Attribute, WalkResult>> {
    if (!isNarrow(attr.getType()))
      return std::nullopt;
    return {{FloatAttr::get(f64, widen(attr.getValue())), WalkResult::skip()}};
  });
  replacer.addReplacement(
      [=](DenseFPElementsAttr attr)
          -> std::optional<std::pair<Attribute, WalkResult>> {
        if (!isNarrow(attr.getElementType()))
          return std::nullopt;
        return {{attr.mapValues(f64,
                                [](const APFloat &value) {
                                  return widen(value).bitcastToAPInt();
                                }),
                 WalkResult::skip()}};
      });
}

bool Promoter::isAffected(Operation *op) {
  auto changesType = [&](Type type) { return changes(type); };
  if (llvm::any_of(op->getOperandTypes(), changesType) ||
      llvm::any_of(op->getResultTypes(), changesType))
    return true;
  for (Region &region : op->getRegions())
    for (Block &block : region)
      if (llvm::any_of(block.getArgumentTypes(), changesType))
        return true;
  return llvm::any_of(op->getAttrs(), [&](NamedAttribute attr) {
    return op->getInherentAttr(attr.getName()) &&
           replacer.replace(attr.getValue()) != attr.getValue();
  });
}

LogicalResult Promoter::check(Operation *op) {
  if (!isAffected(op))
    return success();
  StringRef dialect = op->getName().getDialectNamespace();
  if (!llvm::is_contained(knownDialects, dialect)) {
    InFlightDiagnostic diagnostic =
        op->emitOpError("cannot be promoted to f64: the ");
    diagnostic << dialect << " dialect is not among those that compute alike "
               << "on any floating-point type";
    if (isa<flash::AttentionOpInterface>(op))
      diagnostic << "; run flash-decompose-naive first";
    else if (dialect == "flash")
      diagnostic << "; --check has no reference of a program at level 1, but "
                    "of the one that it was made of";
    return diagnostic;
  }
  if (isa<arith::BitcastOp, tensor::BitcastOp, vector::BitCastOp,
          memref::ViewOp, UnrealizedConversionCastOp>(op))
    return op->emitOpError("cannot be promoted to f64: it depends on how a "
                           "narrower type is stored");
  if (isa<arith::ScalingExtFOp, arith::ScalingTruncFOp>(op))
    return op->emitOpError("cannot be promoted to f64: block scales have a "
                           "narrower type");
  if (auto function = dyn_cast<FunctionOpInterface>(op))
    if (function.isExternal())
      return op->emitOpError("cannot be promoted to f64: it is defined outside "
                             "this module");
  for (NamedAttribute attr : op->getAttrs()) {
    auto elements = dyn_cast<ElementsAttr>(attr.getValue());
    if (elements && op->getInherentAttr(attr.getName()) &&
        !isa<DenseIntOrFPElementsAttr>(elements))
      return op->emitOpError("cannot be promoted to f64: '")
             << attr.getName().strref()
             << "' is not a list of values in the program";
  }
  return success();
}

void Promoter::promote(Operation *op) {
  for (NamedAttribute attr : op->getAttrs()) {
    if (!op->getInherentAttr(attr.getName()))
      continue;
    Attribute promoted = replacer.replace(attr.getValue());
    if (promoted != attr.getValue())
      op->setInherentAttr(attr.getName(), promoted);
  }
  for (Value result : op->getResults())
    result.setType(replacer.replace(result.getType()));
  for (Region &region : op->getRegions())
    for (Block &block : region)
      for (BlockArgument argument : block.getArguments())
        argument.setType(replacer.replace(argument.getType()));
}

namespace {
/// A rounding whose mode the program says, and the types from which and to
/// which it rounds: it is part of what is computed, not of how precisely.
struct Rounding {
  arith::TruncFOp op;
  Type from, to;
};
} // namespace

/// Emits the rounding of what has been promoted.
static void keep(const Rounding &rounding) {
  arith::TruncFOp op = rounding.op;
  OpBuilder b(op);
  Value value = op.getIn();
  for (Type type : {rounding.from, rounding.to})
    value = arith::TruncFOp::create(b, op.getLoc(), type, value);
  op.replaceAllUsesWith(
      arith::ExtFOp::create(b, op.getLoc(), op.getType(), value).getResult());
  op.erase();
}

namespace {
struct PromoteToF64 : flash::impl::PromoteToF64Base<PromoteToF64> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    Promoter promoter(&getContext());
    WalkResult checked = module.walk<WalkOrder::PreOrder>(
        [&](Operation *op) { return WalkResult(promoter.check(op)); });
    if (checked.wasInterrupted())
      return signalPassFailure();
    SmallVector<Rounding> roundings;
    module.walk([&](arith::TruncFOp op) {
      if (op.getRoundingmode())
        roundings.push_back({op, op.getIn().getType(), op.getType()});
    });
    module.walk([&](Operation *op) { promoter.promote(op); });
    for (const Rounding &rounding : roundings)
      keep(rounding);
    // Widening and narrowing one type to itself is not an op.
    module.walk([](Operation *op) {
      if (!isa<arith::ExtFOp, arith::TruncFOp>(op) ||
          op->getOperand(0).getType() != op->getResult(0).getType())
        return;
      op->getResult(0).replaceAllUsesWith(op->getOperand(0));
      op->erase();
    });
  }
};
} // namespace
