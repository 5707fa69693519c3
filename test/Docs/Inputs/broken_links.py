"""Makes a site of one page that links to nothing: broken_links.py SOURCES FOLDER."""

import pathlib
import shutil
import sys

from sphinx.cmd.build import main

sources, folder = map(pathlib.Path, sys.argv[1:])
shutil.copytree(sources / "docs", folder / "docs", ignore=lambda path, names: [name for name in names if name != "conf.py"])
shutil.copy(sources / "CMakeLists.txt", folder)
(folder / "python").symlink_to(sources / "python")
(folder / "docs" / "README.md").write_text("# All pages\n\n## Start\n\n- [Introduction](../README.md)\n")
(folder / "README.md").write_text("# A page\n\n[one](other.md) [two](#missing) ![](other.png)\n")
sys.exit(main(["-q", "-W", "--keep-going", "-n", "-c", str(folder / "docs"), str(folder), str(folder / "site")]))
