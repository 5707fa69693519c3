//===- TuneCandidates.cpp - Kernels that compete --------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TuneCandidates.h"

#include "mlir/Parser/Parser.h"
#include "llvm/Support/ThreadPool.h"
#include "llvm/Support/Threading.h"

using namespace mlir;
using namespace flash::run;

Options flash::run::getOptionsOf(const flash::Schedule &schedule,
                                 const Options &options) {
  Options result = options;
  result.schedule.queryTile = schedule.queryTile;
  result.schedule.keyTile = schedule.keyTile;
  if (options.target == Target::Cpu)
    return result;
  result.schedule.warps = schedule.warps;
  result.schedule.stages = schedule.stages;
  result.schedule.queryStages = schedule.queryStages;
  result.schedule.features = stringifyScheduleFeatures(schedule.features);
  result.schedule.units = schedule.units;
  // What is left out would be the model's choice.
  result.schedule.splits =
      schedule.units ? 0 : std::max<int64_t>(schedule.splits, 1);
  return result;
}

CandidateCompiler::CandidateCompiler(Session &session, const Program &program,
                                     Target target, const Options &options,
                                     Gpu *gpu)
    : session(session), program(program), options(options), gpu(gpu),
      width(gpu ? std::max(1u,
                           llvm::hardware_concurrency().compute_thread_count())
                : 1) {
  this->options.target = target;
  this->options.dumps = 0;
}

void CandidateCompiler::compile(llvm::MutableArrayRef<Candidate> candidates) {
  auto compileOne = [&](Candidate &candidate) {
    Options own = getOptionsOf(candidate.schedule, options);
    candidate.executor = gpu ? compileInThread(own) : compileHere(own);
  };
  if (width == 1 || candidates.size() == 1) {
    llvm::for_each(candidates, compileOne);
    return;
  }
  llvm::DefaultThreadPool pool(llvm::hardware_concurrency(width));
  for (Candidate &candidate : candidates)
    pool.async([&] { compileOne(candidate); });
  pool.wait();
}

std::shared_ptr<Executor>
CandidateCompiler::compileHere(const Options &candidate) {
  ScopedDiagnosticHandler silence(&session.getContext(),
                                  [](Diagnostic &) { return success(); });
  func::FuncOp entry = program.entry;
  auto kernel = Kernel::compile(*program.module, entry.getSymName(),
                                Variant::Flash, candidate);
  if (!kernel) {
    llvm::consumeError(kernel.takeError());
    return nullptr;
  }
  auto shared = std::make_shared<Kernel>(std::move(*kernel));
  return std::shared_ptr<Executor>(shared, &shared->getExecutor());
}

std::shared_ptr<Executor>
CandidateCompiler::compileInThread(const Options &candidate) {
  // A context of its own: that of the session is for one thread.
  MLIRContext context(session.getContext().getDialectRegistry(),
                      MLIRContext::Threading::DISABLED);
  ScopedDiagnosticHandler silence(&context,
                                  [](Diagnostic &) { return success(); });
  unsigned main = program.sources->getMainFileID();
  auto module = parseSourceString<ModuleOp>(
      program.sources->getMemoryBuffer(main)->getBuffer(), &context);
  if (!module)
    return nullptr;
  func::FuncOp entry = program.entry;
  auto compiled = GpuProgram::compile(
      *module, entry.getSymName(), Variant::Flash, options.target, candidate);
  if (!compiled) {
    llvm::consumeError(compiled.takeError());
    return nullptr;
  }
  auto executor = loadOnGpu(*compiled, *gpu, candidate);
  if (!executor) {
    llvm::consumeError(executor.takeError());
    return nullptr;
  }
  return std::move(*executor);
}
