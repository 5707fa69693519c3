//===- Machine.cpp - The NVPTX code generator -----------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Machine.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include <mutex>

using llvm::createStringError;
using llvm::formatv;

namespace {

/// The first PTX version, times ten, that knows a chip. Source: the PTX ISA,
/// description of `.target`.
struct Chip {
  llvm::StringLiteral name;
  unsigned ptxVersion;
};

constexpr Chip chips[] = {
    {"sm_75", 63},   {"sm_80", 70},  {"sm_86", 71},   {"sm_87", 74},
    {"sm_89", 78},   {"sm_90", 78},  {"sm_90a", 80},  {"sm_100", 86},
    {"sm_100a", 86}, {"sm_103", 88}, {"sm_103a", 88}, {"sm_120", 87},
    {"sm_120a", 87},
};

/// The versions that LLVM 22 can write, as far as the chips above exist in
/// them.
constexpr unsigned ptxVersions[] = {70, 71, 72, 73, 74, 75, 76, 77, 78, 80,
                                    81, 82, 83, 84, 85, 86, 87, 88, 90};

/// What every driver of CUDA 12 reads.
constexpr unsigned defaultPtxVersion = 80;

/// The address space of shared memory.
constexpr unsigned sharedSpace = 3;

} // namespace

std::string flash::getNvptxChips() {
  return llvm::join(
      llvm::map_range(chips, [](const Chip &chip) { return chip.name; }), ", ");
}

void flash::initializeNvptx() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    llvm::StringRef flag = "nvptx-short-ptr";
    // Whether it took effect shows in the data layout, see below.
    if (llvm::cl::Option *option =
            llvm::cl::getRegisteredOptions().lookup(flag))
      option->addOccurrence(/*pos=*/0, flag, "true");
  });
}

llvm::Expected<unsigned> flash::getPtxVersion(const PtxOptions &options) {
  const auto *chip = llvm::find_if(
      chips, [&](const Chip &chip) { return chip.name == options.chip; });
  if (chip == std::end(chips))
    return createStringError(formatv("unknown chip '{0}'; the chips are {1}",
                                     options.chip, getNvptxChips()));
  unsigned version = options.ptxVersion
                         ? options.ptxVersion
                         : std::max(defaultPtxVersion, chip->ptxVersion);
  auto fail = [&](llvm::StringRef limit, unsigned bound) {
    return createStringError(
        formatv("PTX {0}.{1} is not possible for {2}; the {3} version is "
                "{4}.{5}",
                version / 10, version % 10, options.chip, limit, bound / 10,
                bound % 10));
  };
  if (version < chip->ptxVersion)
    return fail("first", chip->ptxVersion);
  const unsigned *known = llvm::lower_bound(ptxVersions, version);
  if (known == std::end(ptxVersions))
    return fail("last", *std::prev(known));
  if (*known != version)
    return fail("next", *known);
  return version;
}

llvm::Expected<std::unique_ptr<llvm::TargetMachine>>
flash::createNvptxMachine(llvm::StringRef chip, unsigned ptxVersion) {
  initializeNvptx();
  llvm::Triple triple("nvptx64-nvidia-cuda");
  std::string message;
  const llvm::Target *target =
      llvm::TargetRegistry::lookupTarget(triple, message);
  if (!target)
    return createStringError(message);
  std::unique_ptr<llvm::TargetMachine> machine(target->createTargetMachine(
      triple, chip, formatv("+ptx{0}", ptxVersion).str(), {}, std::nullopt,
      std::nullopt, llvm::CodeGenOptLevel::Default));
  if (machine->createDataLayout().getPointerSizeInBits(sharedSpace) != 32)
    return createStringError(
        "LLVM's flag --nvptx-short-ptr is not there or off, and without it "
        "pointers to shared memory would have 64 bits");
  return machine;
}
