"""Other libraries in the process: captures under way, streams, CUDA's own headers, kernels with wishes of their own."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft
from conftest import SOON, write_script
from weft import errors
from weft._cuda import nvrtc

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conftest import RunScript

DEVICE = weft.gpu(0)
ADD = """
extern "C" __global__ void add(float* x, float by) { x[threadIdx.x] += by; }
"""


@pytest.fixture
def driver(fake_cuda: dict[str, str]) -> Iterator[ctypes.CDLL]:
    """The driver of the host, without a capture and without static memory afterwards."""
    library = ctypes.CDLL(fake_cuda["WEFT_CUDA_LIBRARY"])
    yield library
    library.fake_cuda_capture_elsewhere(0)
    library.fake_cuda_static(0)


def row() -> weft.NDArray:
    return weft.zeros(64, dtype="float32", device=DEVICE)


def test_other_threads_run_while_a_module_is_loaded(script: RunScript, fake_cuda: dict[str, str]) -> None:
    """The driver may compile, or wait for the device: it has what the interpreter needs no longer than that."""
    done = script(
        """
        import ctypes, os, threading
        import weft

        driver = ctypes.CDLL(os.environ["WEFT_CUDA_LIBRARY"])
        x = weft.zeros(64, dtype="float32", device="cuda:0")
        weft.wait_all()
        source = 'extern "C" __global__ void one(float* x) { x[threadIdx.x] = 1; }'

        @weft.program
        def step(x):
            return weft.tanh(x * 0.5) + x

        found = {}

        def own():
            weft.cuda.RawKernel(source, "one")(1, 64, (weft.Mutate(x),))

        def element_wise():
            found["sum"] = float(weft.sqrt(x * 4.0).sum())

        def fused():
            found["fused"] = float(step(x)[0].item())

        driver.fake_cuda_hold_loads(1)
        for load in (own, element_wise, fused):
            thread, before = threading.Thread(target=load), driver.fake_cuda_release_loads()
            thread.start()
            while thread.is_alive():
                driver.fake_cuda_release_loads()  # between two of these calls this thread needs the interpreter
            assert driver.fake_cuda_release_loads() > before, load
        assert driver.fake_cuda_loads_in_vain() == 0
        assert found["sum"] == 128.0 and abs(found["fused"] - 1.4621171) < 1e-6, found
        """,
        **fake_cuda,
    )
    assert done.returncode == 0, done.stderr


def test_nothing_spoils_the_capture_of_another_library(driver: ctypes.CDLL) -> None:
    x = row()
    weft.wait_all(SOON)
    driver.fake_cuda_capture_elsewhere(1)
    for _ in range(100):
        x += 1.0
    y = weft.ones(1000, dtype="float32", device=DEVICE) + 1.0
    assert x.numpy()[0] == 100
    # Modules are loaded, and memory is pinned and given back, meanwhile.
    weft.cuda.RawKernel(ADD, "add")(1, 64, (weft.Mutate(x), 1.0))
    large = weft.asarray(np.ones(3 << 20, np.float32), device=DEVICE)
    assert large[-1].item() == 1
    del large
    weft.cuda.empty_pinned(1 << 20)[...] = 0
    weft.cuda.synchronize(DEVICE, SOON)
    weft.cuda.memory_trim()
    weft.cuda.memory_stats(DEVICE)
    assert driver.fake_cuda_capture_elsewhere(0) == 0
    assert y.numpy().sum() == 2000


def soon(condition: Callable[[], bool]) -> bool:
    """Whether it comes true."""
    deadline = time.monotonic() + SOON
    while not condition() and time.monotonic() < deadline:
        os.sched_yield()
    return condition()


def test_memory_that_others_saw_is_kept_while_they_capture(driver: ctypes.CDLL) -> None:
    before = weft.cuda.memory_stats(DEVICE).in_use
    x = row()
    assert x.__cuda_array_interface__["shape"] == (64,)
    driver.fake_cuda_capture_elsewhere(1)
    del x
    weft.cuda.synchronize(DEVICE, SOON)
    assert weft.cuda.memory_stats(DEVICE).in_use > before
    assert driver.fake_cuda_capture_elsewhere(0) == 0
    assert soon(lambda: weft.cuda.memory_stats(DEVICE).in_use <= before)
    assert weft.cuda.memory_stats(DEVICE).lost == 0


@pytest.mark.parametrize("stream", [2, SimpleNamespace(cuda_stream=2)])
def test_a_stream_of_each_thread_is_no_stream(driver: ctypes.CDLL, stream: object) -> None:
    del driver
    add, x = weft.cuda.RawKernel(ADD, "add"), row()
    with pytest.raises(errors.KernelArgumentError, match="stream=2 is the default stream of whichever thread"):
        add(1, 64, (weft.Mutate(x), 1.0), stream=stream)
    add(1, 64, (weft.Mutate(x), 1.0), stream=1)
    assert x.numpy().sum() == 64


def test_static_memory_is_part_of_what_a_kernel_has(driver: ctypes.CDLL) -> None:
    driver.fake_cuda_static(16 << 10)
    x = row()
    add = weft.cuda.RawKernel(ADD, "add")
    for shared_mem in (1 << 10, 32 << 10, 40 << 10, 33 << 10):
        add(1, 64, (weft.Mutate(x), 1.0), shared_mem=shared_mem)
    assert x.numpy()[0] == 4
    with pytest.raises(errors.CudaError, match="92160 bytes of dynamic shared memory for kernel 'add'"):
        add(1, 64, (weft.Mutate(x), 1.0), shared_mem=90 << 10)


@pytest.mark.parametrize("said_by", ["keyword", "module", "cupy"])
def test_kernels_whose_blocks_wait_for_each_other_run_together(driver: ctypes.CDLL, said_by: str) -> None:
    if said_by == "keyword":
        kernel = weft.cuda.RawKernel(ADD, "add", enable_cooperative_groups=True)
    elif said_by == "module":
        kernel = weft.cuda.RawModule(ADD, enable_cooperative_groups=True).get_function("add")
    else:
        theirs = SimpleNamespace(code=ADD, options=(), enable_cooperative_groups=True)
        kernel = weft.cuda.RawModule(theirs).get_function("add")
    x, before = row(), driver.fake_cuda_cooperative()
    kernel(1, 64, (weft.Mutate(x), 2.0))
    assert x.numpy()[0] == 2
    assert driver.fake_cuda_cooperative() == before + 1
    weft.cuda.RawKernel(ADD, "add", enable_cooperative_groups=False)(1, 64, (weft.Mutate(x), 2.0))
    assert x.numpy()[0] == 4
    assert driver.fake_cuda_cooperative() == before + 1


def test_a_device_newer_than_the_compiler_takes_ptx(fake_cuda: dict[str, str], script: Any) -> None:
    source = """
        import weft

        x = weft.zeros(64, dtype="float32", device="cuda:0")
        weft.cuda.RawKernel('extern "C" __global__ void add(float* x) { x[threadIdx.x] += 1; }', "add")(1, 64, (weft.Mutate(x),))
        assert (x + 1.0).numpy()[0] == 2
    """
    script(source, **fake_cuda, FAKE_NVRTC_IS_OLD="1")


def run_without_fakes(tmp_path: Path, source: str) -> subprocess.CompletedProcess[str]:
    """Run a script on NVRTC itself."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("WEFT_")}
    command = [sys.executable, str(write_script(tmp_path, source))]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="NVRTC comes with the tests on Linux alone")
