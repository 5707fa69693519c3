//===- Suite.cpp - Many programs in one process ---------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Run/Suite.h"

#include "flash/Compile/Stopwatch.h"
#include "flash/Run/Driver.h"
#include "flash/Support/InputFile.h"
#include "flash/Support/OutputFile.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/LineIterator.h"
#include "llvm/Support/Path.h"

using namespace flash::run;
namespace cuda = flash::cuda;
using llvm::createStringError;
using llvm::formatv;
using llvm::StringRef;

namespace {

enum class Outcome { Ok, Wrong, Failed };

struct CaseResult {
  std::string line;
  Outcome outcome = Outcome::Ok;
  /// Why it failed.
  std::string message;
  Report report;
  double seconds = 0;
};

} // namespace

/// Paths in a suite start at its folder.
static void resolvePaths(Options &options, StringRef suite) {
  auto resolve = [&](std::string &path) {
    if (path == "-" || llvm::sys::path::is_absolute(path))
      return;
    llvm::SmallString<256> full(llvm::sys::path::parent_path(suite));
    llvm::sys::path::append(full, path);
    path = full.str().str();
  };
  resolve(options.file);
  for (auto *paths : {&options.inputs, &options.outputs})
    for (std::string &path : *paths)
      resolve(path);
}

/// A line of the suite, and its options.
struct SuiteCase {
  std::string line;
  /// None if the line is malformed, which the message explains.
  std::optional<Options> options;
  std::string message;
};

static SuiteCase makeCase(StringRef line, const Options &defaults) {
  SuiteCase result;
  result.line = line.str();
  auto options = parseCase(line, defaults);
  if (!options) {
    result.message = llvm::toString(options.takeError());
    return result;
  }
  resolvePaths(*options, defaults.suite);
  result.options = std::move(*options);
  return result;
}

static CaseResult runCase(Session &session, const SuiteCase &suiteCase) {
  CaseResult result;
  result.line = suiteCase.line;
  Stopwatch watch;
  auto ok = [&]() -> llvm::Expected<bool> {
    if (!suiteCase.options)
      return createStringError(suiteCase.message);
    return runProgram(session, *suiteCase.options, result.report);
  }();
  result.seconds = watch.lap();
  if (!ok) {
    result.outcome = Outcome::Failed;
    result.message = llvm::toString(ok.takeError());
  } else if (!*ok) {
    result.outcome = Outcome::Wrong;
    const auto &check = result.report.check;
    result.message = formatv("the {0}results disagree with the reference",
                             check && check->isOk() ? "naive program's " : "");
  }
  return result;
}

/// Compiles kernels for GPUs that the next cases need.
static void compileAhead(Session &session, llvm::ArrayRef<SuiteCase> cases) {
  std::vector<Options> runs;
  for (const SuiteCase &suiteCase : cases)
    if (suiteCase.options)
      runs.push_back(*suiteCase.options);
  session.compileAhead(runs);
}

static StringRef getText(Outcome outcome) {
  switch (outcome) {
  case Outcome::Ok:
    return "ok";
  case Outcome::Wrong:
    return "WRONG";
  case Outcome::Failed:
    return "FAILED";
  }
  llvm_unreachable("unknown outcome");
}

/// One line for a case: outcome, error beside its tolerance, time, rate, name.
static void printRow(const CaseResult &result, llvm::raw_ostream &os) {
  const Report &report = result.report;
  os << llvm::left_justify(getText(result.outcome), 7);
  if (report.check) {
    const Comparison &worst = report.check->results[report.check->getWorst()];
    os << llvm::format("%9.2e of %7.1e", worst.rms, worst.tolerance);
  } else {
    os.indent(20);
  }
  if (report.bench) {
    os << llvm::format(" %10.4f ms", report.bench->median * 1e3);
    double rate =
        report.flops ? *report.flops / report.bench->median * 1e-12 : 0;
    os << llvm::format(" %8.2f TFLOP/s", rate);
    if (auto speedUp = report.getSpeedUp())
      os << llvm::format(" speed-up %6.2f", *speedUp);
  }
  if (const auto &tuned = report.tuned)
    os << llvm::format(" tuned %10.4f ms, model %10.4f ms", tuned->median * 1e3,
                       tuned->defaultMedian * 1e3);
  os << "  " << result.line;
  // A message may have lines of its own, such as ptxas's log.
  if (!result.message.empty())
    os << "\n        " << StringRef(result.message).split('\n').first;
  os << "\n";
}

static size_t countOutcome(llvm::ArrayRef<CaseResult> results,
                           Outcome outcome) {
  return llvm::count_if(results, [&](const CaseResult &result) {
    return result.outcome == outcome;
  });
}

