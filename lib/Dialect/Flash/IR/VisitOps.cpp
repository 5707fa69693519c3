//===- VisitOps.cpp - Loops over tiles and what they load -----------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OpRules.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace flash;
using namespace flash::detail;

/// Dimensions and symbols of what says which tiles are visited, without the
/// number of the tile.
static constexpr unsigned numDims = 3, numSymbols = 2;

/// Whether the score region is empty, or gives the scores that it takes.
static bool yieldsScore(Region &score) {
  return score.empty() ||
         cast<YieldOp>(score.front().getTerminator()).getResult() ==
             score.getArgument(0);
}

LogicalResult TilesAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                ArrayAttr lo, ArrayAttr hi, ArrayAttr fullLo,
                                ArrayAttr fullHi, ArrayAttr visited,
                                ArrayAttr notFull) {
  auto takesPoint = [](auto form, unsigned dims) {
    return form.getNumDims() == dims && form.getNumSymbols() == numSymbols;
  };
  for (auto [name, bounds] : {std::pair<StringRef, ArrayAttr>("lo", lo),
                              {"hi", hi},
                              {"full_lo", fullLo},
                              {"full_hi", fullHi}})
    for (Attribute entry : bounds ? bounds.getValue() : ArrayRef<Attribute>()) {
      auto bound = dyn_cast<TileBoundAttr>(entry);
      if (!bound || !takesPoint(bound.getMap().getValue(), numDims) ||
          (bound.getGuard() &&
           !takesPoint(bound.getGuard().getValue(), numDims)))
        return emitError() << name
                           << " has #flash.bound of (b, h, i)[nq, nk], got "
                           << entry;
    }
  for (auto [name, sets] : {std::pair<StringRef, ArrayAttr>("visited", visited),
                            {"not_full", notFull}})
    for (Attribute entry : sets ? sets.getValue() : ArrayRef<Attribute>()) {
      auto set = dyn_cast<IntegerSetAttr>(entry);
      if (!set || !takesPoint(set.getValue(), numDims + 1))
        return emitError() << name
                           << " has affine sets of (b, h, i, t)[nq, nk], got "
                           << entry;
    }
  return success();
}

LogicalResult VisitOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                                        Adaptor adaptor,
                                        SmallVectorImpl<Type> &types) {
  llvm::append_range(types, adaptor.getInits().getTypes());
  return success();
}

StepOpInterface VisitOp::getStep() {
  StepOpInterface only;
  for (auto step : getBody().getOps<StepOpInterface>()) {
    if (only)
      return {};
    only = step;
  }
  return only;
}

