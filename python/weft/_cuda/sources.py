"""Sources of element-wise kernels in CUDA C++.

A kernel walks over elements that lie in rows, or over any layout of up to eight axes (``Walk``, as
``crates/bindings/src/cuda/elementwise.rs`` fills it). An operand may be an array or a number. Operands are cast to the
types that the function computes in, and the result to that of the output. No pointer is declared ``restrict``, as an
output may be an input: so the elements that a thread computes together are all read before the first is written.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from weft._cuda.complex_numbers import HEADER as COMPLEX
from weft._cuda.expressions import HEADER

if TYPE_CHECKING:
    from collections.abc import Iterable

    from weft._registry.avals import DType

#: So that results are those of single operations, as NumPy's are.
OPTIONS = ("--fmad=false", "--std=c++14")

_TYPES = {
    "bool": "u8",
    "int8": "signed char",
    "uint8": "u8",
    "int16": "short",
    "uint16": "unsigned short",
    "int32": "int",
    "uint32": "unsigned",
    "int64": "long long",
    "uint64": "u64",
    "float16": "Half",
    "float32": "float",
    "float64": "double",
    "complex64": "Complex<float>",
    "complex128": "Complex<double>",
}
_NARROW = 4
_SHORT = np.dtype(np.float16)

#: Half precision in memory. Its arithmetic is single precision's, rounded, as NumPy's is. The other way is the one that other
#: compilers than NVIDIA's take.
_HALF = r"""
struct __align__(2) Half {
    unsigned short bits;
    Half() = default;
#ifdef __CUDA_ARCH__
    __device__ Half(float x) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x)); }
    __device__ Half(double x) { asm("cvt.rn.f16.f64 %0, %1;" : "=h"(bits) : "d"(x)); }
    __device__ operator float() const { float x; asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits)); return x; }
#else
    Half(float x) : Half((double)x) {}
    Half(double x) {
        unsigned short sign = __builtin_signbit(x) ? 0x8000 : 0;
        double size = __builtin_fabs(x);
        if (size != size) { bits = sign | 0x7e00; return; }
        if (size >= 65520) { bits = sign | 0x7c00; return; }
        int power = size < 6.103515625e-05 ? -14 : __builtin_ilogb(size);
        unsigned mantissa = (unsigned)__builtin_rint(__builtin_ldexp(size, 10 - power));
        bits = sign | (unsigned short)(((power + 14) << 10) + mantissa);
    }
    operator float() const {
        int power = bits >> 10 & 31, mantissa = bits & 1023;
        float size = power == 31 ? (mantissa ? __builtin_nanf("") : __builtin_inff())
                                 : __builtin_ldexpf(power ? mantissa + 1024 : mantissa, (power ? power : 1) - 25);
        return bits >> 15 ? -size : size;
    }
