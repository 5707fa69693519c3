//===- OutputFile.cpp - Files that appear when complete -------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Support/OutputFile.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include <unistd.h>

using llvm::createStringError;
using llvm::formatv;
namespace fs = llvm::sys::fs;

llvm::Error flash::checkWritable(llvm::StringRef path) {
  auto fail = [&](llvm::StringRef why) {
    return createStringError(formatv("cannot write '{0}': {1}", path, why));
  };
  if (path.empty())
    return createStringError("an output file name is empty");
  if (fs::is_directory(path))
    return fail("it is a directory");
  llvm::StringRef parent = llvm::sys::path::parent_path(path);
  std::string directory = parent.empty() ? "." : parent.str();
  if (!fs::is_directory(directory))
    return fail(formatv("there is no directory '{0}'", directory).str());
  if (access(directory.c_str(), W_OK | X_OK) != 0)
    return fail(
        formatv("the directory '{0}' is not writable", directory).str());
  return llvm::Error::success();
}

llvm::Error
flash::writeFile(llvm::StringRef path,
                 llvm::function_ref<void(llvm::raw_ostream &)> write) {
  auto fail = [&](llvm::StringRef why) {
    return createStringError(formatv("cannot write '{0}': {1}", path, why));
  };
  // A device or a pipe is written to as it is; renaming would replace it.
  fs::file_status status;
  if (!fs::status(path, status) && !fs::is_regular_file(status)) {
    std::error_code ec;
    llvm::raw_fd_ostream os(path, ec);
    if (ec)
      return fail(ec.message());
    write(os);
    os.close();
    if ((ec = os.error())) {
      os.clear_error();
      return fail(ec.message());
    }
    return llvm::Error::success();
  }

  auto file = fs::TempFile::create(path + ".%%%%%%.tmp");
  if (!file)
    return fail(llvm::toString(file.takeError()));
  std::error_code ec;
  {
    llvm::raw_fd_ostream os(file->FD, /*shouldClose=*/false);
    write(os);
    os.flush();
    ec = os.error();
    os.clear_error();
  }
  if (ec) {
    llvm::consumeError(file->discard());
    return fail(ec.message());
  }
  if (llvm::Error error = file->keep(path))
    return fail(llvm::toString(std::move(error)));
  return llvm::Error::success();
}
