//===- AssertReads.cpp - Check the indices of reads at run time -----------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Flash/IR/Flash.h"
#include "flash/Dialect/Flash/Transforms/Passes.h"
#include "flash/Support/DescribeLocation.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace flash {
#define GEN_PASS_DEF_ASSERTREADS
#include "flash/Dialect/Flash/Transforms/Passes.h.inc"
} // namespace flash

using namespace mlir;
using namespace flash;

/// Asserts before `op` that it reads `source` in range.
static void assertInRange(Operation *op, Value source, ValueRange indices) {
  OpBuilder b(op);
  Location loc = op->getLoc();
  auto type = cast<ShapedType>(source.getType());
  for (int64_t d = 0; d < type.getRank(); ++d) {
    Value index = indices[d];
    int64_t size = type.getDimSize(d);
    std::optional<int64_t> known = getConstantIntValue(index);
    if (known && *known >= 0 && !ShapedType::isDynamic(size) && *known < size)
      continue;
    std::string message =
        op->getName().getStringRef().str() + flash::describeLocation(loc) +
        ": the index of dimension " + std::to_string(d) + " is ";
    auto assertThat = [&](arith::CmpIPredicate predicate, Value bound,
                          const Twine &rule) {
      Value holds = arith::CmpIOp::create(b, loc, predicate, index, bound);
      cf::AssertOp::create(b, loc, holds, b.getStringAttr(message + rule));
    };
    Value first = arith::ConstantIndexOp::create(b, loc, 0), end;
    if (!ShapedType::isDynamic(size))
      end = arith::ConstantIndexOp::create(b, loc, size);
    else if (isa<MemRefType>(type))
      end = memref::DimOp::create(b, loc, source, d);
    else
      end = tensor::DimOp::create(b, loc, source, d);
    assertThat(arith::CmpIPredicate::sge, first, "negative");
    assertThat(arith::CmpIPredicate::slt, end,
               ShapedType::isDynamic(size)
                   ? "not below the size of the dimension"
                   : "not below the size of the dimension, " + Twine(size));
  }
}

/// Loops over lists of blocks that assert what the op says of their numbers.
static void lower(CheckBlocksOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, value);
  };
  auto assertThat = [&](arith::CmpIPredicate predicate, Value lhs, Value rhs,
                        StringRef rule) {
    Value holds = arith::CmpIOp::create(b, predicate, lhs, rhs);
    cf::AssertOp::create(b, holds,
                         "a list of blocks" + describeLocation(op.getLoc()) +
                             " has " + rule.str());
  };
  auto read = [&](Value tensor, ValueRange row, Value place) -> Value {
    SmallVector<Value> indices(row);
    indices.push_back(place);
    return arith::IndexCastOp::create(
        b, b.getIndexType(), tensor::ExtractOp::create(b, tensor, indices));
  };
  Value zero = constant(0), one = constant(1);
  SmallVector<Value> row, sizes;
  for (int64_t dim = 0; dim < 4; ++dim)
    sizes.push_back(tensor::DimOp::create(b, op.getList(), dim));
  for (int64_t dim = 0; dim < 3; ++dim) {
    auto loop = scf::ForOp::create(b, zero, sizes[dim], one);
    b.setInsertionPointToStart(loop.getBody());
    row.push_back(loop.getInductionVar());
  }
  using Predicate = arith::CmpIPredicate;
  Value parts = read(op.getCounts(), row, zero),
        end = read(op.getCounts(), row, one);
  assertThat(Predicate::sge, parts, zero, "a negative count");
  assertThat(Predicate::sle, parts, end, "more partial blocks than blocks");
  assertThat(Predicate::sle, end, sizes[3], "a count above its length");
  auto loop = scf::ForOp::create(b, zero, end, one);
  b.setInsertionPointToStart(loop.getBody());
  Value number = read(op.getList(), row, loop.getInductionVar());
  assertThat(Predicate::sge, number, zero, "a negative number");
  assertThat(Predicate::slt, number, op.getLimit(),
             "a number that is not below how many blocks there are");
  auto before = scf::ForOp::create(b, zero, loop.getInductionVar(), one);
  b.setInsertionPointToStart(before.getBody());
  assertThat(Predicate::ne, number,
             read(op.getList(), row, before.getInductionVar()),
             "a block twice");
  op.erase();
}

namespace {
struct AssertReads : flash::impl::AssertReadsBase<AssertReads> {
  using Base::Base;

  void runOnOperation() override {
    getOperation().walk([](CheckBlocksOp op) { lower(op); });
    if (onlyBlocks)
      return;
    getOperation().walk([](Operation *op) {
      if (auto extract = dyn_cast<tensor::ExtractOp>(op))
        assertInRange(op, extract.getTensor(), extract.getIndices());
      else if (auto load = dyn_cast<memref::LoadOp>(op))
        assertInRange(op, load.getMemRef(), load.getIndices());
      else if (auto store = dyn_cast<memref::StoreOp>(op))
        assertInRange(op, store.getMemRef(), store.getIndices());
    });
  }
};
} // namespace
