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
    loading = {name for name in members if "libloading" in dependencies(manifest(name))}
    assert loading <= {"bindings", "cuda", "mpi", "onednn"}
    finding = [path for path in sources(CRATES / "bindings") if "libloading" in code(path)]
    assert [path.name for path in finding] == ["loose.rs"]  # a function of the interpreter


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
ASKS = re.compile(r"\bnow\b|\b(?:stand_in|elsewhere|taken|is_plain|entry_of|at|all_now)\(")
#: They ask by what they call, or take only what was just made.
ASKED_BY_OTHERS = {"tape_hear_view"}


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
    assert len(known) > 30


def test_pools_know_no_variables() -> None:
    for path in sources(ENGINE / "pool"):
        assert not re.search(r"\bcrate::var\b", code(path)), path


def listed_rooms() -> dict[str, list[str]]:
    """The rooms of each crate, and of the Python package, in the order of its table in ARCHITECTURE.md: each knows those before it alone."""
    rooms: dict[str, list[str]] = {}
    crate, rows = "", 0
    for line in (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("|"):
            if crate and (rows := rows + 1) > 2:  # behind the head and the rule below it
                rooms.setdefault(crate, []).extend(re.findall(r"`(\w+)`", line.split("|")[1]))
        elif headed := re.search(r"\bof `(?:crates|python)/(\w+)`", line):
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


FOLDERS = ("crates", "python", "tests", "docs", "benches", "packaging")


def test_the_paths_of_the_page_are_those_of_one_file_each() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([\w.-]+(?:/[\w.-]+)+\.(?:rs|py|md))`", page))
    files = [
        f"/{path.relative_to(ROOT).as_posix()}"
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*.*")
        if path.suffix in {".rs", ".py", ".md"} and "target" not in path.parts
    ]
    ends = {name: [file for file in files if file.endswith(f"/{name}")] for name in named}
    assert {name: found for name, found in ends.items() if len(found) != 1} == {}
    assert len(named) > 60


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


@functools.cache
def imports_at_run_time(path: Path) -> list[ast.Import | ast.ImportFrom]:
    """The statements of a file that import, at its top or in a function."""
    tree = AtRunTime().visit(ast.parse(path.read_text(encoding="utf-8")))
    return [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]


def test_python_imports_the_standard_library_and_numpy_alone() -> None:
    allowed = {*sys.stdlib_module_names, "annotationlib", "weft", "numpy"}  # the first from 3.14 on
    for path in (ROOT / "python").rglob("*.py"):
        for node in imports_at_run_time(path):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                names.append(node.module or "")
            roots = {name.partition(".")[0] for name in names}
            assert roots <= allowed, path


def test_python_starts_no_thread_of_its_own() -> None:
    package = ROOT / "python" / "weft"
    for path in package.rglob("*.py"):
        # The benchmarks run peers, and ask the C library for native ops; the driver is asked for its devices.
        if path.is_relative_to(package / "bench") or path == package / "_machine" / "gpus.py":
            continue
        if path == package / "_program" / "unrecorded.py":
            continue  # what is not to be recorded is made on a thread that does not record
        if path == package / "_trace" / "renewing.py":
            continue  # what is shown while the caller waits
        if path == package / "_doctor" / "traces.py":
            continue  # traces that pause while the script runs
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"\bimport Thread\b|\bthreading\.Thread\(|ThreadPoolExecutor\(|\bimport ctypes\b", text), (
            path
        )


PACKAGE = ROOT / "python" / "weft"
#: These know every room.
ENTRIES = {"weft", "weft.__main__"}


def modules() -> dict[str, Path]:
    """The modules of the Python package, by name."""
    files = {path: path.relative_to(PACKAGE.parent).with_suffix("") for path in PACKAGE.rglob("*.py")}
    return {".".join(name.parts).removesuffix(".__init__"): path for path, name in files.items()}


MODULES = modules()


@functools.cache
def imported(module: str) -> set[str]:
    """The modules of the package that one of them imports, at its top or in a function; the package itself by ``import weft``."""
    found: set[str] = set()
    for node in imports_at_run_time(MODULES[module]):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.partition(".")[0] == "weft"}
        elif not node.level and (node.module or "").partition(".")[0] == "weft":
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in MODULES or name == "weft._core" else str(node.module) for name in names}
    return found - {module, "weft._core"}


def room_of(module: str) -> str:
    """The room of a module."""
    return module.split(".")[1]


def test_the_table_lists_the_rooms_of_the_package() -> None:
    assert sorted(LISTED["weft"]) == sorted({room_of(name) for name in MODULES if name not in ENTRIES})


@pytest.mark.parametrize("room", LISTED["weft"])
def test_rooms_of_the_package_import_one_way(room: str) -> None:
    later = set(LISTED["weft"][LISTED["weft"].index(room) + 1 :])
    against = [
        f"{module} imports {name}"
        for module in MODULES
        if module not in ENTRIES and room_of(module) == room
        for name in imported(module)
        if name not in ENTRIES and room_of(name) in later
    ]
    assert not against


def tabled(package: Path) -> list[str]:
    """The modules that the table at the head of a package names; none if it has no table."""
    head = ast.get_docstring(ast.parse((package / "__init__.py").read_text(encoding="utf-8"))) or ""
    rows = [line for line in head.splitlines() if line.startswith("|")][2:]  # behind the head and the rule below it
    return re.findall(r"`(\w+)`", "\n".join(row.split("|")[1] for row in rows))


TABLED = sorted(path.parent for path in PACKAGE.rglob("__init__.py") if tabled(path.parent))


@pytest.mark.parametrize("package", TABLED, ids=lambda package: package.name)
def test_the_table_of_a_package_lists_its_modules(package: Path) -> None:
    found = {path.stem for path in package.glob("*.py")} | {path.parent.name for path in package.glob("*/__init__.py")}
    assert sorted(tabled(package)) == sorted(found - {"__init__", "__main__"})


def test_private_rooms_do_not_import_the_whole_package() -> None:
    ends = {"_command", "bench"}
    for module in MODULES:
        if module not in ENTRIES and room_of(module).startswith("_") and room_of(module) not in ends:
            assert "weft" not in imported(module), module


def circles(arrows: dict[str, set[str]]) -> list[set[str]]:
    """The sets of modules that reach each other, of two and more."""

    def reached(start: str, ways: dict[str, set[str]]) -> set[str]:
        seen, ahead = {start}, [start]
        while ahead:
            new = ways[ahead.pop()] - seen
            seen |= new
            ahead += new
        return seen

    back: dict[str, set[str]] = {module: set() for module in arrows}
    for module, names in arrows.items():
        for name in names:
            back[name].add(module)
    found = {frozenset(reached(module, arrows) & reached(module, back)) for module in arrows}
    return [set(circle) for circle in found if len(circle) > 1]


def test_modules_make_no_circle() -> None:
    arrows = {module: imported(module) & set(MODULES) - ENTRIES for module in MODULES if module not in ENTRIES}
    assert [sorted(circle) for circle in circles(arrows)] == []


def test_circles_are_found() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == [{"b", "c"}]


#: Files beside CUDA's own rooms whose code names CUDA: the package's face, the label `gpu`, facts on the machine, SINGA's
#: names, NCCL, errors. In `_ops` an op's CUDA C++ stands beside its other bodies.
NAMES_CUDA = {
    "__init__.py",
    "_engine/labels.py",
    "_machine/gpus.py",
    "_numpy/hints.py",  # a method of other libraries
    "_singa/device.py",
    "distributed/_nccl.py",
    "errors.py",
}


def names_cuda(path: Path) -> bool:
    """Whether a file's code names CUDA: what it defines, uses or writes into texts, but for docstrings."""
    text = path.read_text(encoding="utf-8")
    if "cuda" not in text.lower():
        return False
    tree = ast.parse(text)
    docstrings = {
        node.body[0].value
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        texts = [getattr(node, field, None) for field in ("id", "attr", "name", "module", "arg")]
        if isinstance(node, ast.Constant) and node not in docstrings:
            texts.append(node.value)
        if any(isinstance(text, str) and "cuda" in text.lower() for text in texts):
            return True
    return False


def test_few_files_know_a_kind_of_device() -> None:
    own = {"_cuda", "_ops", "bench", "cuda.py", "device.py"}  # the last lists SINGA's names
    files = {path.relative_to(PACKAGE): path for path in PACKAGE.rglob("*.py")}
    found = {name.as_posix() for name, path in files.items() if name.parts[0] not in own and names_cuda(path)}
    assert found == NAMES_CUDA


#: Files of the bindings beside CUDA's own room whose code names CUDA: the module's list. The others ask `interpreter/devices.rs`.
BINDINGS_NAME_CUDA = {"lib.rs"}


def test_few_files_of_the_bindings_know_a_kind_of_device() -> None:
    folder = CRATES / "bindings" / "src"
    files = {path.relative_to(folder): path for path in sources(folder)}
    found = {
        name.as_posix() for name, path in files.items() if name.parts[0] != "cuda" and "cuda" in code(path).lower()
    }
    assert found == BINDINGS_NAME_CUDA


def test_private_words_of_arrays_stand_in_one_table() -> None:
    stub = ast.parse((PACKAGE / "_core.pyi").read_text(encoding="utf-8"))
    arrays = next(node for node in stub.body if isinstance(node, ast.ClassDef) and node.name == "NDArray")
    words = {node.name for node in arrays.body if isinstance(node, ast.FunctionDef) and re.match("_[a-z]", node.name)}
    head = (CRATES / "bindings" / "src" / "face" / "ndarray.rs").read_text(encoding="utf-8").partition("\nuse ")[0]
    assert words <= set(re.findall(r"`(_\w+)`", head))
    assert len(words) > 15


#: How a call of an array function walks: each stage knows those before it, and none after.
STAGES = ("scalars", "operands", "plans", "outputs", "callables", "backends", "copies", "door", "dispatch")


@pytest.mark.parametrize("stage", STAGES)
def test_a_call_walks_one_way(stage: str) -> None:
    later = set(STAGES[STAGES.index(stage) + 1 :])
    names = {name.rpartition(".")[2] for name in imported(f"weft._call.{stage}") if name.startswith("weft._call.")}
    assert not names & later
