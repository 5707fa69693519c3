//===- Targets.cpp - The list of the described GPUs -----------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Run/Targets.h"

#include "flash/Machine/Machine.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FormatVariadic.h"

void flash::run::printTargets(llvm::raw_ostream &os) {
  constexpr auto row = "{0,-8} {1,4} {2,8} {3,-10} {4,-6} {5,5} {6,-6} {7}\n";
  os << llvm::formatv(row, "target", "SMs", "shared", "products", "copies",
                      "CUDA", "tried", "cards");
  for (const Machine &gpu : getGpus()) {
    llvm::StringMap<std::string> values;
    gpu.forEach([&](llvm::StringRef key, llvm::StringRef value) {
      values[key] = value.str();
    });
    os << llvm::formatv(
        row, gpu.name, gpu.multiprocessors,
        llvm::formatv("{0} KiB", gpu.sharedBytesPerBlock / 1024).str(),
        values["products"], values["copies"],
        llvm::formatv("{0}.{1}", gpu.cudaVersion / 10, gpu.cudaVersion % 10)
            .str(),
        gpu.wasTried ? "yes" : "no", gpu.cards);
  }
}
