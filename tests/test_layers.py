"""The house keeps its layers: read from manifests and sources, so that no review has to."""

from __future__ import annotations

import ast
import functools
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
CRATES = ROOT / "crates"
ENGINE = CRATES / "engine" / "src"
FORBIDDEN_NAMES = {"utils", "util", "common", "misc", "helpers"}
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


def manifest(crate: str) -> dict[str, Any]:
    """A crate's Cargo.toml."""
    return tomllib.loads((CRATES / crate / "Cargo.toml").read_text(encoding="utf-8"))


def dependencies(table: dict[str, Any]) -> set[str]:
    """The crates that a manifest names, for any target and purpose."""
    names: set[str] = set()
    for key, value in table.items():
        if key in {"dependencies", "dev-dependencies", "build-dependencies"}:
            names |= {spec.get("package", name) if isinstance(spec, dict) else name for name, spec in value.items()}
        elif isinstance(value, dict):
            names |= dependencies(value)
    return names


@functools.cache
def code(path: Path) -> str:
    """A Rust file without its comments."""
    return COMMENT.sub("", path.read_text(encoding="utf-8"))


def sources(folder: Path) -> list[Path]:
    """The Rust files below a folder."""
    found = sorted(path for path in folder.rglob("*.rs") if "target" not in path.parts)
    assert found
    return found


def test_engine_knows_neither_python_nor_cuda() -> None:
    assert not dependencies(manifest("engine")) & {
        "pyo3",
        "numpy",
        "cudarc",
        "weft-array",
        "weft-cuda",
        "weft-bindings",
    }
    for path in sources(CRATES / "engine"):
        assert not re.search(r"\b(pyo3|cudarc|weft_array|weft_cuda)\b", code(path)), path


def test_arrays_know_no_python() -> None:
    assert not dependencies(manifest("array")) & {"pyo3", "numpy", "weft-bindings"}
    assert "weft-engine" in dependencies(manifest("array"))


def test_cuda_knows_neither_python_nor_arrays() -> None:
    found = dependencies(manifest("cuda"))
    assert not found & {"pyo3", "numpy", "weft-array", "weft-bindings"}
    assert "weft-engine" in found
    for path in sources(CRATES / "cuda"):
        assert not re.search(r"\b(pyo3|weft_array)\b", code(path)), path


def test_only_cuda_names_the_driver() -> None:
    members = [path.parent.name for path in CRATES.glob("*/Cargo.toml")]
    assert {name for name in members if "cudarc" in dependencies(manifest(name))} <= {"cuda"}
    assert {name for name in members if "libloading" in dependencies(manifest(name))} <= {"cuda", "mpi", "onednn"}


def test_onednn_knows_nothing_of_the_house_and_kernels_no_python() -> None:
    assert not {name for name in dependencies(manifest("onednn")) if name.startswith(("weft-", "pyo3"))}
    found = dependencies(manifest("kernels"))
    assert {"weft-array", "weft-onednn"} <= found
    assert not found & {"pyo3", "weft-program", "weft-bindings", "libloading"}


def test_devices_join_arrays_and_cuda_without_python() -> None:
    found = set(manifest("device")["dependencies"])  # its tests run programs
    assert {"weft-array", "weft-cuda", "weft-engine"} <= found
    assert not found & {"pyo3", "cudarc", "libloading", "weft-program", "weft-bindings"}
    assert not dependencies(manifest("program")) & {"pyo3", "weft-cuda", "weft-device", "weft-bindings"}


def test_mpi_shapes_and_the_planner_know_nothing_of_the_house() -> None:
    for crate in ("mpi", "plan", "shape"):
        assert not {name for name in dependencies(manifest(crate)) if name.startswith(("weft-", "pyo3"))}


def test_programs_stand_on_the_planner_and_not_on_graphs() -> None:
    assert "weft-plan" in dependencies(manifest("program"))
    assert "weft-graph" not in dependencies(manifest("program"))


def test_only_bindings_names_pyo3() -> None:
    members = [path.parent.name for path in CRATES.glob("*/Cargo.toml")]
    assert {name for name in members if "pyo3" in dependencies(manifest(name))} == {"bindings"}
    assert "weft-engine" in dependencies(manifest("bindings"))


