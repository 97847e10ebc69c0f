"""Kernels that users wrote: launched in the order of their declared accesses, checked before anything is pushed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft
from conftest import SOON
from weft import errors
from weft._core import Declared
from weft._cuda.kernels import parameters
from weft._engine.access import Access

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.usefixtures("fake_cuda")

DEVICE = weft.gpu(0)
SOURCE = r"""
extern "C" __global__ void axpy(const float* __restrict__ x, float* y, float factor, unsigned int count) {
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) y[i] += factor * x[i];
}
extern "C" __global__ __launch_bounds__(64) void where_am_i(int* out, long long base) {
    out[(blockIdx.y * gridDim.x + blockIdx.x) * blockDim.x + threadIdx.x] = (int)base + blockIdx.y * 100 + blockIdx.x * 10
        + threadIdx.x;
}
extern "C" __global__ void through(float** rows, int count) {
    for (int i = 0; i < count; ++i) rows[i][0] += 1;
}
"""


@pytest.fixture(scope="module")
def axpy() -> weft.cuda.RawKernel:
    return weft.cuda.RawKernel(SOURCE, "axpy")


def row(value: float) -> weft.NDArray:
    return weft.full(100, value, dtype="float32", device=DEVICE)


def test_launches_come_in_order(axpy: weft.cuda.RawKernel) -> None:
    x, y = row(1), row(0)
    for _ in range(10):
        axpy((2,), (64,), (weft.Read(x), weft.Mutate(y), 2.0, 100))
        axpy(2, 64, (y, x, np.float32(1), np.uint32(100)), reads=[y], mutates=[x])
    a, b = 1.0, 0.0
    for _ in range(10):
        b += 2 * a
        a += b
    assert (x + y).tolist() == [float(np.float32(a + b))] * 100
    assert x.version == 11


def test_launches_and_arithmetic_are_ordered(axpy: weft.cuda.RawKernel) -> None:
    x, y = row(1), row(5)
    x *= 3
    axpy(2, 64, (weft.Read(x), weft.Mutate(y[:50]), 1.0, 50))
    z = y - x
    y[...] = 0.0
    assert z.tolist() == [5.0] * 50 + [2.0] * 50


@pytest.mark.parametrize("stream", [0, 1, SimpleNamespace(ptr=0), SimpleNamespace(cuda_stream=1)])
def test_launches_on_streams_of_others_are_ordered_too(axpy: weft.cuda.RawKernel, stream: object) -> None:
    x, y = row(1), row(5)
    x *= 3
    axpy(2, 64, (weft.Read(x), weft.Mutate(y), 1.0, 100), stream=stream)
    y += 1
    assert y.tolist() == [9.0] * 100


def test_grids_of_two_axes_and_modules() -> None:
    module = weft.cuda.RawModule(SOURCE)
    kernel = module.get_function("where_am_i")
    out = weft.zeros(24, dtype="int32", device=DEVICE)
    kernel((3, 2), (4, 1, 1), (weft.Overwrite(out), 1000))
    expected = [1000 + y * 100 + x * 10 + t for y in range(2) for x in range(3) for t in range(4)]
    assert out.tolist() == expected
    assert repr(kernel) == "<weft.cuda.RawKernel where_am_i>"


def test_what_cupy_has_made_is_taken() -> None:
    theirs = SimpleNamespace(code=SOURCE, options=("--std=c++14",))
    x, y = row(1), row(1)
    weft.cuda.RawModule(theirs).get_function("axpy")(2, 64, (weft.Read(x), weft.Mutate(y), 1.0, 100))
    assert y[0].item() == 2.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda k, x, y: k(1, 64, (weft.Read(x), weft.Mutate(y), 1.0)), "takes 4 arguments, and 3 were given"),
        (
            lambda k, x, y: k(1, 64, (x, weft.Mutate(y), 1.0, 1)),
            r"argument 0 is an array, .* not declared: write weft.Read",
        ),
        (
            lambda k, x, y: k(1, 64, (weft.Read(x), weft.Mutate(y), np.float64(1), 1)),
            "argument 2 is float64, .* float32",
        ),
        (lambda k, x, y: k(1, 64, (weft.Read(x), weft.Mutate(y), 1.0, -1)), "argument 3 is -1, which is no uint32"),
        (lambda k, x, y: k(1, 64, (weft.Read(x), weft.Mutate(y), 1.0, 1.5)), "argument 3 is 1.5, which is no uint32"),
        (
            lambda k, x, y: k(1, 64, (weft.Read(x), weft.Mutate(y), 1.0, weft.Read(x))),
            "argument 3 is an array, .* no pointer",
        ),
        (lambda k, x, _: k(1, 64, (weft.Read(x), 3, 1.0, 1)), "argument 1 is int, and the parameter is a pointer"),
        (lambda k, x, y: k(1, 64, (weft.Read(x), weft.Mutate(y), "1", 1)), "argument 2 is '1', which is no float32"),
        (lambda k, x, _: k(1, 64, weft.Read(x)), "args is a tuple, not Declared; one argument is written \\(x,\\)"),
        (
            lambda k, x, y: k(1, 64, (weft.Read(x.astype("float64")), weft.Mutate(y), 1.0, 1)),
            "argument 0 is an array of float64, and the parameter points to float32",
        ),
        (
            lambda k, x, y: k(1, 64, (weft.Read(x[::2]), weft.Mutate(y), 1.0, 1)),
            r"argument 0 is a view .* pass x.copy\(\)",
        ),
        (
            lambda k, x, y: k(1, 64, (weft.Read(x), weft.Mutate(y.to_device("cuda:1")), 1.0, 1)),
            "on cuda:0 and on cuda:1",
        ),
        (lambda k, x, y: k(0, 64, (weft.Read(x), weft.Mutate(y), 1.0, 1)), "all counts are at least 1"),
        (lambda k, x, y: k(1, 2048, (weft.Read(x), weft.Mutate(y), 1.0, 1)), "1024 threads at most"),
        (lambda k, x, y: k("one", 64, (weft.Read(x), weft.Mutate(y), 1.0, 1)), "grid and block are one to three"),
        (lambda k, x, y: k(1, 64, (x, y, 1.0, 1), reads=x), "reads and mutates are sequences|not declared"),
        (
            lambda k, x, y: k(1, 64, (weft.Read(x), weft.Mutate(y), 1.0, 1), stream="fast"),
            "stream is a cudaStream_t as an integer",
        ),
        (lambda k, x, y: k(1, 64, (weft.Read(x), weft.Mutate(y), 1.0, 1), stream=3), "stream=3 is no stream"),
    ],
)
def test_misuse_is_told_before_the_launch(axpy: weft.cuda.RawKernel, call: Callable[..., None], message: str) -> None:
    x, y = row(1), row(1)
    with pytest.raises(errors.KernelArgumentError, match=message) as caught:
        call(axpy, x, y)
    assert isinstance(caught.value, TypeError)
    assert (x.version, y.version) == (1, 1)
    axpy(2, 64, (weft.Read(x), weft.Mutate(y), 1.0, 100))
    assert y[99].item() == 2.0


def test_arrays_of_the_host_are_refused(axpy: weft.cuda.RawKernel) -> None:
    host = weft.ones(100, dtype="float32")
    with pytest.raises(errors.ArgumentValueError, match="is on the CPU, and the op runs on a CUDA device"):
        axpy(2, 64, (weft.Read(host), weft.Mutate(row(1)), 1.0, 100))


def test_kernels_that_cannot_be_made() -> None:
    x = row(1)
    with pytest.raises(errors.KernelArgumentError, match="a kernel needs its name"):
        weft.cuda.RawKernel(SOURCE)
    with pytest.raises(errors.ArgumentTypeError, match=r"a kernel is made from its source, .* not int"):
        weft.cuda.RawKernel(7, "seven")
    with pytest.raises(errors.ArgumentTypeError, match="RawModule takes the source of kernels, not int"):
        weft.cuda.RawModule(7)
    with pytest.raises(errors.KernelCompileError, match="cannot be compiled for sm_90"):
        weft.cuda.RawKernel('extern "C" __global__ void bad(float* x) { what }', "bad")(1, 1, (weft.Mutate(x),))
    with pytest.raises(
        errors.CudaError, match=r"kernel 'nobody': cuModuleGetFunction answered CUDA_ERROR_NOT_FOUND \(500\)"
    ):
        weft.cuda.RawKernel("#define PASTED(a, b) a##b\n" + SOURCE, "nobody")(1, 1, (weft.Mutate(x),))
    x.wait_to_write(SOON)
    assert x[0].item() == 1.0


@pytest.mark.parametrize(
    ("code", "name", "options", "message"),
    [
        (SOURCE, "axpi", (), r"no kernel 'axpi'; its kernels are: axpy, where_am_i, through"),
        (SOURCE, "axpy<float>", (), r"no kernel 'axpy<float>'"),
        ("// axpy", "axpy", (), r"no kernel 'axpy'; its kernels are: none"),
        ("__global__ void bare(int* x) {}", "bare", (), r'C\+\+ decorates: write extern "C" __global__ void bare'),
        (SOURCE, "axpi", ("-DAXPI=axpy",), ""),
        ("#define KERNEL(n) extern C void n##_kernel", "axpy_kernel", (), ""),
        ('#include "axpy.cuh"', "axpy", (), ""),
        ("__global__ void bare(int* x) {}", "_Z4barePi", (), ""),
    ],
)
def test_names_that_a_source_cannot_have_are_told(code: str, name: str, options: Any, message: str) -> None:
    if message:
        with pytest.raises(errors.KernelArgumentError, match=message):
            weft.cuda.RawKernel(code, name, options)
    else:
        assert weft.cuda.RawKernel(code, name, options).name == name


def test_options_and_names_of_the_wrong_kind_are_told() -> None:
    with pytest.raises(errors.ArgumentTypeError, match="options is a sequence of strings, not one"):
        weft.cuda.RawKernel(SOURCE, "axpy", "--std=c++17")
    with pytest.raises(errors.ArgumentTypeError, match="the name of a kernel is a string, not int"):
        weft.cuda.RawKernel(SOURCE, 3)


@pytest.mark.parametrize(
    ("signature", "known"),
    [
        ("", []),
        ("void", []),
        ("double *x, size_t n", [(True, "float64"), (False, "uint64")]),
        ("const complex<float>* __restrict__ z, bool flag", [(True, "complex64"), (False, "bool")]),
        ("unsigned char mask[], unsigned long long seed", [(True, "uint8"), (False, "uint64")]),
        ("const __half* x, half* y", [(True, "float16"), (True, "float16")]),
        ("Params p, float** rows, short int s", [(False, None), (True, None), (False, "int16")]),
    ],
)
def test_signatures_are_read(signature: str, known: Any) -> None:
    assert parameters(f'extern "C" __global__ void f({signature}) {{}}', "f") == known
    assert (
        parameters(f'// extern "C" __global__ void f(int wrong)\nextern "C" __global__ void f({signature}) {{}}', "f")
        == known
    )
    assert parameters(f"template <class T> __global__ void f({signature}) {{}}", "f") is None


def test_declarations_are_annotations_too() -> None:
    declared = weft.Read(3)
    assert isinstance(declared, Declared)
    assert (declared.obj, declared.access, repr(declared)) == (3, Access.READ, "weft.Read(3)")
    assert weft.Mutate[int].__metadata__ == (Access.MUTATE,)

    @weft.task
    def fill(out: weft.Overwrite, value: int) -> None:
        out[...] = value

    x = np.zeros(3)
    fill(x, 2)
    weft.wait(x)
    assert x.tolist() == [2.0] * 3
