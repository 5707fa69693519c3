//===- Check.cpp - Whether results are right ------------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Run/Check.h"

#include "flash/Run/Inputs.h"
#include "flash/Run/Work.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

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

/// A lower bound of the largest |score| that is the maximum of its row, from
/// the log-sum-exps that the reference adds: maximum <= log-sum-exp <= maximum
/// + log(Nk), and no length exceeds the largest size of an input. Rows without
/// any key, or with NaN or an infinite score, have no say.
static double getScoreMagnitude(llvm::ArrayRef<HostTensor> logSumExps,
                                llvm::ArrayRef<HostTensor> inputs) {
  int64_t largestSize = 1;
  for (const HostTensor &input : inputs)
    for (int64_t size : input.getSpec().shape)
      largestSize = std::max(largestSize, size);
  double slack = std::log(largestSize), magnitude = 0;
  for (const HostTensor &lse : logSumExps)
    for (int64_t i = 0, e = lse.getSpec().getNumElements(); i != e; ++i)
      if (double value = lse.get(i); std::isfinite(value))
        magnitude = std::max({magnitude, value - slack, -value});
  return magnitude;
}

bool flash::run::hasTf32Products(Kernel &kernel) {
  return kernel.getTarget() != Target::Cpu && permitsTf32(kernel.getLevel0());
}

llvm::Expected<Expectation>
flash::run::runReference(Session &session, const Program &program,
                         const Options &options,
                         llvm::ArrayRef<HostTensor> inputs, size_t numResults) {
  auto reference = session.compile(program, Variant::Reference, options);
  if (!reference)
    return reference.takeError();
  auto promoted = copyInputs(inputs, /*promote=*/true, Placement::Aligned);
  if (!promoted)
    return promoted.takeError();
  auto results = (*reference)->getExecutor().run(*promoted);
  if (!results)
    return createStringError(formatv("the fp64 reference failed: {0}",
                                     llvm::toString(results.takeError())));
  Expectation expected;
  expected.results = std::move(*results);
  expected.scoreMagnitude = getScoreMagnitude(
      llvm::ArrayRef(expected.results).drop_front(numResults), inputs);
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
      if (isFloat(input.getSpec().dtype))
        loosest = std::max(loosest, Tolerance::getOfRoundedScores(
                                        input.getSpec().dtype, magnitude)
                                        .relativeRms);
  for (auto [result, wanted] :
       llvm::zip_first(runs.results, expected.results)) {
    if (result.getSpec().shape != wanted.getSpec().shape)
      return createStringError(
          formatv("a result has shape {0}, but the fp64 reference has {1}",
                  result.getSpec().str(), wanted.getSpec().str()));
    DType dtype = result.getSpec().dtype;
    // The naive program's products of f32 are accurate in any case.
    bool isRounded = expected.hasTf32Products && dtype == DType::F32 &&
                     variant != Variant::Naive;
    Tolerance tolerance = isRounded ? Tolerance::getOfTf32(magnitude)
                                    : Tolerance::get(dtype, magnitude);
    tolerance.relativeRms = std::max(tolerance.relativeRms, loosest);
    check.results.push_back(compare(result, wanted, tolerance));
  }
  return check;
}
