"""``weft bench plan``: files read, placements verified, mistakes told."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest
from calling import call, mistake

from weft._command.running import CommandError
from weft.bench.plan.instances import read, read_folder
from weft.bench.plan.measuring import verify
from weft.bench.samples import VerificationError

if TYPE_CHECKING:
    from pathlib import Path

ROWS = "id,lower,upper,size\na,0,3,4\nb,3,9,4\nc,0,9,4\nd,9,21,4\ne,0,21,4\n"


def test_each_file_is_planned_by_rule_and_within_its_capacity(tmp_path: Path) -> None:
    (tmp_path / "small.12.csv").write_text(ROWS)
    (tmp_path / "other.csv").write_text("start,end,size,buffer\n0,2,8,x\n1,3,8,y\n")
    done = call("bench", "plan", str(tmp_path), "--reps", "2", "--json", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    other, small = json.loads(done.stdout)["files"]
    assert (small["name"], small["intervals"], small["peak"], small["capacity"]) == ("small", 5, 12, 12)
    assert (small["by_rule"], small["searched"], len(small["rule_seconds"])) == (12, 12, 2)
    assert (other["name"], other["peak"], other["capacity"]) == ("other", 16, 16)
    done = call("bench", "plan", str(tmp_path), "--reps", "1", folder=tmp_path)
    assert "by rule / peak" in done.stdout
    assert "MiniMalloc, s" not in done.stdout


def test_networks_are_planned_instead_of_files(tmp_path: Path) -> None:
    from weft.bench.plan import networks

    names = [network.name for network in networks.NETWORKS]
    assert len(names) == len(set(names)) == 7
    done = call("bench", "plan", folder=tmp_path)
    assert done.returncode == 2
    assert "FOLDER" in done.stderr
    assert "--networks" in done.stderr


def test_a_peer_is_timed_in_turns(tmp_path: Path) -> None:
    (tmp_path / "small.12.csv").write_text(ROWS)
    program = tmp_path / "peer"
    program.write_text(f"#!{sys.executable}\nimport sys\nassert '--capacity=12' in sys.argv\n")
    program.chmod(0o755)
    done = call("bench", "plan", str(tmp_path), "--reps", "1", "--minimalloc", str(program), folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "search / MiniMalloc" in done.stdout
    program.write_text(f"#!{sys.executable}\nraise SystemExit(3)\n")
    done = call("bench", "plan", str(tmp_path), "--reps", "1", "--minimalloc", str(program), folder=tmp_path)
    assert done.returncode == 2
    assert "exit status 3" in done.stderr


def test_a_capacity_that_cannot_be_met_is_a_row(tmp_path: Path) -> None:
    (tmp_path / "small.csv").write_text(ROWS)
    done = call("bench", "plan", str(tmp_path), "--reps", "1", "--capacity", "11", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "not found" in done.stdout


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, r"there are no \.csv files"),
        ("id,lower,size\n", "names no column upper or end"),
        ("lower,upper,size\n1,2\n", "line 2: size is None, no integer"),
        ("lower,upper,size\n1,2,x\n", "line 2: size is 'x', no integer"),
    ],
)
def test_files_of_another_kind_are_refused(text: str | None, said: str, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / "a.csv").write_text(text)
    with pytest.raises(CommandError, match=said):
        read_folder(tmp_path)


def test_mistakes_are_told(tmp_path: Path) -> None:
    assert "there is no such folder" in mistake(call("bench", "plan", str(tmp_path / "none"), folder=tmp_path))


def test_a_placement_that_overlaps_is_found(tmp_path: Path) -> None:
    path = tmp_path / "small.csv"
    path.write_text(ROWS)
    instance = read(path)
    assert verify(instance, np.array([8, 8, 4, 4, 0])) == 12
    with pytest.raises(VerificationError, match="small: intervals"):
        verify(instance, np.array([8, 8, 4, 0, 0]))
