//===- CompareTest.cpp - What counts as equal to the reference ------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each bound is tried from both sides, so that none can be loosened unseen.
//
//===----------------------------------------------------------------------===//

#include "flash/Run/Compare.h"

#include "llvm/Support/raw_ostream.h"

using namespace flash::run;

static int numFailures = 0;

/// A thousand elements, of which each has the value.
static HostTensor makeTensor(DType dtype, double value) {
  auto spec = llvm::cantFail(TensorSpec::create(dtype, {1000}));
  auto tensor = llvm::cantFail(HostTensor::allocate(spec, Placement::Aligned));
  for (int64_t i = 0; i < 1000; ++i)
    tensor.set(i, value);
  return tensor;
}

/// Compares results that are all `result` with references that are all
/// `reference`; the first element may be another one.
static void expect(bool ok, const Tolerance &tolerance, DType dtype,
                   double reference, double result,
                   std::optional<double> first = {}) {
  HostTensor results = makeTensor(dtype, result);
  if (first)
    results.set(0, *first);
  Comparison found =
      compare(results, makeTensor(DType::F64, reference), tolerance);
  if (found.ok == ok)
    return;
  llvm::errs() << (ok ? "refused: " : "accepted: ") << result << " for "
               << reference << " with a tolerance of " << tolerance.relativeRms
               << ", rms " << found.rms << "\n";
  ++numFailures;
}

static void testNormalNumbers() {
  struct {
    DType dtype;
    double tolerance;
  } types[] = {{DType::F16, 1e-3}, {DType::BF16, 8e-3}, {DType::F32, 1e-6}};
  for (auto [dtype, bound] : types) {
    Tolerance tolerance = Tolerance::get(dtype, /*scoreMagnitude=*/1);
    for (double r : {1e-4, 0.16, 1.0, 1000.0}) {
      // Half a unit in the last place comes on top.
      expect(true, tolerance, dtype, r, r * (1 + 0.4 * bound));
      expect(false, tolerance, dtype, r, r * (1 + 1.6 * bound));
      expect(true, tolerance, dtype, r, r, r * (1 + 25 * bound));
      expect(false, tolerance, dtype, r, r, r * (1 + 60 * bound));
    }
    expect(true, tolerance, dtype, 0, 0);
    expect(false, tolerance, dtype, 0, 1e-4);
  }
}

static void testSubnormalNumbers() {
  Tolerance tolerance = Tolerance::get(DType::F16, /*scoreMagnitude=*/1);
  const double unit = 0x1p-24;
  for (double r : {3e-7, 7.6e-6, 5e-5}) {
    expect(true, tolerance, DType::F16, r, r);
    expect(false, tolerance, DType::F16, r, r + 2 * unit);
    expect(false, tolerance, DType::F16, r, r, r + 60 * unit);
  }
  expect(false, Tolerance::get(DType::F32, 1), DType::F32, 7.6e-6, 7.61e-6);
  expect(false, Tolerance::get(DType::BF16, 1), DType::BF16, 7.6e-6, 7.7e-6);
}

static void testLogSumExps() {
  Tolerance tolerance = Tolerance::get(DType::F32, /*scoreMagnitude=*/1);
  tolerance.leastMagnitude = Tolerance::leastLogSumExp;
  for (double r : {0.0, 0.001, -0.16, 1.0}) {
    expect(true, tolerance, DType::F32, r, r + 0.8e-6);
    expect(false, tolerance, DType::F32, r, r + 1.2e-6);
    expect(false, tolerance, DType::F32, r, r, r + 60e-6);
  }
  expect(true, tolerance, DType::F32, 100, 100 + 0.8e-4);
  expect(false, tolerance, DType::F32, 100, 100 + 1.2e-4);
}

/// Wide rows of queries and keys have sums of more products.
static void testWideHeads() {
  for (int64_t headDim : {0, 64, 256})
    expect(false, Tolerance::get(DType::F32, 1, headDim), DType::F32, 1,
           1 + 1.2e-6);
  expect(true, Tolerance::get(DType::F32, 1, 576), DType::F32, 1, 1 + 1.2e-6);
  expect(false, Tolerance::get(DType::F32, 1, 576), DType::F32, 1, 1 + 2.6e-6);
  expect(false, Tolerance::get(DType::F16, 1, 576), DType::F16, 1, 1 + 2e-3);
}

/// The second half of the rows may have any error.
static void testRows() {
  Tolerance tolerance = Tolerance::get(DType::F32, /*scoreMagnitude=*/2e7);
  expect(true, tolerance, DType::F32, 1, 1, 1.1);
  tolerance.ofRows = {1e-6, 2};
  expect(true, tolerance, DType::F32, 1, 1, 1 + 25e-6);
  expect(false, tolerance, DType::F32, 1, 1, 1.1);
  expect(false, tolerance, DType::F32, 1, 1 + 2e-6);
  tolerance.ofRows = {2, 1e-6};
  expect(true, tolerance, DType::F32, 1, 1, 1.1);
}

int main() {
  testNormalNumbers();
  testSubnormalNumbers();
  testLogSumExps();
  testWideHeads();
  testRows();
  return numFailures != 0;
}
