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

llvm::Error flash::run::parseTargets(StringRef names, Options &options) {
  auto items = splitList("target", names);
  if (!items)
    return items.takeError();
  options.targets.clear();
  for (StringRef name : *items) {
    if (llvm::Error error = parseTarget(name, options))
      return error;
    options.targets.push_back(options.target);
  }
  return llvm::Error::success();
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
