//===- Recovery.cpp - Where LLVM gives up ---------------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Machine.h"

#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/Regex.h"
#include "llvm/Support/raw_ostream.h"
#include <mutex>

static thread_local std::string *fatalMessage = nullptr;

/// LLVM ends the process after this, unless the jump out of here is taken.
static void handleFatalError(void *, const char *reason, bool) {
  if (!fatalMessage) {
    llvm::errs() << "LLVM ERROR: " << reason << "\n";
    return;
  }
  *fatalMessage = reason;
  llvm::CrashRecoveryContext::GetCurrent()->HandleExit(1);
}

llvm::Error flash::runRecoverably(llvm::function_ref<void()> function) {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::CrashRecoveryContext::Enable();
    llvm::install_fatal_error_handler(handleFatalError);
  });
  std::string message = "it crashed";
  llvm::CrashRecoveryContext context;
  bool finished = context.RunSafely([&] {
    fatalMessage = &message;
    function();
  });
  fatalMessage = nullptr;
  if (finished)
    return llvm::Error::success();
  // A message about a node names it by its address and goes on with operands.
  message.resize(std::min(message.find('\n'), message.size()));
  llvm::Regex address("0x[0-9a-f]+:? ?");
  while (address.match(message))
    message = address.sub("", message);
  return llvm::createStringError(llvm::StringRef(message).rtrim());
}
