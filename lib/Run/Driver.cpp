//===- Driver.cpp - All that flash-run does -------------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Run/Driver.h"

#include "flash/Run/CrashGuard.h"
#include "flash/Run/Inputs.h"
#include "flash/Run/Npy.h"
#include "flash/Run/OutputFile.h"
#include "flash/Run/Stopwatch.h"
#include "flash/Run/Work.h"
#include "flash/Runtime/Cpu.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>
#include <set>

using namespace flash::run;
using llvm::createStringError;
using llvm::formatv;

/// Everything about the files to write that can be wrong before the run.
static llvm::Error checkOutputs(mlir::func::FuncOp entry,
                                const Options &options) {
  if (!options.outputs.empty() &&
      options.outputs.size() != entry.getNumResults())
    return createStringError(formatv(
        "--outputs names {0} files, but @{1} has {2} results",
        options.outputs.size(), entry.getSymName(), entry.getNumResults()));
  std::vector<std::string> paths = options.outputs;
  for (const std::string &path : {options.json, options.output, options.header})
    if (!path.empty())
      paths.push_back(path);
  std::set<std::string> seen;
  for (const std::string &path : paths) {
    if (!seen.insert(path).second && path != "/dev/null")
      return createStringError(
          formatv("the output file '{0}' is named twice", path));
    if (llvm::Error error = checkWritable(path))
      return error;
  }
  return llvm::Error::success();
}

