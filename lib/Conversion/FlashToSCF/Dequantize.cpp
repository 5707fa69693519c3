//===- Dequantize.cpp - Rows of 8 bits as rows that are multiplied --------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Dequantize.h"

#include "flash/Support/ElementType.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace flash;

/// Defines what a dequantized element is, for all callers.
static Value emitElement(OpBuilder &b, Location loc, Value element, Value scale,
                         Type type) {
  Value product =
      arith::MulFOp::create(b, loc, emitWiden(b, loc, element), scale);
  // A program of f64 rounds here, too: where this is said.
  return arith::TruncFOp::create(
      b, loc, type, product,
      arith::RoundingModeAttr::get(b.getContext(),
                                   arith::RoundingMode::to_nearest_even),
      /*fastmath=*/nullptr);
}

static Value
createGeneric(OpBuilder &b, Location loc, ValueRange inputs, Value init,
              ArrayRef<AffineMap> maps,
              function_ref<Value(OpBuilder &, Location, ValueRange)> body) {
  int64_t rank = cast<RankedTensorType>(init.getType()).getRank();
  return linalg::GenericOp::create(
             b, loc, init.getType(), inputs, init, maps,
             SmallVector<utils::IteratorType>(rank,
                                              utils::IteratorType::parallel),
             [&](OpBuilder &b, Location loc, ValueRange args) {
               linalg::YieldOp::create(b, loc, body(b, loc, args));
             })
      .getResult(0);
}

/// Emits the scale of rows of a batch and a head: before the loops in which it
/// is always the same.
static Value emitScale(LoadRowsOp load, Value scale) {
  int64_t rank = cast<RankedTensorType>(scale.getType()).getRank();
  SmallVector<Value> used = {scale};
  if (rank == 2)
    used.append({load.getPosition()[0], load.getPosition()[1]});
  Operation *before = load;
  while (isa<scf::ForOp, scf::IfOp>(before->getParentOp()) &&
         llvm::none_of(used, [&](Value value) {
           return before->getParentOp()->isAncestor(
               value.getParentBlock()->getParentOp());
         }))
    before = before->getParentOp();
  OpBuilder b(before);
  SmallVector<Value> at(ArrayRef(used).drop_front());
  if (at.empty())
    at.push_back(arith::ConstantIndexOp::create(b, load.getLoc(), 0));
  return tensor::ExtractOp::create(b, load.getLoc(), scale, at);
}

/// Emits the scale of a row of a tile, where it is not that of all. Rows that
/// do not exist are zeros; theirs is 0, too, and no element is read for them.
static Value emitScaleOfRow(OpBuilder &b, LoadRowsOp load, Value scales,
                            Value row) {
  Location loc = load.getLoc();
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  // Rows of a tile of queries may be of several heads, and each has a scale.
  if (cast<RankedTensorType>(scales.getType()).getRank() == 2) {
    Value head = arith::AddIOp::create(
        b, loc, load.getPosition()[1],
        arith::RemUIOp::create(b, loc, row, constant(*load.getPacked())));
    return tensor::ExtractOp::create(b, loc, scales,
                                     ValueRange{load.getPosition()[0], head});
  }
  Value exists;
  if (Value rows = load.getRows()) {
    exists =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, row, rows);
    Value last = arith::SubIOp::create(b, loc, rows, constant(1));
    row = arith::MinSIOp::create(b, loc, row, last);
  }
  row = arith::AddIOp::create(b, loc, load.getPosition()[2], row);
  if (exists)
    row = arith::MaxSIOp::create(b, loc, row, constant(0));
  SmallVector<Value> at = {load.getPosition()[0], load.getPosition()[1], row};
  Value memory = scales;
  if (auto address = scales.getDefiningOp<AddressOpInterface>()) {
    at = getValueOrCreateConstantIndexOp(
        b, loc, address.emitAddress(b, loc, getAsOpFoldResult(ValueRange(at))));
    memory = address.getMemory();
  }
  Value scale = tensor::ExtractOp::create(b, loc, memory, at);
  if (!exists)
    return scale;
  Value none = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0));
  return arith::SelectOp::create(b, loc, exists, scale, none);
}

/// A tile that a block of a GPU dequantizes.
static Value createTile(OpBuilder &b, LoadRowsOp load, Value quantized,
                        Value scale, Value scales) {
  Location loc = load.getLoc();
  auto op =
      DequantizeTileOp::create(b, loc, load.getTile().getType(), quantized);
  OpBuilder::InsertionGuard guard(b);
  Block *body = b.createBlock(&op.getScale(), {}, b.getIndexType(), loc);
  if (scales)
    scale = emitScaleOfRow(b, load, scales, body->getArgument(0));
  YieldOp::create(b, loc, scale, /*keep=*/Value());
  return op.getResult();
}

