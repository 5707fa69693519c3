//===- Session.cpp - What the runs of a process share ---------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Run/Session.h"

#include "flash/Run/Check.h"
#include "flash/Support/InputFile.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/ThreadPool.h"
#include "llvm/Support/Threading.h"
#include "llvm/Support/WithColor.h"

using namespace mlir;
using namespace flash::run;
namespace cuda = flash::cuda;
using llvm::createStringError;
using llvm::formatv;

// Compiled code is small, but each kernel also holds its program.
static constexpr size_t maxKernels = 128;

llvm::Expected<Gpu *> Session::getGpu(const Options &options) {
  if (!gpu && gpuFailure.empty()) {
    auto opened = Gpu::open(options);
    if (opened)
      gpu = std::move(*opened);
    else
      gpuFailure = llvm::toString(opened.takeError());
  }
  if (!gpu)
    return createStringError(gpuFailure);
  gpu->device.setTimeout(options.timeout);
  return gpu.get();
}

llvm::Expected<Kernel> Session::compileForGpu(const Program &program,
                                              Variant variant,
                                              const Options &options) {
  // The device comes first: compiling for one that is not there helps nobody.
  auto device = getGpu(options);
  if (!device)
    return device.takeError();
  func::FuncOp entry = program.entry;
  Options named = options;
  if (named.device.empty())
    named.device = (*device)->device.getInfo().name;
  if (!named.multiprocessors)
    named.multiprocessors = (*device)->device.getInfo().multiprocessors;
  auto compiled =
      GpuProgram::compile(*program.module, entry.getSymName(), variant, named);
  if (!compiled)
    return compiled.takeError();
  return Kernel::load(std::move(*compiled), **device, options);
}

/// Why `--target=auto` does not look for a GPU. Empty if it does.
static StringRef getReasonForCpu(const Options &options) {
  if (options.countTiles)
    return "--count-tiles counts there only";
  if (options.dumps)
    return "--dump shows the stages of the CPU target unless --target names "
           "another";
  return "";
}

/// The first option that the CPU cannot heed. Empty if there is none.
static StringRef getOptionForGpu(const Options &options) {
  if (options.ptxas)
    return "ptxas";
  if (options.layout != Layout::Dense)
    return "layout=bnhd";
  if (options.schedule.isOfBlocks())
    return "schedule with keys of block programs";
  return "";
}

llvm::Expected<Kernel> Session::compileForAny(const Program &program,
                                              const Options &options) {
  std::string reason = getReasonForCpu(options).str();
  if (reason.empty()) {
    // Diagnostics of a program that goes to the CPU would look like failures.
    std::vector<Diagnostic> warnings;
    auto repeatWarnings = llvm::scope_exit([&] {
      for (Diagnostic &warning : warnings)
        context.getDiagEngine().emit(std::move(warning));
    });
    ScopedDiagnosticHandler silence(&context, [&](Diagnostic &diagnostic) {
      if (diagnostic.getSeverity() == DiagnosticSeverity::Warning)
        warnings.push_back(std::move(diagnostic));
      else if (reason.empty())
        reason = diagnostic.str();
      return success();
    });
    auto device = getGpu(options);
    if (!device) {
      reason = llvm::toString(device.takeError());
    } else if (const flash::Machine *target =
                   (*device)->device.getInfo().getTarget()) {
      Options ofGpu = options;
      ofGpu.target = {Target::Gpu, target->name};
      auto kernel = compileForGpu(program, Variant::Flash, ofGpu);
      if (kernel)
        return kernel;
      // The CPU has its own.
      warnings.clear();
      std::string failure = llvm::toString(kernel.takeError());
      if (reason.empty())
        reason = failure;
    } else {
      reason = (*device)->device.getInfo().getReasonForNone();
    }
  }
  StringRef gpuOption = getOptionForGpu(options);
  if (!gpuOption.empty())
    return createStringError(
        formatv("--{0} needs a GPU, and the program does not run on one: {1}",
                gpuOption, reason));
  // Who chooses the CPU's stages or tiles knows why it runs there.
  if (getReasonForCpu(options).empty())
    llvm::WithColor::note(llvm::errs(), "flash-run")
        << "running on the CPU: " << reason << "\n";
  return compileForCpu(program, Variant::Flash, options);
}

llvm::Expected<Kernel> Session::compileForCpu(const Program &program,
                                              Variant variant,
                                              const Options &options) {
  func::FuncOp entry = program.entry;
  Options named = options;
  if (named.device.empty())
    named.device = getHostDevice(options.target);
  return Kernel::compile(*program.module, entry.getSymName(), variant, named);
}

