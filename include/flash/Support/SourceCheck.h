//===- SourceCheck.h - Text that MLIR's parser does not survive -*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_SUPPORT_SOURCECHECK_H
#define FLASH_SUPPORT_SOURCECHECK_H

#include "mlir/Support/LLVM.h"
#include "llvm/Support/LogicalResult.h"
#include "llvm/Support/raw_ostream.h"

namespace llvm {
class SourceMgr;
} // namespace llvm

namespace flash {

/// Prints an error to `os` and fails on text on which the parser of LLVM 22.1
/// crashes: linalg.transpose, broadcast and reduce store the list after
/// `permutation` or `dimensions` even if it could not be parsed. Looks at the
/// main buffer.
llvm::LogicalResult checkSource(const llvm::SourceMgr &sources,
                                llvm::raw_ostream &os = llvm::errs());

} // namespace flash

#endif // FLASH_SUPPORT_SOURCECHECK_H
