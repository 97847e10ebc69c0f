"""`weft graph FILE`: files that are whole, that name ops nobody has, and that are damaged."""

from __future__ import annotations

import json
import re
import sys
from typing import TYPE_CHECKING, Any

import pytest

import weft
from weft.__main__ import main

if TYPE_CHECKING:
    from pathlib import Path


def _net() -> str:
    x, w = weft.symbol.Variable("x"), weft.symbol.Variable("w")
    return weft.symbol.tanh(weft.symbol.matmul(x, w, name="product"), name="result").tojson()


def _foreign() -> str:
    nodes: list[dict[str, Any]] = [
        {"op": "null", "name": "data", "inputs": []},
        {
            "op": "FullyConnected",
            "name": "fc",
            "attrs": {"num_hidden": "3", "no_bias": "True"},
            "inputs": [[0, 0, 0], [3, 0, 0]],
        },
        {"op": "NobodysOp", "name": "last", "attrs": {"spatial_scale": "0.0625"}, "inputs": [[1, 0, 0]]},
        {"op": "null", "name": "fc_weight", "inputs": []},
    ]
    return json.dumps(
        {"nodes": nodes, "arg_nodes": [0, 3], "heads": [[2, 0, 0]], "attrs": {"mxnet_version": ["int", 10900]}}
    )


@pytest.fixture
def shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """Return what the command says of a file with this text: its status, output and errors."""

    def show(text: str, *options: str) -> tuple[int, str, str]:
        file = tmp_path / "net-symbol.json"
        file.write_text(text)
        status = main(["graph", str(file), *options])
        found = capsys.readouterr()
        return status, found.out, found.err

    return show


def test_a_file_as_a_table_with_its_plan(shown: Any) -> None:
    status, out, _ = shown(_net(), "--shape", "x=2,3", "--shape", "w=3,4")
    assert status == 0
    assert "product" in out
    assert "(2, 4)" in out
    assert "memory plan: 32 bytes" in out
    _, out, _ = shown(_net())
    assert "no memory plan" in out
    assert "--shape" in out
    _, out, _ = shown(_net(), "--ir", "--shape", "x=2,3", "--shape", "w=3,4")
    assert "tanh(%2), shape=(2, 4)" in out


def test_ops_that_nobody_has_are_named(shown: Any) -> None:
    status, out, _ = shown(_foreign(), "--shape", "data=1,2")
    assert status == 0
    assert "NobodysOp(%2), spatial_scale='0.0625'  # last" in out
    assert "no op is registered as NobodysOp" in out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "this is no graph"),
        (_net()[:200], "this is no graph"),
        ('{"a": 1}', "no 'nodes'"),
        (_foreign().replace("[[1, 0, 0]]", "[[99, 0, 0]]"), "'last'.*node 99"),
    ],
)
def test_damaged_files_are_named_with_the_damage(shown: Any, text: str, said: str) -> None:
    status, out, err = shown(text)
    assert (status, out) == (2, "")
    assert re.search(f"net-symbol.json: .*{said}", err)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--shape", "x:5"], "--shape x:5: write a name and lengths"),
        (["--shape", "x=2,-3"], "write a name and lengths"),
        (["--shape", "q=5"], "no variable is named 'q': there are x, w"),
        (["--shape", "x=2,3", "--shape", "w=4,5"], "(2, 3)"),
        (["--draw", "net.bmp"], ".dot, .svg, .png or .pdf"),
        (["--import", "no.such.module"], "--import no.such.module: ModuleNotFoundError"),
        (["--draw", "/no such folder/net.svg"], "/no such folder/net.svg: No such file"),
    ],
)
def test_wrong_options_are_one_line(shown: Any, options: list[str], said: str) -> None:
    status, _, err = shown(_net(), *options)
    assert status != 0
    assert said in err
    assert "Traceback" not in err


def test_ops_of_a_module_are_imported_first(shown: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ops_of_mine_for_the_command.py").write_text(
        "import weft\n@weft.register_op('NobodysOwnOp', infer=lambda x: x)\ndef op(out, x):\n    out[...] = x\n"
    )
    net = json.loads(_net())
    next(node for node in net["nodes"] if node["op"] == "tanh")["op"] = "NobodysOwnOp"
    shapes = ("--shape", "x=2,3", "--shape", "w=3,4")
    _, out, _ = shown(json.dumps(net), *shapes)
    assert "no op is registered as NobodysOwnOp" in out
    before = list(sys.path)
    _, out, _ = shown(json.dumps(net), *shapes, "--import", "ops_of_mine_for_the_command")
    assert "memory plan: " in out
    assert sys.path == before
