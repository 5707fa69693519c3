//===- Options.cpp - The command line of flash-run ------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Run/Options.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

using namespace flash::run;
using llvm::createStringError;
using llvm::formatv;
using llvm::SmallVector;
using llvm::StringRef;
namespace cl = llvm::cl;

static constexpr llvm::StringLiteral overview =
    "flash-run: compile an attention program, run it, check it, time it\n\n"
    "  flash-run examples/causal.mlir --check --bench\n"
    "  flash-run examples/softcap_alibi.mlir --check --shape 0=2x4x333x128 \\\n"
    "      --shape 1=2x4x517x128 --shape 2=2x4x517x128 --shape 3=4\n"
    "  flash-run f.mlir --inputs q.npy,k.npy,v.npy --outputs o.npy\n\n"
    "Inputs are random unless files are given. The exit status is 0 if the\n"
    "program ran and, with --check, agreed with the fp64 reference.\n";

namespace {

/// The flags. They live in a function's scope so that only a process that
/// parses them has them registered.
struct Flags {
  cl::OptionCategory category{"flash-run options"};
  cl::opt<std::string> file{cl::Positional, cl::Required,
                            cl::desc("<program.mlir, or - for stdin>"),
                            cl::cat(category)};
  cl::opt<std::string> target{
      "target", cl::init("auto"), cl::value_desc("name"),
      cl::desc("auto, cpu, emulate, sm_80 or sm_90a"), cl::cat(category)};
  cl::opt<std::string> function{
      "function", cl::value_desc("name"), cl::cat(category),
      cl::desc("The function to run (default: the only public one)")};
  cl::opt<uint64_t> seed{"seed", cl::init(0), cl::cat(category),
                         cl::desc("Seed of the random inputs (default 0)")};
  cl::opt<unsigned> threads{
      "threads", cl::init(0), cl::cat(category),
      cl::desc("Number of threads (default: one per processor)")};
  cl::opt<std::string> inputs{
      "inputs", cl::value_desc("q.npy,k.npy,..."), cl::cat(category),
      cl::desc("Files with the arguments, in their order")};
  cl::opt<std::string> outputs{
      "outputs", cl::value_desc("o.npy,..."), cl::cat(category),
      cl::desc("Files for the results, in their order")};
  cl::list<std::string> shapes{
      "shape", cl::value_desc("INDEX=2x16x1000x128"), cl::cat(category),
      cl::desc("Sizes of an argument with dynamic dimensions; repeatable")};
  cl::opt<bool> check{
      "check", cl::cat(category),
      cl::desc("Compare with the fp64 reference; status 1 if they disagree")};
  cl::opt<bool> bench{"bench", cl::cat(category), cl::desc("Time the program")};
  cl::opt<bool> baseline{
      "baseline", cl::cat(category),
      cl::desc("Also time the naive program, which stores all scores")};
  cl::opt<bool> countTiles{"count-tiles", cl::cat(category),
                           cl::desc("Count the tiles that the program visits")};
  cl::opt<std::string> json{"json", cl::value_desc("file"), cl::cat(category),
                            cl::desc("Write what was measured to a file")};
  cl::opt<std::string> dump{
      "dump", cl::value_desc("l0,l1,l2,linalg,llvm,asm"), cl::cat(category),
      cl::desc("Print the program after these stages; alone, do not run it")};
  cl::opt<std::string> schedule{
      "schedule", cl::value_desc("query_tile=64,key_tile=128"),
      cl::cat(category),
      cl::desc("Tile sizes, in place of the program's or the model's choice")};
};

/// LLVM's libraries register hundreds of flags, among them a `--threads`; which
/// of them exist depends on how this tool is linked. None is of use here.
void removeForeignFlags() {
  SmallVector<cl::Option *> foreign;
  for (auto [name, option] : cl::getRegisteredOptions())
    if (!name.starts_with("help") && name != "version")
      foreign.push_back(option);
  for (cl::Option *option : foreign)
    option->removeArgument();
}

/// The elements of a comma-separated list, none of which may be empty.
llvm::Expected<std::vector<std::string>> splitList(StringRef flag,
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

llvm::Error parseTarget(StringRef target, Options &options) {
  if (target == "auto" || target == "cpu")
    return llvm::Error::success();
  if (target == "emulate") {
    options.target = Target::Emulate;
    return llvm::Error::success();
  }
  if (target == "sm_80" || target == "sm_90a")
    return createStringError(
        formatv("the target '{0}' is not built yet; use --target=cpu", target));
  return createStringError(formatv("unknown target '{0}'; the targets are "
                                   "auto, cpu, emulate, sm_80 and sm_90a",
                                   target));
}

llvm::Error parseShape(StringRef text, Options &options) {
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

llvm::Error parseDump(StringRef text, Options &options) {
  auto items = splitList("dump", text);
  if (!items)
    return items.takeError();
  for (StringRef item : *items) {
    auto dump = llvm::StringSwitch<std::optional<Dump>>(item)
                    .Case("l0", Dump::L0)
                    .Case("l1", Dump::L1)
                    .Case("l2", Dump::L2)
                    .Case("linalg", Dump::Linalg)
                    .Case("llvm", Dump::LLVM)
                    .Case("asm", Dump::Asm)
                    .Default(std::nullopt);
    if (!dump)
      return createStringError(formatv("--dump has no stage '{0}'; the stages "
                                       "are l0, l1, l2, linalg, llvm and asm",
                                       item));
    options.dumps |= 1u << static_cast<unsigned>(*dump);
  }
  return llvm::Error::success();
}

llvm::Error parseSchedule(StringRef text, Options &options) {
  auto items = splitList("schedule", text);
  if (!items)
    return items.takeError();
  for (StringRef item : *items) {
    auto [key, valueText] = item.split('=');
    int64_t *field = llvm::StringSwitch<int64_t *>(key)
                         .Case("query_tile", &options.queryTile)
                         .Case("key_tile", &options.keyTile)
                         .Default(nullptr);
    if (!field)
      return createStringError(formatv("--schedule has no key '{0}'; the keys "
                                       "are query_tile and key_tile",
                                       key));
    if (*field)
      return createStringError(formatv("--schedule gives {0} twice", key));
    int64_t value;
    if (valueText.getAsInteger(10, value))
      return createStringError(formatv(
          "--schedule: '{0}' needs a number, for example {1}=64", item, key));
    // The rule of #flash.schedule.
    if (value < 8 || value > 1024 || value % 8) {
      int64_t clamped = std::clamp<int64_t>(value, 8, 1024);
      return createStringError(formatv(
          "--schedule: {0}={1} is not a multiple of 8 from 8 to 1024; the "
          "nearest is {0}={2}",
          key, value, (clamped + 3) / 8 * 8));
    }
    *field = value;
  }
  return llvm::Error::success();
}

} // namespace

llvm::Expected<Options> flash::run::parseOptions(int argc, char **argv) {
  removeForeignFlags();
  Flags flags;
  cl::ParseCommandLineOptions(argc, argv, overview);

  // LLVM takes the last of several values, which hides mistakes.
  for (auto [name, option] : cl::getRegisteredOptions())
    if (option->getNumOccurrences() > 1 && name != flags.shapes.ArgStr)
      return createStringError(formatv("--{0} is given twice", name));

  Options options;
  options.file = flags.file;
  options.function = flags.function;
  options.seed = flags.seed;
  options.threads = flags.threads;
  options.check = flags.check;
  options.bench = flags.bench || flags.baseline;
  options.baseline = flags.baseline;
  options.countTiles = flags.countTiles;
  options.json = flags.json;

  if (flags.threads.getNumOccurrences() &&
      (options.threads < 1 || options.threads > 1024))
    return createStringError(
        formatv("--threads={0} is not from 1 to 1024", options.threads));
  if (flags.json.getNumOccurrences() && options.json.empty())
    return createStringError("--json needs a file name");
  if (llvm::Error error = parseTarget(flags.target, options))
    return error;
  for (StringRef shape : flags.shapes)
    if (llvm::Error error = parseShape(shape, options))
      return error;
  if (flags.dump.getNumOccurrences())
    if (llvm::Error error = parseDump(flags.dump, options))
      return error;
  if (options.target == Target::Cpu && options.has(Dump::L2))
    return createStringError("the CPU target has no level 2 to dump; use "
                             "--target=emulate");
  if (options.target == Target::Emulate && options.countTiles)
    return createStringError(
        "--count-tiles counts the tiles of the CPU target; "
        "use --target=cpu");
  if (flags.schedule.getNumOccurrences())
    if (llvm::Error error = parseSchedule(flags.schedule, options))
      return error;
  for (auto [flag, list] : {std::pair(&flags.inputs, &options.inputs),
                            std::pair(&flags.outputs, &options.outputs)})
    if (flag->getNumOccurrences()) {
      auto items = splitList(flag->ArgStr, *flag);
      if (!items)
        return items.takeError();
      *list = std::move(*items);
    }
  return options;
}
