//===- OptionValues.cpp - The values of flags -----------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Run/OptionValues.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

using namespace flash::run;
using llvm::createStringError;
using llvm::formatv;
using llvm::StringRef;

llvm::Expected<std::vector<std::string>> flash::run::splitList(StringRef flag,
                                                               StringRef text) {
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

StringRef flash::run::getName(Dump dump) {
  static constexpr llvm::StringLiteral names[] = {"l0",   "l1",  "l2", "linalg",
                                                  "llvm", "asm", "l3", "ptx"};
  return names[static_cast<unsigned>(dump)];
}

StringRef flash::run::getName(Target target) {
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

llvm::Error flash::run::parseTarget(StringRef name, Options &options) {
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

llvm::Error flash::run::parseLayout(StringRef layout, Options &options) {
  if (layout != "bhnd" && layout != "bnhd")
    return createStringError(
        formatv("unknown layout '{0}'; the layouts are bhnd and bnhd", layout));
  options.layout = layout == "bnhd" ? Layout::Bnhd : Layout::Dense;
  return llvm::Error::success();
}

llvm::Error flash::run::parseFill(StringRef text, Options &options) {
  auto malformed = [&] {
    return createStringError(formatv(
        "--fill={0} is malformed; write the number of an argument, a value and "
        "perhaps a row, for example --fill 0=nan@-1 or --fill 1=x100",
        text));
  };
  Fill fill;
  auto [indexText, rest] = text.split('=');
  if (indexText.getAsInteger(10, fill.argument))
    return malformed();
  auto [valueText, rowText] = rest.split('@');
  fill.scales = valueText.consume_front("x");
  if (valueText.getAsDouble(fill.value))
    return malformed();
  if (rest.contains('@')) {
    int64_t row;
    if (rowText.getAsInteger(10, row))
      return malformed();
    fill.row = row;
  }
  options.fills.push_back(fill);
  return llvm::Error::success();
}

llvm::Error flash::run::parseOutput(StringRef output, StringRef header,
                                    Options &options) {
  if (!output.ends_with(".ptx") && !output.ends_with(".cubin"))
    return createStringError(formatv(
        "-o {0}: the name must end in .ptx or .cubin, which says what to write",
        output));
  options.output = output.str();
  options.header = header.str();
  if (header.empty())
    options.header = (output.rsplit('.').first + ".h").str();
  return llvm::Error::success();
}

llvm::Error flash::run::parseShape(StringRef text, Options &options) {
  auto malformed = [&] {
    return createStringError(formatv(
        "--shape={0} is malformed; write the number of an argument and its "
        "sizes, for example --shape 0=2x16x1000x128",
        text));
  };
  auto [indexText, sizes] = text.split('=');
  unsigned index;
  if (indexText.getAsInteger(10, index) || sizes.empty())
    return malformed();
  llvm::SmallVector<int64_t, 4> shape;
  for (StringRef sizeText : llvm::split(sizes, 'x')) {
    llvm::APInt size;
    bool negative = sizeText.consume_front("-");
    if (sizeText.empty() || sizeText.getAsInteger(10, size))
      return malformed();
    if (negative || size.getActiveBits() > 62)
      return createStringError(formatv(
          "--shape={0}: the size {1}{2} is {3}", text, negative ? "-" : "",
          sizeText, negative ? "negative" : "more than any memory holds"));
    shape.push_back(size.getZExtValue());
  }
  if (!options.shapes.try_emplace(index, std::move(shape)).second)
    return createStringError(
        formatv("--shape gives the sizes of argument {0} twice", index));
  return llvm::Error::success();
}

llvm::Error flash::run::parseDump(StringRef text, Options &options) {
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

llvm::Error flash::run::parseSchedule(StringRef text, Options &options) {
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
