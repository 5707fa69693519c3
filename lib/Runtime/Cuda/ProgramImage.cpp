//===- ProgramImage.cpp - A look at PTX and cubins ------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ProgramImage.h"

#include "Failures.h"
#include "llvm/BinaryFormat/ELF.h"
#include "llvm/Support/FormatVariadic.h"
#include <cstring>

using namespace flash::cuda;
using llvm::formatv;
using llvm::StringRef;

/// The word after a directive, or "".
static StringRef getOperand(StringRef ptx, StringRef directive) {
  StringRef rest = ptx.split(directive).second.ltrim();
  return rest.take_front(rest.find_first_of(", \t\r\n"));
}

/// Whether `count` entries of `size` bytes from `offset` on lie in the image.
static bool isInside(StringRef image, uint64_t offset, uint64_t count,
                     uint64_t size) {
  return offset <= image.size() &&
         (size == 0 || count <= (image.size() - offset) / size);
}

/// Whether everything that the headers of an ELF file point to is there.
static bool isComplete(StringRef image) {
  llvm::ELF::Elf64_Ehdr header;
  if (image.size() < sizeof(header))
    return false;
  std::memcpy(&header, image.data(), sizeof(header));
  if (header.getFileClass() != llvm::ELF::ELFCLASS64 ||
      header.e_shentsize != sizeof(llvm::ELF::Elf64_Shdr) ||
      !isInside(image, header.e_shoff, header.e_shnum, header.e_shentsize) ||
      !isInside(image, header.e_phoff, header.e_phnum, header.e_phentsize))
    return false;
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    llvm::ELF::Elf64_Shdr section;
    std::memcpy(&section, image.data() + header.e_shoff + i * sizeof(section),
                sizeof(section));
    if (section.sh_type != llvm::ELF::SHT_NOBITS &&
        !isInside(image, section.sh_offset, section.sh_size, 1))
      return false;
  }
  return true;
}

llvm::Expected<ProgramImage> flash::cuda::inspectProgram(StringRef image,
                                                         StringRef name) {
  auto refuse = [&](const llvm::Twine &why) {
    return fail(ErrorKind::InvalidProgram,
                "cannot load '" + name + "': " + why);
  };
  ProgramImage program;
  if (image.empty())
    return refuse("it is empty");
  if (image.starts_with(llvm::ELF::ElfMagic)) {
    if (!isComplete(image))
      return refuse("the cubin is truncated or damaged");
    program.isCubin = true;
    return program;
  }
  if (size_t zero = image.find('\0'); zero != StringRef::npos)
    return refuse(formatv("it is no cubin, and PTX text cannot hold a zero "
                          "byte, as this does at offset {0}",
                          zero));
  if (!image.contains(".version"))
    return refuse("it is neither PTX text (there is no .version) nor a cubin");
  program.version = getOperand(image, ".version");
  program.target = getOperand(image, ".target");
  return program;
}

llvm::StringMap<int> flash::cuda::countParameters(StringRef ptx) {
  llvm::StringMap<int> counts;
  while (ptx.contains(".entry")) {
    ptx = ptx.split(".entry").second.ltrim();
    StringRef name = ptx.take_front(ptx.find_first_of("( \t\r\n"));
    ptx = ptx.drop_front(name.size()).ltrim();
    bool hasList = ptx.consume_front("(");
    counts[name] = hasList ? ptx.split(')').first.count(".param") : 0;
  }
  return counts;
}
