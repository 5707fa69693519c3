//===- ScoreGradientTest.cpp - Derivatives against differences ------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For every operation of a score region: its derivatives in f64 against central
// differences, at points and, at kinks, against what PyTorch takes.
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Flash/Utils/ScoreGradient.h"
#include "flash/Dialect/Flash/IR/Flash.h"
#include "flash/Dialect/Flash/Transforms/Passes.h"
#include "flash/Dialect/Flash/Utils/ScoreBody.h"
#include "flash/Pipelines/Registration.h"
#include "flash/Target/Cpu/Jit.h"
#include "flash/Target/Cpu/Pipeline.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include <array>
#include <cmath>

using namespace mlir;

static int64_t numChecks = 0, numFailures = 0;

static void check(bool condition, const llvm::Twine &text) {
  ++numChecks;
  if (condition)
    return;
  if (++numFailures <= 20)
    llvm::outs() << "FAILED: " << text << "\n";
}

namespace {
constexpr double infinity = std::numeric_limits<double>::infinity();

/// Values of the score s, of elements x and y of captured tensors, and of a
/// captured scalar z.
using Point = std::array<double, 4>;
/// The result of a region and its gradients for s, x, y and z.
using Result = std::array<double, 5>;

/// Operations that compute %r from these.
struct Case {
  StringRef region;
  std::vector<Point> points;
};

struct Kink {
  StringRef region;
  Point point;
  Result expected;
};

class Compiled {
public:
  Compiled(MLIRContext *context, StringRef region, StringRef condition);
  Result run(Point point) const;

private:
  std::unique_ptr<flash::CpuExecutable> executable;
};
} // namespace

