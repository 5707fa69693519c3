//===- Report.cpp - What a run has shown, as text -------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Run/Report.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

using namespace flash::run;
using llvm::formatv;

bool Report::Check::isOk() const {
  return repeatable &&
         llvm::all_of(results, [](const Comparison &c) { return c.ok; });
}

size_t Report::Check::getWorst() const {
  size_t worst = 0;
  auto badness = [](const Comparison &c) {
    return std::pair(!c.ok, c.rms / c.tolerance);
  };
  for (size_t i = 1; i < results.size(); ++i)
    if (badness(results[worst]) < badness(results[i]))
      worst = i;
  return worst;
}

int64_t Report::getTraffic() const {
  int64_t bytes = 0;
  for (const auto *specs : {&inputs, &results})
    for (const TensorSpec &spec : *specs)
      bytes += spec.getNumBytes();
  return bytes;
}

std::optional<double> Report::getRoofline() const {
  if (!flops || !machine.peakFlops || !machine.peakBandwidth)
    return std::nullopt;
  return std::min(*machine.peakFlops, getIntensity() * *machine.peakBandwidth);
}

std::optional<double> Report::getSpeedUp() const {
  if (!bench || !baseline || !baseline->timing)
    return std::nullopt;
  return baseline->timing->median / bench->median;
}

/// A number of bytes in a unit that suits it.
static std::string formatBytes(double bytes) {
  for (const char *unit : {"B", "KB", "MB"}) {
    if (bytes < 1000)
      return formatv("{0:f1} {1}", bytes, unit).str();
    bytes /= 1000;
  }
  return formatv("{0:f2} GB", bytes).str();
}

static std::string formatNumber(double value) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.3g", value);
  return text;
}

void flash::run::printTiles(const Report &report, llvm::raw_ostream &os) {
  auto [full, partial] = *report.tiles;
  os << formatv("tiles: {0} visited = {1} full + {2} partial\n", full + partial,
                full, partial);
}

/// One line, without the word it starts with.
static void printCheck(const Report::Check &check, llvm::raw_ostream &os) {
  size_t worst = check.getWorst();
  const Comparison &c = check.results[worst];
  os << "check: " << (check.isOk() ? "ok" : "FAILED");
  os << formatv("  max abs {0}  max rel {1}  rms {2}  (tolerance {3})",
                formatNumber(c.maxAbs), formatNumber(c.maxRel),
                formatNumber(c.rms), formatNumber(c.tolerance));
  if (check.results.size() > 1)
    os << formatv("  worst of {0} results: {1}", check.results.size(), worst);
  if (c.firstBad) {
    os << "  first bad index [";
    llvm::interleaveComma(c.firstBad->index, os);
    os << llvm::format("]: got %.9g, expected %.9g", c.firstBad->got,
                       c.firstBad->expected);
  }
  if (!check.repeatable)
    os << "  two runs on the same inputs gave different bits";
  os << "\n";
  if (!check.hint.empty())
    os << "hint: " << check.hint << "\n";
}

void flash::run::printCheck(const Report &report, llvm::raw_ostream &os) {
  ::printCheck(*report.check, os);
}

static double milliseconds(double seconds) { return seconds * 1e3; }

/// What a GPU's figures mean beside what it could do.
static void printRoofline(const Report &report, llvm::raw_ostream &os) {
  auto roofline = report.getRoofline();
  if (!roofline)
    return;
  const Machine &machine = report.machine;
  double achieved = *report.flops / report.bench->median;
  os << formatv("roofline: {0:f1}% of {1:f1} TFLOP/s, the lower of {2:f1} "
                "TFLOP/s ({3}) and {4:f1} FLOP/byte at {5:f0} GB/s (nominal)\n",
                achieved / *roofline * 100, *roofline * 1e-12,
                *machine.peakFlops * 1e-12, machine.peakKind,
                report.getIntensity(), *machine.peakBandwidth * 1e-9);
}

static void printKernels(llvm::ArrayRef<KernelUse> kernels,
                         llvm::raw_ostream &os) {
  for (const KernelUse &kernel : kernels)
    os << formatv("kernel: @{0}, {1} registers, {2} B of local memory for "
                  "spills and arrays, {3} B of shared memory, {4} blocks of "
                  "{5} threads, {6} per multiprocessor\n",
                  kernel.name, kernel.registers, kernel.localBytes,
                  kernel.sharedBytes, kernel.blocks, kernel.threads,
                  kernel.occupancy);
}

/// The naive program beside the other, in lines of the same kinds.
static void printBaseline(const Report &report, llvm::raw_ostream &os) {
  const Report::Baseline &naive = *report.baseline;
  if (naive.check)
    ::printCheck(*naive.check, os << "baseline ");
  if (const auto &timing = naive.timing)
    os << formatv("baseline: {0:f3} ms median of {1} runs, {2} beyond inputs "
                  "and results  (speed-up {3:f2})\n",
                  milliseconds(timing->median), timing->runs,
                  formatBytes(timing->peakBytes), *report.getSpeedUp());
  else
    os << "baseline: none, " << naive.skipped << "\n";
  for (const KernelUse &kernel : naive.kernels)
    printKernels(kernel, os << "baseline ");
}

static void printMachine(const Machine &machine, llvm::raw_ostream &os) {
  os << "machine: " << machine.name;
  if (machine.architecture.empty()) {
    os << formatv(", {0} thread{1}\n", machine.threads,
                  machine.threads == 1 ? "" : "s");
    return;
  }
  os << formatv(" ({0}), driver {1}", machine.architecture, machine.driver);
  if (machine.clockMHz)
    os << formatv(", {0} MHz", *machine.clockMHz);
  if (machine.memoryClockMHz)
    os << formatv(", memory {0} MHz", *machine.memoryClockMHz);
  if (machine.powerWatts)
    os << formatv(", {0:f0} W", *machine.powerWatts);
  os << "\n";
}

void flash::run::printBench(const Report &report, llvm::raw_ostream &os) {
  const Timing &bench = *report.bench;
  os << formatv("bench: {0:f3} ms median  {1:f3} ms min  +-{2:f1}% of {3} runs",
                milliseconds(bench.median), milliseconds(bench.min),
                bench.spread * 100, bench.runs);
  if (report.flops)
    os << formatv("  {0:f4} TFLOP/s", *report.flops / bench.median * 1e-12);
  os << formatv("  {0:f2} GB/s\n", report.getTraffic() / bench.median * 1e-9);
  printRoofline(report, os);
  os << formatv("memory: {0} beyond {1} of inputs and results",
                formatBytes(bench.peakBytes), formatBytes(report.getTraffic()));
  if (report.scoreBytes && !report.baseline)
    os << formatv("; the scores alone would be {0}",
                  formatBytes(*report.scoreBytes));
  os << "\n";
  if (report.baseline)
    printBaseline(report, os);
  double total = 0;
  for (auto [name, seconds] : report.compileTimes)
    total += seconds;
  os << formatv("compile: {0:f1} ms =", milliseconds(total));
  llvm::interleave(
      report.compileTimes, os,
      [&](auto stage) {
        os << formatv(" {0} {1:f1}", stage.first, milliseconds(stage.second));
      },
      " +");
  os << "\n";
  printKernels(report.machine.kernels, os);
  printMachine(report.machine, os);
}
