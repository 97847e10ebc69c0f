"""Kernels of users: sources and their parameters, modules, kernels of CuPy's."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from weft._cuda.nvrtc import build as compile_
from weft._cuda.streams import cupy
from weft.errors import ArgumentTypeError, KernelArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from weft._core import RawKernel

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_KERNEL = r'extern\s*"C"\s*(?:\{{\s*)?__global__\s+(?:__launch_bounds__\s*\([^)]*\)\s*)?void\s+(?:__launch_bounds__\s*\([^)]*\)\s*)?{}\s*\(([^)]*)\)'
_EVERY = re.compile(
    r"__global__\s+(?:__launch_bounds__\s*\([^)]*\)\s*)?void\s+(?:__launch_bounds__\s*\([^)]*\)\s*)?(\w+)\s*\("
)
_NOISE = re.compile(r"\b(?:const|volatile|__restrict__|__restrict|__grid_constant__|struct)\b")
#: C++'s names of NumPy's dtypes, where 64-bit Linux and Windows agree.
_TYPES = {
    **dict.fromkeys(("bool",), "bool"),
    **dict.fromkeys(("signed char", "char", "int8_t"), "int8"),
    **dict.fromkeys(("unsigned char", "uint8_t"), "uint8"),
    **dict.fromkeys(("short", "short int", "int16_t"), "int16"),
    **dict.fromkeys(("unsigned short", "unsigned short int", "uint16_t"), "uint16"),
    **dict.fromkeys(("int", "signed", "signed int", "int32_t"), "int32"),
    **dict.fromkeys(("unsigned", "unsigned int", "uint32_t"), "uint32"),
    **dict.fromkeys(("long long", "long long int", "int64_t", "ptrdiff_t"), "int64"),
    **dict.fromkeys(("unsigned long long", "unsigned long long int", "uint64_t", "size_t"), "uint64"),
    **dict.fromkeys(("__half", "half"), "float16"),
    "float": "float32",
    "double": "float64",
    **dict.fromkeys(("complex<float>", "thrust::complex<float>", "cuFloatComplex"), "complex64"),
    **dict.fromkeys(("complex<double>", "thrust::complex<double>", "cuDoubleComplex"), "complex128"),
}


class RawModule:
    """A source of several kernels in CUDA C++, compiled once for each kind of device.

    Parameters
    ----------
    code : str or cupy.RawModule
        The source, or a module of CuPy's that has it.
    options : sequence of str, optional
        Options of NVRTC.
    enable_cooperative_groups : bool, optional
        Whether the kernels are launched so that all blocks of a grid may wait for each other; as in CuPy.

    Examples
    --------
    >>> import weft
    >>> module = weft.cuda.RawModule('extern "C" __global__ void nothing(float* x) {}')
    >>> module.get_function("nothing")
    <weft.cuda.RawKernel nothing>
    """

    __slots__ = ("_images", "code", "cooperative", "options")

    def __init__(
        self, code: Any, *, options: Sequence[str] = (), enable_cooperative_groups: bool | None = None
    ) -> None:
        source: object = getattr(code, "code", code)
        if not isinstance(source, str):
            raise ArgumentTypeError(f"RawModule takes the source of kernels, not {type(code).__name__}")
        if isinstance(options, str):
            raise ArgumentTypeError(f"options is a sequence of strings, not one: ({options!r},)")
        self.code = source
        theirs = bool(getattr(code, "enable_cooperative_groups", False))
        self.cooperative = theirs if enable_cooperative_groups is None else enable_cooperative_groups
        self.options = (*getattr(code, "options", ()), *options)
        self._images: dict[tuple[int, int], bytes] = {}

    def get_function(self, name: str) -> RawKernel:
        """Return the kernel of a name.

        Parameters
        ----------
        name : str
            The name of an ``extern "C"`` function.
        """
        from weft._core import RawKernel  # noqa: PLC0415 - the core imports this module when it makes one

        return RawKernel(self, name)

    def image(self, capability: tuple[int, int]) -> bytes:
        """Return the module compiled for devices of a compute capability."""
        found = self._images.get(capability)
        if found is None:
            found = self._images[capability] = compile_("module", self.code, capability, self.options)
        return found


def prepare(
    code: Any, name: str | None, options: Sequence[str] | None, cooperative: bool | None = None
) -> tuple[str, list[tuple[bool, str | None]] | None, Callable[[int, tuple[int, int]], bytes | int], bool]:
    """Return the facts that `RawKernel` keeps: its name, its parameters as far as known, its build, and whether it is cooperative.

    Raises
    ------
    ArgumentTypeError
        If `code` is no source or module; if the name is no string, or the options are one.
    KernelArgumentError
        If there is no name, or the source can have no kernel of that name.
    """
    if not isinstance(code, str | RawModule):
        theirs = bool(getattr(code, "enable_cooperative_groups", False))
        return *_theirs(code, name), theirs if cooperative is None else cooperative
    if name is None:
        raise KernelArgumentError('a kernel needs its name: RawKernel(code, "name")')
    if not isinstance(name, str):
        raise ArgumentTypeError(f"the name of a kernel is a string, not {type(name).__name__}")
    module = code if isinstance(code, RawModule) else RawModule(code, options=options or ())

    _check_name(module, name)

    def build(_device: int, capability: tuple[int, int]) -> bytes:
        return module.image(capability)

    return name, parameters(module.code, name), build, bool(cooperative or (cooperative is None and module.cooperative))


def _check_name(module: RawModule, name: str) -> None:
    """Refuse a name that the driver will not find, unless the preprocessor may bring it in or it is a decorated one."""
    source = _COMMENT.sub(" ", module.code)
    if (
        name.startswith("_Z")
        or "#include" in source
        or "##" in source
        or any(option.lstrip("-/").startswith("D") for option in module.options)
    ):
        return
    if re.search(rf"\b{re.escape(name)}\b", source) is None:
        found = ", ".join(dict.fromkeys(_EVERY.findall(source))) or "none"
        raise KernelArgumentError(f"the source has no kernel {name!r}; its kernels are: {found}")
    if not re.search(r'extern\s*"C"', source):
        raise KernelArgumentError(
            f'kernel {name!r} is not found by its name, which C++ decorates: write extern "C" __global__ void {name}(...)'
        )


def _theirs(
    kernel: Any, name: str | None
) -> tuple[str, list[tuple[bool, str | None]] | None, Callable[[int, tuple[int, int]], int]]:
    """Return the same for a kernel of CuPy's, which loads it."""
    if not hasattr(kernel, "kernel") or not hasattr(kernel, "code"):
        raise ArgumentTypeError(f"a kernel is made from its source, a RawModule or CuPy's, not {type(kernel).__name__}")
    own: str = kernel.name if name is None else name

    def handle(device: int, _capability: tuple[int, int]) -> int:
        with cupy().cuda.Device(device):
            pointer: int = kernel.kernel.ptr
        return pointer

    # One that was loaded from a file has no source.
    return own, parameters(kernel.code, own) if kernel.code else None, handle


