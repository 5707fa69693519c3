//===- Tune.cpp - Which schedule is fastest -------------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Run/Tune.h"
#include "flash/Run/InputSpecs.h"

#include "TuneCandidates.h"
#include "flash/Compile/Stopwatch.h"
#include "flash/Dialect/Flash/Transforms/GetProblem.h"
#include "flash/Run/Check.h"
#include "flash/Run/CrashGuard.h"
#include "flash/Run/Inputs.h"
#include "flash/Run/Work.h"
#include "flash/Runtime/Cpu.h"
#include "flash/Schedule/Models.h"
#include "flash/Schedule/TuningTable.h"
#include "flash/Support/OutputFile.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace flash::run;
namespace cuda = flash::cuda;
namespace runtime = flash::runtime;
using llvm::createStringError;
using llvm::formatv;

namespace {

// Candidates that are slower than the best so far by more than this are given
// up after a few runs.
constexpr double hopelessFactor = 1.1;
// How many of the fastest are varied, and compared with the model's in the end.
constexpr size_t numVaried = 3, numFinalists = 3;
constexpr unsigned finalRounds = 5;
// A gain that may be noise is none.
constexpr double leastGain = 0.01;
// Operations of a program that the fp64 reference computes in some seconds.
constexpr double referenceFlops = 5e10;

/// The search for one program.
class Search {
public:
  Search(Session &session, const Program &program, const Options &options,
         llvm::ArrayRef<HostTensor> inputs)
      : session(session), program(program), options(options), inputs(inputs) {}

  /// Compiles the program as the model has it, which says where it runs.
  llvm::Error begin();
  /// Leaves the winner in `getWinner`.
  llvm::Error run(Report::Tuned &tuned);
  /// Compares the winner with the reference, or, where that takes too long,
  /// with the model's schedule.
  llvm::Expected<Report::Check> check();
  /// What the winner returned then.
  llvm::ArrayRef<TensorSpec> getResults() const { return results; }

  const Candidate &getWinner() const { return candidates[winner]; }
  Kernel &getKernel() { return *kernel; }
  const flash::Problem &getProblem() const { return problem; }
  const flash::Machine &getMachine() const { return machine; }

private:
  llvm::Error time(llvm::MutableArrayRef<Candidate> batch);
  llvm::Error timeAll(llvm::ArrayRef<flash::Schedule> schedules);
  /// Indices of the fastest candidates.
  SmallVector<size_t> getFastest(size_t count) const;
  llvm::Error compare(Report::Tuned &tuned);
  void showProgress(size_t left);

  Session &session;
  const Program &program;
  const Options &options;
  llvm::ArrayRef<HostTensor> inputs;

  std::shared_ptr<Kernel> kernel;
  /// Null where the CPU runs the program.
  Gpu *gpu = nullptr;
  std::optional<CandidateCompiler> compiler;
  flash::Problem problem;
  /// What is proposed for gradients.
  flash::Schedule ofGradients;
  flash::Machine machine;
  /// The first is the model's.
  std::vector<Candidate> candidates;
  size_t winner = 0;
  std::vector<TensorSpec> results;
  Stopwatch watch;
  /// Seconds since the search began, and at the last line about it.
  double elapsed = 0, shown = 0;
};

} // namespace

llvm::Error Search::begin() {
  auto compiled = session.compile(program, Variant::Flash, options);
  if (!compiled)
    return compiled.takeError();
  kernel = *compiled;
  Target target = kernel->getTarget();
  machine = target.getMachine();
  SmallVector<flash::AttentionOpInterface> attentions;
  kernel->getLevel0().walk(
      [&](flash::AttentionOpInterface op) { attentions.push_back(op); });
  if (attentions.size() != 1)
    return createStringError(
        formatv("--tune: the program has {0} attentions, or gradients of "
                "some, and a schedule is looked for where there is one",
                attentions.size()));
  problem = flash::getProblem(attentions.front());
  if (target == Target::Gpu) {
    auto opened = session.getGpu(options);
    if (!opened)
      return opened.takeError();
    gpu = *opened;
  }
  if (options.multiprocessors)
    machine.multiprocessors = options.multiprocessors;
  else if (gpu)
    machine.multiprocessors = gpu->device.getInfo().multiprocessors;
  if (auto grad =
          dyn_cast<flash::AttentionGradOp>(attentions.front().getOperation())) {
    if (std::string fault =
            proposeSchedule(grad, problem, machine, ofGradients);
        !fault.empty())
      return createStringError("--tune: " + fault);
  } else {
    problem.packedHeads =
        choosePackedHeads(problem, machine, flash::Schedule());
  }
  compiler.emplace(session, program, target, options, gpu);
  return llvm::Error::success();
}

