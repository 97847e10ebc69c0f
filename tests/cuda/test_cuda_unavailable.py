"""Where there is no CUDA: importing opens nothing, and whoever asks is told what is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import RunScript


def test_importing_opens_nothing(script: RunScript) -> None:
    done = script(
        """
        import sys, weft
        weft.gpu(0), weft.Device("cuda:1/copy"), (weft.ones(3) + 1).numpy()
        assert not [name for name in sys.modules if "cupy" in name]
        mapped = open("/proc/self/maps").read() if sys.platform == "linux" else ""
        assert "libcuda" not in mapped and "nvrtc" not in mapped
        """,
        WEFT_CUDA_LIBRARY="/nowhere/libcuda.so",
    )
    assert done.returncode == 0, done.stderr


def test_a_driver_that_is_not_there_is_named(script: RunScript) -> None:
    done = script(
        """
        import weft
        assert not weft.cuda.is_available() and weft.cuda.device_count() == 0
        for ask in (
            lambda: weft.ones(3, device="cuda:0"),
            lambda: weft.ones(3).to_device(weft.gpu(0)),
            lambda: weft.cuda.memory_stats(),
            lambda: weft.cuda.empty_pinned(3),
            lambda: weft.cuda.synchronize(0),
        ):
            try:
                ask()
            except weft.errors.CudaUnavailableError as error:
                assert isinstance(error, RuntimeError)
                assert "the NVIDIA driver cannot be loaded (/nowhere/libcuda.so" in str(error), error
            else:
                raise AssertionError
        weft.wait_all()
        """,
        WEFT_CUDA_LIBRARY="/nowhere/libcuda.so",
    )
    assert done.returncode == 0, done.stderr


def test_a_compiler_that_is_not_there_is_named(script: RunScript, fake_cuda: dict[str, str]) -> None:
    done = script(
        """
        import weft
        x = weft.asarray([1.0, 2.0], device="cuda:0")
        try:
            x + 1
        except weft.errors.CudaUnavailableError as error:
            assert "NVRTC, CUDA's compiler, is not available" in str(error), error
            assert "pip install nvidia-cuda-nvrtc" in str(error)
        else:
            raise AssertionError
        assert x.tolist() == [1.0, 2.0]
        """,
        **fake_cuda | {"WEFT_NVRTC_LIBRARY": "/nowhere/libnvrtc.so"},
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_a_process_ends_with_copies_under_way(script: RunScript, fake_cuda: dict[str, str]) -> None:
    done = script(
        """
        import weft
        x = weft.ones(2_000_000, device="cuda:0")
        y = [x.to_device("cpu") for _ in range(20)]
        """,
        **fake_cuda,
    )
    assert done.returncode == 0, done.stderr


def test_a_forked_child_is_told(script: RunScript, fake_cuda: dict[str, str]) -> None:
    done = script(
        """
        import os, sys, weft
        x = weft.asarray([1.0], device="cuda:0")
        weft.cuda.synchronize()
        child = os.fork()
        if child == 0:
            try:
                weft.asarray([1.0], device="cuda:0").numpy()
            except weft.errors.ForkedError as error:
                os._exit(0 if "spawn" in str(error) and (weft.ones(3) + 1).tolist() == [2.0] * 3 else 2)
            os._exit(3)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert (x + x).tolist() == [2.0]
        """,
        **fake_cuda,
    )
    assert done.returncode == 0, done.stderr
