//===- CrashGuard.cpp - Faults of compiled programs -----------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Run/CrashGuard.h"

#include <csignal>
#include <cstring>
#include <unistd.h>

static constexpr int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
static struct sigaction previous[std::size(signals)];
static stack_t previousStack;
// An exhausted stack leaves no room for the handler.
static char handlerStack[64 << 10];

extern "C" {
static void handleFault(int signal) {
  const char *message =
      signal == SIGFPE
          ? "flash-run: error: the program divided an integer by zero\n"
      : signal == SIGILL
          ? "flash-run: error: the program executed an illegal instruction\n"
          : "flash-run: error: the program accessed memory out of range of its "
            "tensors, or ran out of stack; --check names reads of score "
            "regions that are out of range\n";
  // Only functions that are safe in a signal handler.
  [[maybe_unused]] ssize_t written =
      write(STDERR_FILENO, message, strlen(message));
  _exit(1);
}
} // extern "C"

flash::run::CrashGuard::CrashGuard() {
  stack_t stack = {};
  stack.ss_sp = handlerStack;
  stack.ss_size = sizeof(handlerStack);
  sigaltstack(&stack, &previousStack);
  struct sigaction action = {};
  action.sa_handler = handleFault;
  action.sa_flags = SA_ONSTACK;
  for (size_t i = 0; i < std::size(signals); ++i)
    sigaction(signals[i], &action, &previous[i]);
}

flash::run::CrashGuard::~CrashGuard() {
  for (size_t i = 0; i < std::size(signals); ++i)
    sigaction(signals[i], &previous[i], nullptr);
  sigaltstack(&previousStack, nullptr);
}
