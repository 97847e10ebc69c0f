"""The driver's functions and codes as the crate has them, against CUDA's own header: of CUDA 12, and of CUDA 13."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from weft._cuda.nvrtc import headers

REAL = Path(__file__).parents[2] / "crates" / "cuda" / "src" / "driver" / "real"
ERRORS = REAL.parents[1] / "error.rs"

#: Rust's names of C's types.
TYPES = {
    "c_int": "int",
    "c_uint": "unsigned int",
    "c_ulonglong": "unsigned long long",
    "c_char": "char",
    "c_void": "void",
    "usize": "size_t",
    "f32": "float",
    "u8": "unsigned char",
    "u16": "unsigned short",
}
#: What the crate gives and takes as plain memory; that of CUDA 12.0, which newer drivers read.
LAYOUTS = """
_Static_assert(sizeof(CUmemPoolProps) == 88, "pools");
_Static_assert(offsetof(CUmemPoolProps, allocType) == 0 && offsetof(CUmemPoolProps, location) == 8, "pools");
_Static_assert(sizeof(CUmemLocation) == 8 && offsetof(CUmemLocation, id) == 4, "locations");
_Static_assert(sizeof(CUmemAccessDesc) == 12 && offsetof(CUmemAccessDesc, flags) == 8, "accesses of peers");
_Static_assert(sizeof(CUdeviceptr) == 8 && sizeof(CUstreamCaptureStatus) == 4 && sizeof(CUstreamCaptureMode) == 4, "words");
_Static_assert(CU_MEMHOSTALLOC_PORTABLE == 1, "pinned for all contexts");
"""
#: What `benches/gpu/first.py` says in numbers.
FIRST = """
_Static_assert(CU_STREAM_CAPTURE_MODE_GLOBAL == 0 && CU_STREAM_NON_BLOCKING == 1 && CU_EVENT_DISABLE_TIMING == 2, "");
"""


def in_c(rust: str) -> str:
    """A type of Rust's in C."""
    found = re.fullmatch(r"\*(mut|const) (.*)", rust.strip())
    if found is None:
        name = rust.strip().removeprefix("sys::")
        return TYPES.get(name, name)
    kind, inner = found.groups()
    pointed = in_c(inner)
    if kind == "mut":
        return f"{pointed} *"
    return f"{pointed}const *" if pointed.endswith("*") else f"const {pointed} *"


def prototypes() -> dict[str, list[str]]:
    text = (REAL / "symbols.rs").read_text(encoding="utf-8")
    text = re.sub(r"//[^\n]*", "", text[text.rindex("symbols! {") :])
    found = re.findall(r"\w+: (cu\w+)\(([^)]*)\);", text)
    return {name: [in_c(each) for each in arguments.split(",")] for name, arguments in found}


def codes() -> dict[str, int]:
    """Constants whose comment names the error that they are."""
    found: dict[str, int] = {}
    for path in [*REAL.glob("*.rs"), ERRORS]:
        text = path.read_text(encoding="utf-8")
        found |= {
            name: int(code)
            for name, code in re.findall(r"/// `(CUDA_ERROR_\w+)`.*\n\s*(?:pub )?const \w+: u32 = (\d+);", text)
        }
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="CUDA's headers are installed on Linux")
@pytest.mark.parametrize("major", [12, 13])
def test_prototypes_and_codes_are_the_headers(major: int, tmp_path: Path) -> None:
    includes = [folder for folder in headers(major) if (Path(folder) / "cuda.h").exists()]
    assert includes, "install .ci/requirements-test.txt"
    functions, errors = prototypes(), codes()
    assert len(functions) > 50
    assert len(errors) >= 4
    names = set(re.findall(r"\bCU_[A-Z0-9_]+\b", "".join(path.read_text() for path in REAL.glob("*.rs"))))
    assert len(names) >= 15
    source = tmp_path / "header.c"
    source.write_text(
        "\n".join(
            [
                # Old functions are declared, and names mean themselves.
                "#define __CUDA_API_VERSION_INTERNAL",
                "#include <stddef.h>",
                "#include <cuda.h>",
                f'_Static_assert(CUDA_VERSION / 1000 == {major}, "another header");',
                *(f"CUresult CUDAAPI {name}({', '.join(listed)});" for name, listed in functions.items()),
                # Declared by the header, and not by the line above alone.
                *(f'_Static_assert({name} == {code}, "{name}");' for name, code in errors.items()),
                *(f"int const is_there_{name} = (int){name};" for name in sorted(names)),
                LAYOUTS,
                FIRST,
            ]
        ),
        encoding="utf-8",
    )
    compiler = os.environ.get("CC", "cc").split()
    command = [*compiler, "-fsyntax-only", "-Wredundant-decls", f"-I{includes[0]}", source]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    declared_twice = set(re.findall(r"redundant redeclaration of .(cu\w+).", done.stderr))
    assert declared_twice == set(functions), "the header has no such function"
