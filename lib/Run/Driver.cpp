//===- Driver.cpp - All that flash-run does -------------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Run/Driver.h"
#include "flash/Compile/AheadOfTime.h"
#include "flash/Run/InputSpecs.h"

#include "flash/Compile/Stopwatch.h"
#include "flash/Run/Check.h"
#include "flash/Run/CrashGuard.h"
#include "flash/Run/Events.h"
#include "flash/Run/Inputs.h"
#include "flash/Run/Npy.h"
#include "flash/Run/Tune.h"
#include "flash/Run/Work.h"
#include "flash/Runtime/Cpu.h"
#include "flash/Support/OutputFile.h"
#include "llvm/Support/FormatVariadic.h"
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
  for (const std::string &path :
       {options.json, options.events, options.output, options.header})
    if (!path.empty())
      paths.push_back(path);
  std::set<std::string> seen;
  for (const std::string &path : paths) {
    if (!seen.insert(path).second && path != "/dev/null")
      return createStringError(
          formatv("the output file '{0}' is named twice", path));
    if (llvm::Error error = flash::checkWritable(path))
      return error;
  }
  return llvm::Error::success();
}

/// Which options a program that is at level 2 has.
static llvm::Error checkLevel(mlir::ModuleOp program, const Options &options) {
  if (!isBlockLevel(program))
    return llvm::Error::success();
  if (options.check || options.baseline)
    return createStringError(formatv(
        "--{0} needs a program that says what to compute, and this one is at "
        "level 2 (it has a gpu.launch_func)",
        options.check ? "check" : "baseline"));
  if (!options.schedule.isEmpty())
    return createStringError("--schedule: the program is at level 2 (it has a "
                             "gpu.launch_func), where the tiles are cut "
                             "already");
  return llvm::Error::success();
}

