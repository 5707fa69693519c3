"""Makes, prints and compares .npy files without numpy, bit by bit.

    npy.py make FILE DESCR SHAPE HEX     SHAPE as 2x3, HEX as little-endian items
    npy.py show FILE
"""
import ast
import struct
import sys


def read(path):
    data = open(path, "rb").read()
    assert data[:8] == b"\x93NUMPY\1\0", data[:8]
    end = 10 + struct.unpack("<H", data[8:10])[0]
    assert end % 64 == 0 and data[end - 1:end] == b"\n"
    header = ast.literal_eval(data[10:end].decode())
    return header, data[end:]


if sys.argv[1] == "make":
    path, descr, shape, items = sys.argv[2:6]
    shape = tuple(int(n) for n in shape.split("x"))
    text = repr({"descr": descr, "fortran_order": False, "shape": shape}).encode() + b"\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\2\0" + struct.pack("<I", len(text)) + text + bytes.fromhex(items))
else:
    header, data = read(sys.argv[2])
    print(header["descr"], header["fortran_order"], header["shape"], data.hex())
