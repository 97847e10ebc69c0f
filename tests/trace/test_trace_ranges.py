"""NVTX ranges around callables, by a stand-in for nvtx that writes down what it is told."""

from __future__ import annotations

import sys
import threading
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import pytest

import weft


class Domain:
    """Notes ranges, and what happens within them."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.events: list[tuple[str, str]] = []

    def get_event_attributes(self, *, message: str) -> str:
        return message

    def push_range(self, attributes: str) -> None:
        self.events.append(("push", f"{attributes} on {threading.get_ident()}"))

    def pop_range(self) -> None:
        self.events.append(("pop", ""))


@pytest.fixture
def nvtx(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A module nvtx whose profiler listens."""
    module: Any = ModuleType("nvtx")
    module.__spec__ = ModuleSpec("nvtx", None)
    module.domains = {}
    module.enabled = lambda: True
    module.get_domain = lambda name: module.domains.setdefault(name, Domain(name))
    monkeypatch.setitem(sys.modules, "nvtx", module)
    return module


def told(nvtx: Any) -> list[str]:
    """What the domain was told, without the threads."""
    return [f"{what} {about.partition(' on ')[0]}".strip() for what, about in nvtx.domains["weft"].events]


def test_callables_run_within_ranges_of_their_names(engine: weft.Engine, nvtx: Any) -> None:
    x = engine.new_variable("x")
    events = nvtx.get_domain("weft").events

    def plain() -> None:
        events.append(("run", f"plain on {threading.get_ident()}"))

    with weft.trace(engine=engine) as trace:
        engine.push(plain, mutate_vars=[x])
        engine.push(lambda: events.append(("run", "")), mutate_vars=[x], name="named")
        engine.push_async(lambda done: done(), mutate_vars=[x], name="async")
    assert told(nvtx) == [f"push {test_callables_run_within_ranges_of_their_names.__name__}.<locals>.plain", "run plain", "pop", "push named", "run", "pop", "push async", "pop"]  # fmt: skip
    threads = [about.partition(" on ")[2] for _, about in events[:2]]
    assert threads[0] == threads[1]
    assert [trace.names[name] for name in trace.ops["name"][1:3]] == ["named", "async"]


def test_a_range_ends_where_a_callable_fails(engine: weft.Engine, nvtx: Any) -> None:
    def fails() -> None:
        raise KeyError("mine")

    with weft.trace(engine=engine):
        engine.push(fails)
    assert told(nvtx)[-1] == "pop"
    with pytest.raises(KeyError) as caught:
        engine.wait_for_all()
    assert "fails' pushed at " in caught.value.__notes__[0]


def test_operators_have_ranges_too(engine: weft.Engine, nvtx: Any) -> None:
    operator = engine.new_operator(lambda: None, name="again")
    with weft.trace(engine=engine):
        operator.push()
        operator.push()
    assert told(nvtx) == ["push again", "pop"] * 2


def test_without_a_trace_there_are_no_ranges(engine: weft.Engine, nvtx: Any) -> None:
    with weft.trace(engine=engine):
        pass
    engine.push(lambda: None)
    engine.wait_for_all()
    assert told(nvtx) == []


def test_ranges_that_nobody_listens_to_are_not_made(engine: weft.Engine, nvtx: Any) -> None:
    nvtx.enabled = lambda: False
    with weft.trace(engine=engine):
        engine.push(lambda: None)
    assert nvtx.domains == {}


def test_the_real_nvtx_is_used_where_it_is_installed(engine: weft.Engine) -> None:
    pytest.importorskip("nvtx", reason="nvtx is not installed (pip install nvtx)")
    ran = []
    with weft.trace(engine=engine):
        engine.push(lambda: ran.append(1))
    assert ran == [1]
