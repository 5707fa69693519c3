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

void flash::run::printJson(const Report &report, llvm::raw_ostream &os) {
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
      {"device", report.device},
      {"threads", report.threads},
      {"seed", report.seed},
      {"inputs", toJson(report.inputs)},
      {"results", toJson(report.results)},
      {"dtype", getName(report.results.front().dtype)},
      {"compile_ms", std::move(compile)},
      {"peak_bytes", report.peakBytes},
  };
  if (report.check)
    object["check"] = toJson(*report.check);
  if (report.bench)
    object["bench"] = toJson(*report.bench, report);
  if (report.tiles)
    object["tiles"] =
        json::Object{{"visited", report.tiles->full + report.tiles->partial},
                     {"full", report.tiles->full},
                     {"partial", report.tiles->partial}};
  if (report.baseline) {
    json::Object baseline = toJson(*report.baseline, report);
    baseline["speedup"] = report.baseline->median / report.bench->median;
    object["baseline"] = std::move(baseline);
  } else if (!report.baselineSkipped.empty()) {
    object["baseline"] = json::Object{{"skipped", report.baselineSkipped}};
  }
  json::OStream(os, 2).value(json::Value(std::move(object)));
  os << "\n";
}
