//===- HostBuilder.cpp - Writing host programs ----------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HostBuilder.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/CSE.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace flash;
using arith::CmpIPredicate;
using llvm::formatv;

HostBuilder::HostBuilder(func::FuncOp function, ArrayRef<size_t> argumentRanks,
                         ArrayRef<size_t> resultRanks)
    : b(function.getContext()), loc(function.getLoc()) {
  program.name = function.getSymName().str();
  for (size_t rank : argumentRanks) {
    program.arguments.emplace_back().sizes.resize(rank);
    program.arguments.back().strides.resize(rank);
  }
  for (size_t rank : resultRanks) {
    program.results.emplace_back().sizes.resize(rank);
    program.results.back().strides.resize(rank);
  }
  b.getContext()->getOrLoadDialect<host::HostDialect>();
  module = ModuleOp::create(loc);
  b.setInsertionPointToStart(module->getBody());
  auto program = func::FuncOp::create(
      b, loc, function.getSymName(),
      b.getFunctionType(host::CallType::get(b.getContext()), b.getI32Type()));
  b.setInsertionPointToStart(program.addEntryBlock());
  call = program.getArgument(0);
}

Value HostBuilder::constant(int64_t value) {
  return arith::ConstantIntOp::create(b, loc, value, 64);
}

Value HostBuilder::constantBit(bool value) {
  return arith::ConstantIntOp::create(b, loc, value, 1);
}

Value HostBuilder::input(unsigned index) {
  return host::InputOp::create(b, loc, call, index);
}

Value HostBuilder::hasResults() {
  return compare(CmpIPredicate::ne, input(0), constant(0));
}

Value HostBuilder::create(host::Arithmetic kind, Value lhs, Value rhs) {
  return createOp<host::CheckedOp>(kind, lhs, rhs);
}

Value HostBuilder::compare(CmpIPredicate predicate, Value lhs, Value rhs) {
  return createOp<arith::CmpIOp>(predicate, lhs, rhs);
}

Value HostBuilder::select(Value condition, Value lhs, Value rhs) {
  return createOp<arith::SelectOp>(condition, lhs, rhs);
}

void HostBuilder::check(Value condition, const Twine &text, const Twine &format,
                        ValueRange values) {
  if (matchPattern(condition, m_One()))
    return;
  std::string message = format.str();
  host::CheckOp::create(
      b, loc, condition, b.getStringAttr(text),
      message.empty() ? StringAttr() : b.getStringAttr(message), values);
}

std::optional<int64_t> HostBuilder::getConstant(Value value) {
  APInt number;
  if (!matchPattern(value, m_ConstantInt(&number)))
    return std::nullopt;
  return number.getSExtValue();
}

Value HostBuilder::countBytes(unsigned number, int64_t elementBytes,
                              ValueRange sizes) {
  Value zero = constant(0), bytes = constant(elementBytes);
  Value isEmpty = constantBit(false), fits = constantBit(true);
  for (auto [d, size] : llvm::enumerate(sizes)) {
    check(
        compare(CmpIPredicate::sge, size, zero),
        formatv("buffer {0}: the size of dimension {1} is negative", number, d)
            .str(),
        formatv("buffer {0}: the size of dimension {1} is {{0}, a negative "
                "number",
                number, d)
            .str(),
        size);
    SmallVector<Value, 2> product;
    b.createOrFold<host::OverflowOp>(product, loc, host::Arithmetic::Mul, bytes,
                                     size);
    bytes = product[0];
    fits = createOp<arith::AndIOp>(fits, product[1]);
    isEmpty = createOp<arith::OrIOp>(isEmpty, isEqual(size, zero));
  }
  check(
      createOp<arith::OrIOp>(isEmpty, fits),
      formatv("buffer {0}: the number of bytes does not fit in 64 bits", number)
          .str());
  return select(isEmpty, zero, bytes);
}

OwningOpRef<ModuleOp> HostBuilder::finish() {
  // Choices and loops may have results that nothing needs.
  auto isRegion = [](Operation *op) {
    return isa<scf::IfOp, scf::ForOp>(op) ? WalkResult::interrupt()
                                          : WalkResult::advance();
  };
  if (module->walk(isRegion).wasInterrupted()) {
    RewritePatternSet patterns(b.getContext());
    scf::IfOp::getCanonicalizationPatterns(patterns, b.getContext());
    scf::ForOp::getCanonicalizationPatterns(patterns, b.getContext());
    (void)applyPatternsGreedily(*module, std::move(patterns));
  }
  IRRewriter rewriter(b.getContext());
  DominanceInfo dominance(*module);
  eliminateCommonSubExpressions(rewriter, dominance, *module);
  // A condition that holds is not checked again.
  DenseMap<Value, host::CheckOp> checks;
  module->walk([&](host::CheckOp op) {
    host::CheckOp &first = checks[op.getCondition()];
    if (first && dominance.properlyDominates(first, op))
      op.erase();
    else
      first = op;
  });
  for (auto function : module->getOps<func::FuncOp>())
    (void)runRegionDCE(rewriter, function->getRegions());
  return std::move(module);
}
