"""How Sphinx builds these pages: `make docs`."""

from importlib.metadata import version as installed_version

project = "weft"
author = "the weft authors"
copyright = "the weft authors"  # noqa: A001 (Sphinx's name for it)
version = release = installed_version("weft")

extensions = ["myst_parser", "numpydoc", "sphinx.ext.autodoc", "sphinx.ext.doctest"]
exclude_patterns = ["_build", "examples"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 2

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # numpydoc says the types in prose, with units and shapes
numpydoc_show_class_members = False  # autodoc lists them already
python_display_short_literal_types = True

html_theme = "furo"
html_title = f"weft {release}"
