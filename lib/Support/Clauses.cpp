//===- Clauses.cpp - Errors for the clauses of operations -----------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Support/Clauses.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

/// The words of a text that stand outside of parentheses, brackets, braces,
/// strings and comments, and are no names of values or attributes.
static SmallVector<StringRef> getOuterWords(StringRef text) {
  auto isOfName = [](char c) {
    return llvm::isAlnum(c) || StringRef("_.$-").contains(c);
  };
  SmallVector<StringRef> words;
  for (unsigned depth = 0; !text.empty();) {
    if (text.starts_with("//")) {
      text = text.drop_until([](char c) { return c == '\n'; });
      continue;
    }
    if (StringRef word = text.take_while(isOfName); !word.empty()) {
      if (depth == 0)
        words.push_back(word);
      text = text.drop_front(word.size());
      continue;
    }
    char first = text.front();
    text = text.drop_front();
    if (StringRef("([{").contains(first))
      ++depth;
    else if (StringRef(")]}").contains(first))
      --depth;
    else if (StringRef("%#@!").contains(first))
      text = text.drop_while(isOfName);
    else if (first == '"')
      for (; !text.consume_front("\""); text = text.drop_front())
        text.consume_front("\\");
  }
  return words;
}

ParseResult flash::parseClausesEnd(OpAsmParser &parser, StringRef order) {
  SMLoc end = parser.getCurrentLocation();
  StringRef word;
  if (failed(parser.parseOptionalKeyword(&word)))
    return success();

  SmallVector<StringRef> clauses;
  order.split(clauses, ' ');
  StringRef last = clauses.pop_back_val();
  const char *begin = parser.getNameLoc().getPointer();
  SmallVector<StringRef> earlier =
      getOuterWords(StringRef(begin, end.getPointer() - begin));
  auto *clause = llvm::find(clauses, word);
  auto *next = std::find_if(clause, clauses.end(), [&](StringRef later) {
    return llvm::is_contained(earlier, later);
  });
  InFlightDiagnostic error = parser.emitError(end);
  if (next == clauses.end())
    error << "has no clause '" << word << "' here";
  else if (next == clause)
    error << "has the clause '" << word << "' twice";
  else
    error << "has the clause '" << word << "' behind '" << *next
          << "', before which it stands";
  return error << "; its clauses are, in this order: "
               << llvm::join(clauses, ", ") << "; '" << last << "' follows";
}
