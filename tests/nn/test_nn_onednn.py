"""oneDNN: what is opened and what is not; where it is there, convolutions by it are those by weft's own products."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft
from conftest import script_env
from weft import nn
from weft._nn.library import onednn

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import RunScript

_FAKES = {
    "two": ("int version[] = {2, 7, 1};\nconst int *dnnl_version(void) { return version; }\n", "is version 2.7.1, and version 3 is needed"),
    "three": ("int version[] = {3, 9, 0};\nconst int *dnnl_version(void) { return version; }\n", "dnnl_engine_create"),
    "none": ("int nothing(void) { return 0; }\n", "it is not oneDNN"),
}  # fmt: skip

_ASKING = """
import json, numpy as np, weft
from weft._nn.library import onednn
x, w = np.ones((4, 3, 16, 16), "float32"), np.ones((8, 3, 3, 3), "float32")
print(json.dumps([*onednn(), float(weft.nn.conv(x, w).sum())]))
"""

_CHECKING = """
import sys, numpy as np, weft
from weft import nn
rng = np.random.default_rng(4)
found = []
for workers in (1, 3):
    with weft.Engine(workers=workers) as engine:
        for shape, kernel, given in {cases!r}:
            x, w, b = (rng.standard_normal(s).astype("float32") for s in (shape, kernel, kernel[:1]))
            def run(*arrays):
                return nn.conv(*arrays, **given)
            arrays = [weft.asarray(a, engine=engine) for a in (x, w, b)]
            y, pull = weft.vjp(run, *arrays)
            g = rng.standard_normal(y.shape).astype("float32")
            found += [y.numpy(), *(a.numpy() for a in pull(weft.asarray(g, engine=engine)))]
            again = weft.program(lambda *a: weft.vjp(run, *a)[0])(*arrays)
            assert np.array_equal(again.numpy(), y.numpy())
    rng = np.random.default_rng(4)
np.savez(sys.argv[1], *found)
"""

_CASES: list[tuple[Any, Any, dict[str, Any]]] = [
    ((19, 8, 17, 14), (24, 8, 5, 5), {}),
    ((6, 16, 20, 20), (16, 4, 3, 3), {"groups": 4, "padding": (1, 2), "stride": (2, 1)}),
    ((5, 9, 40), (12, 9, 7), {"stride": 3, "padding": 3, "dilation": 2}),
    ((2, 8, 6, 9, 10), (16, 8, 3, 2, 3), {"padding": ((0, 1), (1, 1), (2, 0))}),
]


@pytest.mark.parametrize("name", _FAKES)
def test_other_libraries_are_named_and_done_without(name: str, tmp_path: Path, script: RunScript) -> None:
    source, reason = _FAKES[name]
    (tmp_path / "fake.c").write_text(source)
    library = tmp_path / f"libdnnl{sysconfig.get_config_var('SHLIB_SUFFIX') or '.so'}"
    compiler = os.environ.get("CC", "cc").split()
    subprocess.run([*compiler, "-shared", "-fPIC", "-o", library, tmp_path / "fake.c"], check=True)
    done = script(_ASKING, WEFT_ONEDNN_LIBRARY=str(library))
    assert done.returncode == 0, done.stderr
    version, where, total = json.loads(done.stdout)
    assert version is None
    assert reason in where
    assert total == 4 * 8 * 14 * 14 * 27


def test_it_can_be_switched_off(script: RunScript) -> None:
    for value in ("off", "/nowhere/libdnnl.so.3"):
        done = script(_ASKING, WEFT_ONEDNN_LIBRARY=value)
        assert done.returncode == 0, done.stderr
        version, where, total = json.loads(done.stdout)
        assert (version, where) == (None, "switched off" if value == "off" else "not found")
        assert total == 4 * 8 * 14 * 14 * 27


def _run(tmp_path: Path, **env: str) -> list[np.ndarray[Any, Any]]:
    """Return convolutions and their gradients on one worker, then on three."""
    (tmp_path / "checking.py").write_text(_CHECKING.format(cases=_CASES))
    given = [sys.executable, str(tmp_path / "checking.py"), str(tmp_path / "found.npz")]
    done = subprocess.run(given, capture_output=True, text=True, check=False, env=script_env(**env))
    assert done.returncode == 0, done.stderr
    with np.load(tmp_path / "found.npz") as found:
        return [found[name] for name in found.files]


def test_bits_are_those_of_one_worker_and_oneDNN_gives_what_weft_does(tmp_path: Path) -> None:  # noqa: N802 - its name
    own = _run(tmp_path, WEFT_ONEDNN_LIBRARY="off")
    version, where = onednn()
    for results in (own, own if version is None else _run(tmp_path, WEFT_ONEDNN_LIBRARY=where)):
        half = len(results) // 2
        for alone, several, wanted in zip(results[:half], results[half:], own[:half], strict=True):
            assert np.array_equal(alone, several)
            np.testing.assert_allclose(alone, wanted, rtol=1e-4, atol=1e-4 * np.abs(wanted).max())


def test_data_that_lie_otherwise_are_laid_out_anew() -> None:
    rng = np.random.default_rng(3)
    x, w = rng.standard_normal((4, 24, 24, 8)).astype("float32"), rng.standard_normal((16, 8, 3, 3)).astype("float32")
    moved = weft.asarray(x).transpose(0, 3, 1, 2)
    plain = weft.asarray(np.ascontiguousarray(x.transpose(0, 3, 1, 2)))
    assert np.array_equal(nn.conv(moved, w).numpy(), nn.conv(plain, w).numpy())
    shifted = np.frombuffer(bytearray(plain.nbytes + 1), np.uint8)[1:].view("float32").reshape(plain.shape)
    shifted[...] = plain.numpy()
    assert np.array_equal(nn.conv(weft.asarray(shifted, copy=False), w).numpy(), nn.conv(plain, w).numpy())
