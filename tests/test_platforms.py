"""The platforms that wheels are promised for: every place that lists them lists the same; and what a wheel must not be."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from weft._core import _target, vectors
from weft._machine.platforms import PLATFORMS, platform

ROOT = Path(__file__).parent.parent


def read(name: str) -> str:
    """A file of the checkout."""
    return (ROOT / name).read_text(encoding="utf-8")


def test_this_one_is_known_and_said() -> None:
    assert platform() == f"{_target}: {PLATFORMS[_target]}"


def test_the_page_says_what_the_command_says() -> None:
    assert (
        dict(re.findall(r"^\| `([a-z0-9_]+-[a-z0-9_-]+)` \| ([^|]+) \|", read("docs/platforms.md"), re.MULTILINE))
        == PLATFORMS
    )


def test_every_one_is_checked_or_is_where_the_tests_run() -> None:
    (listed,) = re.findall(r"all=\((.*?)\)", read(".ci/cross"), re.DOTALL)
    assert {*listed.split(), "x86_64-unknown-linux-gnu"} == set(PLATFORMS)


def test_the_workflows_make_a_wheel_for_each() -> None:
    jobs = read(".github/workflows/wheels.yml")
    (libcs,), (machines,) = (re.findall(rf"{key}: \[(.*?)\]", jobs) for key in ("libc", "target"))
    names = {'"2_28"': "gnu", "musllinux_1_2": "musl"}
    made = {f"{machine}-unknown-linux-{names[libc]}" for libc in libcs.split(", ") for machine in machines.split(", ")}
    for runner, target in re.findall(r"- runner: (macos-\S+|windows-\S+)\n\s+target: (\S+)", jobs):
        machine = {"x64": "x86_64"}.get(target, target)
        made.add(f"{machine}-{'apple-darwin' if runner.startswith('macos') else 'pc-windows-msvc'}")
    assert {*made, "x86_64-pc-windows-gnu"} == set(PLATFORMS)


def test_the_page_names_the_vectors() -> None:
    page = read("docs/platforms.md")
    assert all(f"`{name}`" in page for name in vectors()[1])


@pytest.mark.parametrize(
    ("tag", "needed", "refused"),
    [
        ("manylinux_2_28_x86_64", b"\0libgcc_s.so.1\0", False),
        ("manylinux_2_28_aarch64", b"\0libc.so.6\0", True),
        ("linux_x86_64", b"\0libc.so.6\0", True),
        ("musllinux_1_2_x86_64", b"\0libc.so\0", False),
        ("win_amd64", b"", False),
    ],
)
def test_a_wheel_for_glibc_brings_no_unwinder_of_its_own(
    tmp_path: Path, tag: str, needed: bytes, refused: bool
) -> None:
    wheel = tmp_path / f"weft-0.1.0-cp311-abi3-{tag}.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("weft/_core.abi3.so", b"\x7fELF" + needed)
    command = [sys.executable, ROOT / ".ci" / "wheel.py", "unwinders", wheel]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert bool(done.returncode) == refused
    assert ("libgcc_s" in done.stderr) == refused