def test_headers_of_cuda_are_found(tmp_path: Path) -> None:
    source = """
        from weft._cuda.nvrtc import build

        for include, body in [
            ("cuda_fp16.h", "__half* x) { x[0] = __hadd(x[0], x[0]);"),
            ("cooperative_groups.h", "float* x) { cooperative_groups::this_grid().sync(); x[0] = 1;"),
            ("stdint.h", "int64_t* x) { x[0] = INT64_MAX - UINT8_MAX;"),
            ("cstdint", "uint8_t* x) { x[0] = UINT8_MAX;"),
        ]:
            text = f'#include <{include}>\\nextern "C" __global__ void f({body} }}'
            assert build("f", text, (9, 0))[:4] == b"\\x7fELF"
        both = '#include <stdint.h>\\n#include <cuda/std/cstdint>\\nextern "C" __global__ void f(int64_t* x) { x[0] = 1; }'
        build("f", both, (9, 0))
        assert b".target sm_" in build("newer", 'extern "C" __global__ void f(float* x) { x[0] = 1; }', (99, 0))
    """
    run = run_without_fakes(tmp_path, source)
    assert run.returncode == 0, run.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="NVRTC comes with the tests on Linux alone")
def test_an_architecture_that_the_options_name_is_the_one(tmp_path: Path) -> None:
    source = """
        from weft._cuda.nvrtc import build
        from weft.errors import KernelCompileError

        text = 'extern "C" __global__ void f(float* x) { asm volatile("wgmma.fence.sync.aligned;"); x[0] = 1; }'
        for options in [("-arch=sm_90a",), ("--gpu-architecture", "sm_90a")]:
            assert build("f", text, (9, 0), options)[:4] == b"\\x7fELF"
        assert b".target sm_90a" in build("f", text, (9, 0), ("-arch", "compute_90a"))
        try:
            build("f", text, (9, 0), ("--gpu-architecture=sm_100a",))
        except KernelCompileError as error:
            assert "compiled for sm_100a" in str(error), error
        else:
            raise AssertionError("that one has no such instruction")
    """
    run = run_without_fakes(tmp_path, source)
    assert run.returncode == 0, run.stderr