def parameters(source: str, name: str) -> list[tuple[bool, str | None]] | None:
    """Return a kernel's parameters as its source tells them; None if there is no plain signature of that name.

    Returns
    -------
    list of (bool, str or None)
        For each whether it is a pointer, and the dtype of the value or of its target, if it is one of NumPy's.

    Examples
    --------
    >>> from weft._cuda.kernels import parameters
    >>> parameters('extern "C" __global__ void f(const float* x, unsigned int n, Mine m) {}', "f")
    [(True, 'float32'), (False, 'uint32'), (False, None)]
    """
    found = re.search(_KERNEL.format(re.escape(name)), _COMMENT.sub(" ", source))
    if found is None:
        return None
    listed = found[1].strip()
    return [_parameter(each) for each in _split(listed)] if listed not in ("", "void") else []


def _split(listed: str) -> list[str]:
    """Split at the commas that are outside of angle brackets."""
    parts, depth = [""], 0
    for character in listed:
        depth += (character == "<") - (character == ">")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def _parameter(text: str) -> tuple[bool, str | None]:
    plain = _NOISE.sub(" ", text.split("=", maxsplit=1)[0])
    pointer = "*" in plain or "[" in plain
    words = re.sub(r"[*&]|\[[^]]*\]", " ", plain).replace("std::", "").split()
    kind = " ".join(words)
    if kind not in _TYPES:  # the last word is the parameter's name
        kind = " ".join(words[:-1])
    return pointer, None if plain.count("*") > 1 else _TYPES.get(kind)