/// A function whose attention carries the region, for element 0 of each tensor.
static std::string getText(StringRef region) {
  return llvm::formatv(R"(
    func.func @run(%s_: tensor<1xf32>, %x_: tensor<1xf32>, %y_: tensor<1xf32>,
                   %z_: tensor<1xf32>, %q: tensor<1x1x8x8xf32>) -> tensor<1x1x8x8xf32> {{
      %zero = arith.constant 0 : index
      %z = tensor.extract %z_[%zero] : tensor<1xf32>
      %o = flash.attention %q, %q, %q score {{
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %x = tensor.extract %x_[%b] : tensor<1xf32>
        %y = tensor.extract %y_[%h] : tensor<1xf32>
        {0}
        flash.yield %r : f32
      } : (tensor<1x1x8x8xf32>, tensor<1x1x8x8xf32>, tensor<1x1x8x8xf32>) -> tensor<1x1x8x8xf32>
      return %o : tensor<1x1x8x8xf32>
    })",
                       region);
}

/// Replaces the attention by a loop that computes the region and its gradients,
/// which are the function's results.
static LogicalResult replaceAttention(func::FuncOp func) {
  auto op = *func.getOps<flash::AttentionOp>().begin();
  Value z = (*func.getOps<tensor::ExtractOp>().begin()).getResult();
  OpBuilder b(op);
  Location loc = op.getLoc();
  auto type = cast<RankedTensorType>(func.getArgument(0).getType());
  constexpr unsigned numResults = std::tuple_size_v<Result>;
  SmallVector<Value> outputs;
  for (unsigned i = 0; i < numResults; ++i)
    outputs.push_back(
        tensor::EmptyOp::create(b, loc, 1, type.getElementType()));
  SmallVector<Type> types(numResults, type);
  SmallVector<AffineMap> maps(numResults + 1, b.getMultiDimIdentityMap(1));
  bool failed = false;
  auto generic = linalg::GenericOp::create(
      b, loc, types, func.getArgument(0), outputs, maps,
      utils::IteratorType::parallel,
      [&](OpBuilder &nested, Location loc, ValueRange args) {
        Value zero = arith::ConstantIndexOp::create(nested, loc, 0);
        flash::ScorePosition at = {zero, zero, zero, zero, zero, zero};
        IRMapping values;
        Value one =
            arith::ConstantOp::create(nested, loc, nested.getF32FloatAttr(1));
        Value none =
            arith::ConstantOp::create(nested, loc, nested.getF32FloatAttr(0));
        SmallVector<Value> results(numResults, none);
        results[0] = flash::emitScoreValues(nested, op.getScore(), args[0], at,
                                            Value(), values);
        SmallVector<Value> captured = {func.getArgument(1), func.getArgument(2),
                                       z};
        FailureOr<flash::ScoreGradient> gradient = flash::emitScoreGradient(
            nested, op.getScore(), values, one, Value(), captured);
        failed = mlir::failed(gradient);
        if (!failed) {
          if (gradient->score)
            results[1] = gradient->score;
          for (flash::ReadGradient &read : gradient->reads)
            results[read.read.getTensor() == captured[0] ? 2 : 3] =
                read.gradient;
          if (gradient->scalars[2])
            results[4] = gradient->scalars[2];
        }
        linalg::YieldOp::create(nested, loc, results);
      });
  func.getBody().front().getTerminator()->setOperands(generic.getResults());
  func.setFunctionType(
      FunctionType::get(func.getContext(), func.getArgumentTypes(), types));
  op.erase();
  return failure(failed);
}

Compiled::Compiled(MLIRContext *context, StringRef region, StringRef name) {
  OwningOpRef<ModuleOp> module =
      parseSourceString<ModuleOp>(getText(region), context);
  check(static_cast<bool>(module), name + ": parses");
  if (!module)
    return;
  auto func = module->lookupSymbol<func::FuncOp>("run");
  bool isDifferentiated = succeeded(replaceAttention(func));
  check(isDifferentiated, name + ": is differentiated");
  if (!isDifferentiated)
    return;
  PassManager pm(context);
  pm.addPass(flash::createPromoteToF64());
  flash::buildCpuBackendPipeline(pm, flash::CpuBackendOptions());
  bool isLowered = succeeded(pm.run(*module));
  check(isLowered, name + ": is lowered");
  if (!isLowered)
    return;
  auto compiled = flash::CpuExecutable::compile(*module, "run");
  check(static_cast<bool>(compiled), name + ": is compiled");
  if (compiled)
    executable = std::move(*compiled);
  else
    llvm::consumeError(compiled.takeError());
}

Result Compiled::run(Point point) const {
  Result result;
  result.fill(std::nan(""));
  if (!executable)
    return result;
  std::array<double, 64> query = {};
  SmallVector<flash::StridedBuffer> inputs;
  for (double &value : point)
    inputs.push_back({&value, {1}, {1}});
  inputs.push_back({query.data(), {1, 1, 8, 8}, {64, 64, 8, 1}});
  SmallVector<flash::OwnedBuffer> outputs;
  llvm::Error error = executable->invoke(inputs, outputs);
  check(!error, "runs");
  if (error) {
    llvm::consumeError(std::move(error));
    return result;
  }
  for (auto [value, output] : llvm::zip_equal(result, outputs))
    value = *static_cast<double *>(output.data());
  return result;
}

/// The derivative for variable `i`, from four values: its error is of the
/// fourth order of the step.
static double differentiate(const Compiled &compiled, Point point, unsigned i) {
  double step = 1e-3 * std::max(1.0, std::abs(point[i]));
  auto at = [&](double steps) {
    Point moved = point;
    moved[i] += steps * step;
    return compiled.run(moved)[0];
  };
  return (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * step);
}

static void checkDifferences(MLIRContext *context, const Case &test) {
  Compiled compiled(context, test.region, test.region);
  for (Point point : test.points) {
    Result result = compiled.run(point);
    for (unsigned i = 0; i < point.size(); ++i) {
      double expected = differentiate(compiled, point, i);
      double error = std::abs(result[i + 1] - expected);
      check(error <= 1e-7 * (1 + std::abs(expected)),
            llvm::formatv("{0}: gradient {1} at ({2}, {3}, {4}, {5}) is {6}, "
                          "by differences {7}",
                          test.region, i, point[0], point[1], point[2],
                          point[3], result[i + 1], expected)
                .str());
    }
  }
}

static void checkKink(MLIRContext *context, const Kink &test) {
  Result result = Compiled(context, test.region, test.region).run(test.point);
  for (auto [i, value, expected] : llvm::enumerate(result, test.expected))
    check(value == expected || (std::isnan(value) && std::isnan(expected)),
          llvm::formatv("{0}: result {1} is {2}, not {3}", test.region, i,
                        value, expected)
              .str());
}

/// Functions of one value, and where they are smooth.
static std::vector<Case> getFunctions() {
  std::vector<Case> cases;
  static std::vector<std::string> texts;
  const std::pair<StringRef, std::vector<double>> functions[] = {
      {"math.absf", {1.5, -0.7}},      {"math.acos", {0.3, -0.8}},
      {"math.acosh", {1.5, 4}},        {"math.asin", {0.3, -0.8}},
      {"math.asinh", {0.3, -2}},       {"math.atan", {0.3, -2}},
      {"math.atanh", {0.3, -0.7}},     {"math.cbrt", {0.5, -2}},
      {"math.ceil", {0.3, -1.4}},      {"math.cos", {0.5, -2}},
      {"math.cosh", {0.5, -2}},        {"math.erf", {0.5, -1}},
      {"math.erfc", {0.5, -1}},        {"math.exp", {0.5, -1}},
      {"math.exp2", {0.5, -1}},        {"math.expm1", {0.5, -1}},
      {"math.floor", {0.3, -1.4}},     {"math.log", {0.5, 3}},
      {"math.log10", {0.5, 3}},        {"math.log1p", {0.5, -0.4}},
      {"math.log2", {0.5, 3}},         {"math.round", {0.3, -1.4}},
      {"math.roundeven", {0.3, -1.4}}, {"math.rsqrt", {0.5, 3}},
      {"math.sin", {0.5, -2}},         {"math.sinh", {0.5, -2}},
      {"math.sqrt", {0.5, 3}},         {"math.tan", {0.5, -1}},
      {"math.tanh", {0.5, -1}},        {"math.trunc", {0.3, -1.4}},
      {"arith.negf", {0.5, -1}}};
  texts.reserve(std::size(functions));
  for (auto &[name, points] : functions) {
    texts.push_back(("%r = " + name + " %s : f32").str());
    cases.push_back({texts.back(), {}});
    for (double point : points)
      cases.back().points.push_back({point, 0, 0, 0});
  }
  return cases;
}

static const std::vector<Case> otherCases = {
    {"%r = arith.addf %s, %x : f32", {{1, 2, 0, 0}}},
    {"%r = arith.subf %s, %x : f32", {{1, 2, 0, 0}}},
    {"%r = arith.mulf %s, %x : f32", {{1.5, 2.5, 0, 0}}},
    {"%r = arith.mulf %s, %s : f32", {{1.5, 0, 0, 0}}},
    {"%r = arith.divf %s, %x : f32", {{1.5, 2.5, 0, 0}, {-3, 0.5, 0, 0}}},
    {"%c = arith.constant 32.0 : f32  %r = arith.divf %s, %c : f32",
     {{1.5, 0, 0, 0}}},
    {"%r = arith.remf %s, %x : f32", {{7.5, 2.2, 0, 0}, {-7.5, 2.2, 0, 0}}},
    {"%r = math.fma %s, %x, %y : f32", {{1.5, 2.5, 3.5, 0}}},
    {"%r = math.atan2 %s, %x : f32", {{1.5, 2.5, 0, 0}, {-1.5, -2, 0, 0}}},
    {"%r = math.copysign %s, %x : f32",
     {{1.5, -2, 0, 0}, {-1.5, -2, 0, 0}, {-1.5, 2, 0, 0}}},
    {"%r = math.powf %s, %x : f32", {{1.5, 2.5, 0, 0}, {0.7, -1.5, 0, 0}}},
    {"%n = arith.constant 3 : i32  %r = math.fpowi %s, %n : f32, i32",
     {{1.5, 0, 0, 0}, {-2, 0, 0, 0}}},
    {"%a, %c = math.sincos %s : f32  %d = arith.mulf %a, %x : f32 "
     "%r = arith.addf %d, %c : f32",
     {{0.5, 2, 0, 0}}},
    {"%r = arith.maximumf %s, %x : f32", {{1, 2, 0, 0}, {2, 1, 0, 0}}},
    {"%r = arith.minimumf %s, %x : f32", {{1, 2, 0, 0}, {2, 1, 0, 0}}},
    {"%r = arith.maxnumf %s, %x : f32", {{1, 2, 0, 0}, {2, 1, 0, 0}}},
    {"%r = arith.minnumf %s, %x : f32", {{1, 2, 0, 0}, {2, 1, 0, 0}}},
    {"%r = math.clampf %s to [%x, %y] : f32",
     {{1, 2, 0, 0}, {3, 2, 0, 0}, {-1, 2, 0, 0}, {1, 0, 2, 0}}},
    {"%c = arith.cmpf olt, %s, %x : f32  %d = arith.mulf %s, %y : f32 "
     "%e = math.exp %x : f32  %r = arith.select %c, %d, %e : f32",
     {{1, 2, 3, 0}, {2, 1, 3, 0}}},
    {"%n = arith.fptosi %s : f32 to i32  %f = arith.sitofp %n : i32 to f32 "
     "%r = arith.mulf %f, %s : f32",
     {{2.5, 0, 0, 0}}},
    {"%n = arith.fptoui %x : f32 to i32  %f = arith.uitofp %n : i32 to f32 "
     "%r = arith.mulf %f, %s : f32",
     {{2.5, 3.5, 0, 0}}},
    {"%w = arith.extf %s : f32 to f64  %v = arith.extf %x : f32 to f64 "
     "%p = arith.mulf %w, %v : f64  %r = arith.truncf %p : f64 to f32",
     {{1.5, 2.5, 0, 0}}},
    {"%w = arith.truncf %s : f32 to bf16  %v = arith.truncf %x : f32 to bf16 "
     "%p = arith.mulf %w, %v : bf16  %r = arith.extf %p : bf16 to f32",
     {{1.5, 2.5, 0, 0}}},
    // A soft cap, ALiBi with a slope that is captured, and a bias.
    {"%c = arith.divf %s, %z : f32  %t = math.tanh %c : f32 "
     "%m = arith.mulf %t, %z : f32  %a = arith.mulf %x, %z : f32 "
     "%n = arith.subf %m, %a : f32  %r = arith.addf %n, %y : f32",
     {{1.5, 2.5, 0.5, 3}, {-40, 2, 1, 15}}},
    // What is shared is counted once for each use.
    {"%a = math.exp %s : f32  %c = arith.mulf %a, %a : f32 "
     "%d = arith.mulf %c, %a : f32  %e = arith.addf %d, %c : f32 "
     "%r = arith.addf %e, %a : f32",
     {{0.3, 0, 0, 0}}},
    // Two choices, on whose sides each value is used.
    {"%nil = arith.constant 0.0 : f32  %c = arith.cmpf ogt, %s, %nil : f32 "
     "%d = arith.cmpf ogt, %x, %nil : f32  %l = math.log %s : f32 "
     "%q1 = math.sqrt %s : f32  %m = arith.select %c, %l, %nil : f32 "
     "%n = arith.select %d, %q1, %x : f32  %r = arith.addf %m, %n : f32",
     {{2, 1, 0, 0}, {2, -1, 0, 0}}}};

/// One side of a kink, or both: as PyTorch does.
static const std::vector<Kink> kinks = {
    {"%r = math.absf %s : f32", {0, 0, 0, 0}, {0, 0, 0, 0, 0}},
    {"%r = math.copysign %s, %x : f32", {0, 2, 0, 0}, {0, 0, 0, 0, 0}},
    {"%r = arith.maximumf %s, %x : f32", {1, 1, 0, 0}, {1, 0.5, 0.5, 0, 0}},
    {"%r = arith.minimumf %s, %x : f32", {1, 1, 0, 0}, {1, 0.5, 0.5, 0, 0}},
    {"%r = arith.maxnumf %s, %x : f32", {1, 1, 0, 0}, {1, 1, 0, 0, 0}},
    {"%r = arith.minnumf %s, %x : f32", {1, 1, 0, 0}, {1, 1, 0, 0, 0}},
    {"%r = arith.maxnumf %s, %x : f32",
     {std::nan(""), 1, 0, 0},
     {1, 0, 1, 0, 0}},
    {"%r = arith.minnumf %s, %x : f32",
     {1, std::nan(""), 0, 0},
     {1, 1, 0, 0, 0}},
    {"%r = math.clampf %s to [%x, %y] : f32", {1, 1, 0, 0}, {1, 1, 0, 0, 0}},
    {"%r = math.clampf %s to [%x, %y] : f32", {1, 2, 1, 0}, {1, 1, 0, 0, 0}},
    {"%r = math.powf %s, %x : f32", {0, 0, 0, 0}, {1, 0, 0, 0, 0}},
    {"%n = arith.constant 0 : i32  %r = math.fpowi %s, %n : f32, i32",
     {0, 0, 0, 0},
     {1, 0, 0, 0, 0}},
    {"%r = math.floor %s : f32", {2, 0, 0, 0}, {2, 0, 0, 0, 0}},
    // What is not chosen has no effect, also where its derivative is infinite.
    {"%nil = arith.constant 0.0 : f32  %low = arith.constant 0xFF800000 : f32 "
     "%c = arith.cmpf ogt, %s, %nil : f32  %l = math.log %s : f32 "
     "%r = arith.select %c, %l, %low : f32",
     {0, 0, 0, 0},
     {-infinity, 0, 0, 0, 0}},
    {"%nil = arith.constant 0.0 : f32  %c = arith.cmpf ogt, %s, %nil : f32 "
     "%l = math.log %s : f32  %q1 = math.sqrt %s : f32 "
     "%d = arith.cmpf oge, %s, %x : f32  %m = arith.select %c, %l, %nil : f32 "
     "%n = arith.select %d, %q1, %nil : f32  %r = arith.addf %m, %n : f32",
     {0, 1, 0, 0},
     {0, 0, 0, 0, 0}}};

/// What has no derivative is an error where it is needed.
static void checkRefusals(MLIRContext *context) {
  const std::pair<StringRef, StringRef> refusals[] = {
      {"%n = arith.bitcast %s : f32 to i32  %m = arith.bitcast %n : i32 to f32 "
       "%r = arith.addf %s, %m : f32",
       "'arith.bitcast' op has no derivative: it takes the bits of a value "
       "whose "
       "gradient is needed; use a function of arith or math"},
      {"%e = arith.constant 1.0 : f8E8M0FNU  %t = arith.constant 1.0 : "
       "f4E2M1FN "
       "%n = arith.scaling_truncf %s, %e : f32, f8E8M0FNU to f4E2M1FN "
       "%r = arith.scaling_extf %n, %e : f4E2M1FN, f8E8M0FNU to f32",
       "'arith.scaling_extf' op has no derivative, which the gradient needs; "
       "use functions of arith and math on f32"}};
  for (auto [region, expected] : refusals) {
    OwningOpRef<ModuleOp> module =
        parseSourceString<ModuleOp>(getText(region), context);
    std::string message;
    ScopedDiagnosticHandler handler(
        context, [&](Diagnostic &diagnostic) { message = diagnostic.str(); });
    check(module && failed(replaceAttention(
                        module->lookupSymbol<func::FuncOp>("run"))),
          region + ": is refused");
    check(message == expected, region + ": " + message);
  }
}

int main() {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  DialectRegistry registry;
  flash::registerAllDialects(registry);
  MLIRContext context(registry);
  for (const Case &test : getFunctions())
    checkDifferences(&context, test);
  for (const Case &test : otherCases)
    checkDifferences(&context, test);
  for (const Kink &test : kinks)
    checkKink(&context, test);
  checkRefusals(&context);
  llvm::outs() << numChecks << " checks, " << numFailures << " failures\n";
  return numFailures != 0;
}
