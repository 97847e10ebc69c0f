"""What notebooks show, in a notebook that is run."""

from __future__ import annotations

import html
import importlib
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import weft
from conftest import SOON

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

DOCS = Path(__file__).parents[2] / "docs"


def test_figures_are_tables_whatever_they_are_called(engine: weft.Engine) -> None:
    shown = engine._repr_html_()  # type: ignore[attr-defined]
    assert "<td>workers</td>" in shown
    with weft.trace(engine=engine) as trace:
        engine.push(lambda: None, name="<b>bold</b>")
    summary = trace.summary()._repr_html_()
    assert "&lt;b&gt;bold&lt;/b&gt;" in summary
    assert "<b>" not in summary
    page = trace._repr_html_()
    assert page.startswith("<iframe srcdoc=")
    assert "<script" not in page.split(">", 1)[0].replace("&lt;script", "")
    assert "</html>" in html.unescape(page)


def test_a_trace_that_has_not_ended_shows_itself(engine: weft.Engine) -> None:
    trace = weft.trace(engine=engine)
    assert "<table>" in trace._repr_html_()


def test_programs_and_symbols_are_drawn() -> None:
    step = weft.program(lambda x: weft.exp(x) * 2)
    assert step._repr_html_() is None, "there is nothing to be drawn yet"
    step(weft.ones(3))
    program = step.programs[-1]._repr_html_()
    assert program == step._repr_html_()
    assert program.count("<rect") == 4, "the page, the argument and two ops"
    many = weft.program(lambda x: sum((x * float(i) for i in range(300)), x))
    many(weft.ones(3))
    shown = many._repr_html_()
    assert shown is not None
    assert shown.count("<rect") < 300
    assert "the first 200 of" in shown
    symbol = weft.symbol.Variable("<a>") * 2
    assert "&lt;a&gt;" in symbol._repr_html_()


@pytest.mark.slow
def test_the_tutorial_is_a_notebook(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Made as the documentation makes it, from the page; what it shows is run by the tests of the page."""
    monkeypatch.syspath_prepend(str(DOCS / "_extensions"))
    cells = importlib.import_module("cells")
    text = cells.notebook_of((DOCS / "tutorial.md").read_text(encoding="utf-8"))
    book = nbformat.reads(text, as_version=4)
    nbformat.validate(book)
    code = [cell.source for cell in book.cells if cell.cell_type == "code"]
    assert len(code) >= 8
    assert any(source.startswith("%%weft_trace") for source in code)
    words = "".join(cell.source for cell in book.cells if cell.cell_type == "markdown")
    assert "{class}" not in words
    assert ".md" not in words
    assert "```" not in words
    monkeypatch.chdir(tmp_path)
    nbclient.NotebookClient(book, timeout=2 * SOON).execute()
    printed = "".join(
        str(output.get("text", "")) for cell in book.cells if "outputs" in cell for output in cell.outputs
    )
    assert "[ 0. 10. 20. 30.] [0. 0. 3. 4.]" in printed


@pytest.mark.slow
def test_a_notebook() -> None:
    cells = [
        "%load_ext weft\nimport weft",
        "%%weft_trace kept\nx = weft.ones(1000) + 1\nx.wait_to_read()",
        "kept.summary()",
        "weft.get_engine()",
        "%%weft_trace\nraise ValueError('in the cell')",
        "float(x.sum())",
        "with weft.progress(description='squares'):\n    (x * x).sum().wait_to_read()",
        "@weft.program\ndef step(x):\n    return weft.exp(x) + 1\nstep(x)\nstep",
        "step.programs[-1]",
        "weft.symbol.exp(weft.symbol.Variable('a'))",
    ]
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbclient.NotebookClient(book, timeout=2 * SOON, allow_errors=True).execute()

    def shown(at: int) -> dict[str, Any]:
        results = [each for each in book.cells[at].outputs if each.output_type in {"execute_result", "display_data"}]
        return dict(results[-1]["data"]) if results else {}

    # A kernel on a busy machine may complain of itself.
    said = [each for each in book.cells[0].outputs if each.get("name") != "stderr" or "weft" in each["text"]]
    assert not said
    assert shown(1)["text/html"].startswith("<iframe srcdoc=")
    assert "add" in shown(2)["text/html"]
    assert "<td>pushed</td>" in shown(3)["text/html"]
    assert any(each.output_type == "error" or "ValueError" in str(each) for each in book.cells[4].outputs)
    assert "text/html" not in shown(4)
    assert shown(5)["text/plain"] == "2000.0"
    assert '<progress value="' in shown(6)["text/html"]
    assert "squares" in shown(6)["text/html"]
    for at in (7, 8, 9):
        assert "<svg" in shown(at)["text/html"]
        assert "exp" in shown(at)["text/html"]


def test_a_failure_names_its_cell(monkeypatch: pytest.MonkeyPatch, engine: weft.Engine) -> None:
    code = compile(
        "def push(engine):\n    engine.push(lambda: 1 / 0, name='divide')\n", "/tmp/ipykernel_1/2.py", "exec"
    )
    names: dict[str, Any] = {}
    exec(code, names)
    shell = SimpleNamespace(compile=SimpleNamespace(_filename_map={"/tmp/ipykernel_1/2.py": 9}))
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    names["push"](engine)
    with pytest.raises(ZeroDivisionError) as caught:
        engine.wait_for_all()
    assert caught.value.__notes__ == ["weft: op 'divide' pushed at Cell In[9], line 2"]


def test_a_notebook_that_is_run_names_its_cells() -> None:
    cells = ["import weft", "x = 1\nweft.get_engine().push(lambda: 1 / 0, name='divide')\nweft.wait()"]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    client = nbclient.NotebookClient(notebook, timeout=SOON, kernel_name="python3", allow_errors=True)
    client.execute()
    (output,) = [each for each in notebook.cells[1].outputs if each.output_type == "error"]
    assert "op 'divide' pushed at Cell In[2], line 2" in "\n".join(output.traceback)
