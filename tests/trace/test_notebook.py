"""What notebooks show, in a notebook that is run."""

from __future__ import annotations

import html
from typing import Any

import pytest

import weft

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")


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


@pytest.mark.slow
def test_a_notebook() -> None:
    cells = [
        "%load_ext weft\nimport weft",
        "%%weft_trace kept\nx = weft.ones(1000) + 1\nx.wait_to_read()",
        "kept.summary()",
        "weft.get_engine()",
        "%%weft_trace\nraise ValueError('in the cell')",
        "float(x.sum())",
    ]
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbclient.NotebookClient(book, timeout=50, allow_errors=True).execute()

    def shown(at: int) -> dict[str, Any]:
        results = [each for each in book.cells[at].outputs if each.output_type in {"execute_result", "display_data"}]
        return dict(results[-1]["data"]) if results else {}

    assert not book.cells[0].outputs
    assert shown(1)["text/html"].startswith("<iframe srcdoc=")
    assert "add" in shown(2)["text/html"]
    assert "<td>pushed</td>" in shown(3)["text/html"]
    assert any(each.output_type == "error" or "ValueError" in str(each) for each in book.cells[4].outputs)
    assert "text/html" not in shown(4)
    assert shown(5)["text/plain"] == "2000.0"