static void printTable(llvm::ArrayRef<CaseResult> results, size_t left,
                       llvm::raw_ostream &os) {
  os << "\noutcome error of tolerance"
     << "  case\n";
  for (const CaseResult &result : results)
    printRow(result, os);
  os << formatv("suite: {0} of {1} cases ok, {2} wrong, {3} failed",
                countOutcome(results, Outcome::Ok), results.size(),
                countOutcome(results, Outcome::Wrong),
                countOutcome(results, Outcome::Failed));
  if (left)
    os << formatv(", {0} not run", left);
  os << "\n";
}

static llvm::Error writeJson(llvm::ArrayRef<CaseResult> results,
                             StringRef path) {
  llvm::json::Array cases;
  for (const CaseResult &result : results) {
    llvm::json::Object object{{"case", result.line},
                              {"outcome", getText(result.outcome).lower()},
                              {"message", result.message},
                              {"seconds", result.seconds}};
    // A case that failed before it ran has nothing to report.
    if (!result.report.results.empty())
      object["report"] = toJson(result.report);
    cases.push_back(std::move(object));
  }
  return flash::writeFile(path, [&](llvm::raw_ostream &os) {
    llvm::json::OStream(os, 2).value(
        llvm::json::Object{{"cases", std::move(cases)}});
    os << "\n";
  });
}

llvm::Expected<bool> flash::run::runSuite(Session &session,
                                          const Options &options) {
  auto file = flash::readTextFile(options.suite);
  if (!file)
    return createStringError(formatv("cannot read the suite '{0}': {1}",
                                     options.suite,
                                     llvm::toString(file.takeError())));
  if (!options.json.empty())
    if (llvm::Error error = flash::checkWritable(options.json))
      return std::move(error);
  // A line would end there, and what follows be left out.
  StringRef text = (*file)->getBuffer();
  if (size_t nul = text.find('\0'); nul != StringRef::npos)
    return createStringError(
        formatv("the suite '{0}' is no text: there is a NUL in line {1}",
                options.suite, 1 + text.take_front(nul).count('\n')));
  std::vector<SuiteCase> cases;
  for (llvm::line_iterator line(**file, /*SkipBlanks=*/true, '#');
       !line.is_at_eof(); ++line)
    if (StringRef text = line->trim(); !text.empty())
      cases.push_back(makeCase(text, options));
  if (cases.empty())
    return createStringError(
        formatv("the suite '{0}' has no cases; write one in each line, a "
                "program and its flags",
                options.suite));

  if (options.firstCase > cases.size())
    return createStringError(formatv("--first={0}: the suite has {1} cases",
                                     options.firstCase, cases.size()));

  llvm::raw_ostream &os = session.getOutput();
  session.setOutput(llvm::nulls());
  std::vector<CaseResult> results;
  size_t next = options.firstCase - 1;
  // On a terminal the last line says how far the suite is.
  Stopwatch watch;
  double elapsed = 0;
  auto clearProgress = [] {
    if (llvm::errs().is_displayed())
      llvm::errs() << "\r\x1b[K";
  };
  auto showProgress = [&] {
    elapsed += watch.lap();
    if (llvm::errs().is_displayed())
      llvm::errs() << formatv(
          "\r\x1b[Ksuite: {0} of {1} cases, {2} wrong or "
          "failed, {3:f0} s",
          results.size(), cases.size() - options.firstCase + 1,
          results.size() - countOutcome(results, Outcome::Ok), elapsed);
  };
  showProgress();
  while (next < cases.size() && !cuda::isAnyDeviceLost()) {
    constexpr size_t casesAhead = 32;
    if (results.size() % casesAhead == 0)
      compileAhead(session,
                   llvm::ArrayRef(cases).slice(next).take_front(casesAhead));
    results.push_back(runCase(session, cases[next++]));
    const CaseResult &result = results.back();
    clearProgress();
    os << formatv("[{0}/{1}] {2} {3:f1} s  {4}\n", next, cases.size(),
                  getText(result.outcome), result.seconds, result.line);
    if (!result.message.empty())
      os << result.message << "\n";
    os.flush();
    showProgress();
  }
  clearProgress();
  session.setOutput(os);
  // A fault or a time-out costs the process its device.
  if (next < cases.size())
    os << formatv("the GPU is lost to this process; go on with --first={0}\n",
                  next + 1);
  printTable(results, cases.size() - next, os);
  if (!options.json.empty())
    if (llvm::Error error = writeJson(results, options.json))
      return std::move(error);
  return next == cases.size() &&
         countOutcome(results, Outcome::Ok) == results.size();
}
