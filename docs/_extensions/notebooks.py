"""Offers a page as a notebook: directive `notebook`, which links to a file that the build makes of the page."""

from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx.util.osutil import ensuredir

from cells import notebook_of


class Notebook(SphinxDirective):
    """A link to the page as a notebook."""

    def run(self) -> list[nodes.Node]:
        """Return the link."""
        name = Path(self.env.docname).name
        kept: dict[str, str] = self.env.metadata[self.env.docname]
        kept["notebook"] = "yes"
        link = f'<p><a href="{name}.ipynb" download>This page as a notebook</a></p>'
        return [nodes.raw("", link, format="html")]


def write(app: Sphinx, exception: Exception | None) -> None:
    """Write the notebooks beside their pages."""
    if exception is not None or app.builder.format != "html":
        return
    for name, kept in app.env.metadata.items():
        if "notebook" in kept:
            target = Path(app.outdir) / f"{name}.ipynb"
            ensuredir(target.parent)
            target.write_text(notebook_of(Path(app.env.doc2path(name)).read_text(encoding="utf-8")), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Take in the directive."""
    app.add_directive("notebook", Notebook)
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
