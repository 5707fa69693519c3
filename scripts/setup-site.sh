#!/usr/bin/env bash
# Makes a virtual environment with Sphinx, BUILD/sphinx. Does nothing where that is done already.
set -euo pipefail

mkdir -p "$1"
build=$(realpath "$1") python=$2
venv=$build/sphinx
requirements=$(dirname "$0")/site-requirements.txt

cmp -s "$requirements" "$venv/requirements.txt" && exit 0
echo "setup-site: installing Sphinx into $venv"
rm -rf "$venv"
# NumPy is the system's.
"$python" -m venv --system-site-packages "$venv"
"$venv/bin/python" -m pip --disable-pip-version-check -q install --ignore-installed --no-deps -r "$requirements"
cp "$requirements" "$venv/requirements.txt"
