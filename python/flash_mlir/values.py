"""What traced values are: their types, and which values they are computed from."""

INDEX, FLOAT, BOOL = "index", "f32", "i1"


def get_operands(value):
    """The values that a value is computed from."""
    if value.op in ("symbol", "constant"):
        return ()
    return value.operands[1] if value.op == "load" else value.operands
