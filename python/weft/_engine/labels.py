"""Devices: where an op belongs. A label for the scheduler; it holds no resources."""

from __future__ import annotations

import operator
import re
from dataclasses import dataclass
from typing import SupportsIndex

from weft.errors import ArgumentTypeError, ArgumentValueError

_LANES = ("compute", "copy")
#: The kinds of devices: the first one's number in engines, and how many there may be.
_KINDS: dict[str, tuple[int, int]] = {"cpu": (0, 2**15)}
_SPEC = re.compile(r"(?P<kind>[a-z]+)(?::(?P<index>[0-9]+))?(?:/(?P<lane>[a-z]+))?")


def add_kind(kind: str, first: int, count: int) -> None:
    """Make a kind of device known, with the numbers of its devices in engines from `first` on.

    Raises
    ------
    ArgumentValueError
        If the kind, or one of the numbers, is another's.
    """
    for name, (begin, length) in _KINDS.items():
        if name == kind or (first < begin + length and begin < first + count):
            raise ArgumentValueError(f"the kind of device {kind!r} has the name, or a number, of the kind {name!r}")
    _KINDS[kind] = first, count


def kind_of(number: int) -> str:
    """Return the kind of the device that engines know by a number."""
    return next(kind for kind, (first, count) in _KINDS.items() if first <= number < first + count)


def numbered(number: int) -> Device:
    """Return the device that engines know by a number."""
    kind = kind_of(number)
    return Device(f"{kind}:{number - _KINDS[kind][0]}")


@dataclass(frozen=True, order=True, slots=True, init=False, repr=False)
class Device:
    """A device, and an op's lane there.

    CPU devices are logical: any number of them share the machine's memory and cores. A CUDA device is a GPU with memory
    of its own; naming one neither opens the driver nor asks whether it exists. The ``per_device`` policy gives each
    device its own workers, and its copy lane one more, so that copies overlap with compute. To the other policies a
    device is a label. Devices are immutable, hashable, ordered and picklable.

    Parameters
    ----------
    spec : str
        ``"cpu:0"`` or ``"cuda:0"`` for the compute lane, ``"cpu:0/copy"`` for the copy lane. Without an index, device 0.

    Attributes
    ----------
    kind : str
        ``"cpu"`` or ``"cuda"``.
    index : int
        The device's number, from 0.
    lane : str
        ``"compute"`` or ``"copy"``.

    Raises
    ------
    ArgumentTypeError
        If `spec` is not a string.
    ArgumentValueError
        If `spec` names an unknown kind of device or an unknown lane, or cannot be read.

    Examples
    --------
    >>> import weft
    >>> device = weft.Device("cpu:1")
    >>> device.kind, device.index, device.lane
    ('cpu', 1, 'compute')
    >>> device == weft.cpu(1)
    True
    """

    kind: str
    index: int
    lane: str

    def __init__(self, spec: str) -> None:
        if not isinstance(spec, str):
            raise ArgumentTypeError(
                "a device is weft.cpu(0), weft.gpu(0) or named by a string such as 'cuda:0', not by "
                f"{type(spec).__name__}"
            )
        match = _SPEC.fullmatch(spec)
        if match is None:
            raise ArgumentValueError(
                f"cannot read the device {spec!r}: write 'cpu:0' or 'cuda:0', or 'cpu:0/copy' for its copy lane"
            )
        kind, index, lane = match["kind"], match["index"] or "0", match["lane"] or "compute"
        if kind not in _KINDS:
            *others, last = map(repr, _KINDS)
            raise ArgumentValueError(
                f"unknown kind of device {kind!r} in {spec!r}: known are {', '.join(others)} and {last}"
            )
        if lane not in _LANES:
            raise ArgumentValueError(f"unknown lane {lane!r} in {spec!r}: known are 'compute' and 'copy'")
        # The length first: int() refuses strings of thousands of digits with an error of its own.
        most = _KINDS[kind][1] - 1
        if len(index) > len(str(most)) or int(index) > most:
            raise ArgumentValueError(f"the device index in {spec[:40]!r} is over {most}")
        object.__setattr__(self, "kind", kind)
        object.__setattr__(self, "index", int(index))
        object.__setattr__(self, "lane", lane)

    @property
    def copy(self) -> Device:
        """The copy lane of the same device.

        Examples
        --------
        >>> import weft
        >>> weft.cpu(1).copy
        weft.Device('cpu:1/copy')
        """
        return Device(f"{self.kind}:{self.index}/copy")

    @property
    def _number(self) -> int:
        """The device's number in engines: no CPU device has that of a CUDA device."""
        return _KINDS[self.kind][0] + self.index

    def __str__(self) -> str:
        """Return the string that makes this device."""
        return f"{self.kind}:{self.index}" + ("" if self.lane == "compute" else f"/{self.lane}")

    def __repr__(self) -> str:
        """Return the expression that makes this device."""
        return f"weft.Device({str(self)!r})"


def cpu(i: SupportsIndex = 0) -> Device:
    """Return the `i`-th logical CPU device.

    Parameters
    ----------
    i : int, default: 0
        The device's number. CPU devices are logical: any number of them may share the machine's cores.

    Returns
    -------
    Device
        The device's compute lane; ``.copy`` is its copy lane.

    Raises
    ------
    ArgumentTypeError
        If `i` is not an integer.
    ArgumentValueError
        If `i` is negative or over 32,767.

    Examples
    --------
    >>> import weft
    >>> str(weft.cpu()), str(weft.cpu(1).copy)
    ('cpu:0', 'cpu:1/copy')
    """
    return _numbered("cpu", i)


def gpu(i: SupportsIndex = 0) -> Device:
    """Return the `i`-th CUDA device, as ``weft.Device("cuda:i")``.

    Parameters
    ----------
    i : int, default: 0
        The device's number, as the driver counts those that ``CUDA_VISIBLE_DEVICES`` leaves.

    Returns
    -------
    Device
        The device. Whether it exists is found out when an array is put there.

    Raises
    ------
    ArgumentTypeError
        If `i` is not an integer.
    ArgumentValueError
        If `i` is negative or over 1,023.

    See Also
    --------
    weft.cuda.is_available : Whether there is a device to be used.

    Examples
    --------
    >>> import weft
    >>> weft.gpu(1)
    weft.Device('cuda:1')
    """
    return _numbered("cuda", i)


def _numbered(kind: str, i: SupportsIndex) -> Device:
    try:
        index = operator.index(i)
    except TypeError:
        raise ArgumentTypeError(f"a device's number is an integer, not {type(i).__name__}") from None
    most = _KINDS[kind][1] - 1
    if not 0 <= index <= most:
        raise ArgumentValueError(f"a device's number is between 0 and {most}, not {index}")
    return Device(f"{kind}:{index}")
