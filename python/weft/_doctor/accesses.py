"""Undeclared accesses: which op touches which memory without a word, and the declaration that its author should write."""

from __future__ import annotations

import re
from keyword import iskeyword
from typing import TYPE_CHECKING

from weft._core import NDArray
from weft._doctor.findings import Finding
from weft._doctor.frames import name_of
from weft._doctor.sources import made_at
from weft._engine.task_call import TaskCall

if TYPE_CHECKING:
    from weft._doctor.findings import Report
    from weft._doctor.memory import Region
    from weft._doctor.pushes import Push

#: Arrays that one finding names beside the first.
_LISTED = 2
#: Arrays that ops reach, and that are compared with the writes of others.
_REACHED = 10_000


class Access:
    """Undeclared accesses of one op to one region, wherever it was pushed.

    Parameters
    ----------
    push : Push
        The first one.
    region : Region
        The memory.
    path : str
        The op's expression for it; empty if that is not known.
    """

    __slots__ = ("count", "guards", "key", "label", "path", "place", "region", "says_read", "task", "version", "wrote")

    def __init__(self, push: Push, region: Region, path: str, *, wrote: bool) -> None:
        self.key, self.label, self.place = push.key, push.label, (push.file, push.line)
        self.task = isinstance(push.callable, TaskCall)
        self.region, self.wrote = region, wrote
        self.path = path if _is_shown(path) else name_of(region.array) or path
        self.says_read = any(one is region.array for one in push.reads)
        self.guards = {key for key, writes in push.guards.items() if writes or not wrote}
        self.version = region.version()
        self.count = 0


