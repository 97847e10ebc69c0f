"""Damaged files: bytes changed, cut off, doubled. What is read is whole, or refused by an error of weft."""

from __future__ import annotations

import importlib.util
import io
import json
import tempfile
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from mxnet_files import params_file, record

import weft
import weft.mxnet

from .cases import Generator

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

__all__ = ["GENERATOR"]

#: Of those that are cut the file is cut off once it was read; `npy` is a map of NumPy's.
KINDS = (
    *("npz", "cut npz", "npy", "params", "json"),
    *(("safetensors", "cut safetensors") if importlib.util.find_spec("safetensors") else ()),
)


@cache
def whole(kind: str) -> bytes:
    """Return a file that is right."""
    arrays = {"a": np.arange(6.0).reshape(2, 3), "b": np.arange(4, dtype=np.int16), "c": np.ones((), np.bool_)}
    if kind in {"npz", "npy"}:
        file = io.BytesIO()
        if kind == "npz":
            np.savez(file, **arrays)
        else:
            np.save(file, arrays["a"])
        return file.getvalue()
    if kind == "params":
        records = [record(arrays["a"].astype(np.float32), each) for each in ("old", "v1", "v2", "v3")]
        return params_file(records, [f"arg:{at}" for at in range(len(records))])
    if kind == "json":
        x, y = weft.symbol.Variable("x", shape=(2, 3)), weft.symbol.Variable("y")
        made = weft.symbol.Group([weft.tanh(x @ y).sum(axis=0), weft.concat([x, x], axis=1) * 2.0, x[0, ::2]])
        return made.tojson().encode()
    from safetensors.numpy import save

    return save(arrays)


def opened(kind: str, data: bytes) -> Any:
    """Read a file of these bytes."""
    if kind == "json":
        symbol = weft.symbol.load_json(data.decode("latin-1"))
        symbol.list_arguments()
        return symbol.infer_shape(y=(3, 2))
    suffix = f".{kind.removeprefix('cut ')}"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"x{suffix}"
        path.write_bytes(data)
        if kind == "params":
            return {name: each.numpy() for name, each in weft.mxnet.load_params(path).items()}
        found = {"a": mapped(path)} if kind == "npy" else weft.load(path, max_bytes=1 << 24)
        if kind == "npy" or kind.startswith("cut "):
            with path.open("r+b") as file:
                file.truncate(len(data) // 3)
        return {name: each.numpy() for name, each in found.items() if each is not None}


def mapped(path: Path) -> weft.NDArray | None:
    """Return an array of what NumPy maps; None if it refuses the file."""
    try:
        found = np.load(path, mmap_mode="r", allow_pickle=False)
    except Exception:  # noqa: BLE001 - whatever NumPy says of it
        return None
    return weft.asarray(found)


@dataclass(frozen=True)
class Damaged:
    """Changes to a file: a byte that is set, a range that is cut out, or doubled."""

    kind: str
    changes: tuple[tuple[str, int, int], ...]

    def data(self) -> bytes:
        data = bytearray(whole(self.kind.removeprefix("cut ")))
        for what, place, value in self.changes:
            at = place % (len(data) or 1)
            if what == "set" and data:
                data[at] = value % 256
            elif what == "cut":
                del data[at : at + value]
            elif what == "double":
                data[at:at] = data[at : at + value]
            elif what == "end":
                del data[at:]
            elif what == "number":
                data[at : at + 8] = (2**63 - 1 - value % 3).to_bytes(8, "little")
        return bytes(data)

    def run(self) -> str | None:
        try:
            opened(self.kind, self.data())
        except weft.errors.WeftError:
            return None
        return None

    def smaller(self) -> Iterator[Damaged]:
        for at in range(len(self.changes)):
            yield replace(self, changes=self.changes[:at] + self.changes[at + 1 :])

    def __str__(self) -> str:
        return f"a file of kind {self.kind} with {json.dumps(self.changes)}: {self.data()!r}"


def make(random: Random) -> Damaged:
    kind = random.choice(KINDS)
    whats = ("set", "set", "set", "cut", "double", "end", "number")
    changes = [
        (random.choice(whats), random.randrange(1 << 20), random.randrange(1, 300))
        for _ in range(random.randrange(1, 5))
    ]
    return Damaged(kind, tuple(changes))


GENERATOR = Generator("damage", make, few=1000)
