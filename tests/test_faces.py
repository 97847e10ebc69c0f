"""Faces that programs with arrays need not are imported by their first use, and look imported all the same."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

import weft

if TYPE_CHECKING:
    from conftest import RunScript


def test_types_are_told_of_the_faces_that_wait() -> None:
    parsed = ast.parse(Path(weft.__file__).read_text())
    checked = next(
        each for each in parsed.body if isinstance(each, ast.If) and ast.unparse(each.test) == "_TYPE_CHECKING"
    )
    imports = next(each for each in checked.body if isinstance(each, ast.ImportFrom))
    assert {each.name for each in imports.names} == {*weft._FACES, "mxnet"}


def test_faces_wait_for_their_first_use(script: RunScript) -> None:
    done = script("""
        import sys
        import weft
        faces = {*weft._FACES, "mxnet"}
        assert not [name for name in faces if f"weft.{name}" in sys.modules]
        assert {*weft._FACES} <= {*dir(weft)} & {*weft.__all__}
        for name in sorted(faces):
            assert getattr(weft, name) is sys.modules[f"weft.{name}"]
            assert name in vars(weft)
    """)
    assert done.returncode == 0, done.stderr