def test_atomics_live_in_sync_alone() -> None:
    names = r"\b(?:std|core)::sync::(?:atomic\b|\{[^;]*\batomic\b)|\b(?:std|core)::\{[^;]*\batomic\b"
    for crate in CRATES.iterdir():
        if not (crate / "Cargo.toml").exists():
            continue
        for path in sources(crate / "src"):
            if path.is_relative_to(ENGINE / "sync") or path == ENGINE / "sync.rs":
                continue
            assert not re.search(names, code(path)), path


#: A function for Python, or a method: how it begins, and how what it takes is written.
BEGINS = re.compile(r"^(?:    fn |pub\(crate\) fn )(\w+)", re.MULTILINE)
ASKS = re.compile(r"\bnow\b|\b(?:stand_in|elsewhere|taken|is_plain|entry_of|at)\(")
#: They ask by what they call, or take only what was just made.
ASKED_BY_OTHERS = {"fresh_cast", "fresh_reduction", "fresh_unary", "tape_hear_unary", "tape_hear_view"}


def doors(path: Path) -> dict[str, str]:
    """What Python calls with arrays, by name: methods, and functions that are marked so."""
    text = code(path)
    found = {}
    for begin in BEGINS.finditer(text):
        indent = begin[0].partition("fn ")[0].replace("pub(crate) ", "")
        whole = text[begin.start() :].partition(f"\n{indent}}}\n")[0]
        marked = bool(indent) or "#[pyfunction]" in text[: begin.start()].rpartition("}\n")[2]
        if marked and "NDArray>" in whole.partition("{")[0].partition("->")[0]:
            found[begin[1]] = whole
    return found


def test_whoever_takes_an_array_from_python_asks_where_it_is() -> None:
    known = {name: body for path in sources(CRATES / "bindings" / "src") for name, body in doors(path).items()}
    assert {name for name, body in known.items() if not ASKS.search(body)} == ASKED_BY_OTHERS
    assert len(known) > 40


def test_pools_know_no_variables() -> None:
    for path in sources(ENGINE / "pool"):
        assert not re.search(r"\bcrate::var\b", code(path)), path


