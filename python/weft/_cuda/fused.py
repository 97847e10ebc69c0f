"""Kernels that compute several element-wise functions one after the other, for recordings.

A value goes from one function to the next in a register, in its form in memory: so each rounds, and casts, as it does
alone. All elements are read before the first is written, as an output may be an input.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

from weft._cuda.nvrtc import build as compiled
from weft._cuda.sources import OPTIONS, Elementwise, header, in_memory

if TYPE_CHECKING:
    from weft._registry.avals import DType

#: Where an operand is: "array", "slot" or "scalar", and its number among these.
Place: TypeAlias = tuple[str, int]
#: A function, where its result goes, and where its operands are.
Step: TypeAlias = tuple[Elementwise, Place, tuple[Place, ...]]

_NAME = "weft_fused"


@lru_cache(maxsize=256)
def build(steps: tuple[Step, ...], arrays: tuple[DType, ...], capability: tuple[int, int]) -> tuple[str, bytes] | None:
    """Compile one kernel for several functions.

    Parameters
    ----------
    steps : tuple of (Elementwise, place, tuple of places)
        The functions in their order, with the places that each writes and reads.
    arrays : tuple of numpy.dtype
        The arrays' dtypes.
    capability : (int, int)
        That of the device.

    Returns
    -------
    (str, bytes) or None
        The kernel's name and its image; None if these functions stay apart.
    """
    text = source(steps, arrays)
    return None if text is None else (_NAME, compiled(_NAME, text, capability, OPTIONS))


def source(steps: tuple[Step, ...], arrays: tuple[DType, ...]) -> str | None:
    """Return the source of such a kernel, or None if there is none: a mask leaves elements as they are.

    Examples
    --------
    >>> import numpy as np
    >>> from weft._cuda.fused import source
    >>> from weft._cuda.sources import Elementwise
    >>> dtype = np.dtype("float32")
    >>> add = Elementwise("add", "a + b", (dtype,) * 2, dtype, (dtype,) * 2, dtype)
    >>> text = source(((add, ("slot", 0), (("array", 0),) * 2), (add, ("array", 1), (("slot", 0), ("scalar", 0)))), (dtype,) * 2)
    >>> "float* x0, float* x1, float s0" in text
    True
    """
    if any(kernel.masked for kernel, *_ in steps):
        return None
    scalars = [
        kernel.inputs[at] for kernel, _, inputs in steps for at, (kind, _) in enumerate(inputs) if kind == "scalar"
    ]
    read = _read(steps)
    if read is None:
        return None
    functions = "".join(f"namespace p{at} {{\n{kernel.function()}}}\n" for at, (kernel, *_) in enumerate(steps))
    parameters = [f"{in_memory(dtype)}* x{at}" for at, dtype in enumerate(arrays)]
    parameters += [f"{in_memory(dtype)} s{at}" for at, dtype in enumerate(scalars)]
    held = "".join(f"        {in_memory(arrays[at])} y{at}[4];\n" for at in read)
    loads = " ".join(f"y{at}[k] = x{at}[i + k * step];" for at in read)
    many = _body(steps, {at: f"y{at}[k]" for at in read}, "i + k * step")
    single = _body(steps, {at: f"x{at}[i]" for at in read}, "i")
    return f"""{header(dtype for kernel, *_ in steps for dtype in kernel.dtypes)}{functions}
extern "C" __global__ void {_NAME}(u64 size, {", ".join(parameters)}) {{
    u64 step = (u64)gridDim.x * blockDim.x, i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    for (; i + 3 * step < size; i += 4 * step) {{
{held}        #pragma unroll
        for (int k = 0; k < 4; ++k) {{ {loads} }}
        #pragma unroll
        for (int k = 0; k < 4; ++k) {{
{many}        }}
    }}
    for (; i < size; i += step) {{
{single}    }}
}}
"""


def _read(steps: tuple[Step, ...]) -> list[int] | None:
    """Return the arrays whose elements are needed from memory, or None if a slot is read before it is written."""
    written: set[Place] = set()
    read: list[int] = []
    for _, output, inputs in steps:
        for place in inputs:
            if place[0] == "slot" and place not in written:
                return None
            if place[0] == "array" and place not in written and place[1] not in read:
                read.append(place[1])
        written.add(output)
    return read


def _body(steps: tuple[Step, ...], loaded: dict[int, str], element: str) -> str:
    """Return the code for one element, given the names of arrays' elements."""
    values: dict[Place, str] = {("array", at): name for at, name in loaded.items()}
    lines: list[str] = []
    for at, (kernel, output, inputs) in enumerate(steps):
        operands = [f"s{number}" if kind == "scalar" else values[kind, number] for kind, number in inputs]
        lines.append(
            f"            {in_memory(kernel.output)} r{at} = {kernel.call(operands, element, f'p{at}::apply')};\n"
        )
        values[output] = f"r{at}"
    written = dict.fromkeys(output[1] for _, output, _ in steps if output[0] == "array")
    lines += [f"            x{at}[{element}] = {values['array', at]};\n" for at in written]
    return "".join(lines)
