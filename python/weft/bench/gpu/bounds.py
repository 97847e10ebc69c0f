"""weft's promises on a GPU: figures from samples, each with its bound, and whether it is kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from weft.bench.samples import Samples

Statistic: TypeAlias = Literal["minimum", "median"]


class NotMeasured(LookupError):  # noqa: N818 - it is no error of the program's
    """A cell is empty; the message says why."""


@dataclass(frozen=True, slots=True)
class Figures:
    """The minima of all cells, or their medians."""

    samples: Samples
    statistic: Statistic

    def __call__(self, table: str, implementation: str, case: str) -> float:
        """Return that of one cell.

        Raises
        ------
        NotMeasured
            If it is empty.
        """
        cell = self.samples.cell(table, implementation, case)
        if cell is None:
            raise NotMeasured(self.samples.missing.get((table, implementation), f"{implementation} was not timed"))
        return cell.minimum if self.statistic == "minimum" else cell.median

    def least(self, table: str, implementations: Iterable[str], case: str) -> float:
        """Return the smallest of those implementations that were timed.

        Raises
        ------
        NotMeasured
            If there is none.
        """
        cells = [self.samples.cell(table, implementation, case) for implementation in implementations]
        values = [cell.minimum if self.statistic == "minimum" else cell.median for cell in cells if cell]
        if not values:
            raise NotMeasured(f"nobody's {case} was timed")
        return min(values)


@dataclass(frozen=True, slots=True)
class Bound:
    """One figure that is promised, or shown beside one that is.

    Attributes
    ----------
    line : str
        The line of the benchmark.
    what : str
        The figure, in words.
    figure : callable
        Computes it from minima, or from medians.
    limit : float, optional
        Its limit; None for a figure that is there to compare with.
    unit : str
        Its unit; ratios have none.
    at_least : bool
        Whether the limit is the smallest value instead of the largest.
    """

    line: str
    what: str
    figure: Callable[[Figures], float]
    limit: float | None = None
    unit: str = ""
    at_least: bool = False

    def evaluate(self, samples: Samples) -> Result:
        """Return the figure by minima and by medians, and whether it keeps its bound."""
        try:
            minimum, median = (self.figure(Figures(samples, statistic)) for statistic in ("minimum", "median"))
        except NotMeasured as error:
            return Result(self, None, None, f"not measured: {error}")
        return Result(self, minimum, median, self._verdict(minimum, median))

    def _verdict(self, minimum: float, median: float) -> str:
        if self.limit is None:
            return ""
        if not self._kept(minimum, self.limit):
            return "MISSED"
        return "reached" if self._kept(median, self.limit) else "reached by minima, MISSED by medians"

    def _kept(self, value: float, limit: float) -> bool:
        return value >= limit if self.at_least else value <= limit


@dataclass(frozen=True, slots=True)
class Result:
    """A bound, and the findings."""

    bound: Bound
    minimum: float | None
    median: float | None
    verdict: str

    @property
    def limit(self) -> str:
        """The bound in words.

        Examples
        --------
        >>> from weft.bench.gpu.bounds import Bound
        >>> from weft.bench.samples import Samples
        >>> bound = Bound("launch", "weft", lambda figures: figures("launch", "weft", "call"), 1.0, "us")
        >>> bound.evaluate(Samples()).limit
        'at most 1 us'
        """
        bound = self.bound
        if bound.limit is None:
            return ""
        return f"{'at least' if bound.at_least else 'at most'} {bound.limit:g} {bound.unit}".rstrip()

    def json(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        bound = self.bound
        return {
            "line": bound.line,
            "what": bound.what,
            "unit": bound.unit,
            "limit": bound.limit,
            "at_least": bound.at_least,
            "minimum": self.minimum,
            "median": self.median,
            "verdict": self.verdict,
        }


def quotient(table: str, own: str, other: str, case: str) -> Callable[[Figures], float]:
    """Return a function that divides one implementation's figure by another's."""
    return lambda figures: figures(table, own, case) / figures(table, other, case)
