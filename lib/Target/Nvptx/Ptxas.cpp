//===- Ptxas.cpp - From PTX to a cubin ------------------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Target/Nvptx/Ptxas.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/Regex.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace {

/// A file that lives as long as this.
struct TemporaryFile {
  static Expected<TemporaryFile> create(StringRef suffix) {
    SmallString<128> path;
    if (std::error_code code =
            sys::fs::createTemporaryFile("flash", suffix, path))
      return createStringError(
          formatv("cannot create a temporary file: {0}", code.message()));
    return TemporaryFile{path.str().str(), std::make_unique<FileRemover>(path)};
  }

  Error write(StringRef text) const {
    std::error_code code;
    raw_fd_ostream stream(path, code);
    if (!code) {
      stream << text;
      stream.close();
      code = stream.error();
      stream.clear_error();
    }
    return code ? createStringError(
                      formatv("cannot write '{0}': {1}", path, code.message()))
                : Error::success();
  }

  Expected<std::unique_ptr<MemoryBuffer>> read() const {
    auto buffer = MemoryBuffer::getFile(path, /*IsText=*/false,
                                        /*RequiresNullTerminator=*/false);
    if (!buffer)
      return createStringError(
          formatv("cannot read '{0}': {1}", path, buffer.getError().message()));
    return std::move(*buffer);
  }

  std::string path;
  std::unique_ptr<FileRemover> remover;
};

/// The number in front of `unit`, or 0.
unsigned getCount(StringRef line, StringRef unit) {
  SmallVector<StringRef, 2> groups;
  unsigned count = 0;
  if (Regex(("([0-9]+) " + unit).str()).match(line, &groups))
    groups[1].getAsInteger(10, count);
  return count;
}

/// Reads what `ptxas -v` prints for each function:
///
///   ptxas info    : Function properties for kernel
///       0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
///   ptxas info    : Used 24 registers, used 1 barriers, 1024 bytes smem
void parseReport(StringRef report, flash::Cubin &cubin) {
  for (StringRef line : split(report, '\n')) {
    StringRef properties = line;
    if (line.starts_with("ptxas warning") ||
        Regex("\\(C75[0-9]+\\)").match(line))
      cubin.remarks.push_back(line.rtrim().str());
    else if (properties.consume_front(
                 "ptxas info    : Function properties for "))
      cubin.kernels.emplace_back().name = properties.rtrim().str();
    else if (cubin.kernels.empty())
      continue;
    else if (line.contains("bytes stack frame")) {
      flash::KernelResources &kernel = cubin.kernels.back();
      kernel.stack = getCount(line, "bytes stack frame");
      kernel.spillStores = getCount(line, "bytes spill stores");
      kernel.spillLoads = getCount(line, "bytes spill loads");
    } else if (line.contains(": Used ")) {
      flash::KernelResources &kernel = cubin.kernels.back();
      kernel.registers = getCount(line, "registers");
      kernel.staticShared = getCount(line, "bytes smem");
    }
  }
}

} // namespace

bool flash::Cubin::hasSpills() const {
  return any_of(kernels, [](const KernelResources &kernel) {
    return kernel.spillStores || kernel.spillLoads;
  });
}

Expected<flash::Cubin> flash::runPtxas(StringRef ptx, StringRef chip) {
  ErrorOr<std::string> program = sys::findProgramByName("ptxas");
  if (!program)
    return createStringError("there is no ptxas in the PATH; it comes with the "
                             "CUDA toolkit");
  Expected<TemporaryFile> source = TemporaryFile::create("ptx");
  if (!source)
    return source.takeError();
  Expected<TemporaryFile> object = TemporaryFile::create("cubin");
  if (!object)
    return object.takeError();
  Expected<TemporaryFile> report = TemporaryFile::create("txt");
  if (!report)
    return report.takeError();
  if (Error error = source->write(ptx))
    return std::move(error);

  std::string arch = ("-arch=" + chip).str();
  StringRef arguments[] = {*program, arch,         "-v",
                           "-o",     object->path, source->path};
  std::optional<StringRef> redirects[] = {StringRef(), StringRef(report->path),
                                          StringRef(report->path)};
  std::string message;
  int status =
      sys::ExecuteAndWait(*program, arguments, std::nullopt, redirects,
                          /*SecondsToWait=*/0, /*MemoryLimit=*/0, &message);
  Expected<std::unique_ptr<MemoryBuffer>> lines = report->read();
  if (!lines)
    return lines.takeError();
  if (status != 0)
    return createStringError(formatv("{0} failed with status {1}:\n{2}{3}",
                                     *program, status, message,
                                     (*lines)->getBuffer().rtrim()));
  Expected<std::unique_ptr<MemoryBuffer>> bytes = object->read();
  if (!bytes)
    return bytes.takeError();
  Cubin cubin;
  cubin.bytes.assign((*bytes)->getBufferStart(), (*bytes)->getBufferEnd());
  parseReport((*lines)->getBuffer(), cubin);
  return cubin;
}