/// Whether what this run is known to need fits into memory.
static llvm::Error checkMemory(mlir::func::FuncOp entry,
                               llvm::ArrayRef<TensorSpec> inputs,
                               const Options &options) {
  auto available = getAvailableMemory();
  if (!available)
    return llvm::Error::success();
  // As floating-point numbers: sums of sizes may leave the range of integers.
  double needed = estimateResultBytes(entry, inputs), reference = 0;
  reference += 2 * needed;
  for (const TensorSpec &input : inputs) {
    double bytes = input.getNumBytes();
    needed += bytes * (options.check && options.bench ? 2 : 1);
    reference += bytes * 8 / getSize(input.dtype);
  }
  if (options.check)
    needed += reference;
  if (needed <= *available)
    return llvm::Error::success();
  return createStringError(formatv(
      "out of memory: inputs, results{0} need {1:f1} GB, and {2:f1} GB are "
      "available; choose smaller sizes{3}",
      options.check ? " and the fp64 reference" : "", needed * 1e-9,
      *available * 1e-9, options.check ? " or leave out --check" : ""));
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

/// Runs the kernel twice and the reference once, and compares.
static llvm::Expected<Report::Check>
checkKernel(Session &session, Executor &executor, const Program &program,
            const Options &options, llvm::ArrayRef<HostTensor> inputs,
            std::vector<HostTensor> &results) {
  Report::Check check;
  executor.setChecked(true);
  for (bool again : {false, true}) {
    auto run = executor.run(inputs);
    if (!run)
      return run.takeError();
    for (size_t i = 0; again && i < run->size(); ++i)
      check.repeatable &= (*run)[i].getBytes() == results[i].getBytes();
    results = std::move(*run);
  }
  executor.setChecked(false);

  auto reference = session.compile(program, Variant::Reference, options);
  if (!reference)
    return reference.takeError();
  auto promoted = copyInputs(inputs, /*promote=*/true, Placement::Aligned);
  if (!promoted)
    return promoted.takeError();
  auto expected = (*reference)->getExecutor().run(*promoted);
  if (!expected)
    return createStringError(formatv("the fp64 reference failed: {0}",
                                     llvm::toString(expected.takeError())));
  double magnitude = getScoreMagnitude(
      llvm::ArrayRef(*expected).drop_front(results.size()), inputs);
  for (auto [result, wanted] : llvm::zip_first(results, *expected)) {
    if (result.getSpec().shape != wanted.getSpec().shape)
      return createStringError(
          formatv("a result has shape {0}, but the fp64 reference has {1}",
                  result.getSpec().str(), wanted.getSpec().str()));
    check.results.push_back(compare(
        result, wanted, Tolerance::get(result.getSpec().dtype, magnitude)));
  }
  return check;
}

static llvm::Error timeBaseline(Session &session, const Program &program,
                                const Options &options,
                                llvm::ArrayRef<HostTensor> inputs,
                                Report &report) {
  auto naive = session.compile(program, Variant::Naive, options);
  if (!naive)
    return naive.takeError();
  auto timing = (*naive)->getExecutor().benchmark(inputs);
  if (timing) {
    report.baseline = *timing;
    return llvm::Error::success();
  }
  // That the naive program does not fit is a finding, not a failure.
  std::string message = llvm::toString(timing.takeError());
  if (!llvm::StringRef(message).starts_with("out of memory"))
    return createStringError("the naive program failed: " + message);
  report.baselineSkipped = message;
  return llvm::Error::success();
}

/// What is compiled only: printed, or written for other programs.
static llvm::Error compileOnly(const Program &program, const Options &options) {
  mlir::func::FuncOp entry = program.entry;
  if (!options.isGpu()) {
    // `auto` shows the stages of the CPU.
    return Kernel::compile(*program.module, entry.getSymName(), Variant::Flash,
                           options)
        .takeError();
  }
  auto compiled = GpuProgram::compile(*program.module, entry.getSymName(),
                                      options.target, options);
  if (!compiled)
    return compiled.takeError();
  if (options.output.empty())
    return llvm::Error::success();
  return writeAheadOfTime(*compiled, options);
}

llvm::Expected<bool> flash::run::runProgram(Session &session,
                                            const Options &options,
                                            Report &report) {
  llvm::raw_ostream &os = session.getOutput();
  Stopwatch watch;
  auto program = loadProgram(session.getContext(), options);
  if (!program)
    return program.takeError();
  double parseTime = watch.lap();
  mlir::func::FuncOp entry = program->entry;
  if (llvm::Error error = checkOutputs(entry, options))
    return error;
  if ((options.check || options.baseline) && isBlockLevel(*program->module))
    return createStringError(formatv(
        "--{0} needs a program that says what to compute, and this one is at "
        "level 2 (it has a gpu.launch_func)",
        options.check ? "check" : "baseline"));
  if (!options.runs() || !options.output.empty())
    if (llvm::Error error = compileOnly(*program, options))
      return error;
  if (!options.runs())
    return true;

  auto specs = getInputSpecs(entry, options);
  if (!specs)
    return specs.takeError();
  if (llvm::Error error = checkMemory(entry, *specs, options))
    return error;
  auto made =
      makeInputs(entry, *specs, options,
                 options.check ? Placement::Guarded : Placement::Aligned);
  if (!made)
    return made.takeError();
  std::vector<HostTensor> inputs = std::move(*made);

  auto kernel = session.compile(*program, Variant::Flash, options);
  if (!kernel)
    return kernel.takeError();
  Executor &executor = (*kernel)->getExecutor();

  report.file = options.file;
  report.function = entry.getSymName().str();
  report.target = (*kernel)->getTarget().str();
  report.seed = options.seed;
  report.compileTimes = {{"parse", parseTime}};
  report.compileTimes.append((*kernel)->getTimes());
  runtime::setThreadCount(options.threads);
  // Fail with a message rather than at the hands of the kernel.
  if (auto available = getAvailableMemory())
    runtime::setMemoryLimit(*available);
  CrashGuard guard;

  std::vector<HostTensor> results;
  if (options.check) {
    auto check =
        checkKernel(session, executor, *program, options, inputs, results);
    if (!check)
      return check.takeError();
    report.check = std::move(*check);
  } else {
    auto run = executor.run(inputs);
    if (!run)
      return run.takeError();
    results = std::move(*run);
  }
  report.machine = executor.getMachine();
  report.peakBytes = executor.getPeakBytes();
  if (options.countTiles)
    report.tiles = executor.getTileCounts();
  for (const HostTensor &input : inputs)
    report.inputs.push_back(input.getSpec());
  for (const HostTensor &result : results)
    report.results.push_back(result.getSpec());
  if (report.tiles)
    printTiles(report, os);
  bool ok = !report.check || report.check->isOk();
  if (report.check)
    printCheck(report, os);

  auto level0 = (*kernel)->getLevel0().lookupSymbol<mlir::func::FuncOp>(
      entry.getSymName());
  report.scoreBytes = countScoreBytes(level0, report.inputs);
  if (options.bench) {
    if (options.check) {
      auto aligned = copyInputs(inputs, /*promote=*/false, Placement::Aligned);
      if (!aligned)
        return aligned.takeError();
      inputs = std::move(*aligned);
    }
    report.flops = countFlops(level0, inputs);
    auto timing = executor.benchmark(inputs);
    if (!timing)
      return timing.takeError();
    report.bench = *timing;
    report.machine = executor.getMachine();
    if (options.baseline)
      if (llvm::Error error =
              timeBaseline(session, *program, options, inputs, report))
        return error;
    printBench(report, os);
  }

  if (ok)
    for (auto [path, result] : llvm::zip_first(options.outputs, results))
      if (llvm::Error error = writeNpy(path, result))
        return error;
  // A failed check is what the report is for.
  if (!options.json.empty())
    if (llvm::Error error = writeFile(options.json, [&](llvm::raw_ostream &os) {
          llvm::json::OStream(os, 2).value(toJson(report));
          os << "\n";
        }))
      return error;
  return ok;
}
