"""Arguments by position, as MXNet's generated functions take them: inputs first, attributes after, in MXNet's order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft.errors import ArgumentTypeError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from weft._mxnet.operator import Operator

#: All inputs of ops that have some of them only by their attributes.
_INPUTS: dict[str, tuple[str, ...]] = {
    "Convolution": ("data", "weight", "bias"),
    "Deconvolution": ("data", "weight", "bias"),
    "FullyConnected": ("data", "weight", "bias"),
    "LeakyReLU": ("data", "gamma"),
    "RNN": ("data", "parameters", "state", "state_cell", "sequence_length"),
    "SequenceLast": ("data", "sequence_length"),
    "SequenceMask": ("data", "sequence_length"),
    "SequenceReverse": ("data", "sequence_length"),
    "softmax": ("data", "length"),
    "_contrib_BilinearResize2D": ("data", "like"),
    "CTCLoss": ("data", "label", "data_lengths", "label_lengths"),
}
#: The attributes that count the inputs of ops that take any number.
_COUNTS = {"multi_all_finite": "num_arrays", "amp_multicast": "num_outputs"}
_WINDOWS = ("kernel", "stride", "dilate", "pad")
#: Attributes in MXNet's order, where that is not the order of the settings here.
_ATTRIBUTES: dict[str, tuple[str, ...]] = {
    "Convolution": (*_WINDOWS, "num_filter", "num_group", "workspace", "no_bias", "cudnn_tune", "cudnn_off", "layout"),
    "Deconvolution": (
        *_WINDOWS, "adj", "target_shape", "num_filter", "num_group", "workspace", "no_bias", "cudnn_tune",
        "cudnn_off", "layout",
    ),
    "Pooling": (
        "kernel", "pool_type", "global_pool", "cudnn_off", "pooling_convention", "stride", "pad", "p_value",
        "count_include_pad", "layout",
    ),
    "Embedding": ("input_dim", "output_dim", "dtype", "sparse_grad"),
    "SoftmaxOutput": (
        "grad_scale", "ignore_label", "multi_output", "use_ignore", "preserve_shape", "normalization", "out_grad",
        "smooth_alpha",
    ),
    "_arange": ("start", "stop", "step", "repeat", "infer_range", "ctx", "dtype"),
    "_zeros": ("shape", "ctx", "dtype"),
    "_ones": ("shape", "ctx", "dtype"),
    "_full": ("shape", "value", "ctx", "dtype"),
}  # fmt: skip


def count_name(op: Operator) -> str | None:
    """Return the attribute that counts the inputs of an op; None where their number does not differ.

    Examples
    --------
    >>> import weft.mxnet
    >>> from weft._mxnet.operator import BY_NAME
    >>> from weft._mxnet.positions import count_name
    >>> count_name(BY_NAME["Concat"]), count_name(BY_NAME["clip"])
    ('num_args', None)
    """
    return "num_args" if "num_args" in op.settings.known else _COUNTS.get(op.mxnet_name)


def input_names(op: Operator, named: Mapping[str, Any] | None = None) -> tuple[str, ...] | None:
    """Return the names of all inputs that an op can have; None where any number will do.

    `named` are arguments by name, among which the attributes are that say so of an operator of the user's.

    Examples
    --------
    >>> import weft.mxnet
    >>> from weft._mxnet.operator import BY_NAME
    >>> from weft._mxnet.positions import input_names
    >>> input_names(BY_NAME["FullyConnected"]), input_names(BY_NAME["Concat"])
    (('data', 'weight', 'bias'), None)
    """
    known = _INPUTS.get(op.mxnet_name)
    if known is not None:
        return known
    if count_name(op) is not None or (op.settings.is_open and not named):
        return None
    if op.settings.is_open:
        texts = {key: str(each) for key, each in (named or {}).items() if not key.startswith("__")}
        return tuple(op.inputs(op.read(texts)))
    if callable(op.inputs):
        found: Any = op.inputs(op.defaults())
        return tuple(found)
    names: tuple[str, ...] = op.inputs
    return names


def arranged(
    op: Operator, given: tuple[Any, ...], is_operand: Callable[[Any], bool], named: Mapping[str, Any] | None = None
) -> tuple[list[Any], dict[str, Any]]:
    """Return the inputs among arguments by position, None in the place of one that is left out, and the attributes.

    Raises
    ------
    ArgumentTypeError
        If there are more than the op has.

    Examples
    --------
    >>> import weft.mxnet
    >>> from weft._mxnet.operator import BY_NAME
    >>> from weft._mxnet.positions import arranged
    >>> arranged(BY_NAME["clip"], ("x", 0, 6), lambda each: each == "x")
    (['x'], {'a_min': 0, 'a_max': 6})
    """
    names = input_names(op, {key: each for key, each in (named or {}).items() if not is_operand(each)})
    inputs: list[Any] = []
    rest: list[Any] = list(given)
    if names is None and len(rest) == 1 and isinstance(rest[0], list | tuple):
        rest = list(given[0])
    while rest and (names is None or len(inputs) < len(names)) and (rest[0] is None or is_operand(rest[0])):
        inputs.append(rest.pop(0))
    order = _ATTRIBUTES.get(op.mxnet_name, tuple(op.settings.known))
    if len(rest) > len(order):
        listed = ", ".join([*(names or ("*data",)), *order])
        raise ArgumentTypeError(f"{op.mxnet_name}() takes {listed}, and {len(given)} arguments by position were given")
    while inputs and inputs[-1] is None:
        inputs.pop()
    return inputs, dict(zip(order, rest, strict=False))