void Search::showProgress(size_t left) {
  bool isTerminal = llvm::errs().is_displayed();
  constexpr double secondsBetweenLines = 5;
  if (!isTerminal && left && elapsed - shown < secondsBetweenLines)
    return;
  shown = elapsed;
  const Candidate &best = candidates[getFastest(1).front()];
  size_t failed = llvm::count_if(
      candidates, [](const Candidate &c) { return !c.message.empty(); });
  llvm::errs() << (isTerminal ? "\r\x1b[K" : "")
               << formatv("tune: {0:f0} s, {1} timed, {2} failed, {3} to go, "
                          "model {4:f4} ms, best {5:f4} ms with {6}",
                          elapsed, candidates.size() - failed, failed, left,
                          candidates.front().seconds * 1e3, best.seconds * 1e3,
                          best.schedule.str())
               << (isTerminal ? "" : "\n");
}

llvm::Error Search::time(llvm::MutableArrayRef<Candidate> batch) {
  compiler->compile(batch);
  for (Candidate &candidate : batch) {
    candidates.push_back(std::move(candidate));
    Candidate &added = candidates.back();
    if (!added.executor)
      continue;
    Effort effort;
    effort.warmUpRuns = 2;
    effort.seconds = 0.05;
    effort.hopeless =
        hopelessFactor * candidates[getFastest(1).front()].seconds;
    auto timing = added.executor->benchmark(inputs, effort);
    if (!timing) {
      added.message = llvm::toString(timing.takeError());
      if (cuda::isAnyDeviceLost())
        return createStringError(formatv("--tune: with --schedule={0}: {1}",
                                         added.schedule.str(), added.message));
      // What a device cannot launch is out of the race.
      added.executor.reset();
      continue;
    }
    added.seconds = timing->median;
    // Device memory is for those that may win; the model's is compared last.
    if (candidates.size() > 1 && added.seconds > effort.hopeless)
      added.executor.reset();
  }
  return llvm::Error::success();
}

llvm::Error Search::timeAll(llvm::ArrayRef<flash::Schedule> schedules) {
  // The model's schedule, the first, is timed in any case.
  while (!schedules.empty() &&
         (candidates.empty() || elapsed < options.tuneSeconds)) {
    size_t count = std::min<size_t>(
        schedules.size(), candidates.empty() ? 1 : compiler->getWidth());
    std::vector<Candidate> batch(count);
    for (size_t i = 0; i < count; ++i)
      batch[i].schedule = schedules[i];
    schedules = schedules.drop_front(count);
    if (llvm::Error error = time(batch))
      return error;
    elapsed += watch.lap();
    const Candidate &model = candidates.front();
    if (!model.executor)
      return createStringError(
          formatv("--tune: the model's schedule, --schedule={0}, does not "
                  "run: {1}",
                  model.schedule.str(), model.message));
    showProgress(schedules.size());
  }
  return llvm::Error::success();
}

SmallVector<size_t> Search::getFastest(size_t count) const {
  auto order = llvm::to_vector(llvm::seq<size_t>(0, candidates.size()));
  // The first of equals comes first.
  llvm::sort(order, [&](size_t a, size_t b) {
    return std::pair(candidates[a].seconds, a) <
           std::pair(candidates[b].seconds, b);
  });
  order.resize(std::min(count, order.size()));
  return order;
}

