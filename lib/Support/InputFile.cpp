//===- InputFile.cpp - Files that people name -----------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Support/InputFile.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include <string>

namespace fs = llvm::sys::fs;
using llvm::createStringError;

static constexpr size_t mostBytes = size_t(64) << 20;

/// Reads until the end, which has to come.
static llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
readStream(fs::file_t file, llvm::StringRef name) {
  std::string text;
  constexpr size_t chunk = size_t(1) << 16;
  while (text.size() <= mostBytes) {
    size_t length = text.size();
    text.resize(length + chunk);
    llvm::Expected<size_t> count = fs::readNativeFile(
        file, llvm::MutableArrayRef(text.data() + length, chunk));
    if (!count)
      return count.takeError();
    text.resize(length + *count);
    if (*count == 0)
      return llvm::MemoryBuffer::getMemBufferCopy(text, name);
  }
  return createStringError(
      llvm::formatv("more than {0} MiB of a device or a pipe, which may never "
                    "end; name a file",
                    mostBytes >> 20));
}

llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
flash::readTextFile(llvm::StringRef path) {
  if (path == "-")
    return readStream(fs::getStdinHandle(), "<stdin>");
  fs::file_status status;
  if (std::error_code error = fs::status(path, status))
    return createStringError(error, error.message());
  if (fs::is_directory(status))
    return createStringError("Is a directory");
  if (fs::is_regular_file(status)) {
    auto file = llvm::MemoryBuffer::getFile(path, /*IsText=*/true);
    if (!file)
      return createStringError(file.getError(), file.getError().message());
    return std::move(*file);
  }
  llvm::Expected<fs::file_t> file = fs::openNativeFileForRead(path);
  if (!file)
    return file.takeError();
  auto text = readStream(*file, path);
  (void)fs::closeFile(*file);
  return text;
}