LogicalResult VisitOp::verify() {
  StringRef kind = stringifyVisitKind(getKind());
  bool isRow = getKind() == VisitKind::Keys || getKind() == VisitKind::Queries;
  if (static_cast<int64_t>(getTile()) <= 0)
    return emitOpError("tiles have at least one element, got ")
           << static_cast<int64_t>(getTile());
  std::optional<int64_t> from = getConstantIntValue(getFrom()),
                         by = getConstantIntValue(getBy());
  if (from && *from < 0)
    return emitOpError("starts at 0 or later, got from ") << *from;
  if (by && *by < 1)
    return emitOpError("goes on by 1 or more, got by ") << *by;
  if (getList() && !isRow)
    return emitOpError("lists are of keys or of queries, not of ") << kind;
  if (getList() ? static_cast<bool>(getTo())
                : !getFrom() || !getTo() || !getBy())
    return emitOpError("says from, to and by, or a list, whose end counts say");
  if (static_cast<bool>(getList()) != static_cast<bool>(getCounts()))
    return emitOpError("a list has counts, and nothing else has");
  if (!getList() && !getRow().empty())
    return emitOpError("the row is of a list, and there is none");
  if (getList() && getRow().size() != numDims)
    return emitOpError("the row of a list is a batch, a head and a number, "
                       "got ")
           << getRow().size() << " indices";
  if (std::optional<int64_t> cut = getCut()) {
    if (!getList() || getRanks())
      return emitOpError("cuts the entries of a list without ranks, and this "
                         "is none");
    int64_t tile = getTile();
    if (*cut <= 0 || *cut % tile != 0)
      return emitOpError("cuts blocks of ")
             << *cut << " elements into tiles of " << tile
             << ", which must divide them";
  }
  if (getList() && (getTiles() || getContributors()))
    return emitOpError("a list already says which tiles are visited; it has "
                       "no tiles and no contributors");
  if (std::optional<TilesAttr> tiles = getTiles()) {
    if (tiles->getVisited() && !tiles->getNotFull())
      return emitOpError("has visited, which says which tiles it visits, and "
                         "needs not_full, which says which of them are full");
    if (isOfPair() && !tiles->getVisited())
      return emitOpError("tiles of ")
             << kind << " have no range: visited and not_full are missing";
  }
  if (getContributors() && getKind() != VisitKind::Queries)
    return emitOpError("contributors are of a visit of queries, not of ")
           << kind;
  if (getContributors() && !getTiles())
    return emitOpError("has contributors, but no tiles");
  if (getRanks() && !getList())
    return emitOpError("ranks are of the tiles of a list");
  if (getHeads() && !getRanks())
    return emitOpError("visits tiles of a list with ranks for each head, and "
                       "this is none; leave out heads");
  if (getReadAhead() && !getRanks())
    return emitOpError("reads ranks ahead, and has none; leave out read_ahead");
  if (isRow && getStep() &&
      getStep().stepsOverQueries() != (getKind() == VisitKind::Queries))
    return emitOpError("of ")
           << kind << " has a step over "
           << (getStep().stepsOverQueries() ? "queries" : "keys");
  auto grad = dyn_cast_if_present<KeyGradStepOp>(getStep().getOperation());
  if (getNeutralZeros() && (!grad || !yieldsScore(grad.getScore())))
    return emitOpError("neutral_zeros are of a flash.key_grad_step whose score "
                       "region, if it has one, changes no score; leave it out");
  if (getFillOnce() &&
      !isa_and_present<OnlineAttentionOp>(getStep().getOperation()))
    return emitOpError("fill_once is of loops over the steps of a "
                       "flash.online_attention; leave it out");
  if (getBounded() && (isOfPair() || getKind() == VisitKind::Diagonal ||
                       !getStep() || !getStep().getMask()))
    return emitOpError("only the mask of a step of keys or queries is bounded, "
                       "and this is of ")
           << kind << (getStep() && getStep().getMask() ? "" : " without one");
  if (static_cast<bool>(getDistance()) != (getKind() == VisitKind::Diagonal))
    return emitOpError("a diagonal has a distance, and nothing else has, but "
                       "this is of ")
           << kind << (getDistance() ? " with one" : " without one");
  if (getExist().size() != getNumRowArgs())
    return emitOpError("says of ")
           << getNumRowArgs() << " dimension(s) how many elements exist, got "
           << getExist().size();

  SmallVector<Type> expected(getNumStartArgs() + getNumRowArgs() +
                                 (getRanks() ? 1 : 0) + (getHeads() ? 1 : 0),
                             IndexType::get(getContext()));
  llvm::append_range(expected, getInits().getTypes());
  if (!llvm::equal(getBody().getArgumentTypes(), expected))
    return emitOpError("the region takes ")
           << expected.size() - getInits().size()
           << " indices and then the state, got ("
           << getBody().getArgumentTypes() << ")";
  Operation *next = getBody().front().getTerminator();
  if (!isa<NextOp>(next))
    return emitOpError("ends in flash.next, not in ") << next->getName();
  if (next->getOperandTypes() != getInits().getTypes())
    return next->emitOpError("gives the state of the visit, ")
           << getInits().getTypes() << ", got (" << next->getOperandTypes()
           << ")";
  return success();
}

LogicalResult VisitOp::verifyRegions() {
  std::optional<ArrayRef<int64_t>> multiples = getMultiples();
  if (!multiples)
    return success();
  int64_t sizes[] = {ShapedType::kDynamic, ShapedType::kDynamic};
  if (StepOpInterface step = getStep())
    for (auto [size, extent] : llvm::zip_equal(sizes, step.getMixedExtents()))
      size = getConstantIntValue(extent).value_or(size);
  return verifyMultiples(*this, *multiples, sizes[0], sizes[1]);
}

LogicalResult LoadRowsOp::verify() {
  RankedTensorType source = getSource().getType(), tile = getTile().getType();
  if (source.getRank() != 3 && source.getRank() != 4)
    return emitOpError("loads rows of [B, H, N, D] or [B, H, N], got ")
           << source;
  if (getPosition().size() != 3)
    return emitOpError("the position of rows is a batch, a head and a row, "
                       "got ")
           << getPosition().size() << " indices";
  if (!tile.hasStaticShape() || tile.getRank() != source.getRank() - 2 ||
      tile.getElementType() != source.getElementType() ||
      !areColumnsOf(tile, source, getColumn()))
    return emitOpError("a tile has a number of rows, and the columns and the "
                       "elements of ")
           << source << ", or fewer columns from column(...) on, got " << tile;
  if (getPacked() && static_cast<int64_t>(*getPacked()) < 2)
    return emitOpError("packs two heads or more, got ") << *getPacked();
  if (getToEnd() && (!getRows() || AddressOpInterface::ofRows(getSource())))
    return emitOpError("to_end says of rows(...) of a tensor that they are its "
                       "last ones; a view has no end in memory");
  return success();
}
