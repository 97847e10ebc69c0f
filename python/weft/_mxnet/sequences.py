"""The loss of sequences without known places: connectionist temporal classification.

The recursion is that of Graves et al., ICML 2006, equations 6 and 7, in logarithms.
"""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# Rows of tables are functions of arrays and symbols alike.

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft._mxnet.operator import operator
from weft._mxnet.partial_shapes import data_dtype
from weft._mxnet.settings import Settings, choice, flag
from weft._nn import namespace as nn
from weft._numpy import namespace

if TYPE_CHECKING:
    from weft._mxnet.partial_shapes import Shapes

#: The logarithm of an impossible event: finite, so that differences of two of them are numbers.
_NEVER = -1e30


def _inputs(s: Any) -> tuple[str, ...]:
    lengths = (("data_lengths", s.use_data_lengths), ("label_lengths", s.use_label_lengths))
    return ("data", "label", *(name for name, is_used in lengths if is_used))


def _loss_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    batch = ins.length(0, 1)
    ins.learn_rank(0, 3)
    ins.learn(1, (batch, None))
    for at in range(2, len(ins)):
        ins.learn(at, (batch,))
    outs.learn(0, (batch,))
    del s


@operator(
    "CTCLoss",
    "ctc_loss",
    "_contrib_CTCLoss",
    "_contrib_ctc_loss",
    settings=Settings(
        use_data_lengths=(flag, False),
        use_label_lengths=(flag, False),
        blank_label=(choice("first", "last"), "first"),
    ),
    inputs=_inputs,
    shapes=_loss_shapes,
    dtypes=data_dtype,
)
def _ctc_loss(s: Any, data: Any, label: Any, *lengths: Any) -> Any:
    steps, batch, classes = data.shape
    blank = 0 if s.blank_label == "first" else classes - 1
    rest = list(lengths)
    ends = namespace.astype(rest.pop(0), "int64") if s.use_data_lengths else None
    labels = namespace.astype(label, "int64")
    padding = 0 if s.blank_label == "first" else -1
    if s.use_label_lengths:
        count = namespace.astype(rest.pop(0), "int64")
    else:  # up to the first padding
        count = namespace.sum(namespace.cumprod(namespace.astype(labels != padding, "int64"), axis=1), axis=1)
    if ends is not None:  # elements behind an end may be no numbers, and count in no gradient
        is_in = namespace.arange(steps, engine=data.engine)[:, None] < ends
        data = namespace.where(is_in[..., None], data, 0.0)
    logs = nn.log_softmax(data, axis=-1)
    wide = 2 * labels.shape[1] + 1
    at = namespace.arange(wide, engine=data.engine)
    places = namespace.clip((at - 1) // 2, 0, labels.shape[1] - 1)
    states = namespace.where(at % 2 == 1, namespace.take(labels, places, axis=1), blank)
    states = namespace.clip(states, 0, classes - 1)  # blanks and labels in turn
    before = namespace.concat(
        [namespace.full((batch, 2), -1, dtype="int64", engine=data.engine), states[:, :-2]], axis=1
    )
    skips = (at % 2 == 1) & (states != before)  # of a label from the one before, where they differ
    seen = [namespace.take_along_axis(logs[step], states, axis=1) for step in range(steps)]
    alpha = namespace.where(at < 2, seen[0], _NEVER)
    for step in range(1, steps):
        one = _shifted(alpha, 1)
        two = namespace.where(skips, _shifted(alpha, 2), _NEVER)
        new = namespace.logaddexp(namespace.logaddexp(alpha, one), two) + seen[step]
        new = namespace.maximum(new, _NEVER)
        alpha = new if ends is None else namespace.where((ends > step)[:, None], new, alpha)
    last = namespace.take_along_axis(alpha, (2 * count)[:, None], axis=1)[:, 0]
    other = namespace.take_along_axis(alpha, namespace.maximum(2 * count - 1, 0)[:, None], axis=1)[:, 0]
    return -namespace.logaddexp(last, namespace.where(count > 0, other, _NEVER))


def _shifted(x: Any, by: int) -> Any:
    filled = namespace.full((x.shape[0], by), _NEVER, dtype=x.dtype, engine=x.engine)
    return namespace.concat([filled, x[:, :-by]], axis=1)
