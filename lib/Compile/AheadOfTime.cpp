//===- AheadOfTime.cpp - Kernels and the header that launches them --------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Compile/AheadOfTime.h"

#include "flash/Runtime/CHeader.h"
#include "flash/Support/OutputFile.h"
#include "flash/Support/Version.h"
#include "flash/Target/Host/HostCode.h"
#include "llvm/Support/FormatVariadic.h"

using namespace flash::compile;
namespace runtime = flash::runtime;
using llvm::createStringError;
using llvm::formatv;
using llvm::StringRef;

llvm::Expected<OutputNames> flash::compile::parseOutput(StringRef output,
                                                        StringRef header) {
  if (!output.ends_with(".ptx") && !output.ends_with(".cubin"))
    return createStringError(formatv(
        "-o {0}: the name must end in .ptx or .cubin, which says what to write",
        output));
  OutputNames names;
  names.image = output.str();
  names.header = header.str();
  if (header.empty())
    names.header = (output.rsplit('.').first + ".h").str();
  return names;
}

/// The file of a function's kernels, where there are several functions: f.ptx
/// becomes f.name.ptx.
static std::string getImagePath(StringRef output, StringRef function,
                                bool isOnly) {
  if (isOnly)
    return output.str();
  auto [stem, ending] = output.rsplit('.');
  return formatv("{0}.{1}.{2}", stem, function, ending);
}

llvm::Error
flash::compile::writeAheadOfTime(llvm::MutableArrayRef<GpuProgram> programs,
                                 StringRef text, const OutputNames &names) {
  bool isCubin = StringRef(names.image).ends_with(".cubin");
  auto getImage = [&](const GpuProgram &program) {
    const GpuProgram::Module &module = program.modules.front();
    return isCubin ? module.getImage() : StringRef(module.ptx);
  };
  std::string compiler = formatv("flash-mlir {0}", flash::getVersion());
  std::string header;
  llvm::raw_string_ostream os(header);
  for (GpuProgram &program : programs) {
    if (program.modules.size() != 1)
      return createStringError(
          formatv("-o: @{0} has {1} gpu.modules, and one file holds one",
                  program.host.name, program.modules.size()));
    if (isCubin && !program.modules.front().cubin)
      if (llvm::Error error = program.runPtxas(program.gpu))
        return error;
    runtime::KernelOrigin origin;
    origin.compiler = compiler;
    origin.target = program.gpu;
    origin.file = names.program == "-" ? "" : StringRef(names.program);
    origin.versions = program.versions;
    origin.schedules = program.schedules;
    // Once is enough.
    if (&program == programs.begin())
      origin.program = text;
    else
      os << "\n";
    const std::string &name = program.host.name;
    auto code = flash::printHostCode(program.hostText, name);
    if (!code)
      return code.takeError();
    if (llvm::Error error = runtime::printCHeader(
            program.host, name, *code, {/*isEmbedded=*/true, getImage(program)},
            origin, os))
      return error;
  }
  for (GpuProgram &program : programs)
    if (llvm::Error error = flash::writeFile(
            getImagePath(names.image, program.host.name, programs.size() == 1),
            [&](llvm::raw_ostream &os) { os << getImage(program); }))
      return error;
  return flash::writeFile(names.header,
                          [&](llvm::raw_ostream &os) { os << header; });
}
