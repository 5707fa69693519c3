//===- Check.cpp - Whether results are right ------------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Run/Check.h"

#include "flash/Compile/Reference.h"
#include "flash/Dialect/Flash/IR/Flash.h"
#include "flash/Run/InputSpecs.h"
#include "flash/Run/Inputs.h"
#include "flash/Run/Work.h"
#include "flash/Support/DescribeLocation.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>
#include <limits>

using namespace flash::run;
using llvm::createStringError;
using llvm::formatv;

llvm::Expected<CheckedRuns>
flash::run::runChecked(Executor &executor, llvm::ArrayRef<HostTensor> inputs) {
  CheckedRuns runs;
  executor.setChecked(true);
  llvm::scope_exit reset([&] { executor.setChecked(false); });
  for (bool again : {false, true}) {
    auto results = executor.run(inputs);
    if (!results)
      return results.takeError();
    for (size_t i = 0; again && i < results->size(); ++i)
      runs.repeatable &= (*results)[i].getBytes() == runs.results[i].getBytes();
    runs.results = std::move(*results);
  }
  return runs;
}

/// A lower bound of the |maximum| of each row of scores, from the log-sum-exps
/// that the reference adds: maximum <= log-sum-exp <= maximum + log(Nk), and no
/// length exceeds the largest size of an input. It is 0 of rows without any
/// key, or with NaN or an infinite score.
static std::vector<double>
getScoreMagnitudes(const HostTensor &logSumExps,
                   llvm::ArrayRef<HostTensor> inputs) {
  int64_t largestSize = 1;
  for (const HostTensor &input : inputs)
    for (int64_t size : input.getSpec().shape)
      largestSize = std::max(largestSize, size);
  double slack = std::log(largestSize);
  std::vector<double> magnitudes(logSumExps.getSpec().getNumElements());
  for (auto [i, magnitude] : llvm::enumerate(magnitudes))
    if (double value = logSumExps.get(i); std::isfinite(value))
      magnitude = std::max({0.0, value - slack, -value});
  return magnitudes;
}

/// Makes rows of none of `rows` 0; rows are along the third dimension.
static void clearOtherRows(HostTensor &tensor,
                           llvm::ArrayRef<std::pair<int64_t, int64_t>> rows) {
  llvm::ArrayRef<int64_t> shape = tensor.getSpec().shape;
  int64_t ofRow = shape.size() == 4 ? shape[3] : 1;
  for (int64_t i = 0, e = tensor.getSpec().getNumElements(); i != e; ++i) {
    int64_t row = i / ofRow % shape[2];
    if (llvm::none_of(
            rows, [&](auto of) { return of.first <= row && row < of.second; }))
      tensor.set(i, 0);
  }
}

/// The rows of a result that are not 0, as rows without keys are; the elements
/// of a result without columns.
static int64_t countRows(const HostTensor &wanted, bool hasColumns) {
  llvm::ArrayRef<int64_t> shape = wanted.getSpec().shape;
  int64_t ofRow = hasColumns && !shape.empty() ? shape.back() : 1, rows = 0;
  for (int64_t i = 0, e = wanted.getSpec().getNumElements(); i < e; i += ofRow)
    rows += llvm::any_of(llvm::seq(i, i + ofRow),
                         [&](int64_t at) { return wanted.get(at) != 0; });
  return rows;
}

std::optional<flash::Precision> flash::run::getPrecision(Kernel &kernel) {
  if (kernel.getTarget() == Target::Cpu)
    return std::nullopt;
  return getPrecision(kernel.getLevel0());
}

/// Says of a score region that jumps where it may do so, since there f32 and
/// f64 need not be on the same side.
static std::string getHint(mlir::ModuleOp program) {
  namespace arith = mlir::arith;
  namespace math = mlir::math;
  std::string hint;
  program.walk([&](flash::AttentionOpInterface attention) {
    attention.getScore().walk([&](mlir::Operation *op) {
      if (hint.empty() &&
          mlir::isa<arith::FPToSIOp, arith::FPToUIOp, arith::RemFOp,
                    math::FloorOp, math::CeilOp, math::RoundOp,
                    math::RoundEvenOp, math::TruncOp>(op))
        hint = formatv(
            "{0}{1} in a score region jumps at whole numbers: where its "
            "operand is near one, f32 and the fp64 reference may get different "
            "results, and both be right; compute it from integers or read it "
            "from a tensor, or add a small constant to the operand, such as "
            "1e-3, so that no element is near a whole number",
            op->getName(), flash::describeLocation(op->getLoc()));
    });
  });
  return hint;
}

