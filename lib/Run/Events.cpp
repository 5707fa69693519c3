//===- Events.cpp - What an emulated run does, in order -------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Run/Events.h"
#include "flash/Runtime/Emulation.h"
#include "flash/Support/OutputFile.h"
#include "llvm/Support/JSON.h"

using namespace flash::run;
using llvm::StringRef;

/// Which argument the address is in.
static std::optional<int64_t> findArgument(const void *address,
                                           llvm::ArrayRef<HostTensor> inputs) {
  for (auto [number, input] : llvm::enumerate(inputs)) {
    auto *first = static_cast<const char *>(input.getData());
    if (address >= first && address < first + input.getSpec().getNumBytes())
      return number;
  }
  return std::nullopt;
}

llvm::Error flash::run::writeEvents(StringRef path, Executor &executor,
                                    llvm::ArrayRef<HostTensor> inputs) {
  emulation::startRecording();
  auto results = executor.run(inputs);
  std::vector<emulation::Event> events = emulation::stopRecording();
  if (!results)
    return results.takeError();
  return flash::writeFile(path.str(), [&](llvm::raw_ostream &os) {
    for (const emulation::Event &event : events) {
      auto [operation, location] = StringRef(event.where).split(" at ");
      llvm::json::OStream json(os);
      json.object([&, operation = operation] {
        json.attribute("event", event.kind);
        json.attribute("role", event.role);
        json.attribute("op", operation);
        for (auto [name, number] : event.numbers)
          json.attribute(name, number);
        if (auto argument = findArgument(event.source, inputs))
          json.attribute("argument", *argument);
      });
      os << "\n";
    }
  });
}
