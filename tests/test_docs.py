"""What the documents show runs: each Python block of the Markdown files, each example of the docstrings.

Blocks of the directive `run` run when the pages are built, too; here each fails on its own.
"""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import weft
from conftest import FORKS, Forks, write_script

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conftest import RunScript

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"^( *)```(?:python|\{run\}(?:\n *:.*)*)\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
PAGES = sorted([*ROOT.glob("*.md"), *(path for path in (ROOT / "docs").rglob("*.md") if "_build" not in path.parts)])
BLOCKS = [
    pytest.param(textwrap.dedent(match[2]), id=f"{page.relative_to(ROOT)}:{text[: match.start()].count(chr(10)) + 1}")
    for page in PAGES
    for text in [page.read_text(encoding="utf-8")]
    for match in BLOCK.finditer(text)
]
MODULES = sorted(module.name for module in pkgutil.walk_packages(weft.__path__, "weft.") if module.name != "weft._core")
FLAGS = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL | doctest.NORMALIZE_WHITESPACE
#: Runs a block that is a session with its answers.
SESSION = """
import doctest
test = doctest.DocTestParser().get_doctest({!r}, {{}}, "block", None, 0)
assert not doctest.DocTestRunner(optionflags={}).run(test).failed
"""


def test_there_is_something_to_run() -> None:
    assert any("README.md" in str(param.id) for param in BLOCKS)


def test_the_reference_names_all_that_is_public() -> None:
    pages = [ROOT / "docs" / "reference.md", *(ROOT / "docs" / "reference").glob("*.md")]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    public = set(weft.__all__) - {"__version__"}
    assert not {name for name in public if not re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text)}


@pytest.mark.parametrize("folder", ["coming-from", "design", "gallery", "howto"])
def test_an_index_names_all_pages_beside_it(folder: str) -> None:
    index = ROOT / "docs" / folder / "index.md"
    text = index.read_text(encoding="utf-8")
    pages = sorted(page.stem for page in index.parent.glob("*.md") if page != index)
    tree = text.partition("```{toctree}")[2].partition("```")[0].split()
    assert sorted(each for each in tree if each in pages) == pages
    assert not [page for page in pages if f"({page}.md)" not in text]


def test_nothing_tells_to_install_weft_from_where_it_is_not() -> None:
    """Until a version is released, the wheel of a checkout is all that there is."""
    texts = [*PAGES, *(ROOT / "python").rglob("*.py"), *(ROOT / "benches").rglob("*.md")]
    told = re.compile(r"pip\s+install\s+(?:-U\s+)?['\"`]?weft\b(?!-)")
    assert not [path for path in texts if told.search(path.read_text(encoding="utf-8"))]


@pytest.fixture(scope="module")
def forks() -> Iterator[Forks]:
    """Make what runs scripts, for all blocks together: the import of weft is most of what a block takes."""
    made = Forks("doctest")
    yield made
    made.close()


@pytest.mark.parametrize("block", BLOCKS)
def test_block_runs(forks: Forks, script: RunScript, tmp_path: Path, block: str) -> None:
    source = SESSION.format(block, FLAGS) if block.lstrip().startswith(">>>") else block
    done = forks.run(tmp_path, write_script(tmp_path, source)) if FORKS else script(source)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("name", ["weft", *MODULES])
def test_docstring_examples_run(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    failed, _ = doctest.testmod(importlib.import_module(name), optionflags=FLAGS)
    assert failed == 0, capsys.readouterr().out


@pytest.mark.parametrize("kind", ["Engine", "Variable", "Operator", "Completion", "NDArray"])
def test_the_core_is_documented_and_its_examples_run(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    cls = getattr(weft, kind)
    finder, runner = doctest.DocTestFinder(), doctest.DocTestRunner(optionflags=FLAGS)
    assert cls.__doc__
    for name, member in vars(cls).items():
        if not name.startswith("_"):
            assert member.__doc__, f"{kind}.{name}"
            for case in finder.find(member, f"{kind}.{name}", globs={"weft": weft}):
                runner.run(case)
    assert runner.summarize(verbose=False).failed == 0, capsys.readouterr().out
