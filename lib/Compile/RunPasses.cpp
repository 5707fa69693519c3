//===- RunPasses.cpp - Passes with messages -------------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Compile/RunPasses.h"

#include "flash/Dialect/Flash/IR/Flash.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/FormatVariadic.h"

#include <chrono>

using namespace mlir;
using llvm::createStringError;
using llvm::formatv;

namespace {

/// Remembers the pass that failed. Its diagnostic says why; this says where.
struct FailureRecorder : PassInstrumentation {
  FailureRecorder(std::string &name) : name(name) {}
  void runAfterPassFailed(Pass *pass, Operation *) override {
    if (name.empty())
      name = pass->getArgument().empty() ? pass->getName().str()
                                         : pass->getArgument().str();
  }
  std::string &name;
};

/// Whether the thread's compilation was interrupted.
thread_local bool wasInterrupted = false;

} // namespace

char flash::compile::InterruptedError::ID;

flash::compile::InterruptionScope::InterruptionScope(MLIRContext &context,
                                                     int (*isInterrupted)()) {
  using Clock = std::chrono::steady_clock;
  static constexpr auto interval = std::chrono::milliseconds(50);
  wasInterrupted = false;
  if (!isInterrupted)
    return;
  context.registerActionHandler([isInterrupted, next = Clock::now()](
                                    llvm::function_ref<void()> act,
                                    const tracing::Action &action) mutable {
    if (!wasInterrupted && Clock::now() >= next) {
      wasInterrupted = isInterrupted() != 0;
      next = Clock::now() + interval;
    }
    // What has begun ends.
    if (!wasInterrupted || !isa<PassExecutionAction>(action))
      act();
  });
}

flash::compile::InterruptionScope::~InterruptionScope() {
  wasInterrupted = false;
}

llvm::Error
flash::compile::runPasses(ModuleOp module,
                          llvm::function_ref<void(OpPassManager &)> build) {
  PassManager pm(module.getContext());
  std::string failed;
  pm.addInstrumentation(std::make_unique<FailureRecorder>(failed));
  // To verify after each pass took almost half of the time of the passes;
  // flash-opt still does.
  pm.enableVerifier(false);
  build(pm);
  bool succeededAll = succeeded(pm.run(module));
  if (wasInterrupted)
    return llvm::make_error<InterruptedError>();
  if (succeededAll && succeeded(verify(module)))
    return llvm::Error::success();
  return createStringError(
      formatv("the program cannot be compiled: the pass '{0}' failed",
              failed.empty() ? "verifier" : failed));
}

llvm::Error
flash::compile::runStages(ModuleOp module, ArrayRef<Stage> stages,
                          const CompileOptions &options,
                          llvm::function_ref<void(StringRef)> after) {
  for (const Stage &stage : stages) {
    llvm::Error error = runPasses(module, [&](OpPassManager &pm) {
      // What the entry does not call.
      if (&stage == stages.begin())
        pm.addPass(createSymbolDCEPass());
      stage.build(pm);
    });
    if (error)
      return error;
    for (Dump dumped : {Dump::L0, Dump::L1, Dump::L2, Dump::Linalg, Dump::L3})
      if (getName(dumped) == stage.name)
        dump(dumped, module, options);
    after(stage.name);
  }
  return llvm::Error::success();
}

void flash::compile::dump(Dump stage, ModuleOp module,
                          const CompileOptions &options) {
  if (!options.has(stage))
    return;
  std::string text;
  // Without aliases, a set with >= inside of a mask is not read again.
  llvm::raw_string_ostream stream(text);
  module.print(stream);
  stream << "\n";
  dump(stage, text, options);
}

void flash::compile::dump(Dump stage, StringRef text,
                          const CompileOptions &options) {
  if (!options.has(stage))
    return;
  if (options.takeDump)
    return options.takeDump(stage, text);
  // What starts a comment in the language of the stage.
  StringRef comment = stage == Dump::LLVM  ? ";"
                      : stage == Dump::Asm ? "#"
                                           : "//";
  llvm::outs() << comment << " flash-run: " << getName(stage) << "\n" << text;
}

OwningOpRef<ModuleOp> flash::compile::copyProgram(ModuleOp program,
                                                  StringRef entry) {
  OwningOpRef<ModuleOp> copy = program.clone();
  for (auto func : copy->getOps<func::FuncOp>())
    func.setVisibility(func.getSymName() == entry
                           ? SymbolTable::Visibility::Public
                           : SymbolTable::Visibility::Private);
  return copy;
}

void flash::compile::setSchedule(FrontOptions &front, StringRef target,
                                 ModuleOp module,
                                 const CompileOptions &options) {
  front.target = target.str();
  front.schedule = options.schedule.str();
  front.multiprocessors = options.multiprocessors;
  front.countTiles = options.countTiles;
  front.versions = options.versions;
  // A file that is being written to has no say yet.
  front.device = options.tune ? "" : options.device;
  front.tuningFile = options.tune ? "" : options.tuningFile;
  // What is looked for goes before what the program says.
  if (options.tune)
    module.walk(
        [](flash::AttentionOpInterface op) { op.removeScheduleAttr(); });
}