/// Whether what this run is known to need fits into memory.
static llvm::Error checkMemory(mlir::func::FuncOp entry,
                               llvm::ArrayRef<TensorSpec> inputs,
                               const Options &options) {
  auto available = getAvailableMemory();
  if (!available)
    return llvm::Error::success();
  // Sums of sizes may leave the range of integers, and are floating-point.
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

static Effort getEffort(const Options &options) {
  Effort effort;
  effort.seconds = options.benchSeconds;
  return effort;
}

/// Whether the batches of an attention have lengths of their own.
static bool hasOwnLengths(mlir::func::FuncOp entry) {
  return entry
      .walk([](flash::AttentionOpInterface op) {
        return op.getQueryLengths() || op.getKeyLengths()
                   ? mlir::WalkResult::interrupt()
                   : mlir::WalkResult::advance();
      })
      .wasInterrupted();
}

/// Checks and times the naive program where the fused one ran.
static llvm::Expected<Report::Baseline>
runBaseline(Session &session, const Program &program, Target target,
            const Options &options, const Expectation *expected,
            llvm::ArrayRef<HostTensor> inputs) {
  Report::Baseline baseline;
  // Neither fault of the program nor of the run: there is no such kernel.
  if (target != Target::Cpu && hasOwnLengths(program.entry)) {
    baseline.skipped =
        "kernels of the naive program take no batches of different lengths "
        "(query_lengths, key_lengths, packed rows); its program for the CPU "
        "does (--target=cpu)";
    return baseline;
  }
  Options naiveOptions = options;
  naiveOptions.target = target;
  naiveOptions.dumps = 0;
  auto naive = session.compile(program, Variant::Naive, naiveOptions);
  if (!naive)
    return naive.takeError();
  Executor &executor = (*naive)->getExecutor();
  // A naive program that does not fit is a finding, not a failure.
  auto fail = [&](llvm::Error error) -> llvm::Expected<Report::Baseline> {
    std::string message = llvm::toString(std::move(error));
    if (!llvm::StringRef(message).starts_with("out of memory"))
      return createStringError("the naive program failed: " + message);
    baseline.skipped = message;
    return baseline;
  };
  if (expected) {
    auto runs = runChecked(executor, inputs);
    if (!runs)
      return fail(runs.takeError());
    auto check = checkRuns(*runs, *expected, Variant::Naive, inputs);
    if (!check)
      return fail(check.takeError());
    baseline.check = std::move(*check);
  }
  auto timing = executor.benchmark(inputs, getEffort(options));
  if (!timing)
    return fail(timing.takeError());
  baseline.timing = *timing;
  baseline.kernels = executor.getMachine().kernels;
  return baseline;
}

/// The functions to compile: the one that is chosen, or for -o all that others
/// may call.
static llvm::SmallVector<mlir::func::FuncOp>
getFunctions(const Program &program, const Options &options) {
  llvm::SmallVector<mlir::func::FuncOp> functions = {program.entry};
  if (options.output.empty() || options.runs() || !options.function.empty())
    return functions;
  for (auto function :
       mlir::ModuleOp(*program.module).getOps<mlir::func::FuncOp>())
    if (function.isPublic() && function != program.entry)
      functions.push_back(function);
  return functions;
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
  std::vector<GpuProgram> compiled;
  for (mlir::func::FuncOp function : getFunctions(program, options)) {
    auto next = GpuProgram::compile(*program.module, function.getSymName(),
                                    Variant::Flash, options);
    if (!next)
      return next.takeError();
    compiled.push_back(std::move(*next));
  }
  if (options.output.empty())
    return llvm::Error::success();
  const llvm::SourceMgr &sources = *program.sources;
  return writeAheadOfTime(
      compiled, sources.getMemoryBuffer(sources.getMainFileID())->getBuffer(),
      {options.output, options.header, options.file});
}

llvm::Expected<bool> flash::run::runTargets(Session &session, Options options) {
  bool isRight = true;
  for (const Target &target : options.targets) {
    options.target = target;
    if (options.targets.size() > 1)
      session.getOutput() << target.getName() << " ";
    Report report;
    auto ok = runProgram(session, options, report);
    if (!ok)
      return ok.takeError();
    isRight &= *ok;
  }
  return isRight;
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
  InlinedProgram inlined(*program);
  mlir::func::FuncOp entry = inlined.entry;
  if (llvm::Error error = checkOutputs(entry, options))
    return error;
  if (llvm::Error error = checkLevel(*program->module, options))
    return error;
  if (!options.runs() || !options.output.empty())
    if (llvm::Error error = compileOnly(*program, options))
      return error;
  if (!options.runs())
    return true;
  if (options.tune)
    return tuneProgram(session, *program, options, report);

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
  report.target = (*kernel)->getTarget().getName();
  report.seed = options.seed;
  report.compileTimes = {{"parse", parseTime}};
  report.compileTimes.append((*kernel)->getTimes());
  runtime::setThreadCount(options.threads);
  // Fail with a message rather than at the hands of the kernel.
  if (auto available = getAvailableMemory())
    runtime::setMemoryLimit(*available);
  CrashGuard guard;

  std::vector<HostTensor> results;
  std::shared_ptr<Expectation> expected;
  if (options.check) {
    // The reference comes first: it says which read is out of range, where the
    // program would fault or read something else.
    std::shared_ptr<Expectation> &known =
        session.lookUpReference(*program, options);
    if (!known) {
      auto reference = runReference(session, *program, options, inputs,
                                    entry.getNumResults());
      if (!reference)
        return reference.takeError();
      known = std::make_shared<Expectation>(std::move(*reference));
    }
    expected = known;
    auto runs = runChecked(executor, inputs);
    if (!runs)
      return runs.takeError();
    expected->precision = getPrecision(**kernel);
    auto check = checkRuns(*runs, *expected, Variant::Flash, inputs);
    if (!check)
      return check.takeError();
    report.check = std::move(*check);
    results = std::move(runs->results);
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

  auto chosen =
      assumeSizes((*kernel)->getLevel0(), entry.getSymName(), report.inputs);
  if (!chosen)
    return chosen.takeError();
  auto level0 = (*chosen)->lookupSymbol<mlir::func::FuncOp>(entry.getSymName());
  report.scoreBytes = countScoreBytes(level0, report.inputs);
  if (options.bench) {
    if (options.check) {
      auto aligned = copyInputs(inputs, /*promote=*/false, Placement::Aligned);
      if (!aligned)
        return aligned.takeError();
      inputs = std::move(*aligned);
    }
    report.flops = countFlops(level0, inputs);
    auto timing = executor.benchmark(inputs, getEffort(options));
    if (!timing)
      return timing.takeError();
    report.bench = *timing;
    report.machine = executor.getMachine();
    if (options.baseline) {
      auto baseline = runBaseline(session, *program, (*kernel)->getTarget(),
                                  options, expected.get(), inputs);
      if (!baseline)
        return baseline.takeError();
      report.baseline = std::move(*baseline);
      ok &= !report.baseline->check || report.baseline->check->isOk();
    }
    printBench(report, os);
  }

  if (ok)
    for (auto [path, result] : llvm::zip_first(options.outputs, results))
      if (llvm::Error error = writeNpy(path, result))
        return error;
  if (!options.events.empty())
    if (llvm::Error error = writeEvents(options.events, executor, inputs))
      return error;
  // A failed check is what the report is for.
  if (!options.json.empty())
    if (llvm::Error error =
            flash::writeFile(options.json, [&](llvm::raw_ostream &os) {
              llvm::json::OStream(os, 2).value(toJson(report));
              os << "\n";
            }))
      return error;
  return ok;
}