/// All that a kernel is made from.
static std::string getKey(StringRef text, Variant variant,
                          const Options &options) {
  std::string key;
  llvm::raw_string_ostream os(key);
  os << static_cast<int>(variant) << ' ' << options.function;
  if (variant == Variant::Reference)
    os << ' ' << options.optimizeReference;
  else
    os << ' ' << options.target.getName() << ' ' << options.ptxas << ' '
       << static_cast<int>(options.layout);
  if (variant == Variant::Flash)
    os << ' ' << options.schedule.str() << ' ' << options.multiprocessors << ' '
       << options.countTiles << ' ' << options.tune << ' ' << options.versions
       << ' ' << options.device << '\n'
       << options.tuningFile;
  os << '\n' << text;
  return key;
}

static StringRef getText(const Program &program) {
  unsigned main = program.sources->getMainFileID();
  return program.sources->getMemoryBuffer(main)->getBuffer();
}

std::shared_ptr<Expectation> &Session::lookUpReference(const Program &program,
                                                       const Options &options) {
  std::string key;
  llvm::raw_string_ostream os(key);
  os << options.seed << ';';
  for (const auto &[number, shape] : options.shapes) {
    os << number << '=';
    llvm::interleave(shape, os, "x");
    os << ';';
  }
  for (const Fill &fill : options.fills) {
    os << fill.argument << (fill.scales ? "=x" : "=")
       << llvm::bit_cast<uint64_t>(fill.value);
    if (fill.row)
      os << '@' << *fill.row;
    os << ';';
  }
  os << getKey(getText(program), Variant::Reference, options);
  if (key != referenceKey || !options.inputs.empty())
    reference.reset();
  referenceKey = std::move(key);
  return reference;
}

llvm::Expected<std::shared_ptr<Kernel>>
Session::compile(const Program &program, Variant variant,
                 const Options &options) {
  std::string key = getKey(getText(program), variant, options);
  auto found = kernels.find(key);
  if (found != kernels.end() && !options.dumps)
    return found->second;

  auto kernel = [&]() -> llvm::Expected<Kernel> {
    if (variant == Variant::Reference || options.target == Target::Cpu ||
        options.target == Target::Emulate)
      return compileForCpu(program, variant, options);
    if (options.target == Target::Auto)
      return compileForAny(program, options);
    return compileForGpu(program, variant, options);
  }();
  if (!kernel)
    return kernel.takeError();
  if (kernels.size() >= maxKernels)
    kernels.clear();
  auto shared = std::make_shared<Kernel>(std::move(*kernel));
  kernels[key] = shared;
  return shared;
}

void Session::compileAhead(ArrayRef<Options> runs) {
  struct Job {
    std::unique_ptr<llvm::MemoryBuffer> text;
    Variant variant;
    const Options *options;
    std::shared_ptr<Kernel> kernel;
  };
  std::map<std::string, Job> jobs;
  Gpu *device = nullptr;
  for (const Options &run : runs) {
    if (!run.isGpu() || !run.runs() || run.tune || run.file == "-")
      continue;
    if (!device) {
      auto opened = getGpu(run);
      if (!opened)
        return llvm::consumeError(opened.takeError());
      device = *opened;
    }
    for (Variant variant : {Variant::Flash, Variant::Naive}) {
      if (variant == Variant::Naive && !run.baseline)
        continue;
      auto file = flash::readTextFile(run.file);
      if (!file) {
        // The case itself will say so.
        llvm::consumeError(file.takeError());
        continue;
      }
      std::string key = getKey((*file)->getBuffer(), variant, run);
      if (!kernels.count(key))
        jobs.try_emplace(key, Job{std::move(*file), variant, &run, nullptr});
    }
  }
  if (jobs.size() < 2)
    return;
  if (kernels.size() + jobs.size() > maxKernels)
    kernels.clear();
  llvm::DefaultThreadPool pool(llvm::hardware_concurrency());
  for (auto &[key, job] : jobs)
    pool.async([&, &job = job] {
      auto kernel = Kernel::compileApart(context.getDialectRegistry(),
                                         job.text->getBuffer(), job.variant,
                                         *device, *job.options);
      if (kernel)
        job.kernel = std::make_shared<Kernel>(std::move(*kernel));
      else
        llvm::consumeError(kernel.takeError());
    });
  pool.wait();
  for (auto &[key, job] : jobs)
    if (job.kernel)
      kernels[key] = job.kernel;
}
