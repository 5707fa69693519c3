//===- Expect.h - What a unit test expects ----------------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_UNITTESTS_EXPECT_H
#define FLASH_UNITTESTS_EXPECT_H

#include "llvm/ADT/Twine.h"
#include "llvm/Support/raw_ostream.h"

/// Of a test, whose status says whether there are any.
static int numFailures = 0;

/// Prints what does not hold.
static void expect(bool holds, const llvm::Twine &what) {
  if (holds)
    return;
  llvm::errs() << what << "\n";
  ++numFailures;
}

#endif // FLASH_UNITTESTS_EXPECT_H
