//===- CompileOptions.cpp - What to compile for ---------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Compile/CompileOptions.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/LineIterator.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/TargetParser/Host.h"

using namespace flash::compile;
using flash::Schedule;
using llvm::createStringError;
using llvm::formatv;
using llvm::StringRef;

llvm::Expected<std::vector<std::string>>
flash::compile::splitList(StringRef flag, StringRef text) {
  std::vector<std::string> items;
  for (StringRef item : llvm::split(text, ',')) {
    if (item.empty())
      return createStringError(formatv(
          "--{0}={1} has an empty item; write them separated by single commas",
          flag, text));
    items.push_back(item.str());
  }
  return items;
}

StringRef flash::compile::getName(Dump dump) {
  static constexpr llvm::StringLiteral names[] = {"l0",   "l1",  "l2", "linalg",
                                                  "llvm", "asm", "l3", "ptx"};
  return names[static_cast<unsigned>(dump)];
}

StringRef flash::compile::getName(Target target) {
  switch (target) {
  case Target::Auto:
    return "auto";
  case Target::Cpu:
    return "cpu";
  case Target::Emulate:
    return "emulate";
  case Target::Sm80:
    return "sm_80";
  case Target::Sm90a:
    return "sm_90a";
  }
  llvm_unreachable("unknown target");
}

std::string flash::compile::getHostDevice(Target target) {
  // Nobody measures what is emulated, except for tests of who measures.
  if (target == Target::Emulate)
    return "emulation";
  if (auto file = llvm::MemoryBuffer::getFileAsStream("/proc/cpuinfo"))
    for (llvm::line_iterator line(**file); !line.is_at_eof(); ++line) {
      auto [key, value] = line->split(':');
      if (key.trim() == "model name")
        return value.trim().str();
    }
  return llvm::sys::getHostCPUName().str();
}

llvm::Error flash::compile::parseTarget(StringRef name,
                                        CompileOptions &options) {
  options.emulated = Target::Sm80;
  if (name == "emulate:sm_90a") {
    options.target = Target::Emulate;
    options.emulated = Target::Sm90a;
    return llvm::Error::success();
  }
  for (Target target : {Target::Auto, Target::Cpu, Target::Emulate,
                        Target::Sm80, Target::Sm90a})
    if (getName(target) == name) {
      options.target = target;
      return llvm::Error::success();
    }
  return createStringError(formatv("unknown target '{0}'; the targets are "
                                   "auto, cpu, emulate, emulate:sm_90a, sm_80 "
                                   "and sm_90a",
                                   name));
}

llvm::Error flash::compile::parseDump(StringRef text, CompileOptions &options) {
  auto items = splitList("dump", text);
  if (!items)
    return items.takeError();
  for (StringRef item : *items) {
    auto dump = llvm::StringSwitch<std::optional<Dump>>(item)
                    .Case("l0", Dump::L0)
                    .Case("l1", Dump::L1)
                    .Case("l2", Dump::L2)
                    .Case("l3", Dump::L3)
                    .Case("linalg", Dump::Linalg)
                    .Case("llvm", Dump::LLVM)
                    .Case("asm", Dump::Asm)
                    .Case("ptx", Dump::Ptx)
                    .Default(std::nullopt);
    if (!dump)
      return createStringError(
          formatv("--dump has no stage '{0}'; the stages "
                  "are l0, l1, l2, l3, linalg, llvm, asm and ptx",
                  item));
    options.dumps |= 1u << static_cast<unsigned>(*dump);
  }
  return llvm::Error::success();
}

llvm::Error flash::compile::parseSchedule(StringRef text,
                                          CompileOptions &options) {
  auto schedule = Schedule::parse(text);
  if (!schedule)
    return createStringError("--schedule: " +
                             llvm::toString(schedule.takeError()));
  if (schedule->isEmpty())
    return createStringError("--schedule needs keys, for example "
                             "--schedule=query_tile=64,key_tile=128");
  options.schedule = *schedule;
  return llvm::Error::success();
}
