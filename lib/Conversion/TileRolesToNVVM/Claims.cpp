//===- Claims.cpp - Tiles that a block claims for all of its roles --------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RoleLowering.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace flash;
using namespace flash::tile;

bool RoleLowering::claimsItself(ClaimOp op) {
  Region &role = roles.getRoles()[roles.getRoleOf(op)];
  return role.walk([](CopyAsyncOp) { return WalkResult::interrupt(); })
      .wasInterrupted();
}

Value RoleLowering::getPlaceOfClaim(ClaimOp op, Value step, int64_t byte) {
  Value place = arith::RemUIOp::create(b, loc, step, index(ClaimOp::numPlaces));
  Value offset =
      arith::MulIOp::create(b, loc, place, index(ClaimOp::bytesOfPlace));
  return sharedPointer(
      arith::AddIOp::create(b, loc, offset, index(*op.getOffset() + byte)));
}

void RoleLowering::initializeClaims() {
  int64_t readers = 0;
  for (ClaimOp claim : claims)
    if (!claimsItself(claim))
      readers += roles.getNumWarps(roles.getRoleOf(claim));
  for (int64_t place = 0; readers > 0 && place < ClaimOp::numPlaces; ++place)
    for (auto [byte, count] : {std::pair(0l, 1l), {barrierBytes, readers}})
      NVVM::MBarrierInitOp::create(
          b, loc, getPlaceOfClaim(claims.front(), index(place), byte),
          i32(count), Value());
}

Value RoleLowering::emitClaim(ClaimOp op, Value step) {
  Value full = getPlaceOfClaim(op, step, 0),
        empty = getPlaceOfClaim(op, step, barrierBytes),
        place = getPlaceOfClaim(op, step, 2 * barrierBytes);
  Value phase = parity(ClaimOp::numPlaces, step);
  Value number;
  // The thread that copies comes here as soon as the last copies of a tile have
  // stages, and so before the others.
  if (claimsItself(op)) {
    waitAt(empty, arith::XOrIOp::create(b, loc, phase, i32(1)));
    number = CountUpOp::create(b, loc, b.getI32Type(), op.getCounts(),
                               op.getIndices());
    LLVM::StoreOp::create(b, loc, number, place);
    arrive(full);
  } else {
    waitAt(full, phase);
    number = LLVM::LoadOp::create(b, loc, b.getI32Type(), place);
    if (areOfOneThread[roles.getRoleOf(op)]) {
      arrive(empty);
    } else {
      number = uniform(number);
      arriveAsWarp(empty);
    }
  }
  return arith::IndexCastOp::create(b, loc, b.getIndexType(), number);
}