def test_a_misaligned_element_is_a_fault(script: RunScript, fake_cuda: dict[str, str]) -> None:
    """As on a device: whatever weft's own kernels do here, their elements lie where they may."""
    source = """
        import weft

        odd = 'extern "C" __global__ void odd(float* x) { *(float*)((char*)x + 1) = 1; }'
        x = weft.zeros(64, dtype="float32", device="cuda:0")
        weft.cuda.RawKernel(odd, "odd")(1, 1, (weft.Mutate(x),))
        try:
            x.wait_to_read(20)
        except weft.errors.CudaError as error:
            assert "CUDA_ERROR_MISALIGNED_ADDRESS (716)" in str(error), error
        else:
            raise AssertionError("it was done")
    """
    done = script(source, **fake_cuda)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="NVRTC comes with the tests on Linux alone")
def test_a_header_that_is_nowhere_is_told_with_what_to_install(tmp_path: Path) -> None:
    source = """
        from weft._cuda import nvrtc

        nvrtc.headers = lambda major: []
        nvrtc.build("f", '#include <cuda_fp16.h>\\nextern "C" __global__ void f(__half* x) {}', (9, 0))
    """
    run = run_without_fakes(tmp_path, source)
    assert run.returncode != 0
    assert "pip install nvidia-cuda-runtime nvidia-cuda-cccl" in run.stderr


def test_what_packages_lack_of_the_headers_a_toolkit_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package, old, toolkit = (tmp_path / name for name in ("package", "old", "toolkit"))
    (package / "include").mkdir(parents=True)
    (package / "include" / "cuda_fp16.h").touch()
    for folder, version in ((old, 12080), (toolkit, 13010)):
        (folder / "include" / "cccl").mkdir(parents=True)
        (folder / "include" / "cuda.h").write_text(f"#define CUDA_VERSION {version}\n")
    monkeypatch.setattr(nvrtc, "_roots", lambda name: [package] if name == "nvidia.cu13" else [])
    monkeypatch.setattr(nvrtc, "_toolkits", lambda: [old, toolkit])
    wanted = [package / "include", toolkit / "include", toolkit / "include" / "cccl"]
    assert nvrtc.headers(13) == [str(folder) for folder in wanted]
    for piece in ("nv/target", "crt/mma.h"):  # both are installed
        (package / "include" / piece).parent.mkdir()
        (package / "include" / piece).touch()
    assert nvrtc.headers(13) == [str(package / "include")]
    assert nvrtc.headers(12) == [str(old / "include"), str(old / "include" / "cccl")]


def test_the_first_look_at_a_machine_works_and_finds_no_harm(fake_cuda: dict[str, str], tmp_path: Path) -> None:
    script = Path(__file__).parents[2] / "benches" / "gpu" / "first.py"
    command = [sys.executable, str(script), "--quick", "--json", str(tmp_path / "first.json")]
    run = subprocess.run(command, env=os.environ | fake_cuda, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    found = json.loads((tmp_path / "first.json").read_text(encoding="utf-8"))
    assert found["machine"]["name"] == "Fake 0"
    assert set(found["driver's calls, us"]) == {
        *("launch", "launch + event", "allocation", "free", "query", "cross-stream wait"),
    }
    assert {"driver", "nvrtc", "connections"} <= set(found["machine"])
    assert found["pageable copy"]["pinned bytes"] > 0
    assert list(found["kernels on as many streams, ms"]) == ["1", "2", "4", "6", "8", "9", "10", "12", "16"]
    captured = found["during a global capture"]
    assert captured["sum"] == 6400
    assert captured["end, weft's ops"] == 0, "weft has spoiled the capture"
    assert (captured["query"], captured["end, a plain query"]) == (900, 901)
