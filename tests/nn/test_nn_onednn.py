"""oneDNN: what is opened and what is not; where it is there, convolutions by it are those by weft's own products."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft
from conftest import script_env
from weft import nn
from weft._nn.onednn import onednn

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
from weft._nn.onednn import onednn
x, w = np.ones((4, 3, 16, 16), "float32"), np.ones((8, 3, 3, 3), "float32")
print(json.dumps([*onednn(), float(weft.nn.conv(x, w).sum())]))
"""

_FUNCTIONS = (
    "stream_create stream_destroy memory_desc_create_with_strides memory_desc_create_with_tag memory_desc_clone "
    "memory_desc_destroy memory_desc_equal memory_desc_query memory_desc_get_size memory_create memory_destroy "
    "primitive_attr_create primitive_attr_destroy primitive_attr_set_scratchpad_mode reorder_primitive_desc_create "
    "convolution_forward_primitive_desc_create convolution_backward_data_primitive_desc_create "
    "convolution_backward_weights_primitive_desc_create primitive_desc_destroy primitive_desc_query "
    "primitive_desc_query_md primitive_create primitive_destroy primitive_execute stream_wait"
)
_THREADS = """
int version[] = {3, 9, 0}, threads = 7, during = 0;
const int *dnnl_version(void) { return version; }
int omp_get_max_threads(void) { return threads; }
void omp_set_num_threads(int wanted) { threads = wanted; }
int dnnl_engine_create(void **engine, int kind, unsigned long index) { during = threads; return 5; }
"""
_ASKING_THREADS = """
import ctypes, os, weft
from weft._nn.onednn import onednn
version, where = onednn()
library = ctypes.CDLL(os.environ["WEFT_ONEDNN_LIBRARY"])
during = ctypes.c_int.in_dll(library, "during").value
print(version, during, library.omp_get_max_threads())
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
    ((9, 20, 12, 12), (50, 20, 5, 5), {}),
    ((7, 17, 11, 13), (32, 17, 3, 3), {"padding": 2, "dilation": 2, "stride": (1, 2)}),
    ((3, 1, 28, 28), (20, 1, 5, 5), {"padding": 1}),
    ((1, 20, 16, 16), (47, 20, 3, 3), {}),
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


def test_the_callers_number_of_threads_is_as_it_was(tmp_path: Path, script: RunScript) -> None:
    stubs = "".join(f"int dnnl_{name}(void) {{ return 1; }}\n" for name in _FUNCTIONS.split())
    (tmp_path / "fake.c").write_text(_THREADS + stubs)
    library = tmp_path / f"libdnnl{sysconfig.get_config_var('SHLIB_SUFFIX') or '.so'}"
    compiler = os.environ.get("CC", "cc").split()
    subprocess.run([*compiler, "-shared", "-fPIC", "-o", library, tmp_path / "fake.c"], check=True)
    done = script(_ASKING_THREADS, WEFT_ONEDNN_LIBRARY=str(library))
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["None", "1", "7"]


def test_it_can_be_switched_off(script: RunScript) -> None:
    for value in ("off", "/nowhere/libdnnl.so.3"):
        done = script(_ASKING, WEFT_ONEDNN_LIBRARY=value)
        assert done.returncode == 0, done.stderr
        version, where, total = json.loads(done.stdout)
        assert (version, where) == (None, "switched off" if value == "off" else "not found")
        assert total == 4 * 8 * 14 * 14 * 27


_LAYOUTS = """
import ctypes, json, numpy as np, weft
from weft import nn
rng = np.random.default_rng(5)
x = weft.asarray(rng.standard_normal((4, 3, 20, 20)).astype("float32"))
v, w = (weft.asarray(rng.standard_normal(s).astype("float32")) for s in ((32, 3, 3, 3), (32, 32, 3, 3)))

def net(x):
    h = nn.relu(nn.conv(x, v, padding=1))
    h = nn.max_pool(nn.relu(nn.conv(h, w, padding=1)) + h, 2)
    return nn.avg_pool(nn.conv(h, w, padding=1), 2)

def run(program):
    program(x).numpy()
    ctypes.CDLL(None).fflush(None)
    print("done", flush=True)

plain = weft.program(net, passes=("dead", "common", "follow", "early", "fuse"))
run(plain)
program = weft.program(net)
for _ in range(4):
    run(program)
