"""How Sphinx builds these pages: `make docs`."""

import sys
from importlib.metadata import version as installed_version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

project = "weft"
author = "the weft authors"
copyright = "the weft authors"  # noqa: A001 (Sphinx's name for it)
version = release = installed_version("weft")

extensions = ["myst_parser", "notebooks", "numpydoc", "shown", "sphinx.ext.autodoc", "sphinx.ext.autosummary"]
exclude_patterns = ["_build", "_extensions", "examples"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 2

default_role = "py:obj"  # in docstrings: a link where the name is known, code otherwise
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # numpydoc says the types in prose, with units and shapes
numpydoc_show_class_members = False  # autodoc lists them already
python_display_short_literal_types = True

html_theme = "furo"
html_title = f"weft {release}"
html_static_path = ["_static"]
html_css_files = ["weft.css"]