/// Emits the dequantization of a tile as linalg.
static Value createGenericTile(OpBuilder &b, LoadRowsOp load, Value quantized,
                               Value scale, Value scales) {
  Location loc = load.getLoc();
  RankedTensorType type = load.getTile().getType();
  AffineMap all = b.getMultiDimIdentityMap(2);
  SmallVector<Value> inputs = {quantized};
  SmallVector<AffineMap> maps = {all};
  if (scales) {
    Value empty =
        tensor::EmptyOp::create(b, loc, {type.getDimSize(0)}, b.getF32Type());
    inputs.push_back(createGeneric(
        b, loc, ValueRange(), empty, b.getMultiDimIdentityMap(1),
        [&](OpBuilder &b, Location loc, ValueRange) {
          return emitScaleOfRow(b, load, scales,
                                linalg::IndexOp::create(b, loc, 0));
        }));
    maps.push_back(AffineMap::get(2, 0, b.getAffineDimExpr(0), b.getContext()));
  }
  maps.push_back(all);
  Value empty =
      tensor::EmptyOp::create(b, loc, type.getShape(), type.getElementType());
  return createGeneric(b, loc, inputs, empty, maps,
                       [&](OpBuilder &b, Location loc, ValueRange args) {
                         return emitElement(b, loc, args[0],
                                            scales ? args[1] : scale,
                                            type.getElementType());
                       });
}

LoadRowsOp flash::loadQuantized(LoadRowsOp load, DequantizeOp op,
                                bool onlyKernels) {
  OpBuilder b(load);
  RankedTensorType type = load.getTile().getType();
  Value scale, scales;
  int64_t rank = op.getScale().getType().getRank();
  if (rank == 3 || (rank == 2 && load.getPacked()))
    scales = op.getScale();
  else
    scale = emitScale(load, op.getScale());
  auto quantized = LoadRowsOp::create(
      b, load.getLoc(), type.clone(op.getSource().getType().getElementType()),
      op.getSource(), load.getPosition(), load.getRows(), load.getColumn(),
      load.getPackedAttr(), load.getToEndAttr());
  auto create = onlyKernels ? createTile : createGenericTile;
  load.replaceAllUsesWith(create(b, load, quantized.getTile(), scale, scales));
  load.erase();
  return quantized;
}

LogicalResult flash::dequantizeTensor(DequantizeOp op, bool onlyKernels) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  for (Operation *user : llvm::make_early_inc_range(op->getUsers()))
    if (auto dim = dyn_cast<tensor::DimOp>(user)) {
      OpBuilder at(dim);
      dim.replaceAllUsesWith(
          tensor::DimOp::create(at, loc, op.getSource(), dim.getIndex())
              .getResult());
      dim.erase();
    }
  if (op->use_empty()) {
    op.erase();
    return success();
  }
  if (onlyKernels) {
    InFlightDiagnostic error =
        op.emitOpError("is used as a tensor, and on a GPU kernels of attention "
                       "alone read it; use --target=cpu");
    for (Operation *user : op->getUsers())
      error.attachNote(user->getLoc()) << "it is used here";
    return error;
  }
  RankedTensorType type = op.getResult().getType();
  AffineMap all = b.getMultiDimIdentityMap(4);
  SmallVector<Value> inputs = {op.getSource()};
  SmallVector<AffineMap> maps = {all};
  Value scale;
  if (int64_t rank = op.getScale().getType().getRank(); rank > 1) {
    inputs.push_back(op.getScale());
    maps.push_back(AffineMap::getMultiDimMapWithTargets(
        4, llvm::to_vector(llvm::seq<unsigned>(rank)), b.getContext()));
  } else {
    Value first = arith::ConstantIndexOp::create(b, loc, 0);
    scale = tensor::ExtractOp::create(b, loc, op.getScale(), first);
  }
  maps.push_back(all);
  Value empty = tensor::EmptyOp::create(
      b, loc, tensor::getMixedSizes(b, loc, op.getSource()),
      type.getElementType());
  empty = b.createOrFold<tensor::CastOp>(loc, type, empty);
  op.replaceAllUsesWith(createGeneric(
      b, loc, inputs, empty, maps,
      [&](OpBuilder &b, Location loc, ValueRange args) {
        return emitElement(b, loc, args[0], scale ? scale : args[1],
                           type.getElementType());
      }));
  op.erase();
  return success();
}
