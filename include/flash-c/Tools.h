/*===- Tools.h - The tools as a C function ------------------------*- C -*-===*\
|*                                                                            *|
|* Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.    *|
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception                    *|
|*                                                                            *|
|*===----------------------------------------------------------------------===*|
|*                                                                            *|
|* What the library of a wheel has beside Flash.h, so that a wheel holds LLVM *|
|* once for the package and for the tools. libflash itself has no tools.      *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

#ifndef FLASH_C_TOOLS_H
#define FLASH_C_TOOLS_H

#include "flash-c/Flash.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Runs a tool, "flash-opt" or "flash-run", with the arguments after its name,
    and returns its exit status; -1 if there is no such tool. The tool owns the
    process: it writes to its streams, handles its signals, and leaves state
    behind with which no other function of this library may be called. */
FLASH_CAPI int flashRunTool(const char *name, int count,
                            const char *const *arguments);

#ifdef __cplusplus
}
#endif

#endif /* FLASH_C_TOOLS_H */
