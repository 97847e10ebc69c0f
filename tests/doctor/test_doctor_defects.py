"""Each seeded defect is found, at its line, and is one finding."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from clean import CLEAN
from defects import DEFECTS
from seeded import examined

from conftest import SOON, script_env

if TYPE_CHECKING:
    from pathlib import Path


#: Of a native function the doctor knows an address alone, which in this process arrays of other tests may have had.
ALONE = "a native function"


def test_a_seeded_defect_is_found_by_address(tmp_path: Path) -> None:
    kind, source = DEFECTS[ALONE]
    (tmp_path / "script.py").write_text(source, encoding="utf-8")
    subprocess.run(
        [sys.executable, "-m", "weft", "doctor", "--json", "report.json", "script.py"],
        cwd=tmp_path,
        env=script_env(),
        capture_output=True,
        timeout=4 * SOON,
        check=False,
    )
    found = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))["findings"]
    lines = [number for number, line in enumerate(source.splitlines(), 1) if line.endswith("# here")]
    assert [(one["kind"], one["line"]) for one in found if one["severity"] == "error"] == [(kind, lines[0])]


@pytest.mark.parametrize("name", [name for name in DEFECTS if name != ALONE])
def test_a_seeded_defect_is_found_at_its_line(name: str, tmp_path: Path) -> None:
    kind, source = DEFECTS[name]
    path = tmp_path / "script.py"
    path.write_text(source, encoding="utf-8")
    lines = [number for number, line in enumerate(source.splitlines(), 1) if line.endswith("# here")]
    found = examined(path, advice=kind not in {"undeclared-write", "undeclared-read", "nondeterministic", "first-nan"})
    if kind in {"undeclared-write", "undeclared-read", "nondeterministic", "first-nan"}:
        assert [(one.kind, one.line) for one in found] == [(kind, line) for line in lines], [str(one) for one in found]
    else:
        assert (kind, lines[0]) in [(one.kind, one.line) for one in found], [str(one) for one in found]
        assert not [str(one) for one in found if one.severity == "error"]


@pytest.mark.parametrize("name", CLEAN)
def test_nothing_is_said_of_a_clean_script(name: str, tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text(CLEAN[name], encoding="utf-8")
    assert [str(one) for one in examined(path) if one.severity == "error"] == []
