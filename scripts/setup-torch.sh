#!/usr/bin/env bash
# Makes a virtual environment with PyTorch, BUILD/torch, that sees the package and the
# tools of the one in BUILD/python. Does nothing where that is done already.
set -euo pipefail

build=$(realpath "$1") python=$2
venv=$build/torch
requirements=$(dirname "$0")/torch-requirements.txt

cmp -s "$requirements" "$venv/requirements.txt" && exit 0
echo "setup-torch: installing PyTorch into $venv"
rm -rf "$venv"
# NumPy is the system's.
"$python" -m venv --system-site-packages "$venv"
"$venv/bin/python" - "$build/python" << 'END'
import pathlib
import sys
import sysconfig

packages = sysconfig.get_path("purelib", vars={"base": sys.argv[1]})
pathlib.Path(sysconfig.get_path("purelib"), "flash.pth").write_text(packages + "\n")
END
# The list is complete, so that nothing that the wheel names but does not need comes along.
"$venv/bin/python" -m pip --disable-pip-version-check -q install --no-deps -r "$requirements"
cp "$requirements" "$venv/requirements.txt"
