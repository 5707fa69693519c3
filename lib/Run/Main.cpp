//===- Main.cpp - flash-run -----------------------------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Run/Main.h"

#include "flash/Pipelines/Registration.h"
#include "flash/Run/Driver.h"
#include "flash/Run/Suite.h"
#include "flash/Run/Targets.h"
#include "flash/Support/Version.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/WithColor.h"
#include <fcntl.h>
#include <unistd.h>

int flash::runMain(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  registerVersionPrinter();
  auto fail = [](llvm::Error error) {
    llvm::outs().flush();
    llvm::WithColor::error(llvm::errs(), "flash-run")
        << llvm::toString(std::move(error)) << "\n";
    return 1;
  };
  // A file that is opened later would be stdout, or stderr.
  if (fcntl(STDOUT_FILENO, F_GETFD) < 0)
    return fail(llvm::createStringError("stdout is closed"));
  if (std::error_code error =
          llvm::sys::Process::FixupStandardFileDescriptors())
    return fail(llvm::errorCodeToError(error));
  llvm::Expected<flash::run::Options> options =
      flash::run::parseOptions(argc, argv);
  if (!options)
    return fail(options.takeError());
  if (options->listsTargets) {
    flash::run::printTargets(llvm::outs());
    return 0;
  }

  mlir::DialectRegistry registry;
  flash::registerAllDialects(registry);
  // One function at a time is compiled, which threads cannot speed up.
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  flash::run::Session session(context, llvm::outs());
  llvm::Expected<bool> ok = options->suite.empty()
                                ? flash::run::runTargets(session, *options)
                                : flash::run::runSuite(session, *options);
  int status = ok ? !*ok : fail(ok.takeError());
  llvm::outs().flush();
  if (std::error_code error = llvm::outs().error()) {
    llvm::outs().clear_error();
    status = fail(
        llvm::createStringError("cannot write to stdout: " + error.message()));
  }
  // The driver would wait for a kernel that never ends.
  if (flash::cuda::isAnyDeviceLost())
    flash::cuda::exitProcess(status);
  return status;
}
