"""Runs what the pages show, and puts beside it what came out: directives `run` and `example`.

`run` shows the Python code that it contains, what the code prints, and the pictures that it saves. `example` does so
for a program of docs/examples, without its code. Either runs in a process of its own, with two workers, so that
pictures are alike on all machines. What came out is kept in ``_build/shown`` until the code or the installed weft
changes.

Options: ``:timeline:`` records the run and draws it; ``:policy:``, ``:workers:`` and ``:rename_limit:`` set those of the default engine;
``:arguments:`` are the example's; with ``:picture:`` it shows that file, and nothing else;
with ``:own-pictures:`` it is not asked for a timeline.
"""

import hashlib
import os
import shlex
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx.util.osutil import copyfile, ensuredir, relative_uri

PLAIN = "import runpy\nrunpy.run_path('block.py', run_name='__main__')\n"
TRACED = """\
import runpy, weft
with weft.trace() as trace:
    runpy.run_path('block.py', run_name='__main__')
trace.timeline('timeline.svg')
trace.timeline('timeline.html')
"""
SETTINGS = ("policy", "workers", "rename_limit")
PICTURES = (".svg", ".png")
LIMIT = 240  # seconds that anything shown may take where all is busy


class Shown(SphinxDirective):
    """Something that runs, and what came out of it."""

    option_spec: ClassVar = {
        "policy": directives.unchanged,
        "workers": directives.nonnegative_int,
        "rename_limit": directives.nonnegative_int,
    }

    def settings(self) -> dict[str, str]:
        """Return what the options set in the environment."""
        return {f"WEFT_{name.upper()}": str(self.options[name]) for name in SETTINGS if name in self.options}

    def folder(self, command: list[str], files: dict[str, str], depends_on: str = "") -> Path:
        """Run a command in a folder with some files, unless it has run, and return the folder."""
        settings = self.settings()
        core = find_spec("weft._core")
        built = Path(core.origin).stat().st_mtime_ns if core and core.origin else 0
        key = repr((command, files, depends_on, settings, built))
        folder = Path(self.env.srcdir) / "_build" / "shown" / hashlib.sha256(key.encode()).hexdigest()[:16]
        output = folder / "output.txt"
        if not output.exists():
            folder.mkdir(parents=True, exist_ok=True)
            for name, text in files.items():
                (folder / name).write_text(text, encoding="utf-8")
            inherited = {name: value for name, value in os.environ.items() if not name.startswith("WEFT_")}
            environment = inherited | {"MPLBACKEND": "Agg", "WEFT_WORKERS": "2"} | settings
            done = subprocess.run(
                command, cwd=folder, env=environment, capture_output=True, text=True, timeout=LIMIT, check=False
            )
            if done.returncode:
                raise self.error(f"this does not run:\n{done.stdout}{done.stderr}")
            output.write_text(done.stdout, encoding="utf-8")
        return folder

    def image(self, path: Path) -> nodes.image:
        """Return a picture below the folder of the documentation."""
        source = "/" + path.relative_to(self.env.srcdir).as_posix()
        return nodes.image(uri=source, alt=path.stem, classes=["drawn"])

    def outcome(self, folder: Path) -> list[nodes.Node]:
        """Return what was printed and drawn in a folder."""
        shown: list[nodes.Node] = []
        if settings := self.settings():
            line = " ".join(f"{name}={value}" for name, value in settings.items())
            shown.append(nodes.paragraph("", "", nodes.literal("", line), classes=["settings"]))
        if text := (folder / "output.txt").read_text(encoding="utf-8").rstrip():
            shown.append(nodes.container("", nodes.literal_block(text, text, language="text"), classes=["output"]))
        for picture in sorted(path for path in folder.iterdir() if path.suffix in PICTURES):
            if picture.with_suffix(".html").exists():
                here = self.env.app.builder.get_target_uri(self.env.docname)
                target = relative_uri(here, f"_timelines/{folder.name}.html")
                link = nodes.reference("", "Open it to zoom and search.", refuri=target)
                shown.append(nodes.reference("", "", self.image(picture), refuri=target))
                shown.append(nodes.paragraph("", "", link, classes=["opens"]))
            else:
                shown.append(self.image(picture))
        return shown


class Run(Shown):
    """Code that is shown and run."""

    has_content = True
    option_spec: ClassVar = Shown.option_spec | {"timeline": directives.flag}

    def run(self) -> list[nodes.Node]:
        """Return the code and what came out."""
        code = "\n".join(self.content)
        program = TRACED if "timeline" in self.options else PLAIN
        folder = self.folder([sys.executable, "-P", "-c", program], {"block.py": code + "\n"})
        return [nodes.literal_block(code, code, language="python"), *self.outcome(folder)]


class Example(Shown):
    """A program of docs/examples."""

    required_arguments = 1
    option_spec: ClassVar = Shown.option_spec | {
        "arguments": directives.unchanged,
        "picture": directives.path,
        "own-pictures": directives.flag,
    }

    def run(self) -> list[nodes.Node]:
        """Return what came out, or one picture of it."""
        examples = Path(self.env.srcdir) / "examples"
        sources = sorted(examples.rglob("*.py"))
        for source in sources:
            self.env.note_dependency(str(source))
        command = [sys.executable, str(examples / self.arguments[0])]
        if "own-pictures" not in self.options:
            command += ["--timeline", "timeline.svg", "timeline.html"]
        command += shlex.split(self.options.get("arguments", ""))
        folder = self.folder(command, {}, "".join(source.read_text(encoding="utf-8") for source in sources))
        return [self.image(folder / self.options["picture"])] if "picture" in self.options else self.outcome(folder)


def copy_timelines(app: Sphinx, exception: Exception | None) -> None:
    """Put the timelines of the pictures in use where the pages link to."""
    if exception is None:
        for picture in app.env.images:
            page = Path(app.srcdir, picture).with_suffix(".html")
            if page.exists():
                target = Path(app.outdir, "_timelines", f"{page.parent.name}.html")
                ensuredir(str(target.parent))
                copyfile(page, target)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directives."""
    app.add_directive("run", Run)
    app.add_directive("example", Example)
    app.connect("build-finished", copy_timelines)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
