//===- Clauses.td - Optional parts of operations' text -----*- tablegen -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_CLAUSES_TD
#define FLASH_CLAUSES_TD

/// A part of an operation's text that may be left out: the word that it begins
/// with, and the format of what stands behind this word.
class Flash_Clause<string name, string text> {
  string word = name;
  string format = "(`" # name # "` " # text # ")?";
}
/// A word alone.
class Flash_WordClause<string name> : Flash_Clause<name, "$" # name # "^">;
/// An attribute or indices, of the clause's name.
class Flash_AttributeClause<string name>
    : Flash_Clause<name, "`(` $" # name # "^ `)`">;
/// Operands of the clause's name, with their types.
class Flash_ValueClause<string name>
    : Flash_Clause<name, "`(` $" # name # "^ `:` type($" # name # ") `)`">;
class Flash_RegionClause<string name>
    : Flash_Clause<name, "custom<OwnRegion>($" # name # ")^">;

/// The clauses of an operation, in their order. `end` stands behind them and the
/// attributes, before `last`: it makes a word there an error that lists them.
class Flash_Clauses<list<Flash_Clause> clauses, string last = ":"> {
  string format =
      "\n" # !interleave(!foreach(each, clauses, each.format), "\n") # "\n";
  string end = " `` custom<ClausesEnd>(\"\\\"" #
      !interleave(!foreach(each, clauses, each.word), " ") # " " # last #
      "\\\"\")\n";
}

#endif // FLASH_CLAUSES_TD
