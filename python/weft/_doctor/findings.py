"""Findings and the report that holds them."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from weft._trace.markup import table
from weft.errors import ArgumentTypeError, ArgumentValueError

if TYPE_CHECKING:
    from collections.abc import Iterable

#: Findings that are kept; later ones are counted.
MOST = 1000

Severity = Literal["error", "advice"]

#: Kinds of findings, in the order of a report.
KINDS: dict[str, Severity] = {
    "undeclared-write": "error",
    "undeclared-read": "error",
    "nondeterministic": "error",
    "first-nan": "error",
    "wait-in-loop": "advice",
    "repeated-ops": "advice",
    "copied-each-turn": "advice",
    "short-task": "advice",
    "one-buffer": "advice",
    "recording-storm": "advice",
    "too-many-threads": "advice",
}


@dataclass(slots=True)
class Finding:
    """One defect.

    Parameters
    ----------
    kind : str
        One of `KINDS`.
    file : str
        The file of `line`.
    line : int
        The line that pushed the op, or that waits; 0 if it is not known.
    message : str
        The error or the habit.
    advice : str
        The words to write instead.
    end_line : int, optional
        The last line, if it is about several.
    count : int, default: 1
        How often it happened.
    seconds : float, default: 0.0
        Its cost, as far as that is known.

    Examples
    --------
    >>> from weft._doctor.findings import Finding
    >>> print(Finding("short-task", "script.py", 7, "too short", "do more in one call"))
    script.py:7: advice: short-task: too short
        do more in one call
    """

    kind: str
    file: str
    line: int
    message: str
    advice: str
    end_line: int = 0
    count: int = 1
    seconds: float = 0.0
    severity: Severity = field(init=False)

    def __post_init__(self) -> None:
        self.severity = KINDS[self.kind]
        self.end_line = max(self.line, self.end_line)

    @property
    def place(self) -> str:
        """``file:line``, below the working directory relative to it."""
        lines = f"{self.line}" if self.end_line == self.line else f"{self.line}-{self.end_line}"
        return f"{near(self.file)}:{lines}" if self.file else "?"

    def __str__(self) -> str:
        """Return the finding as compilers write theirs."""
        return f"{self.place}: {self.severity}: {self.kind}: {self.message}\n    {self.advice}"


def near(file: str) -> str:
    """Return a path relative to the working directory, if it lies below."""
    try:
        return str(Path(file).relative_to(Path.cwd()))
    except (OSError, ValueError):  # the folder may be gone
        return file


def parse_kinds(only: str | Iterable[str] | None) -> frozenset[str]:
    """Return the kinds to look for.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If `only` is no name of a kind, or holds something else.

    Examples
    --------
    >>> from weft._doctor.findings import parse_kinds
    >>> sorted(parse_kinds("first-nan,short-task"))
    ['first-nan', 'short-task']
    """
    if only is None:
        return frozenset(KINDS)
    if isinstance(only, str):
        only = only.split(",")
    try:
        names = [*only]
    except TypeError:
        raise ArgumentTypeError(f"only is a list of kinds of findings, not {type(only).__name__}") from None
    for name in names:
        if not isinstance(name, str):
            raise ArgumentTypeError(f"a kind of findings is a str, not {type(name).__name__}")
        if name.strip() not in KINDS:
            raise ArgumentValueError(f"there is no kind of findings {name!r}; it is one of {', '.join(KINDS)}")
    return frozenset(name.strip() for name in names)


class Report:
    """The findings. Made by `doctor`; complete when its block has ended.

    Attributes
    ----------
    findings : list of Finding
        One for each defect, errors first.
    checked : dict
        How many ops were looked at, and how many could not be, and why.

    Examples
    --------
    >>> import weft
    >>> with weft.doctor() as report:
    ...     x = weft.ones(3) + 1
    >>> report.findings
    []
    """

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self.checked: dict[str, Any] = {}

    def __repr__(self) -> str:
        """Return how many findings it holds."""
        errors = len(self.errors)
        return f"<weft doctor: {errors} errors, {len(self.findings) - errors} advices>"

    @property
    def errors(self) -> list[Finding]:
        """The findings that are errors."""
        return [finding for finding in self.findings if finding.severity == "error"]

    def add(self, finding: Finding) -> None:
        """Add a finding, unless there are too many; to one like it, if it is advice for the same lines."""
        key = finding.kind, finding.file, finding.line
        same = next((one for one in self.findings if (one.kind, one.file, one.line) == key), None)
        if same is not None and finding.severity == "advice":
            same.count += finding.count
            same.seconds += finding.seconds
        elif len(self.findings) < MOST:
            self.findings.append(finding)
        else:
            self.count("findings left out")

    def count(self, checked: str, number: int = 1) -> None:
        """Count something that was checked, or that was not."""
        if number:
            self.checked[checked] = self.checked.get(checked, 0) + number

    def sort(self) -> None:
        """Put the findings in order: of kinds, files and lines."""
        order = list(KINDS)
        self.findings.sort(key=lambda one: (order.index(one.kind), one.file, one.line))

    def summary(self) -> str:
        """Return the findings as text, and a last line about the checks.

        Returns
        -------
        str
        """
        lines = [str(finding) for finding in self.findings] or ["nothing found"]
        return "\n".join([*lines, self.last_line()])

    def last_line(self) -> str:
        """Return the numbers of checks, and of ops without one."""
        counts = ", ".join(f"{name}: {_shown(value)}" for name, value in self.checked.items())
        limit = "memory that weft cannot see (of C libraries, files) is not checked"
        return f"checked: {counts or 'nothing'}; {limit}"

    def as_dict(self) -> dict[str, Any]:
        """Return the contents of the JSON of ``weft doctor --json``."""
        return {"findings": [asdict(finding) for finding in self.findings], "checked": self.checked}

    def to_json(self) -> str:
        """Return the report as JSON: ``{"findings": [...], "checked": {...}}``."""
        return json.dumps(self.as_dict(), indent=1)

    def _repr_html_(self) -> str:
        """Return the report as notebooks show it."""
        head = ("line", "kind", "message", "to do", "count", "seconds")
        rows = [
            (
                one.place,
                one.kind,
                one.message,
                one.advice,
                f"{one.count:,}",
                f"{one.seconds:.3g}" if one.seconds else "",
            )
            for one in self.findings
        ]
        return table([head], rows or [("nothing found",)]) + table([], [(self.last_line(),)])


def _shown(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)
