"""Which two devices there are: two GPUs, one GPU twice, or the CPU; and how to say it."""

import os
from typing import NamedTuple

import weft


class Devices(NamedTuple):
    """Two devices, and in words what they are."""

    pair: tuple[weft.Device, weft.Device]
    said: str

    @property
    def on_gpu(self) -> bool:
        """Whether they are GPUs."""
        return self.pair[0].kind == "cuda"


def find_devices() -> Devices:
    """Return two GPUs where there are two, one GPU as two logical devices where there is one, and else the CPU.

    One GPU is two devices in that each has arrays of its own: ops on one do not wait for those on the other, so they
    run on streams of their own, side by side as far as the GPU has room. Large products of matrices are CuPy's on a GPU:
    without CuPy the network is trained on the CPU.
    """
    # Several streams share cuBLAS: with workspaces of a fixed size it computes the same on each, bit for bit.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    try:
        ones = weft.ones((128, 128), device=weft.gpu(0))
        (ones @ ones).numpy()
    except Exception as error:  # noqa: BLE001 - no GPU, no CuPy, one that does not fit the driver: it is said which
        return Devices(
            (weft.cpu(0), weft.cpu(1)), f"cpu:0 and cpu:1, logical devices of the CPU, for want of a GPU: {error}"
        )
    if weft.cuda.device_count() == 1:
        return Devices((weft.gpu(0), weft.gpu(0)), "cuda:0, as two logical devices with streams of their own")
    return Devices((weft.gpu(0), weft.gpu(1)), "cuda:0 and cuda:1")