/// The median, and half of the distance between the quartiles relative to it.
static std::pair<double, double> summarize(std::vector<double> values) {
  llvm::sort(values);
  size_t n = values.size();
  double median = (values[(n - 1) / 2] + values[n / 2]) / 2;
  return {median, (values[n - 1 - n / 4] - values[n / 4]) / 2 / median};
}

llvm::Error Search::compare(Report::Tuned &tuned) {
  SmallVector<size_t> finalists = getFastest(numFinalists);
  if (!llvm::is_contained(finalists, 0))
    finalists.push_back(0);
  llvm::erase_if(finalists, [&](size_t i) { return !candidates[i].executor; });
  // Interleaved, so that a device that slows down does so for all of them.
  std::vector<std::vector<double>> medians(finalists.size());
  for (unsigned round = 0; round < finalRounds; ++round)
    for (auto [i, index] : llvm::enumerate(finalists)) {
      Effort effort;
      effort.warmUpRuns = 2;
      effort.seconds = 0.05;
      auto timing = candidates[index].executor->benchmark(inputs, effort);
      if (!timing)
        return timing.takeError();
      medians[i].push_back(timing->median);
    }
  auto [model, modelSpread] =
      summarize(medians[llvm::find(finalists, 0) - finalists.begin()]);
  tuned.defaultMedian = tuned.median = model;
  for (auto [i, index] : llvm::enumerate(finalists)) {
    auto [median, spread] = summarize(medians[i]);
    double noise = std::max({leastGain, modelSpread, spread});
    if (median < tuned.median && median < (1 - noise) * model) {
      tuned.median = median;
      winner = index;
    }
  }
  return llvm::Error::success();
}

llvm::Error Search::run(Report::Tuned &tuned) {
  watch.lap();
  if (gpu)
    gpu->residentArguments =
        std::make_shared<std::vector<cuda::DeviceBuffer>>();
  llvm::scope_exit reset([&] {
    if (gpu)
      gpu->residentArguments.reset();
  });
  std::vector<flash::Schedule> schedules = listSchedules(problem, machine);
  if (problem.isGradient) {
    llvm::erase(schedules, ofGradients);
    schedules.insert(schedules.begin(), ofGradients);
  }
  if (llvm::Error error = timeAll(schedules))
    return error;
  std::vector<flash::Schedule> variations;
  for (size_t index : getFastest(numVaried))
    for (const flash::Schedule &variation :
         listVariations(problem, machine, candidates[index].schedule))
      if (!llvm::is_contained(variations, variation) &&
          llvm::none_of(candidates, [&](const Candidate &known) {
            return known.schedule == variation;
          }))
        variations.push_back(variation);
  if (llvm::Error error = timeAll(variations))
    return error;
  if (llvm::Error error = compare(tuned))
    return error;
  if (llvm::errs().is_displayed())
    llvm::errs() << "\n";
  elapsed += watch.lap();
  tuned.seconds = elapsed;
  tuned.schedule = getWinner().schedule.str();
  tuned.defaultSchedule = candidates.front().schedule.str();
  tuned.tried = candidates.size();
  for (const Candidate &candidate : candidates) {
    if (candidate.message.empty())
      continue;
    if (++tuned.failed == 1)
      tuned.failure = formatv("--schedule={0}: {1}", candidate.schedule.str(),
                              StringRef(candidate.message).split('\n').first);
  }
  return llvm::Error::success();
}

llvm::Expected<Report::Check> Search::check() {
  auto runs = runChecked(*getWinner().executor, inputs);
  if (!runs)
    return runs.takeError();
  for (const HostTensor &result : runs->results)
    results.push_back(result.getSpec());
  Expectation expected;
  auto level0 = kernel->getLevel0().lookupSymbol<func::FuncOp>(
      func::FuncOp(program.entry).getSymName());
  std::optional<double> flops = countFlops(level0, inputs);
  if (flops && *flops > referenceFlops) {
    auto model = candidates.front().executor->run(inputs);
    if (!model)
      return model.takeError();
    expected.results = std::move(*model);
  } else {
    auto reference =
        runReference(session, program, options, inputs, runs->results.size());
    if (!reference)
      return reference.takeError();
    expected = std::move(*reference);
  }
  expected.precision = getPrecision(*kernel);
  return checkRuns(*runs, expected, Variant::Flash, inputs);
}