/// What is known of results that are gradients; `terms` are the terms of each.
static std::map<unsigned, Gradient>
describeGradients(mlir::func::FuncOp entry, llvm::ArrayRef<HostTensor> terms) {
  std::map<unsigned, Gradient> gradients;
  for (auto [result, ofResult] :
       llvm::zip_equal(getGradientResults(entry), terms)) {
    Gradient &gradient = gradients[result.number];
    gradient.ofOperands =
        *getDType(result.op.getQuery().getType().getElementType());
    gradient.leastMagnitude = getMagnitude(ofResult);
  }
  return gradients;
}

/// The root mean square of what an operand of attention is dequantized from,
/// times its scale; 1 if these are no arguments.
static double getDequantizedMagnitude(mlir::Value operand,
                                      llvm::ArrayRef<HostTensor> inputs) {
  auto dequantize = operand.getDefiningOp<flash::DequantizeOp>();
  if (!dequantize)
    return 1;
  double magnitude = 1;
  for (mlir::Value factor : dequantize->getOperands())
    if (auto argument = mlir::dyn_cast<mlir::BlockArgument>(factor))
      magnitude *= getMagnitude(inputs[argument.getArgNumber()]);
  return magnitude;
}

/// `Expectation::usualScore`.
static double getUsualScore(mlir::func::FuncOp entry,
                            llvm::ArrayRef<HostTensor> inputs) {
  double usual = 0;
  entry.walk([&](flash::AttentionOp op) {
    if (op.getPrecision() != flash::Precision::FP8)
      return;
    // Of random numbers, whose products are independent.
    double root = std::sqrt(static_cast<double>(op.getHeadDim()));
    usual = std::max(usual, getDequantizedMagnitude(op.getQuery(), inputs) *
                                getDequantizedMagnitude(op.getKey(), inputs) *
                                root * op.getScaleOrDefault());
  });
  return usual;
}

/// With more multiplications the reference runs longer without optimizations
/// than these take.
constexpr double mostQuickProducts = 256e6;

/// About how many multiplications the reference of a program has, which
/// computes all scores; infinite if that does not follow from the inputs.
static double countReferenceProducts(mlir::func::FuncOp entry,
                                     llvm::ArrayRef<TensorSpec> inputs) {
  std::optional<double> scoreBytes = countScoreBytes(entry, inputs);
  if (!scoreBytes)
    return std::numeric_limits<double>::infinity();
  double columns = 0;
  entry.walk([&](flash::AttentionOpInterface op) {
    double ofOp = op.getHeadDim() + op.getValueDim();
    columns = std::max(
        columns, mlir::isa<flash::AttentionGradOp>(op) ? 2.5 * ofOp : ofOp);
  });
  return *scoreBytes / sizeof(float) * columns;
}

llvm::Expected<Expectation>
flash::run::runReference(Session &session, const Program &program,
                         const Options &options,
                         llvm::ArrayRef<HostTensor> inputs, size_t numResults) {
  InlinedProgram inlined(program);
  mlir::func::FuncOp entry = inlined.entry;
  std::vector<TensorSpec> specs;
  for (const HostTensor &input : inputs)
    specs.push_back(input.getSpec());
  Options ofReference = options;
  ofReference.optimizeReference =
      countReferenceProducts(entry, specs) > mostQuickProducts;
  auto reference = session.compile(program, Variant::Reference, ofReference);
  if (!reference)
    return reference.takeError();
  auto promoted = copyInputs(inputs, /*promote=*/true, Placement::Aligned);
  if (!promoted)
    return promoted.takeError();
  auto results = (*reference)->getExecutor().run(*promoted);
  if (!results) {
    std::string message = llvm::toString(results.takeError());
    // All else it finds is wrong with the program.
    if (llvm::StringRef(message).starts_with("out of memory"))
      message = "the fp64 reference failed: " + message;
    return createStringError(message);
  }
  Expectation expected;
  expected.hint = getHint(*program.module);
  entry.walk([&](flash::AttentionOpInterface attention) {
    expected.headDim = std::max(expected.headDim, attention.getHeadDim());
  });
  expected.usualScore = getUsualScore(entry, inputs);
  ReferenceResults added = getReferenceResults(entry);
  auto behind = llvm::ArrayRef(*results).drop_front(numResults);
  std::vector<std::vector<double>> magnitudes;
  for (const HostTensor &lse : behind.take_front(added.logSumExps)) {
    magnitudes.push_back(getScoreMagnitudes(lse, inputs));
    for (double magnitude : magnitudes.back())
      expected.scoreMagnitude = std::max(expected.scoreMagnitude, magnitude);
  }
  for (auto [number, attention] : getOutputResults(entry))
    expected.rowMagnitudes[number] = magnitudes[attention];
  expected.gradients = describeGradients(entry, behind.take_back(added.terms));
  expected.logSumExps = getLogSumExpResults(entry);
  expected.rowsOfSequences = getRowsOfSequences(entry, inputs);
  expected.results = std::move(*results);
  for (const auto &[number, rows] : expected.rowsOfSequences)
    clearOtherRows(expected.results[number], rows);
  return expected;
}

