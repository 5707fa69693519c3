//===- ReportJson.cpp - What a run has shown, as JSON ---------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Run/Report.h"

#include "llvm/Support/JSON.h"
#include <cmath>

using namespace flash::run;
namespace json = llvm::json;

/// JSON has no NaN and no infinity; they become strings.
static json::Value number(double value) {
  if (std::isnan(value))
    return "nan";
  if (std::isinf(value))
    return value > 0 ? "inf" : "-inf";
  return value;
}

static json::Array toJson(llvm::ArrayRef<TensorSpec> specs) {
  json::Array array;
  for (const TensorSpec &spec : specs)
    array.push_back(json::Object{{"shape", json::Array(spec.shape)},
                                 {"dtype", getName(spec.dtype)}});
  return array;
}

static json::Object toJson(const Comparison &comparison) {
  json::Object object{{"ok", comparison.ok},
                      {"max_abs", number(comparison.maxAbs)},
                      {"max_rel", number(comparison.maxRel)},
                      {"rms", number(comparison.rms)},
                      {"tolerance", comparison.tolerance},
                      {"first_bad", nullptr}};
  if (const auto &bad = comparison.firstBad)
    object["first_bad"] = json::Object{{"index", json::Array(bad->index)},
                                       {"got", number(bad->got)},
                                       {"expected", number(bad->expected)}};
  return object;
}

static json::Object toJson(const Report::Check &check) {
  // The worst result speaks for all.
  size_t worst = check.getWorst();
  json::Object object = toJson(check.results[worst]);
  object["ok"] = check.isOk();
  object["worst_result"] = worst;
  object["repeatable"] = check.repeatable;
  if (!check.hint.empty())
    object["hint"] = check.hint;
  json::Array results;
  for (const Comparison &comparison : check.results)
    results.push_back(toJson(comparison));
  object["results"] = std::move(results);
  return object;
}

static json::Object toJson(const Timing &timing, const Report &report) {
  json::Object object{{"median_ms", timing.median * 1e3},
                      {"min_ms", timing.min * 1e3},
                      {"spread", timing.spread},
                      {"runs", timing.runs},
                      {"tflops", nullptr},
                      {"gbps", report.getTraffic() / timing.median * 1e-9},
                      {"peak_bytes", timing.peakBytes}};
  if (report.flops)
    object["tflops"] = *report.flops / timing.median * 1e-12;
  return object;
}

template <typename T> static json::Value orNull(const std::optional<T> &value) {
  return value ? json::Value(*value) : json::Value(nullptr);
}

static json::Object toJson(const KernelUse &kernel) {
  return json::Object{{"name", kernel.name},
                      {"registers", kernel.registers},
                      {"local_bytes", kernel.localBytes},
                      {"shared_bytes", kernel.sharedBytes},
                      {"blocks", kernel.blocks},
                      {"threads", kernel.threads},
                      {"blocks_per_multiprocessor", kernel.occupancy}};
}

static json::Array toJson(llvm::ArrayRef<KernelUse> kernels) {
  json::Array array;
  for (const KernelUse &kernel : kernels)
    array.push_back(toJson(kernel));
  return array;
}

static json::Object toJson(const Machine &machine) {
  return json::Object{{"architecture", machine.architecture},
                      {"driver", machine.driver},
                      {"clock_mhz", orNull(machine.clockMHz)},
                      {"memory_clock_mhz", orNull(machine.memoryClockMHz)},
                      {"power_w", orNull(machine.powerWatts)},
                      {"nominal_flops", orNull(machine.peakFlops)},
                      {"nominal_bytes_per_s", orNull(machine.peakBandwidth)},
                      {"kernels", toJson(llvm::ArrayRef(machine.kernels))}};
}

static json::Object toJson(const Report::Baseline &baseline,
                           const Report &report) {
  if (!baseline.timing)
    return json::Object{{"skipped", baseline.skipped}};
  json::Object object = toJson(*baseline.timing, report);
  object["speedup"] = *report.getSpeedUp();
  if (baseline.check)
    object["check"] = toJson(*baseline.check);
  if (!baseline.kernels.empty())
    object["kernels"] = toJson(llvm::ArrayRef(baseline.kernels));
  return object;
}

json::Object flash::run::toJson(const Report &report) {
  json::Object compile;
  double total = 0;
  for (auto [name, seconds] : report.compileTimes) {
    compile[name] = seconds * 1e3;
    total += seconds * 1e3;
  }
  compile["total"] = total;
  json::Object object{
      {"file", report.file},
      {"function", report.function},
      {"target", report.target},
      {"device", report.machine.name},
      {"threads", report.machine.threads},
      {"seed", report.seed},
      {"inputs", ::toJson(report.inputs)},
      {"results", ::toJson(report.results)},
      {"dtype", getName(report.results.front().dtype)},
      {"compile_ms", std::move(compile)},
      {"peak_bytes", report.peakBytes},
      {"score_bytes", orNull(report.scoreBytes)},
  };
  if (!report.machine.architecture.empty())
    object["gpu"] = ::toJson(report.machine);
  if (report.check)
    object["check"] = ::toJson(*report.check);
  if (report.bench) {
    json::Object bench = ::toJson(*report.bench, report);
    bench["flop_per_byte"] = nullptr;
    bench["roofline"] = nullptr;
    if (report.flops)
      bench["flop_per_byte"] = report.getIntensity();
    if (auto roofline = report.getRoofline())
      bench["roofline"] = *report.flops / report.bench->median / *roofline;
    object["bench"] = std::move(bench);
  }
  if (report.tiles)
    object["tiles"] =
        json::Object{{"visited", report.tiles->full + report.tiles->partial},
                     {"full", report.tiles->full},
                     {"partial", report.tiles->partial}};
  if (const auto &tuned = report.tuned)
    object["tuned"] =
        json::Object{{"schedule", tuned->schedule},
                     {"median_ms", tuned->median * 1e3},
                     {"default_schedule", tuned->defaultSchedule},
                     {"default_median_ms", tuned->defaultMedian * 1e3},
                     {"tried", tuned->tried},
                     {"failed", tuned->failed},
                     {"failure", tuned->failure},
                     {"seconds", tuned->seconds}};
  if (report.baseline)
    object["baseline"] = ::toJson(*report.baseline, report);
  return object;
}
