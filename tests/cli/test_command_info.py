"""``weft info``: it says what is there, in words and as JSON, and imports nobody's GPU library for it."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from calling import call

import weft
from weft._command.environment import VARIABLES
from weft._machine.processors import cpu_quota, processor_name, usable_cpus

if TYPE_CHECKING:
    from conftest import RunScript

ROOT = Path(__file__).parent.parent.parent


def test_it_says_what_weft_runs_on(tmp_path: Path) -> None:
    done = call("info", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    for section in ("Versions", "Processors", "GPUs", "BLAS", "Kernels of networks", "Default engine", "Environment"):
        assert re.search(rf"^{section}$", done.stdout, re.MULTILINE), section
    assert re.search(rf"^weft +{re.escape(weft.__version__)}$", done.stdout, re.MULTILINE)
    assert re.search(rf"^numpy +{re.escape(np.__version__)}$", done.stdout, re.MULTILINE)


def test_json_holds_the_same(tmp_path: Path) -> None:
    done = call("info", "--json", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["versions"]["weft"] == weft.__version__
    assert found["versions"]["build"] == "release"
    assert found["processors"]["cpus_usable"] == usable_cpus()
    assert found["default_engine"]["policy"] == "work_stealing"
    assert found["default_engine"]["max_pending_ops"] == 1_048_576
    assert all(library["threads"] >= 1 for library in found["blas"]["libraries"])
    assert found["environment"]["WEFT_POLICY"]["value"] is None


@pytest.mark.slow
def test_the_environment_decides_and_is_shown(tmp_path: Path) -> None:
    done = call("info", "--json", folder=tmp_path, WEFT_POLICY="per_device", WEFT_WORKERS="3", WEFT_WORKER="4")
    found = json.loads(done.stdout)
    assert found["default_engine"]["policy"] == "per_device"
    assert found["default_engine"]["workers"] == 3
    assert found["environment"]["WEFT_WORKERS"]["value"] == "3"
    assert found["environment"]["WEFT_WORKER"] == {"value": "4", "sets": None}
    text = call("info", folder=tmp_path, WEFT_WORKER="4").stdout
    assert "'4', but weft reads no such variable" in text


def test_an_environment_that_makes_no_engine_is_told(tmp_path: Path) -> None:
    done = call("info", folder=tmp_path, WEFT_POLICY="eager")
    assert done.returncode == 1
    assert "WEFT_POLICY=eager" in done.stdout
    assert "Traceback" not in done.stderr


def test_every_variable_that_is_read_is_listed() -> None:
    read = {
        name
        for path in Path(weft.__file__).parent.rglob("*.py")
        for name in re.findall(r"environ(?:\.get\(|\[)\"(WEFT_[A-Z_]+)\"", path.read_text(encoding="utf-8"))
        if name != "WEFT_WORKER"  # the misspelling in an example
    }
    assert read <= set(VARIABLES)
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    assert set(re.findall(r"WEFT_[A-Z_]+", page)) == set(VARIABLES)


def test_asking_imports_no_cupy_and_starts_no_thread(script: RunScript) -> None:
    done = script("""
        import sys, threading
        from weft._command.environment_report import facts
        facts()
        assert "cupy" not in sys.modules
        assert threading.active_count() == 1
    """)
    assert done.returncode == 0, done.stderr


def test_affinity_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {3, 5}, raising=False)
    assert usable_cpus() == 2


def write(path: Path, text: str) -> None:
    """Write a file of a made-up cgroup."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def test_quota_of_cgroups_2_is_the_smallest_on_the_way_up(tmp_path: Path) -> None:
    groups, membership = tmp_path / "cgroup", tmp_path / "self"
    write(membership, "0::/user/job\n")
    write(groups / "user" / "job" / "cpu.max", "max 100000\n")
    assert cpu_quota(groups, membership) is None
    write(groups / "user" / "cpu.max", "150000 100000\n")
    write(groups / "cpu.max", "400000 100000\n")
    assert cpu_quota(groups, membership) == 1.5


def test_quota_of_cgroups_1(tmp_path: Path) -> None:
    groups, membership = tmp_path / "cgroup", tmp_path / "self"
    write(membership, "4:memory:/job\n3:cpu,cpuacct:/job\n")
    write(groups / "cpu" / "job" / "cpu.cfs_quota_us", "-1\n")
    write(groups / "cpu" / "job" / "cpu.cfs_period_us", "100000\n")
    assert cpu_quota(groups, membership) is None
    write(groups / "cpu" / "job" / "cpu.cfs_quota_us", "50000\n")
    assert cpu_quota(groups, membership) == 0.5


def test_no_cgroups_no_quota(tmp_path: Path) -> None:
    assert cpu_quota(tmp_path, tmp_path / "missing") is None


def test_the_processor_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cpuinfo", SimpleNamespace(get_cpu_info=lambda: {"brand_raw": "Other CPU"}))
    described = tmp_path / "cpuinfo"
    write(described, "processor\t: 0\nmodel\t\t: 85\nmodel name\t: Some CPU @ 2 GHz\n\nprocessor\t: 1\n")
    assert processor_name(described) == "Some CPU @ 2 GHz"
    write(described, "processor\t: 0\nCPU architecture: 8\n")
    assert processor_name(described) == processor_name(tmp_path / "missing") == "Other CPU"