class Accesses:
    """Memory that ops touch and do not declare, and the other ops that touch it."""

    def __init__(self) -> None:
        self._accesses: dict[tuple[object, int, bool], Access] = {}
        #: Ops that change memory without a word, each with the variables made by hand that it changes.
        self._writers: dict[Region, dict[object, set[tuple[int, int]]]] = {}
        self._reached: set[tuple[object, Region]] = set()

    def reaches(self, push: Push, region: Region) -> None:
        """Note that an op could touch memory that it does not declare."""
        self._reached.add((push.key, region))

    def reads(self, push: Push, region: Region, path: str) -> None:
        """Note that an op uses the values of memory that it does not declare."""
        region.votes.update(push.guards)
        # A variable is often called as the array for which it stands.
        region.votes.update(key for key, name in push.names.items() if name == path)
        self._note(push, region, path, wrote=False)

    def writes(self, push: Push, region: Region, path: str) -> None:
        """Note that an op has changed memory that it does not declare."""
        changed = [key for key, writes in push.guards.items() if writes]
        self._writers.setdefault(region, {}).setdefault(push.key, set()).update(changed)
        region.votes.update(changed)
        self._note(push, region, path, wrote=True)

    def _note(self, push: Push, region: Region, path: str, *, wrote: bool) -> None:
        key = push.key, id(region), wrote
        access = self._accesses.get(key)
        if access is None:
            access = self._accesses[key] = Access(push, region, path, wrote=wrote)
        access.count += 1

    @property
    def are_suspect(self) -> bool:
        """Whether an op could reach, in a way that is not looked at, memory that another one writes."""
        return any(
            (region.writers | self._writers.get(region, {}).keys()) - {key}
            for key, region in [*self._reached][:_REACHED]
        )

    def finish(self, report: Report, kinds: frozenset[str]) -> None:
        """Add the findings."""
        written: set[tuple[object, int]] = set()
        flawed: set[int] = set()
        found: dict[tuple[str, object], list[Access]] = {}
        for (key, region, wrote), access in self._accesses.items():
            if wrote and self._is_undeclared(access):
                written.add((key, region))
                flawed.add(region)
                if "undeclared-write" in kinds:
                    found.setdefault(("undeclared-write", access.place), []).append(access)
        for (key, region, wrote), access in self._accesses.items():
            if wrote or (key, region) in written or "undeclared-read" not in kinds:
                continue
            if self._is_raced(access, flawed):
                found.setdefault(("undeclared-read", access.place), []).append(access)
        for (kind, _), accesses in found.items():
            report.add(self._finding(kind, accesses))

    @staticmethod
    def _guard(region: Region) -> tuple[int, int] | None:
        """Return the variable that stands for memory which has none of its own: the one that most ops name that use it."""
        return region.votes.most_common(1)[0][0] if region.votes else None

    def _is_undeclared(self, access: Access) -> bool:
        if access.region.is_known:
            return True
        guard = self._guard(access.region)
        return guard is None or guard not in access.guards

    def _is_raced(self, access: Access, flawed: set[int]) -> bool:
        """Whether another op changes memory that an op reads by name."""
        region = access.region
        if region.is_known:
            version = region.version()
            if version is not None and version != access.version:
                return True
            return bool(region.writers - {access.key})
        if id(region) in flawed:
            return False  # the finding is that of its writer
        guard = self._guard(region)
        if guard is None or guard in access.guards:
            return False
        # A variable that both name keeps them in order, whichever memory it stands for.
        writers = self._writers.get(region, {}).items()
        return any(key != access.key and not changed & access.guards for key, changed in writers)

    def _finding(self, kind: str, accesses: list[Access]) -> Finding:
        """Return the finding of one line: of all memory that its op touches and does not declare."""
        access, *others = accesses
        wrote = kind == "undeclared-write"
        name, shown = self._called(access)
        more = [self._called(other)[1] for other in others]
        listed = ", ".join(more[:_LISTED])
        too = (
            ""
            if not more
            else f", and {listed}"
            if len(more) <= _LISTED
            else f", and {listed} and {len(more) - _LISTED} more"
        )
        message = f"{access.label} {'writes' if wrote else 'reads'} {shown}{too} and does not say so"
        short, cure = _cure(access, name, wrote=wrote)
        return Finding(kind, *access.place, f"{message}: {short}", cure, count=max(each.count for each in accesses))

    @staticmethod
    def _called(access: Access) -> tuple[str, str]:
        """Return the expression that reaches the memory of an access, and how a message shows it, with where that was made."""
        region = access.region
        found = access.path or region.path
        if not found:
            name = f"an array of shape {tuple(region.shape)}"
            return name, name
        line = made_at(region.file or access.place[0], found)
        file = (region.file or access.place[0]).replace("\\", "/").rpartition("/")[2]
        return found, f"`{found}` (made at {file}:{line})" if line else f"`{found}`"


def _cure(access: Access, name: str, *, wrote: bool) -> tuple[str, str]:
    """Return the tag to write, and all ways to say so."""
    word = "Mutate" if wrote else "Read"
    if access.says_read and wrote:
        tag = "tag it `weft.Mutate`" if access.task else "name it in `mutate_vars`"
        other = "`weft.Overwrite`" if access.task else "`overwrite_vars`"
        return f"it is declared as read: {tag}", f"{tag}, or {other} if all of it is written, and not as read"
    if access.task:
        names = [each for each in re.findall(r"\w+", name) if each.isidentifier() and not iskeyword(each)]
        plain = names[-1] if names and " " not in name else "x"
        option = "mutates" if wrote else "reads"
        short = f"take it as `{plain}: weft.{word}`"
        return short, f"{short}, or declare it by `@weft.task({option}=[{name}])`"
    option = "mutate_vars" if wrote else "read_vars"
    if isinstance(access.region.array, NDArray):
        short = f"name it in the push: `{option}=[{name}]`"
        return short, f"{short}; in a task the tag is weft.{word}"
    short = f"name its variable in the push: `{option}=[engine.variable_of({name})]`"
    return short, f"{short}, or the one that its other ops name; in a task the tag is weft.{word}"


def _is_shown(path: str) -> bool:
    """Whether a reader knows an object by this expression: not by a place among arguments, or behind a pointer."""
    return bool(path) and path[0].isidentifier() and not path.startswith("argument ") and not path.endswith("._arr")