def listed_rooms() -> dict[str, list[str]]:
    """The rooms of each crate in the order of its table in ARCHITECTURE.md: each knows those before it alone."""
    rooms: dict[str, list[str]] = {}
    crate, rows = "", 0
    for line in (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("|"):
            if crate and (rows := rows + 1) > 2:  # behind the head and the rule below it
                rooms.setdefault(crate, []).extend(re.findall(r"`(\w+)`", line.split("|")[1]))
        elif headed := re.search(r"\bof `crates/(\w+)`", line):
            crate, rows = headed[1], 0
        elif line:
            crate = ""
    return rooms


def used_paths(tree: str) -> list[str]:
    """The paths that a `use` names, one for each name: `a::{b, c::{d}}` is `a::b` and `a::c::d`."""
    paths, depth, part = [], 0, ""
    for character in f"{tree},":
        depth += {"{": 1, "}": -1}.get(character, 0)
        if character == "," and not depth:
            prefix, brace, inner = part.strip().partition("{")
            if brace:
                paths += [prefix + path for path in used_paths(inner.rpartition("}")[0])]
            elif prefix:
                paths.append(re.sub(r"\s+as\s+\w+", "", prefix))
            part = ""
        else:
            part += character
    return paths


USE = re.compile(r"\buse\s+([^;]+);")


def homes(crate: str) -> dict[str, str]:
    """The room of each name that a crate's root shows, be it for its own use: the home of a type or a module."""
    paths = [path for use in USE.findall(code(CRATES / crate / "src" / "lib.rs")) for path in used_paths(use)]
    return {path.rpartition("::")[2]: path.removeprefix("crate::").partition("::")[0] for path in paths}


def known_names(path: Path, depth: int) -> set[str]:
    """What a file, `depth` modules below the root of its crate, takes from there: by `use`, or by a path inside its code."""
    text = code(path)
    paths = [found for use in USE.findall(text) for found in used_paths(use)]
    paths += re.findall(r"\b(?:crate|(?:super::)*super)(?:::\w+)+", USE.sub("", text))
    names: set[str] = set()
    for found in paths:
        first, *rest = found.split("::")
        ups = 0
        while first == "super":
            ups, first, rest = ups + 1, rest[0] if rest else "", rest[1:]
        if first == "crate" and rest:
            names.add(rest[0])
        elif ups >= depth and first:
            names.add(first)
    return names


LISTED = listed_rooms()


@pytest.mark.parametrize("crate", sorted(path.parent.name for path in CRATES.glob("*/Cargo.toml")))
def test_rooms_import_one_way(crate: str) -> None:
    folder, rooms = CRATES / crate / "src", LISTED[crate]
    found = {path.stem for path in folder.iterdir()} - {"lib", "loom_tests"}
    assert sorted(rooms) == sorted(found), "the table in ARCHITECTURE.md lists each room, once"
    shown = homes(crate)
    for at, room in enumerate(rooms):
        for path in sources(folder / room) if (folder / room).is_dir() else [folder / f"{room}.rs"]:
            inside = path.relative_to(folder).with_suffix("").parts
            depth = len(inside) - (inside[-1] == "mod")
            known = {shown.get(name, name) for name in known_names(path, depth)}
            assert not known & set(rooms[at + 1 :]), path


def test_paths_of_a_use_are_read() -> None:
    assert used_paths("crate::{a, b::{C, self}, d as e}") == ["crate::a", "crate::b::C", "crate::b::self", "crate::d"]


def test_variables_know_no_threads() -> None:
    for path in sources(ENGINE / "var"):
        assert not re.search(r"\bstd::thread\b|\bthread::spawn\b", code(path)), path


def test_no_room_for_odds_and_ends() -> None:
    for folder in (CRATES, ROOT / "python", ROOT / "tests", ROOT / "benches"):
        for path in folder.rglob("*"):
            assert path.stem not in FORBIDDEN_NAMES, path


class AtRunTime(ast.NodeTransformer):
    """Leaves out what type checkers alone see."""

    def visit_If(self, node: ast.If) -> list[ast.stmt] | ast.AST:
        checked = "TYPE_CHECKING" in ast.unparse(node.test)
        return [self.visit(child) for child in node.orelse] if checked else self.generic_visit(node)


def test_python_imports_the_standard_library_and_numpy_alone() -> None:
    for path in (ROOT / "python").rglob("*.py"):
        for node in ast.walk(AtRunTime().visit(ast.parse(path.read_text(encoding="utf-8")))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                names.append(node.module or "")
            roots = {name.partition(".")[0] for name in names}
            assert roots <= set(sys.stdlib_module_names) | {"annotationlib", "weft", "numpy"}, (
                path
            )  # the first from 3.14 on


def test_python_starts_no_thread_of_its_own() -> None:
    package = ROOT / "python" / "weft"
    for path in package.rglob("*.py"):
        # The benchmarks run peers, and ask the C library for native ops; the driver is asked for its devices.
        if path.is_relative_to(package / "bench") or path == package / "_machine" / "gpus.py":
            continue
        if path == package / "_program" / "unrecorded.py":
            continue  # what is not to be recorded is made on a thread that does not record
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"\bimport Thread\b|\bthreading\.Thread\(|ThreadPoolExecutor\(|\bimport ctypes\b", text), (
            path
        )


#: How a call of an array function walks: each stage knows those before it, and none after.
STAGES = ("scalars", "operands", "plans", "outputs", "callables", "copies", "door", "dispatch")


@pytest.mark.parametrize("stage", STAGES)
def test_a_call_walks_one_way(stage: str) -> None:
    later = set(STAGES[STAGES.index(stage) + 1 :])
    path = ROOT / "python" / "weft" / "_call" / f"{stage}.py"
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module == "weft._ops":
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("weft._call."):
            names.add((node.module or "").rpartition(".")[2])
    assert not names & later
