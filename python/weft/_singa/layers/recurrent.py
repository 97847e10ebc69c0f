"""Recurrent layers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

from weft._numpy import namespace
from weft._singa.layers.base import Lazy
from weft._singa.layers.sequences import as_many, last_of, over, stacked, states_of
from weft.errors import ArgumentTypeError, ArgumentValueError, ShapeError

if TYPE_CHECKING:
    from weft._core import NDArray
    from weft._singa.layers.sequences import Weights
    from weft._singa.models.tensors import Tensor

_GATES = {"lstm": 4, "gru": 3, "tanh": 1, "relu": 1}


class RNN_Base(Lazy):  # noqa: N801 - SINGA's name
    """The common part of recurrent layers."""

    _arrays_first = 0  # a list of steps is taken, too

    #: The names of weights of the data, of the state, and of their biases, by gate, in the order of the kernels.
    names: ClassVar[tuple[tuple[str, str, str, str], ...]]
    #: Of the first values of matrices.
    _deviation: ClassVar[float] = 1.0

    def __init__(
        self,
        input_size: int | None,
        hidden_size: int,
        num_layers: int,
        mode: str,
        *,
        bias: bool,
        batch_first: bool,
        dropout: float,
        bidirectional: bool,
    ) -> None:
        super().__init__()
        if num_layers < 1 or hidden_size < 1:
            raise ArgumentValueError(f"{type(self).__name__}: {num_layers} layers of {hidden_size} features are none")
        if not 0 <= dropout < 1:
            raise ArgumentValueError(f"{type(self).__name__}: dropout is from 0 to less than 1, not {dropout}")
        self.input_size, self.hidden_size, self.num_layers, self.mode = input_size, hidden_size, num_layers, mode
        self.bias, self.batch_first, self.dropout, self.bidirectional = bias, batch_first, dropout, bidirectional

    @property
    def _directions(self) -> int:
        return 2 if self.bidirectional else 1

    def _fill(self, w: Tensor) -> object:
        """Give a parameter its first values, as SINGA does: matrices normal numbers, biases zeros."""
        return w.gaussian(0.0, self._deviation) if w.ndim == 2 else None  # a matrix; zeros otherwise

    def _make(self, x: NDArray) -> None:
        """Make the parameters for sequences ``(T, N, F)``."""
        self._check(x)
        self.input_size = x.shape[2]
        for number in range(self.num_layers):
            wide = self.input_size if number == 0 else self.hidden_size * self._directions
            for suffix in self._suffixes(number):
                for w_x, w_h, b_x, b_h in self.names:
                    shapes: dict[str, tuple[int, ...]] = {w_x: (wide, self._rows), w_h: (self.hidden_size, self._rows)}
                    if self.bias:
                        shapes |= {name: (self._rows,) for name in (b_x, b_h) if name}
                    for name, shape in shapes.items():
                        setattr(self, name + suffix, self._parameter(shape, x, self._fill))

    @property
    def _rows(self) -> int:
        """How many results each named weight has."""
        return self.hidden_size * _GATES[self.mode] // len(self.names)

    def _suffixes(self, number: int) -> list[str]:
        layer = f"_l{number}" if number else ""
        return [f"{layer}{way}" for way in ("", "_reverse")[: self._directions]]

    def _check(self, x: NDArray) -> None:
        if self.input_size not in {None, x.shape[2]}:
            name = self.names[0][0]
            raise self._refuse(
                f"sequences of {self.input_size} features", x, f"its {name}", (self.input_size or 0, self._rows)
            )

    def _weights(self) -> list[list[Weights]]:
        """Return the weights of each layer and direction, gates joined, as the kernels take them."""

        def joined(at: int, suffix: str) -> NDArray | None:
            found = [
                getattr(self, gate[at] + suffix) for gate in self.names if gate[at] and hasattr(self, gate[at] + suffix)
            ]
            if not found:
                return None
            whole: NDArray = found[0] if len(found) == 1 else namespace.concatenate(found, axis=-1)
            return whole.T if whole.ndim == 2 else whole  # a matrix

        layers: list[list[Weights]] = []
        for number in range(self.num_layers):
            directions: list[Weights] = []
            for suffix in self._suffixes(number):
                w_x, w_h = joined(0, suffix), joined(1, suffix)
                assert w_x is not None  # made by `_make`
                assert w_h is not None
                directions.append((w_x, w_h, joined(2, suffix), joined(3, suffix)))
            layers.append(directions)
        return layers

    def _run(
        self, x: NDArray, h0: NDArray | None, c0: NDArray | None, lengths: NDArray | None = None
    ) -> tuple[NDArray, NDArray, NDArray | None]:
        self._check(x)
        count, name = self.num_layers * self._directions, self._called()
        x = as_many(x, h0, c0)
        h = states_of(name, "h0", h0, count, x, self.hidden_size)
        c = states_of(name, "c0", c0, count, x, self.hidden_size) if self.mode == "lstm" else None
        return over(x, h, c, self._weights(), self.mode, self.dropout, lengths)

    def _as_given(self, y: NDArray, xs: Any) -> Any:
        if isinstance(xs, list | tuple):
            return [y[step] for step in range(y.shape[0])]
        return namespace.transpose(y, (1, 0, 2)) if self.batch_first else y

    @staticmethod
    def _last(state: NDArray, given: NDArray) -> NDArray:
        """Return a last state as that before the first step was given: without an axis of layers."""
        return state[0] if given.ndim == 2 else state  # a batch of features


class RNN(RNN_Base):
    """A plain recurrent network: ``h = tanh(x @ Wx + h @ Wh + b)``, step by step.

    Called with sequences and the state before the first step: ``rnn(xs, h0)``. Sequences are a list of steps ``(N, F)``, or
    an array ``(T, N, F)``; with `batch_first` ``(N, T, F)``. The state is ``(N, H)``, or ``(layers * directions, N, H)``; one
    sequence, or one state, serves all of the others. Matrices begin as standard normal numbers, biases as zeros. It returns the states of the last layer at each step, as a list or an array, and the last one.

    Parameters
    ----------
    input_size, hidden_size : int
        How many features the data and the states have.
    num_layers : int, default: 1
        How many layers there are, one behind the other.
    nonlinearity : {"tanh", "relu"}, default: "tanh"
        The function of the sums.
    bias : bool, default: True
        Whether there is a bias.
    batch_first : bool, default: False
        As above.
    dropout : float, default: 0
        The probability with which results of a layer are dropped before the next.
    bidirectional : bool, default: False
        Whether each layer runs both ways; results lie side by side.

    Examples
    --------
    >>> import weft
    >>> from weft import layer
    >>> out, h = layer.RNN(3, 5)([weft.ones((2, 3))] * 4, weft.zeros((2, 5)))
    >>> len(out), h.shape
    (4, (2, 5))
    """

    names = (("Wx", "Wh", "b", ""),)

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0,
        bidirectional: bool = False,
    ) -> None:
        if nonlinearity not in {"tanh", "relu"}:
            raise ArgumentValueError(f"RNN: nonlinearity is 'tanh' or 'relu', not {nonlinearity!r}")
        super().__init__(
            input_size,
            hidden_size,
            num_layers,
            nonlinearity,
            bias=bias,
            batch_first=batch_first,
            dropout=dropout,
            bidirectional=bidirectional,
        )
        self.nonlinearity = nonlinearity

    def initialize(self, xs: Any, h0: NDArray) -> None:
        """Make the parameters."""
        del h0
        self._make(stacked(self._called(), xs, batch_first=self.batch_first))

    def forward(self, xs: Any, h0: NDArray) -> tuple[Any, NDArray]:
        """Return the states at each step, and the last one."""
        y, h, _ = self._run(stacked(self._called(), xs, batch_first=self.batch_first), h0, None)
        return self._as_given(y, xs), self._last(h, h0)

    if TYPE_CHECKING:  # a call is `forward`

        def __call__(self, xs: Any, h0: NDArray) -> tuple[Any, NDArray]: ...


class LSTM(RNN_Base):
    """A long short-term memory.

    Called with sequences and a pair of states before the first step: ``lstm(xs, (h0, c0))``, as `RNN`. Matrices begin as normal
    numbers of the standard deviation 0.01, biases as zeros. It returns the states of the last layer at each step, the last one, and the last cell.

    Parameters
    ----------
    input_size, hidden_size : int
        How many features the data and the states have.
    nonlinearity : {"tanh"}, default: "tanh"
        The function of cells.
    num_layers, bias, batch_first, dropout, bidirectional
        As for `RNN`.

    Attributes
    ----------
    Wx_i, Wx_f, Wx_o, Wx_g, Wh_i, Wh_f, Wh_o, Wh_g, Bx_i, ..., Bh_i, ... : Tensor
        The parameters of the gates: input, forget, output, candidate. Those of further layers and of the backward direction
        end in ``_l1`` and ``_reverse``.

    Examples
    --------
    >>> import weft
    >>> from weft import layer
    >>> out, h, c = layer.LSTM(3, 5)(weft.ones((4, 2, 3)), (weft.zeros((2, 5)), weft.zeros((2, 5))))
    >>> out.shape, h.shape, c.shape
    ((4, 2, 5), (2, 5), (2, 5))
    """

    names = tuple((f"Wx_{gate}", f"Wh_{gate}", f"Bx_{gate}", f"Bh_{gate}") for gate in "ifgo")
    _deviation = 0.01

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        nonlinearity: str = "tanh",
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0,
        bidirectional: bool = False,
    ) -> None:
        if nonlinearity != "tanh":
            raise ArgumentValueError(f"LSTM: nonlinearity is 'tanh', not {nonlinearity!r}")
        super().__init__(
            input_size,
            hidden_size,
            num_layers,
            "lstm",
            bias=bias,
            batch_first=batch_first,
            dropout=dropout,
            bidirectional=bidirectional,
        )

    def initialize(self, xs: Any, h0_c0: tuple[NDArray, NDArray]) -> None:
        """Make the parameters."""
        del h0_c0
        self._make(stacked(self._called(), xs, batch_first=self.batch_first))

    def forward(self, xs: Any, h0_c0: tuple[NDArray, NDArray]) -> tuple[Any, NDArray, NDArray]:
        """Return the states at each step, the last one, and the last cell."""
        h0, c0 = h0_c0
        y, h, c = self._run(stacked(self._called(), xs, batch_first=self.batch_first), h0, c0)
        assert c is not None  # an LSTM has cells
        return self._as_given(y, xs), self._last(h, h0), self._last(c, c0)

    if TYPE_CHECKING:  # a call is `forward`

        def __call__(self, xs: Any, h0_c0: tuple[NDArray, NDArray]) -> tuple[Any, NDArray, NDArray]: ...


class CudnnRNN(RNN_Base):
    """A recurrent network of any kind over an array of sequences; on any device, for all that its name says.

    Called as ``rnn(x, hx=None, cx=None, seq_lengths=None)`` with `x` ``(N, T, F)``, it returns the results of the last layer.

    Parameters
    ----------
    hidden_size : int
        How many features the states have.
    activation : {"tanh", "relu"}, default: "tanh"
        Of ``rnn_mode="vanilla"``.
    num_layers : int, default: 1
        How many layers there are, one behind the other.
    bias : bool, default: True
        Whether there are biases.
    batch_first : bool, default: True
        Whether `x` is ``(N, T, F)``, and not ``(T, N, F)``.
    dropout : float, default: 0
        The probability with which results of a layer are dropped before the next.
    bidirectional : bool, default: False
        Whether each layer runs both ways.
    rnn_mode : {"lstm", "gru", "vanilla", "tanh", "relu"}, default: "lstm"
        The kind of cells.
    use_mask : bool, default: False
        Whether sequences have lengths of their own, ``seq_lengths``, and end there.
    return_sequences : bool, default: True
        Whether all steps are returned, and not the last alone.

    Examples
    --------
    >>> import weft
    >>> from weft import layer
    >>> layer.CudnnRNN(5, rnn_mode="gru", return_sequences=False)(weft.ones((2, 4, 3))).shape
    (2, 5)
    """

    names = (("W_x", "W_h", "B_x", "B_h"),)

    def __init__(
        self,
        hidden_size: int,
        activation: str = "tanh",
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = True,
        dropout: float = 0,
        bidirectional: bool = False,
        rnn_mode: str = "lstm",
        use_mask: bool = False,
        return_sequences: bool = True,
    ) -> None:
        mode = activation if rnn_mode == "vanilla" else rnn_mode
        if mode not in _GATES:
            raise ArgumentValueError(
                f"CudnnRNN: rnn_mode is 'lstm', 'gru', 'vanilla', 'tanh' or 'relu', not {rnn_mode!r} with {activation!r}"
            )
        super().__init__(
            None,
            hidden_size,
            num_layers,
            mode,
            bias=bias,
            batch_first=batch_first,
            dropout=dropout,
            bidirectional=bidirectional,
        )
        self.rnn_mode, self.use_mask, self.return_sequences = rnn_mode, use_mask, return_sequences

    def _fill(self, w: Tensor) -> object:
        limit = 1 / math.sqrt(self.hidden_size)
        return w.uniform(-limit, limit)

    def initialize(self, x: NDArray, *states: Any, **named: Any) -> None:
        """Make the parameters."""
        del states, named
        self._make(stacked(self._called(), x, batch_first=self.batch_first))

    def _parts(self) -> list[tuple[str, tuple[int, ...]]]:
        """Return the names and shapes of parameters in cuDNN's order; none before they are made."""
        if self.input_size is None:
            return []
        matrices: list[tuple[str, tuple[int, ...]]] = []
        biases: list[tuple[str, tuple[int, ...]]] = []
        for number in range(self.num_layers):
            wide = self.input_size if number == 0 else self.hidden_size * self._directions
            for suffix in self._suffixes(number):
                matrices += [(f"W_x{suffix}", (wide, self._rows)), (f"W_h{suffix}", (self.hidden_size, self._rows))]
                biases += [(f"B_x{suffix}", (self._rows,)), (f"B_h{suffix}", (self._rows,))]
        return matrices + biases

    def forward(
        self, x: NDArray, hx: NDArray | None = None, cx: NDArray | None = None, seq_lengths: NDArray | None = None
    ) -> NDArray:
        """Return the results of the last layer: at each step, or at the last."""
        if self.use_mask != (seq_lengths is not None):
            raise ArgumentTypeError(f"{self._called()}: seq_lengths are given with use_mask=True, and with that alone")
        sequences = stacked(self._called(), x, batch_first=self.batch_first)
        if seq_lengths is not None:
            if seq_lengths.size != sequences.shape[1]:
                raise ShapeError(f"{self._called()}: {seq_lengths.size} lengths for {sequences.shape[1]} sequences")
            seq_lengths = seq_lengths.reshape(-1)
        y, _, _ = self._run(sequences, hx, cx, seq_lengths)
        if not self.return_sequences:
            return last_of(y, seq_lengths)
        return namespace.transpose(y, (1, 0, 2)) if self.batch_first else y

    if TYPE_CHECKING:  # a call is `forward`

        def __call__(
            self, x: NDArray, hx: NDArray | None = None, cx: NDArray | None = None, seq_lengths: NDArray | None = None
        ) -> NDArray: ...
