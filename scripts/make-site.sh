#!/usr/bin/env bash
# Makes the site of the pages in a directory, with the Sphinx of BUILD/sphinx: make-site.sh BUILD DIRECTORY. What Sphinx
# warns of, as of links and anchors that lead nowhere, is an error.
set -euo pipefail

rm -rf "$2"
"$1/sphinx/bin/python" -m sphinx -q -W --keep-going -n -j 2 -b html -c docs -d "$2.cache" -E . "$2"
rm -rf "$2.cache"
echo "$2/index.html: $(find "$2" -name '*.html' | wc -l) pages"