w *= 2
run(program)
"""


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


def _vectors(rng: np.random.Generator, count: int) -> tuple[weft.NDArray, ...]:
    """Return gamma, beta, mean and variance of a normalisation."""
    return tuple(weft.asarray((rng.random(count) + 0.5).astype("float32")) for _ in range(4))


def _convolutions(rng: np.random.Generator, *shapes: tuple[int, ...]) -> list[weft.NDArray]:
    return [weft.asarray((rng.standard_normal(shape) / 8).astype("float32")) for shape in shapes]


def _networks() -> dict[str, tuple[tuple[int, ...], Any]]:
    """Return networks whose values may lie otherwise between their convolutions, each with the shape of its data."""
    rng = np.random.default_rng(6)
    a, b, c, d, e = _convolutions(rng, (32, 32, 3, 3), (32, 1, 3, 3), (48, 32, 1, 1), (20, 48, 3, 3), (48, 20, 3, 3))
    one, two, three = _convolutions(rng, (32, 32, 5), (16, 16, 3, 3, 3), (32, 48, 1, 1))
    bias, normal, wide = weft.asarray(rng.random(32).astype("float32")), _vectors(rng, 32), _vectors(rng, 48)

    def residual(x: Any) -> Any:
        h = nn.max_pool(nn.relu(nn.batch_norm(nn.conv(x, a, bias, padding=1), *normal)), 3, stride=2, padding=1)
        more = nn.batch_norm(nn.conv(nn.relu(nn.conv(h, a, padding=1)), a, padding=1), *normal)
        return nn.avg_pool(nn.relu(more + h), 3, stride=2, ceil_mode=True), h.sum()

    def grouped(x: Any) -> Any:
        h = nn.leaky_relu(nn.conv(nn.conv(x, a, padding=1), b, padding=1, groups=32))
        h = nn.batch_norm(nn.conv(h, c, stride=2), *wide)
        return nn.conv(nn.relu(h), three), nn.avg_pool(h, 2, padding=1, count_include_pad=False)

    def filled_up(x: Any) -> Any:
        return (nn.conv(nn.relu(nn.conv(nn.conv(nn.conv(x, a), c), d)), e, padding=1),)

    def by_rows(x: Any) -> Any:
        h = nn.relu(nn.conv(x, a, padding=1))
        parts = weft.concat([nn.conv(h[:, :16], a[:, :16], padding=1), nn.conv(h, c)], axis=1)
        return nn.conv(h + x, a), parts, nn.conv(nn.max_pool(h + x, 2), a), nn.softmax(h, axis=1).mean()

    def flat(x: Any) -> Any:
        h = nn.relu(nn.conv(x, one, padding=2))
        return nn.conv(nn.max_pool(nn.conv(h, one) * h[:, :, 4:], 2), one), nn.conv(h.reshape(2, 32, 80), one)

    def deep(x: Any) -> Any:
        h = nn.conv(nn.avg_pool(nn.relu(nn.conv(x, two, padding=1)), 2), two, padding=1)
        return (nn.conv(h, two),)

    def alone(x: Any) -> Any:
        h = nn.relu(nn.conv(x[:1], a, padding=1))
        return (nn.conv(nn.batch_norm(h, *normal), a),)

    image = (4, 32, 14, 12)
    named = {"residual": residual, "grouped": grouped, "filled up": filled_up, "by rows": by_rows, "alone": alone}
    found: dict[str, tuple[tuple[int, ...], Any]] = {name: (image, net) for name, net in named.items()}
    return found | {"flat": ((4, 32, 40), flat), "deep": ((2, 16, 8, 9, 10), deep)}


def _alike(one: Any, other: Any) -> None:
    for found, wanted in zip(one, other, strict=True):
        assert np.array_equal(found.numpy(), wanted.numpy())


@pytest.mark.parametrize("name", _networks())
def test_values_between_convolutions_lie_otherwise_and_keep_their_bits(name: str) -> None:
    shape, net = _networks()[name]
    x = weft.asarray(np.random.default_rng(7).standard_normal(shape).astype("float32"))

    def backward(x: Any) -> Any:
        results, pull = weft.vjp(net, x)
        return (*results, *pull(tuple(results)))

    for function in (net, backward):
        wanted = function(x)
        plain = weft.program(function, passes=("dead", "common", "follow", "early", "fuse"))
        program = weft.program(function)
        for again in (plain, program, program, program, weft.program(function, sequential=True)):
            _alike(again(x), wanted)
        assert program.programs[0].nbytes == plain.programs[0].nbytes


def test_data_are_laid_out_at_the_ends_of_chains_alone_and_weights_when_they_change(script: RunScript) -> None:
    done = script(_LAYOUTS, ONEDNN_VERBOSE="1")
    assert done.returncode == 0, done.stderr
    plain, *calls = (part.splitlines() for part in done.stdout.split("done\n")[:-1])
    back = re.compile(r"reorder.*src_f32:[^ ]*aBcd\d+b.* dst_f32:[^ ]*abcd:")
    weights = re.compile(r"reorder.*(?:32|16)x32x3x3")

    def count(lines: list[str], wanted: re.Pattern[str]) -> int:
        return sum(wanted.search(line) is not None for line in lines)

    assert len(calls) == 5
    assert not any(count(lines, back) for lines in calls)
    # Kept from the second call with the same weights on.
    found = [count(lines, weights) for lines in calls]
    assert found[0] == found[1] == found[4] == 2 * bool(found[0])
    assert found[2:4] == [0, 0]
    assert (count(plain, back) > 0) == (found[0] > 0)


def test_weights_that_are_kept_laid_out_are_those_of_the_call() -> None:
    rng = np.random.default_rng(8)
    x, v, w = _convolutions(rng, (1, 64, 6, 6), (64, 64, 3, 3), (64, 64, 3, 3))
    lent = w.numpy()
    shared = weft.asarray(lent, copy=False)

    def given(x: Any, w: Any) -> Any:
        return nn.conv(x, w)

    program, of_state = weft.program(given), weft.program(lambda x: (nn.conv(x, w), nn.conv(x, shared)))
    for turn in range(12):
        if turn % 4 == 3:
            w *= 2
            w[5:7] -= 1
            lent[...] = rng.standard_normal(lent.shape)
        _alike(of_state(x), (given(x, w), given(x, shared)))
        weights = (v, w)[turn // 3 % 2]
        _alike([program(x, weights)], [given(x, weights)])
    calls = []
    for _ in range(9):  # without a wait between
        calls.append((of_state(x)[0], given(x, w)))
        w += 1
    for found, wanted in calls:
        _alike([found], [wanted])
