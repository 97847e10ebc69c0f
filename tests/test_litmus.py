"""The engine's arguments from ``SeqCst``, held to the memory model of 64-bit ARM.

The model is the one of the architecture's manual, in the axioms of herd7's ``aarch64.cat``, as far as these programs need
it: no dependencies, no instruction fetches, accesses of one size. Every execution of a program is enumerated.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise, permutations, product
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PAGE = Path(__file__).parent.parent / "crates" / "engine" / "src" / "sync" / "litmus.md"
PROGRAMS = {
    name: text
    for text in re.findall(r"^```text\n(C .*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    for name in re.findall(r"^C (\S+)", text)
}
ACCESS = re.compile(r"(?:int (?P<into>r\d) = )?atomic_(?P<what>\w+?)(?:_explicit)?\((?P<rest>[^)]*)\);")

Edges = set[tuple[int, int]]


@dataclass(frozen=True)
class Event:
    """One access to memory, or a barrier."""

    thread: int
    kind: str  #: "R", "W" or "F"
    place: str = ""
    strength: str = ""  #: "A" ldar, "Q" ldapr, "L" stlr, "" plain
    into: str = ""
    change: Callable[[int], int] | None = None  #: what is written, from what the read of the pair has read
    pair: int = -1  #: the read of a read-modify-write


def events_of(text: str) -> tuple[list[Event], dict[str, int]]:
    """The instructions that a program in C becomes, and what its places hold at first."""
    first = {place: int(value) for place, value in re.findall(r"(\w+) = (\d+);", text.split("}", 1)[0])}
    events: list[Event] = []
    for thread, body in enumerate(re.findall(r"^P\d .*?\{(.*?)^\}", text, re.DOTALL | re.MULTILINE)):
        for access in ACCESS.finditer(body):
            *operands, order = (part.strip() for part in access["rest"].split(","))
            strong = order.endswith("seq_cst")
            load = "A" if strong else "Q" if order.endswith("acquire") else ""
            store = "L" if strong or order.endswith("release") else ""
            what, into = access["what"], f"{thread}:{access['into']}" if access["into"] else ""
            if what == "thread_fence":
                events.append(Event(thread, "F"))
            elif what == "load":
                events.append(Event(thread, "R", operands[0], load, into))
            else:
                given = int(operands[1])
                change = {
                    "store": lambda _, given=given: given,
                    "exchange": lambda _, given=given: given,
                    "fetch_add": lambda old, given=given: old + given,
                    "fetch_sub": lambda old, given=given: old - given,
                    "fetch_or": lambda old, given=given: old | given,
                }[what]
                pair = -1
                if what != "store":
                    pair = len(events)
                    events.append(Event(thread, "R", operands[0], load, into))
                events.append(Event(thread, "W", operands[0], store, "", change, pair))
    return events, first


def acyclic(edges: Edges, count: int) -> bool:
    """Whether no event comes before itself."""
    left = set(range(count))
    while left:
        ends = {event for event in left if not any(a == event and b in left for a, b in edges)}
        if not ends:
            return False
        left -= ends
    return True


def ordered_locally(events: list[Event], barriers: bool) -> Edges:
    """Barriers and the halves of atomic instructions: ``bob`` and ``aob``, without what is read from the same thread."""
    edges: Edges = set()
    for a, one in enumerate(events):
        for b in range(a + 1, len(events)):
            other = events[b]
            if one.thread != other.thread:
                continue
            between = events[a + 1 : b]
            if (
                any(event.kind == "F" for event in between)
                or one.strength in {"A", "Q"}
                or other.strength == "L"
                or (one.strength == "L" and other.strength == "A")
                or other.pair == a
                # An atomic instruction that acquires and releases is a barrier to what is before and after it.
                or (barriers and any(event.pair >= 0 and event.strength == "L" for event in [one, *between]))
            ):
                edges.add((a, b))
    return edges


def outcomes(text: str, *, barriers: bool) -> Iterator[dict[str, int]]:
    """What the registers may hold at the end, of every execution that is allowed."""
    events, first = events_of(text)
    count = len(events)
    reads = [at for at, event in enumerate(events) if event.kind == "R"]
    writes = {place: [at for at, e in enumerate(events) if e.kind == "W" and e.place == place] for place in first}
    local = ordered_locally(events, barriers)
    same_place: Edges = {
        (a, b)
        for a, one in enumerate(events)
        for b in range(a + 1, count)
        if (one.thread, one.place) == (events[b].thread, events[b].place) and one.kind != "F"
    }
    for sources in product(*([-1, *writes[events[read].place]] for read in reads)):
        read_from = dict(zip(reads, sources, strict=True))
        values = values_of(events, first, read_from)
        if values is None:
            continue
        for orders in product(*(permutations(each) for each in writes.values())):
            place_order = {write: at for order in orders for at, write in enumerate(order)}
            coherence: Edges = {(a, b) for order in orders for a, b in pairwise(order)}
            coherence |= {(a, b) for order in orders for i, a in enumerate(order) for b in order[i + 1 :]}
            before: Edges = {
                (read, write)
                for read, source in read_from.items()
                for write in writes[events[read].place]
                if place_order[write] > place_order.get(source, -1)
            }
            from_write: Edges = {(source, read) for read, source in read_from.items() if source >= 0}
            if not acyclic(same_place | coherence | before | from_write, count):
                continue
            if any(
                (event.pair, other) in before and (other, at) in coherence and events[other].thread != event.thread
                for at, event in enumerate(events)
                if event.pair >= 0
                for other in writes[event.place]
            ):
                continue
            seen = {(a, b) for a, b in coherence | before | from_write if events[a].thread != events[b].thread}
            forwarded = {
                (a, b)
                for a, b in from_write
                if events[a].thread == events[b].thread and events[a].pair >= 0 and events[b].strength
            }
            if acyclic(seen | forwarded | local, count):
                yield {event.into: values[at] for at, event in enumerate(events) if event.into}


def values_of(events: list[Event], first: dict[str, int], read_from: dict[int, int]) -> dict[int, int] | None:
    """What each event reads or writes; None where a value would come from itself."""
    values: dict[int, int] = {}
    left = [at for at, event in enumerate(events) if event.kind != "F"]
    while left:
        known = len(values)
        for at in [*left]:
            event = events[at]
            if event.kind == "R" and read_from[at] == -1:
                values[at] = first[event.place]
            elif event.kind == "R" and read_from[at] in values:
                values[at] = values[read_from[at]]
            elif event.kind == "W" and event.change and (event.pair == -1 or event.pair in values):
                values[at] = event.change(values.get(event.pair, 0))
            else:
                continue
            left.remove(at)
        if len(values) == known:
            return None
    return values


def is_possible(text: str, *, barriers: bool) -> bool:
    """Whether the outcome that a program forbids is allowed."""
    (condition,) = re.findall(r"~exists \((.*)\)", text)
    wanted = {register: int(value) for register, value in re.findall(r"(\d:r\d)=(\d)", condition)}
    assert wanted
    return any(found.items() >= wanted.items() for found in outcomes(text, barriers=barriers))


@pytest.mark.parametrize("barriers", [False, True], ids=["exclusives", "lse"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_what_must_not_be_cannot_be(name: str, barriers: bool) -> None:
    assert not is_possible(PROGRAMS[name], barriers=barriers)


@pytest.mark.parametrize("order", ["relaxed", "acquire"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_load_has_to_be_as_strong_as_it_is(name: str, order: str) -> None:
    """With exclusives: a load that is not ``ldar`` may overtake the store before it."""
    loads = list(re.finditer(r"atomic_load_explicit\(\w+, memory_order_(seq_cst)\)", PROGRAMS[name]))
    assert loads
    for load in loads:
        weaker = PROGRAMS[name][: load.start(1)] + order + PROGRAMS[name][load.end(1) :]
        assert is_possible(weaker, barriers=False), load[0]


SHAPES = {
    "message passing": ("release", "acquire", False),
    "message passing without a release": ("relaxed", "acquire", True),
    "message passing without an acquire": ("release", "relaxed", True),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_the_model_knows_what_is_known(shape: str) -> None:
    store, load, possible = SHAPES[shape]
    text = f"""C mp
{{ data = 0; flag = 0; }}
P0 (atomic_int* data, atomic_int* flag) {{
  atomic_store_explicit(data, 1, memory_order_relaxed);
  atomic_store_explicit(flag, 1, memory_order_{store});
}}
P1 (atomic_int* data, atomic_int* flag) {{
  int r0 = atomic_load_explicit(flag, memory_order_{load});
  int r1 = atomic_load_explicit(data, memory_order_relaxed);
}}
~exists (1:r0=1 /\\ 1:r1=0)
"""
    assert is_possible(text, barriers=False) == possible


def test_the_functions_that_are_named_exist() -> None:
    sources = "\n".join(path.read_text(encoding="utf-8") for path in PAGE.parent.parent.rglob("*.rs"))
    named = {
        name
        for text in PROGRAMS.values()
        for line in re.findall(r"// (.*)", text)
        for name in re.findall(r"::(\w+)", line)
    }
    assert named
    assert {name for name in named if not re.search(rf"\bfn {name}\b", sources)} == set()
