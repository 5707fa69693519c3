//===- OptMain.h - flash-opt ------------------------------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_PIPELINES_OPTMAIN_H
#define FLASH_PIPELINES_OPTMAIN_H

namespace flash {

/// The main function of flash-opt, which runs passes on a file. Returns the
/// exit status, with which the process should end at once.
int optMain(int argc, char **argv);

} // namespace flash

#endif // FLASH_PIPELINES_OPTMAIN_H