/// Reads the file if there is one, and adds the winner.
static llvm::Error store(const flash::TuningEntry &entry, StringRef path) {
  flash::TuningTable table;
  if (llvm::sys::fs::exists(path)) {
    auto loaded = flash::TuningTable::load(path);
    if (!loaded)
      return loaded.takeError();
    table = std::move(*loaded);
  }
  table.insert(entry);
  return flash::writeFile(path,
                          [&](llvm::raw_ostream &os) { table.print(os); });
}

static void print(const Report::Tuned &tuned, llvm::raw_ostream &os) {
  os << formatv("tuned: {0:f4} ms with --schedule={1}\n", tuned.median * 1e3,
                tuned.schedule);
  os << formatv("model: {0:f4} ms with --schedule={1}\n",
                tuned.defaultMedian * 1e3, tuned.defaultSchedule);
  os << formatv("gain: {0:f3} times as fast as the model's, after {1} "
                "schedules in {2:f1} s",
                tuned.defaultMedian / tuned.median, tuned.tried, tuned.seconds);
  if (tuned.failed)
    os << formatv("; {0} of them do not run, the first with {1}", tuned.failed,
                  tuned.failure);
  os << "\n";
}

llvm::Expected<bool> flash::run::tuneProgram(Session &session,
                                             const Program &program,
                                             const Options &options,
                                             Report &report) {
  llvm::raw_ostream &os = session.getOutput();
  InlinedProgram inlined(program);
  func::FuncOp entry = inlined.entry;
  // Before minutes of work.
  if (!options.tuningFile.empty() &&
      llvm::sys::fs::exists(options.tuningFile)) {
    auto table = flash::TuningTable::load(options.tuningFile);
    if (!table)
      return table.takeError();
  }
  auto specs = getInputSpecs(entry, options);
  if (!specs)
    return specs.takeError();
  auto inputs = makeInputs(entry, *specs, options, Placement::Guarded);
  if (!inputs)
    return inputs.takeError();
  runtime::setThreadCount(options.threads);
  if (auto available = getAvailableMemory())
    runtime::setMemoryLimit(*available);
  CrashGuard guard;

  Search search(session, program, options, *inputs);
  if (llvm::Error error = search.begin())
    return std::move(error);
  Report::Tuned tuned;
  if (llvm::Error error = search.run(tuned))
    return std::move(error);
  auto check = search.check();
  if (!check)
    return check.takeError();

  Executor &executor = *search.getWinner().executor;
  report.file = options.file;
  report.function = entry.getSymName().str();
  report.target = search.getKernel().getTarget().getName();
  report.seed = options.seed;
  report.compileTimes = search.getKernel().getTimes();
  report.machine = executor.getMachine();
  report.peakBytes = executor.getPeakBytes();
  for (const HostTensor &input : *inputs)
    report.inputs.push_back(input.getSpec());
  llvm::append_range(report.results, search.getResults());
  report.check = std::move(*check);
  report.tuned = tuned;
  print(tuned, os);
  printCheck(report, os);
  if (!report.check->isOk())
    return false;
  if (!options.tuningFile.empty()) {
    flash::TuningEntry best;
    std::string device = options.device;
    if (device.empty())
      device = search.getKernel().getTarget() == Target::Emulate
                   ? "emulation"
                   : report.machine.name;
    best.key =
        flash::TuningKey::get(search.getProblem(), search.getMachine(), device);
    best.schedule = search.getWinner().schedule;
    best.seconds = tuned.median;
    best.defaultSeconds = tuned.defaultMedian;
    if (llvm::Error error = store(best, options.tuningFile))
      return std::move(error);
  }
  if (!options.json.empty())
    if (llvm::Error error =
            flash::writeFile(options.json, [&](llvm::raw_ostream &os) {
              llvm::json::OStream(os, 2).value(toJson(report));
              os << "\n";
            }))
      return std::move(error);
  return true;
}
