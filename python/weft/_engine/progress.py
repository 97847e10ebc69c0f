"""Progress: how many ops are done, run and are pending, shown while a wait lasts."""

from __future__ import annotations

import importlib.util
import sys
import time
from typing import TYPE_CHECKING, Any, Self, SupportsFloat

from weft._core import Engine, _all_stats
from weft._engine.array_waits import wait_all
from weft._engine.executor import Executor
from weft._trace.notebook_bar import Drawn, in_notebook
from weft._trace.optional import need
from weft._trace.renewing import Renewed
from weft._trace.units import seconds
from weft.errors import ArgumentTypeError, ArgumentValueError

if TYPE_CHECKING:
    from types import TracebackType

_LONG = 5.0  # seconds, after which an unwatched run gets a line
_BAR = 40  # letters
_OUTCOMES = ("failed", "skipped", "cancelled")
_ENDED = ("completed", *_OUTCOMES)  # the first counts the others, too


class Progress:
    """Shows an engine's figures while a ``with`` block lasts. Made by `progress`.

    Parameters
    ----------
    engine : Engine or Executor, optional
        The engine to show; by default all.
    description : str, optional
        What is written before the figures.
    refresh : float, default: 10.0
        How often the figures are renewed, per second.
    """

    def __init__(
        self, engine: Engine | Executor | None = None, *, description: str | None = None, refresh: float = 10.0
    ) -> None:
        engine = engine._engine if isinstance(engine, Executor) else engine
        if engine is not None and not isinstance(engine, Engine):
            raise ArgumentTypeError(f"progress() takes a weft.Engine or None, not {type(engine).__name__}")
        if not isinstance(refresh, SupportsFloat):
            raise ArgumentTypeError(f"refresh is how often progress is shown per second, not {type(refresh).__name__}")
        if not float(refresh) > 0:
            raise ArgumentValueError(f"refresh is how often progress is shown per second, over 0: not {refresh!r}")
        self._engine = engine
        self._description = description or "weft"
        self._refresh = refresh
        self._live: Any = None
        self._latest: dict[int, dict[str, int]] = {}  # of engines by their numbers: those that have gone count, too
        self._begin()

    def __enter__(self) -> Self:
        """Begin to show, on a terminal or in a notebook."""
        self._begin()
        if sys.stderr is not None and sys.stderr.isatty():
            self._live = self._on_terminal()
            self._live.start()
        elif in_notebook():
            self._live = Drawn(self._drawn, self._refresh)
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc_value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Show the last figures."""
        if self._live is not None:
            live, self._live = self._live, None
            live.stop()
        elif sys.stderr is not None and time.monotonic() - self._start >= _LONG:
            sys.stderr.write(f"{self}\n")

    def _begin(self) -> None:
        """Count from here on."""
        self._latest.clear()
        self._before = self._counts()
        self._start = time.monotonic()

    def _on_terminal(self) -> Any:
        """Return the renewer of a line on the terminal: rich's, or one of plain text where that is missing."""
        if importlib.util.find_spec("rich") is None:
            return Renewed(self._write, self._refresh)
        live, console = need("rich.live").Live, need("rich.console").Console(stderr=True)
        # rich's own thread renews it: nothing of the engine's has to call Python for that.
        return live(get_renderable=self._line, console=console, refresh_per_second=self._refresh)

    def _write(self, last: bool) -> None:
        """Write the line as text, in place of the old one."""
        end = "\n" if last else ""
        sys.stderr.write(f"\r\x1b[K{self}{end}")  # from the beginning of the line, which is cleared
        sys.stderr.flush()

    def __str__(self) -> str:
        """Return the figures since the block began, as a line of text."""
        figures = self._figures()
        states = [f"{figures[name]:,} {name}" for name in ("running", "pending", *_OUTCOMES) if figures[name]]
        elapsed = seconds((time.monotonic() - self._start) * 1e9)
        return ", ".join([f"{self._description}: {figures['completed']:,} ops in {elapsed}", *states])

    def wait(self, timeout: float | None = None) -> None:
        """Wait for everything pushed on the engine, and show progress meanwhile.

        Parameters
        ----------
        timeout : float, optional
            The most seconds to wait; None waits without limit.

        Raises
        ------
        BaseException
            As ``Engine.wait_for_all``.

        Examples
        --------
        >>> import weft
        >>> with weft.Engine(workers=1) as engine:
        ...     engine.push(lambda: None)
        ...     weft.progress(engine).wait()
        """
        with self:
            if self._engine is None:
                wait_all(timeout)
            else:
                self._engine.wait_for_all(timeout)

    def _counts(self) -> dict[str, int]:
        """Return the figures of the engine, or of all together."""
        if self._engine is not None:
            stats = self._engine.stats()
            return {name: value for name, value in stats.items() if isinstance(value, int)}
        living = _all_stats()
        for number, figures in self._latest.items():
            if number not in living:  # its pending ops have run, or been cancelled
                figures.update(completed=figures["pushed"], running=0, pending=0)
        self._latest |= living
        return {name: sum(each[name] for each in self._latest.values()) for name in (*_ENDED, "running", "pending")}

    def _figures(self) -> dict[str, int]:
        """Return how many ops are done since the block began, and how many run and are pending."""
        now = self._counts()
        since = {name: now[name] - self._before[name] for name in _ENDED}
        return {**since, "running": now["running"], "pending": max(0, now["pending"] - now["running"])}

    def _drawn(self) -> tuple[int, int, str]:
        """Return the figures for a notebook: how many ops are done, of how many, and a line."""
        figures = self._figures()
        return figures["completed"], figures["completed"] + figures["running"] + figures["pending"], str(self)

    def _line(self) -> Any:
        """Return the line for rich."""
        bar, table, text = need("rich.progress_bar").ProgressBar, need("rich.table").Table, need("rich.text").Text
        figures = self._figures()
        total = figures["completed"] + figures["running"] + figures["pending"]
        states = [f"{figures['running']:,} running", f"{figures['pending']:,} pending"]
        states += [f"{figures[name]:,} {name}" for name in _OUTCOMES if figures[name]]
        line = table.grid(padding=(0, 1))
        line.add_row(
            text(self._description),
            bar(max(total, 1), figures["completed"], width=_BAR),
            text(f"{figures['completed']:,} of {total:,}"),
            text(", ".join(states), style="red" if figures["failed"] else ""),
            text(f"{time.monotonic() - self._start:.1f} s", style="dim"),
        )
        return line


def progress(
    engine: Engine | Executor | None = None, *, description: str | None = None, refresh: float = 10.0
) -> Progress:
    """Show how many ops are done, run and are pending, while a block or a wait lasts.

    On a terminal a line on standard error is renewed all the time, with a bar where rich is installed; in a notebook a
    bar below the cell. Elsewhere nothing is shown, but for a line at the end of a block of more than five seconds.

    Parameters
    ----------
    engine : Engine or Executor, optional
        The engine to show; by default all engines of the process.
    description : str, optional
        What is written before the figures; by default ``"weft"``.
    refresh : float, default: 10.0
        How often the figures are renewed, per second.

    Returns
    -------
    Progress
        A context manager; its ``wait(timeout=None)`` waits for all ops and shows progress meanwhile.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If `engine` is no engine, or `refresh` not over 0.

    See Also
    --------
    Engine.stats : The figures.

    Examples
    --------
    >>> import weft
    >>> with weft.progress(description="squares"):
    ...     x = weft.arange(1_000_000) ** 2
    ...     x.wait_to_read()
    """
    return Progress(engine, description=description, refresh=refresh)
