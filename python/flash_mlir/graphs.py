"""Graphs whose nodes may share operands: each node is looked at once, and however deep they are."""


def in_order(roots, get_operands, done):
    """Yields the nodes that the roots are made of, each after its operands.

    Nodes whose id is in `done` are left out, with all that only they are made of; the caller adds each
    node to it before the next.
    """
    stack = [(root, False) for root in reversed(roots)]
    while stack:
        node, is_complete = stack.pop()
        if id(node) in done:
            continue
        if is_complete:
            yield node
        else:
            stack.append((node, True))
            stack += [(operand, False) for operand in reversed(get_operands(node))]
