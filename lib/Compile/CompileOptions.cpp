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

/// The name of a target, or what comes before a colon and the GPU that is
/// emulated.
static constexpr llvm::StringLiteral emulateName = "emulate";

const flash::Machine &Target::getMachine() const {
  return kind == Emulate || kind == Gpu ? *flash::findMachine(gpu)
                                        : flash::getCpu();
}

std::string Target::getName() const {
  switch (kind) {
  case Auto:
    return "auto";
  case Cpu:
    return flash::getCpu().name.str();
  case Emulate:
    return (gpu == defaultGpu ? emulateName : emulateName + ":" + gpu).str();
  case Gpu:
    return gpu.str();
  }
  llvm_unreachable("unknown target");
}

std::string flash::compile::getHostDevice(const Target &target) {
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
  auto take = [&](Target target) {
    options.target = target;
    return llvm::Error::success();
  };
  if (name == "auto")
    return take(Target::Auto);
  if (name == flash::getCpu().name)
    return take(Target::Cpu);
  if (name == emulateName)
    return take(Target::Emulate);
  auto [before, after] = name.split(':');
  bool emulates = before == emulateName;
  const flash::Machine *machine = flash::findMachine(emulates ? after : name);
  if (machine && machine->isGpu())
    return take({emulates ? Target::Emulate : Target::Gpu, machine->name});
  return createStringError(
      formatv("unknown target '{0}'; the targets are auto, cpu, emulate, "
              "{1}, and emulate: with one of these GPUs",
              name, flash::listGpus()));
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
