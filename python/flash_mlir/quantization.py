"""The lines of a program whose keys and values have 8 bits, and maybe its queries."""

_OPERANDS = "key", "value", "query"


class Quantization:
    """`kinds` are, of keys, of values and of queries if these have 8 bits, the element in memory and whether a scale is of a "tensor", a
    "head" or a "row"; both None for what has 16 bits; `packing` is the program's `Packing`."""

    def __init__(self, kinds, packing):
        self._kinds = dict(zip(_OPERANDS, kinds or ()))
        self._packing = packing

    def _is(self, name):
        return self._kinds.get(name, (None, None))[0] is not None

    def get_type(self, name, type):
        """The type of an operand before it is dequantized."""
        return f"{type[:-1].rpartition('x')[0]}x{self._kinds[name][0]}>" if self._is(name) else type

    def name(self, name):
        """What attention takes for an operand."""
        return f"%{name}_dequantized" if self._is(name) else self._packing.name(name)

    def _get_scale_type(self, name):
        of = self._kinds[name][1]
        return {"tensor": "tensor<1xf32>", "head": "tensor<?x?xf32>", "row": "tensor<?x?x?xf32>"}[of]

    def get_clauses(self):
        """The clauses of an attention whose elements of 8 bits may be multiplied as they are."""
        return ["precision(fp8)"] if self._is("query") else []

    def get_arguments(self):
        """(name, type) of the scales."""
        scales = []
        for name in filter(self._is, _OPERANDS):
            type = self._get_scale_type(name)
            # One for each row lies as these do.
            scales.append((f"{name}_scale", self._packing.get_rows_type(name, type) if self._kinds[name][1] == "row" else type))
        return scales

    def dequantize(self, operands):
        """The lines behind views of operands, each given by its name and the type that attention sees."""
        lines = []
        for name, type in operands:
            if not self._is(name):
                continue
            scale, of_scale = f"%{name}_scale", self._get_scale_type(name)
            if self._kinds[name][1] == "row":
                more, scale = self._packing.view_rows(name, of_scale)
                lines += more
            types = f"{self.get_type(name, type)} -> {type}"
            lines.append(f"{self.name(name)} = flash.dequantize {self._packing.name(name)} scale({scale} : {of_scale}) : {types}")
        return lines

    def fill_region(self, lines):
        """The lines of a score region, in which the sizes of queries and keys are the sizes of the operands that attention takes."""
        for name in filter(self._is, ("query", "key")):
            lines = [line.replace(f"tensor.dim %{name},", f"tensor.dim {self.name(name)},") for line in lines]
        return lines
