"""What the sources say of the orderings of atomics: a handshake of two stores and two loads needs ``SeqCst`` on both sides."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

CRATES = Path(__file__).parent.parent / "crates"
COMMENT = re.compile(r"\s*// ORDERING: ?(.*)")
FUNCTION = re.compile(r"\s*(?:pub(?:\([a-z: ]+\))? )?(?:const )?(?:unsafe )?fn (\w+)")
PARTNERS = re.compile(r"pairs with ((?:(?:the \w+ in |the )?\w+\(\)(?:, | and )?)+)")
ACCESS = re.compile(r"\.(load|store|swap|fetch_\w+|compare_exchange(?:_weak)?)\(|\b(?:full_)?fence(?:_after_rmw)?\(")
ORDER = re.compile(r"Ordering::(\w+)")


@dataclass(frozen=True)
class Claim:
    """One comment on an ordering, and the statement that it is about."""

    place: str
    function: str
    text: str
    orders: tuple[str, ...]

    @property
    def partners(self) -> set[str]:
        """The functions that it names as its other side."""
        return {name for found in PARTNERS.findall(self.text) for name in re.findall(r"(\w+)\(\)", found)}

    @property
    def says_sequential(self) -> bool:
        """Whether it says that it takes part in the one order of all such accesses."""
        return re.match(r"SeqCst|as in|see ", self.text) is not None and "SeqCst" in self.text

    @property
    def is_sequential(self) -> bool:
        """Whether each access of the statement does. The ordering of an exchange that fails counts for nothing."""
        return bool(self.orders) and all(order == "SeqCst" for order in self.orders)


def orders_of(statement: str) -> Iterator[str]:
    """Give the ordering of each access of a statement: of an exchange, the first of its two."""
    starts = [(found.start(), found.group(1) or "fence") for found in ACCESS.finditer(statement)]
    ends = [at for at, _ in starts[1:]] + [len(statement)]
    for (start, kind), end in zip(starts, ends, strict=True):
        orders = ORDER.findall(statement[start:end])
        yield from orders[:1] if kind.startswith("compare") else orders


def claims_of(text: str, place: str) -> Iterator[Claim]:
    """Give what a source says of its orderings."""
    lines = text.splitlines()
    function = ""
    for number, line in enumerate(lines):
        if (found := FUNCTION.match(line)) is not None:
            function = found.group(1)
        comment = COMMENT.match(line)
        if comment is None:
            continue
        words, at = [comment.group(1)], number + 1
        while lines[at].strip().startswith("//"):
            words.append(lines[at].strip().removeprefix("//").strip())
            at += 1
        statement = lines[at]
        while not statement.rstrip().endswith((";", "{", "}", ",")) and not COMMENT.match(lines[at + 1]):
            at += 1
            statement += lines[at]
        yield Claim(f"{place}:{number + 1}", function, " ".join(words), tuple(orders_of(statement)))


def claims(root: Path = CRATES) -> dict[str, list[Claim]]:
    """Return what the sources say, by crate."""
    found: dict[str, list[Claim]] = {}
    for path in sorted(root.glob("*/src/**/*.rs")):
        name = path.relative_to(root).as_posix()
        found.setdefault(name.split("/", maxsplit=1)[0], []).extend(claims_of(path.read_text(), name))
    return found


def weak(crate: list[Claim]) -> list[str]:
    """Return the claims whose accesses are weaker than the handshake that they are part of."""
    wrong = [
        f"{each.place} says SeqCst: {each.orders}" for each in crate if each.says_sequential and not each.is_sequential
    ]
    wrong += [
        f"{each.place} pairs with {other.place}, which says SeqCst: {each.orders}"
        for each in crate
        for other in crate
        if other.says_sequential
        and each.function in other.partners
        and other.function in each.partners
        and not each.is_sequential
    ]
    return wrong


CLAIMS = claims()


@pytest.mark.parametrize("crate", sorted(CLAIMS))
def test_both_sides_of_a_sequential_handshake_are_sequential(crate: str) -> None:
    assert weak(CLAIMS[crate]) == []


def test_handshakes_are_found() -> None:
    assert sum(each.says_sequential for each in CLAIMS["engine"]) > 20
    assert sum(bool(each.partners) for each in CLAIMS["engine"]) > 30


SLEEPER = """
fn sleep(&self) {
    // ORDERING: SeqCst: comes before the look; pairs with wake().
    self.sleeping.swap(true, Ordering::SeqCst);
}
fn wake(&self) -> bool {
    // ORDERING: who sleeps after this sees it; pairs with sleep().
    !self.sleeping.load(Ordering::%s) && !self.sleeping.swap(true, Ordering::SeqCst)
}
"""


@pytest.mark.parametrize(("order", "wrong"), [("Acquire", 1), ("SeqCst", 0)])
def test_one_weak_load_of_a_handshake_is_found(order: str, wrong: int) -> None:
    assert len(weak(list(claims_of(SLEEPER % order, "sleep.rs")))) == wrong