llvm::Expected<Report::Check>
flash::run::checkRuns(const CheckedRuns &runs, const Expectation &expected,
                      Variant variant, llvm::ArrayRef<HostTensor> inputs) {
  Report::Check check;
  check.repeatable = runs.repeatable;
  double magnitude = expected.scoreMagnitude, loosest = 0;
  if (variant == Variant::Naive)
    for (const HostTensor &input : inputs)
      if (isPromoted(input.getSpec().dtype))
        loosest = std::max(loosest, Tolerance::getOfRoundedScores(
                                        input.getSpec().dtype, magnitude)
                                        .relativeRms);
  for (auto [number, result] : llvm::enumerate(runs.results)) {
    const HostTensor &wanted = expected.results[number];
    if (result.getSpec().shape != wanted.getSpec().shape)
      return createStringError(
          formatv("a result has shape {0}, but the fp64 reference has {1}",
                  result.getSpec().str(), wanted.getSpec().str()));
    DType dtype = result.getSpec().dtype;
    auto gradient = expected.gradients.find(number);
    bool isGradient = gradient != expected.gradients.end();
    // A gradient of f32 comes from what is rounded to the operands' type; one
    // of fewer bits, of a captured tensor, is rounded itself.
    auto getRounding = [&](DType type) {
      return Tolerance::get(type, magnitude, expected.headDim).relativeRms;
    };
    if (isGradient &&
        getRounding(gradient->second.ofOperands) > getRounding(dtype))
      dtype = gradient->second.ofOperands;
    // The naive program's products of f32 are accurate in any case.
    std::optional<Precision> precision =
        variant == Variant::Naive ? std::nullopt : expected.precision;
    bool isLogSumExp = llvm::is_contained(expected.logSumExps, number);
    int64_t numRows = precision == Precision::FP8
                          ? countRows(wanted, /*hasColumns=*/!isLogSumExp)
                          : 0;
    auto getTolerance = [&](double magnitude) {
      Tolerance tolerance =
          precision == Precision::FP8
              ? Tolerance::getOfE4M3(dtype, magnitude, numRows, isLogSumExp)
          : precision == Precision::TF32 && dtype == DType::F32
              ? Tolerance::getOfTf32(magnitude)
              : Tolerance::get(dtype, magnitude, expected.headDim);
      tolerance.relativeRms = std::max(tolerance.relativeRms, loosest);
      return tolerance;
    };
    // The error of a score is relative, and so is that of a log-sum-exp.
    Tolerance tolerance = getTolerance(isLogSumExp ? 0 : magnitude);
    auto rows = expected.rowMagnitudes.find(number);
    if (rows != expected.rowMagnitudes.end()) {
      for (double ofRow : rows->second)
        tolerance.ofRows.push_back(
            std::min(Tolerance::largestOfRow,
                     getTolerance(std::max(ofRow, std::min(magnitude, 1e3)))
                         .relativeRms));
      if (!tolerance.ofRows.empty())
        tolerance.relativeRms = *llvm::max_element(tolerance.ofRows);
    }
    if (isGradient) {
      tolerance.relativeRms *= Gradient::toleranceFactor;
      tolerance.leastMagnitude =
          std::max(tolerance.leastMagnitude, gradient->second.leastMagnitude);
    }
    if (isLogSumExp)
      tolerance.leastMagnitude =
          std::max(Tolerance::leastLogSumExp, expected.usualScore);
    auto ofSequences = expected.rowsOfSequences.find(number);
    if (ofSequences == expected.rowsOfSequences.end()) {
      check.results.push_back(compare(result, wanted, tolerance));
    } else {
      auto defined = result.convert(result.getSpec().dtype, Placement::Aligned);
      if (!defined)
        return defined.takeError();
      clearOtherRows(*defined, ofSequences->second);
      check.results.push_back(compare(*defined, wanted, tolerance));
    }
    if (!check.results.back().ok)
      check.hint = expected.hint;
  }
  return check;
}
