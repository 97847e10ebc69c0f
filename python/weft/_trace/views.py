"""A record and its derived figures, each computed once, on request."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from weft._trace.critical import CriticalPath, critical_path
from weft._trace.dependencies import dependencies
from weft._trace.lanes import Spans, spans
from weft._trace.record import Record
from weft._trace.summary import Summary, summarize

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    import numpy.typing as npt


class Views:
    """The views of a record.

    Parameters
    ----------
    record : Record
        The record.
    """

    def __init__(self, record: Record) -> None:
        self.record = record

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> Views:
        """Return the views of the core's answer."""
        return cls(Record.read(answer))

    @cached_property
    def dependencies(self) -> npt.NDArray[np.int64]:
        """Pairs of ops; the second of a pair waits for the first."""
        return dependencies(self.record)

    @cached_property
    def critical(self) -> CriticalPath:
        """The longest chain of dependent ops."""
        return critical_path(self.record, self.dependencies)

    @cached_property
    def summary(self) -> Summary:
        """The figures of the run."""
        return summarize(self.record, self.critical)

    @cached_property
    def spans(self) -> Spans:
        """The spans of the timeline."""
        return spans(self.record)
