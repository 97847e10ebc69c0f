"""A recorded program."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from weft._core import graph_draw, graph_infer_shape
from weft._engine import observers
from weft._registry import hooks
from weft.errors import ArgumentTypeError, ArgumentValueError, CaptureError

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence

    from weft._core import Compiled, NDArray
    from weft._program.dummies import Layout
    from weft._program.function import ProgramFunction
    from weft._program.profile import Profile
    from weft._program.summary import Summary
    from weft._program.tape_node import Taped
    from weft._program.trees import Structure
    from weft.graph import Graph

_SHOWN = 200  # ops in a notebook


@final
class Program:
    """A recorded call, or a recorded block, with its plan.

    Made by `weft.program` and `weft.capture`.

    Attributes
    ----------
    name : str
        The function's or the block's.
    """

    __slots__ = (
        "__weakref__",
        "_abandoned",
        "_arguments",
        "_heard",
        "_known",
        "_layouts",
        "_planned",
        "_source",
        "_structure",
        "_taped",
        "name",
    )

    def __init__(
        self,
        name: str,
        compiled: Compiled | None,
        structure: Structure | None = None,
        arguments: Sequence[str] = (),
        source: tuple[Callable[..., Program], Callable[[], ProgramFunction], tuple[Any, ...]] | None = None,
        layouts: Sequence[Layout] = (),
        known: Sequence[NDArray] = (),
    ) -> None:
        self.name = name
        self._planned = compiled
        self._abandoned = False  # whether its block ended by an exception
        self._structure = structure
        self._arguments = tuple(arguments)
        self._source = source
        self._layouts = layouts
        self._known = known  # the values of the function's outer names
        self._heard = False  # whether the tape continues from results of calls
        self._taped: Taped | None = None  # the recorded program; without it, the function itself

    @property
    def _structured(self) -> Structure:
        """The structure of a call's result, made from a replay's results."""
        assert self._structure is not None  # a block has no calls
        return self._structure

    @property
    def _compiled(self) -> Compiled:
        """The compiled recording."""
        if self._planned is None:
            if self._abandoned:
                raise CaptureError(f"the program {self.name!r} was not recorded: an exception has left its block")
            raise CaptureError(f"the block of the program {self.name!r} has not ended: use the program after it")
        return self._planned

    @property
    def ops(self) -> int:
        """The number of ops of a replay."""
        return self._compiled.ops

    @property
    def nbytes(self) -> int:
        """Bytes of the arena in which a replay keeps its intermediate results."""
        return self._compiled.nbytes

    @property
    def eager_nbytes(self) -> int:
        """Bytes of all results together, if each were kept to the end."""
        return self._compiled.eager_nbytes

    @property
    def eager_peak_nbytes(self) -> int:
        """The most bytes that live at one time in the order of the recording."""
        return self._compiled.eager_peak_nbytes

    @property
    def peak_live_nbytes(self) -> int:
        """The most bytes that live at one time in the program's own order."""
        return self._compiled.peak_live_nbytes

    @property
    def states(self) -> tuple[NDArray, ...]:
        """The arrays that the program reads or mutates in place: those from the function's closure."""
        known = self._known
        return tuple(
            next((array for array in known if array._shares_buffer(state)), state) for state in self._compiled.states
        )

    @property
    def graph(self) -> Graph:
        """The ops as a graph: entries are versions of buffers, all other orders are control dependencies.

        Ops are those of the registry with their attributes, so that the passes of `weft.graph` run on it. A buffer in
        another layout than its own is read by a node ``recorded_view``, and written to by ``recorded_write``.
        Callables, and all other steps without a rule, are nodes ``recorded``.
        """
        found: Graph = hooks.graph_of_program(self._compiled, self._arguments, self._layouts)
        return found

    @property
    def arguments(self) -> tuple[str, ...]:
        """The names of the parameters of a replay's arrays, one for each array."""
        return self._arguments

    def replay(self, sequential: bool | None = None, *, arguments: Sequence[NDArray] = ()) -> tuple[NDArray, ...]:
        """Push the program once more, and return at once.

        Parameters
        ----------
        sequential : bool, optional
            Whether its ops run one by one, in recorded order; by default as the program was made.
        arguments : sequence of NDArray
            One for each of `arguments`, of the same layouts as those recorded. A captured block takes none.

        Returns
        -------
        tuple of NDArray
            The results, new arrays at each replay.

        Examples
        --------
        >>> import weft
        >>> x = weft.zeros(3)
        >>> with weft.capture("count") as program:
        ...     x += 1
        >>> for _ in range(5):
        ...     _ = program.replay()
        >>> x
        NDArray([5., 5., 5.])
        """
        if sequential is not None and not isinstance(sequential, bool):
            raise ArgumentTypeError(f"replay: sequential is a bool or None, not {type(sequential).__name__}")
        if len(arguments) != len(self._arguments):
            wanted = ", ".join(self._arguments) or "none"
            raise ArgumentValueError(
                f"the program {self.name!r} takes {len(self._arguments)} arrays ({wanted}), and {len(arguments)} were "
                "given: call the function, or pass them by arguments="
            )
        given = tuple(arguments)
        if observers.replaying is not None:
            return observers.replaying(
                self, given, lambda in_order: self._compiled.run(given, sequential=in_order or sequential)
            )
        return self._compiled.run(given, sequential=sequential)

    def summary(self) -> Summary:
        """Return a table of the ops and of the plan; it prints as text, and shows in a notebook.

        Examples
        --------
        >>> import weft
        >>> step = weft.program(lambda x: weft.tanh(x) + 1)
        >>> print(step.lower(weft.ones(3)).summary())  # doctest: +ELLIPSIS
        program ...
        """
        from weft._program.summary import Summary  # noqa: PLC0415 - only pictures need it

        return Summary(self.name, self._compiled)

    def profile(self, replays: int = 20, *, warmup: int = 3, arguments: Sequence[NDArray] = ()) -> Profile:
        """Replay the program and time its ops.

        If it has collectives (`weft.distributed`), all ranks call this, or none.

        Parameters
        ----------
        replays : int, default: 20
            How many replays are timed.
        warmup : int, default: 3
            How many run before, and are not.
        arguments : sequence of NDArray
            As for `replay`; by default new arrays of zeros. States are mutated as by any replay.

        Returns
        -------
        Profile
            For each op its count, time and share; it prints as text.
        """
        from weft._program.profile import profile  # noqa: PLC0415 - as above

        return profile(self, replays, warmup, self._inputs(arguments))

    def timeline(self, path: str | os.PathLike[str], *, arguments: Sequence[NDArray] = ()) -> None:
        """Replay the program twice, and draw the times of the second replay's ops.

        These replays are like any: they mutate the program's arrays. If it has collectives (`weft.distributed`), all
        ranks call this, or none.

        Parameters
        ----------
        path : str or PathLike
            The file; its suffix says the format, as for `weft.trace`: ``.html``, ``.json``, ``.png``, ``.svg``.
        arguments : sequence of NDArray
            As for `profile`.
        """
        from weft._program.profile import timeline  # noqa: PLC0415 - as above

        timeline(self, path, self._inputs(arguments))

    def draw(self, path: str | os.PathLike[str]) -> None:
        """Draw the program's `graph` with its dependencies as arrows.

        Parameters
        ----------
        path : str or PathLike
            The file: ``.dot`` for Graphviz, ``.svg`` for a picture.
        """
        path = Path(path)
        if path.suffix not in {".dot", ".svg"}:
            raise ArgumentValueError(f"draw: {path.name!r} ends in neither .dot nor .svg")
        path.write_text(self._drawing(svg=path.suffix == ".svg"), encoding="utf-8")

    def _drawing(self, *, svg: bool, first: int | None = None) -> str:
        """Return a drawing of the graph, or of the `first` ops, with its shapes."""
        graph: Graph = hooks.graph_of_program(self._compiled, self._arguments, self._layouts, first)
        return graph_draw(graph_infer_shape(graph._core, {}, "__shape__"), svg)

    def _inputs(self, arguments: Sequence[NDArray]) -> tuple[NDArray, ...]:
        """Return `arguments`, or arrays of zeros in their place."""
        if arguments or not self._arguments:
            return tuple(arguments)
        from weft._program.dummies import blank  # noqa: PLC0415 - as above

        return blank(self._layouts, self._compiled.engine)

    def _repr_html_(self) -> str:  # pyright: ignore[reportUnusedFunction] # notebooks call it
        """Return the program's drawing and figures, for a notebook; for a long one the figures and the first ops."""
        from weft._trace.markup import pictured, table  # noqa: PLC0415 - for notebooks
        from weft._trace.units import amount  # noqa: PLC0415 - likewise

        figures: list[tuple[str, object]] = [
            ("ops", self.ops),
            ("arena", amount(self.nbytes)),
            ("states", len(self._compiled.states)),
        ]
        more = f"<p>the first {_SHOWN} of {self.ops} ops</p>" if self.ops > _SHOWN else ""
        return pictured(table([(f"program {self.name}", "")], figures) + more, self._drawing(svg=True, first=_SHOWN))

    def __repr__(self) -> str:
        """Name the program and its figures."""
        if self._planned is None:
            return f"<weft.Program {self.name!r}, {'abandoned' if self._abandoned else 'recording'}>"
        return f"<weft.Program {self.name!r}: {self.ops} ops, {self.nbytes} bytes>"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as the function and the arguments: the program is recorded anew after loading."""
        if self._source is None:
            raise ArgumentTypeError(
                f"the program {self.name!r} was captured as a block, and a block cannot be pickled: make it a function "
                "with weft.program"
            )
        again, function, arguments = self._source
        return again, (function(), arguments)
