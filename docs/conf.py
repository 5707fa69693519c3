"""The site of the pages: `make site`.

Sphinx reads README.md, docs and the pages of examples as they are, and docs/README.md for the order in which its navigation
has them. Pages of docs/api are made from the docstrings of the package, which is not built for that.
"""

import pathlib
import re
import shutil
import sys
import unittest.mock

from pygments.lexer import RegexLexer
from pygments.token import Comment, Keyword, Name, Number, String, Text
from sphinx.highlighting import lexers

ROOT = pathlib.Path(__file__).resolve().parents[1]
GUIDE = ROOT / "docs" / "README.md"

# The package without its extension, which a compiler makes, and without the library whose date it looks at.
sys.path.insert(0, str(ROOT / "python"))
sys.modules["flash_mlir._core"] = unittest.mock.MagicMock(__file__=__file__)
with unittest.mock.patch("pathlib.Path.stat"):
    import flash_mlir  # noqa: F401

project = "flash-mlir"
version = release = re.search(r"project\(flash-mlir VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
project_copyright = "the authors of flash-mlir; Apache-2.0 WITH LLVM-exception"
language = "en"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
root_doc = "README"
include_patterns = ["*.md", "docs/**", "examples/*/README.md"]
exclude_patterns = ["build*", ".*", "include", "lib", "python", "test", "tools", "unittests"]
# Headings as GitHub links to them. Pages of mlir-tblgen leave out levels.
myst_heading_anchors = 6
suppress_warnings = ["myst.header"]
highlight_language = "none"

autodoc_mock_imports = ["torch", "transformers", "vllm"]
autodoc_member_order = "bysource"
default_role = "code"
napoleon_use_param = napoleon_use_rtype = False
napoleon_numpy_docstring = False
# Sections whose lines need not begin with one name.
napoleon_custom_sections = [("Attributes", "params_style"), ("Raises", "params_style")]

html_theme = "furo"
html_title = f"flash-mlir {version}"
html_copy_source = False
html_show_sphinx = False


class MlirLexer(RegexLexer):
    """Colours of MLIR. Pages also show parts of programs, and formulas in them, so that any text is right."""

    tokens = {
        "root": [
            (r"//.*", Comment),
            (r'"[^"\n]*"', String),
            (r"%[\w$.#-]+", Name.Variable),
            (r"@[\w$.-]+", Name.Function),
            (r"[!#]\w[\w.]*|\^\w+", Name.Attribute),
            (r"\b(?:tensor|memref|vector|index|none|b?f\d+|tf32|[su]?i\d+)\b", Keyword.Type),
            (r"[a-z_]+\.[\w.]+", Name.Builtin),
            (r"[A-Za-z_]\w*", Text),
            (r"\d[\w.]*(?:[+-]\d+)?", Number),
            (r"\s+|[^\w\s/\"%@!#^]+|.", Text),
        ]
    }


lexers["mlir"] = MlirLexer()


def read_guide():
    """The sections of docs/README.md: a heading, and the titles and the pages that are listed below it."""
    sections = re.split(r"^## (.*)$", GUIDE.read_text(), flags=re.M)
    for caption, text in zip(sections[1::2], sections[2::2]):
        links = re.findall(r"^- \[([^\]]+)\]\(([^)]+)\)", text, re.M)
        yield caption, [(title, (GUIDE.parent / path).resolve().relative_to(ROOT).with_suffix("").as_posix()) for title, path in links]


def make_toctree(*lines):
    return "\n\n" + "\n".join(["```{toctree}", ":hidden:", *lines, "```"]) + "\n"


def adapt(app, name, source):
    """What a page has on the site, beside its text: the navigation, and titles of the pages that mlir-tblgen writes."""
    text = source[0]
    if name == root_doc:
        text += make_toctree("", "All pages <docs/README>")
        for caption, pages in read_guide():
            text += make_toctree(f":caption: {caption}", "", *(f"{title} <{'self' if page == name else page}>" for title, page in pages))
    elif name == "docs/lab/README":
        text += make_toctree(":glob:", "", "20*")
    elif name.startswith("docs/reference/"):
        title = next(title for _, pages in read_guide() for title, page in pages if page == name)
        text = f"# {title}\n\n" + re.sub(r"^# .*|^\[TOC\]$", "", text, flags=re.M)
    source[0] = re.sub(r'^<a id="(.*)"></a>$', r"(\1)=", text, flags=re.M)


def read_docstring(app, what, name, value, options, lines):
    """Docstrings are plain text: what is indented before Args is code, and signs mean nothing. Pages are links."""
    text, is_code, is_in_section = [], False, False
    for line in lines:
        is_in_section |= re.fullmatch(r"(Args|Attributes|Returns|Raises):", line) is not None
        if line.startswith("    ") and not is_in_section:
            text += [line] if is_code else ["::", "", line]
            is_code = True
            continue
        is_code &= not line
        line = re.sub(r"(`[^`]*`)|[*|]", lambda match: match[1] or "\\" + match[0], line)
        text.append(re.sub(r"docs/([\w-]+)\.md", r":doc:`\g<0> </docs/\1>`", line))
    # A sign that shows nothing: otherwise what stands before a colon in the first line were a type.
    lines[:] = ["\\"] + text if what in ("attribute", "property") else text


def skip_fields(app, what, name, value, would_skip, options):
    """Fields of named tuples are in the docstring of the class."""
    return True if type(value).__name__ == "_tuplegetter" else None


def copy_front_page(app, error):
    if not error:
        shutil.copy(pathlib.Path(app.outdir, "README.html"), pathlib.Path(app.outdir, "index.html"))


def setup(app):
    app.connect("source-read", adapt)
    app.connect("autodoc-process-docstring", read_docstring, priority=400)  # Before napoleon.
    app.connect("autodoc-skip-member", skip_fields)
    app.connect("build-finished", copy_front_page)