#endif
};
"""

_WALK = """
struct Walk {{ u64 size, axes, shape[8]; long long strides[{operands}][8]; }};
template <class I> __device__ void step(const Walk& walk, u64 element, long long* at) {{
    I rest = (I)element;
    for (int k = 0; k < {operands}; ++k) at[k] = 0;
    for (int axis = (int)walk.axes - 1; axis >= 0; --axis) {{
        I length = (I)walk.shape[axis], index = rest % length;
        rest /= length;
        for (int k = 0; k < {operands}; ++k) at[k] += (long long)index * walk.strides[k][axis];
    }}
}}
"""


@dataclass(frozen=True)
class Elementwise:
    """An element-wise function for exact dtypes.

    Parameters
    ----------
    name : str
        The kernel's name, of letters, digits and underscores.
    body : str
        Its expression; see `weft._cuda.expressions`.
    inputs, output : numpy.dtype
        Of the operands and of the result in memory.
    computed, result : numpy.dtype
        The dtypes that the operands are cast to, and that of the expression.
    masked : bool, default: False
        Whether one more operand, of booleans, says which elements to compute.
    indexed : bool, default: False
        Whether the body asks for ``i``, the number of the element in C order.
    """

    name: str
    body: str
    inputs: tuple[DType, ...]
    output: DType
    computed: tuple[DType, ...]
    result: DType
    masked: bool = False
    indexed: bool = False

    def source(self, *, strided: bool, scalars: int) -> str:
        """Return the source of one kernel.

        Parameters
        ----------
        strided : bool
            Whether it takes any layout, and not only rows.
        scalars : int
            Bits that say which operands are numbers.
        """
        walk = _WALK.format(operands=1 + self._arrays(scalars)) if strided else ""
        return (
            header(self.dtypes)
            + walk
            + self.function()
            + (self._walking(scalars) if strided else self._in_rows(scalars))
        )

    @property
    def dtypes(self) -> tuple[DType, ...]:
        """All dtypes that occur."""
        return (*self.inputs, *self.computed, self.output)

    def _arrays(self, scalars: int) -> int:
        return sum(not scalars >> at & 1 for at in range(len(self.inputs)))

    def function(self) -> str:
        """Return the source of ``apply``, which computes one element."""
        kinds = [_computed(dtype) for dtype in self.computed]
        wide = "u64" if self.computed[0].itemsize > _NARROW else "unsigned"
        names = "ABCD"[: len(kinds)]
        parameters = ", ".join([f"{each} {each.lower()}" for each in names] + ["u64 i"] * self.indexed)
        aliases = "".join(f"typedef {kind} {each};\n" for kind, each in zip(kinds, names, strict=True))
        return (
            f"{aliases}typedef {_computed(self.result)} R;\ntypedef {wide} U;\n"
            f"__device__ R apply({parameters}) {{ return {self.body}; }}\n"
        )

    def _parameters(self, scalars: int) -> str:
        listed = [f"{_TYPES[self.output.name]}* out"]
        for at, dtype in enumerate(self.inputs):
            kind = _TYPES[dtype.name]
            listed.append(f"{kind} x{at}" if scalars >> at & 1 else f"const {kind}* x{at}")
        return ", ".join(listed)

    def call(self, operands: list[str], element: str, function: str = "apply") -> str:
        """Return an element of the result, as it is in memory.

        Parameters
        ----------
        operands : list of str
            Those of the inputs, as they are in memory.
        element : str
            Its number.
        function : str, default: "apply"
            The function's name.
        """
        given = [
            _cast(f"({_computed(dtype)}){each}", dtype, to)
            for each, dtype, to in zip(operands, self.inputs, self.computed, strict=False)
        ] + [element] * self.indexed
        applied = f"{function}({', '.join(given)})"
        return f"({_TYPES[self.output.name]}){_cast(applied, self.result, self.output)}"

    def _in_rows(self, scalars: int) -> str:
        count = len(self.inputs)
        arrays = [at for at in range(count) if not scalars >> at & 1]
        held = "".join(f"        {_TYPES[self.inputs[at].name]} y{at}[4];\n" for at in arrays)
        loads = " ".join(f"y{at}[k] = x{at}[i + k * step];" for at in arrays)
        many = [f"x{at}" if scalars >> at & 1 else f"y{at}[k]" for at in range(count)]
        single = [f"x{at}" if scalars >> at & 1 else f"x{at}[i]" for at in range(count)]
        when = [f"if ({operands[-1]}) " if self.masked else "" for operands in (many, single)]
        return f"""
extern "C" __global__ void {self.name}(u64 size, {self._parameters(scalars)}) {{
    u64 step = (u64)gridDim.x * blockDim.x, i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    for (; i + 3 * step < size; i += 4 * step) {{
{held}        #pragma unroll
        for (int k = 0; k < 4; ++k) {{ {loads} }}
        #pragma unroll
        for (int k = 0; k < 4; ++k) {when[0]}out[i + k * step] = {self.call(many, "i + k * step")};
    }}
    for (; i < size; i += step) {when[1]}out[i] = {self.call(single, "i")};
}}
"""

    def _walking(self, scalars: int) -> str:
        count = len(self.inputs)
        operands: list[str] = []
        position = 1
        for at in range(count):
            if scalars >> at & 1:
                operands.append(f"x{at}")
            else:
                operands.append(f"(*(const {_TYPES[self.inputs[at].name]}*)((const char*)x{at} + at[{position}]))")
                position += 1
        when = f"if ({operands[-1]}) " if self.masked else ""
        return f"""
extern "C" __global__ void {self.name}(Walk walk, {self._parameters(scalars)}) {{
    u64 stride = (u64)gridDim.x * blockDim.x;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < walk.size; i += stride) {{
        long long at[{position}];
        if (walk.size >> 32) step<u64>(walk, i, at); else step<unsigned>(walk, i, at);
        {when}*({_TYPES[self.output.name]}*)((char*)out + at[0]) = {self.call(operands, "i")};
    }}
}}
"""


def header(dtypes: Iterable[DType]) -> str:
    """Return the beginning of sources over these dtypes."""
    known = set(dtypes)
    text = HEADER + COMPLEX if any(dtype.kind == "c" for dtype in known) else HEADER
    return text + _HALF if _SHORT in known else text


def in_memory(dtype: DType) -> str:
    """Return the type of an element in memory."""
    return _TYPES[dtype.name]


def _computed(dtype: DType) -> str:
    """Return the type of a value in a register."""
    return {"bool": "bool", "float16": "float"}.get(dtype.name) or _TYPES[dtype.name]


def _cast(value: str, from_: DType, to: DType) -> str:
    """Return a value in a register cast to another dtype. A result of half precision is rounded to it, once."""
    if from_ == to == _SHORT:
        return value
    if to == _SHORT:
        wide = value if from_.name == "float64" else f"Cast<float, {_computed(from_)}>::of({value})"
        return f"(float)(Half){wide}"
    return f"Cast<{_computed(to)}, {_computed(from_)}>::of({value})"
