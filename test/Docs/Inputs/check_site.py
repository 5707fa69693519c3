"""Looks at a site: check_site.py SITE PACKAGE, the latter the file whose __all__ names what Python's pages describe."""

import ast
import pathlib
import sys

from bs4 import BeautifulSoup
from sphinx.util.inventory import InventoryFile

site = pathlib.Path(sys.argv[1])
index = BeautifulSoup((site / "index.html").read_text(), "html.parser")
pages = [link["href"].partition("#")[0] for link in index.select(".sidebar-tree a")]
missing = [page for page in pages if page and not (site / page).exists()]
assert len(pages) > 90 and not missing, missing
assert "flash_mlir" in (site / "searchindex.js").read_text()
assert len(list((site / "_images").glob("*.svg"))) > 15

inventory = InventoryFile.loads((site / "objects.inv").read_bytes(), uri="")
described = {name.rpartition(".")[2] for kind, names in inventory.data.items() if kind.startswith("py:") for name in names}
assert "flash_mlir.attention" in inventory.data["py:function"]
for statement in ast.parse(pathlib.Path(sys.argv[2]).read_text()).body:
    if isinstance(statement, ast.Assign) and statement.targets[0].id == "__all__":
        undescribed = set(ast.literal_eval(statement.value)) - described
        assert not undescribed, undescribed
