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
from seeds_access import ACCESSES
from seeds_clean import MORE
from seeds_time import HABITS
from seeds_values import VALUES

from conftest import SOON, script_env
from weft._doctor.findings import KINDS
from weft._machine.processors import usable_cpus
from weft._machine.software import blas

if TYPE_CHECKING:
    from pathlib import Path

SEEDED = {**DEFECTS, **ACCESSES, **VALUES, **HABITS}
#: What differs from process to process, and not from run to run in this one.
ALONE = ("hashes of strings",)
_TAGS = {"undeclared-write": ("weft.Mutate", "mutate_vars"), "undeclared-read": ("weft.Read", "read_vars")}


def lines_of(source: str) -> list[int]:
    return [number for number, line in enumerate(source.splitlines(), 1) if line.endswith("# here")]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [*ALONE, "a native function", "a task in a task", "in a program", "an op of a program", "a scan"]
)
def test_a_seeded_defect_is_found_by_the_command(name: str, tmp_path: Path) -> None:
    kind, source = SEEDED[name]
    (tmp_path / "script.py").write_text(source, encoding="utf-8")
    subprocess.run(
        [sys.executable, "-m", "weft", "doctor", "--only", kind, "--json", "report.json", "script.py"],
        cwd=tmp_path,
        env=script_env(),
        capture_output=True,
        timeout=4 * SOON,
        check=False,
    )
    found = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))["findings"]
    assert [(one["kind"], one["line"]) for one in found] == [(kind, line) for line in lines_of(source)]


@pytest.mark.parametrize("name", [name for name in SEEDED if name not in ALONE])
def test_a_seeded_defect_is_found_at_its_line(name: str, tmp_path: Path) -> None:
    kind, source = SEEDED[name]
    if kind == "too-many-threads" and (usable_cpus() < 2 or not any(each["threads"] > 1 for each in blas())):
        pytest.skip("it takes threadpoolctl, two processors, and a BLAS of several threads")
    path = tmp_path / "script.py"
    path.write_text(source, encoding="utf-8")
    lines = lines_of(source)
    if KINDS[kind] == "error":
        found = examined(path, advice=False)
        assert [(one.kind, one.line) for one in found] == [(kind, line) for line in lines], [str(one) for one in found]
        if kind in _TAGS:
            assert any(tag in found[0].message + found[0].advice for tag in _TAGS[kind])
    else:
        found = examined(path, advice=True)
        assert (kind, lines[0]) in [(one.kind, one.line) for one in found], [str(one) for one in found]
        assert [one.kind for one in found].count(kind) == 1
        assert not [str(one) for one in found if one.severity == "error"]


@pytest.mark.parametrize("name", [*CLEAN, *MORE])
def test_nothing_is_said_of_a_clean_script(name: str, tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text(CLEAN.get(name) or MORE[name], encoding="utf-8")
    assert [str(one) for one in examined(path, advice=False, seeds=range(1, 3))] == []
