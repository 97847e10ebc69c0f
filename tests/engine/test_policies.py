"""Policies, devices and the default engine's settings."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import numpy as np
import pytest

import weft
from conftest import MOMENT, SOON, Gate, MakeEngine, RunScript, background
from weft import errors
from weft._core import POLICIES

#: The CPUs that this process may use.
CPUS = len(os.sched_getaffinity(0))


def test_serial_runs_at_the_push_on_the_pushing_thread(make_engine: MakeEngine) -> None:
    engine, threads = make_engine(policy="serial"), list[int]()
    x = engine.new_variable()
    engine.push(lambda: threads.append(threading.get_ident()), (), (x,))
    assert threads == [threading.get_ident()]
    assert (x.version, x.completed_version, x.is_ready()) == (1, 1, True)

    def elsewhere() -> int:
        engine.push(lambda: threads.append(threading.get_ident()), (), (x,))
        return threading.get_ident()

    assert background(elsewhere).result(SOON) == threads[-1] != threads[0]


def test_serial_raises_at_the_wait_not_at_the_push(make_engine: MakeEngine) -> None:
    engine = make_engine(policy="serial")
    x = engine.new_variable()
    engine.push(lambda: 1 / 0, (), (x,))
    engine.push(lambda: None, (), (x,))
    with pytest.raises(ZeroDivisionError):
        engine.wait_for_var(x)
    assert x.completed_version == 2


def test_serial_keeps_pushes_from_many_threads_apart(make_engine: MakeEngine) -> None:
    engine, total = make_engine(policy="serial"), [0]
    x = engine.new_variable()

    def add() -> None:
        value = total[0]
        total[0] = value + 1

    pushers = [background(lambda: [engine.push(add, (), (x,)) for _ in range(3000)]) for _ in range(4)]
    for pusher in pushers:
        pusher.result(SOON)
    engine.wait_for_var(x)
    assert total == [12_000]


def shuffled(make_engine: MakeEngine, seed: int) -> list[int]:
    """The order in which twenty ops run, of which each fourth waits for the one before and one pushes another."""
    engine, order = make_engine(policy=f"shuffled:{seed}"), list[int]()
    x = engine.new_variable()

    def first() -> None:
        order.append(0)
        engine.push(lambda: order.append(100), (), (x,))

    engine.push(first, (), (x,))
    for at in range(1, 20):
        engine.push(lambda at=at: order.append(at), (x,) if at % 4 == 1 else (), (x,) if at % 4 == 0 else ())
    engine.wait_for_all()
    engine.wait_for_all()  # for the op that was pushed meanwhile
    assert sorted(order) == [*range(20), 100]
    return order


def test_shuffled_draws_an_order_that_its_seed_names(make_engine: MakeEngine) -> None:
    orders = [shuffled(make_engine, seed) for seed in range(5)]
    assert orders == [shuffled(make_engine, seed) for seed in range(5)]
    assert len({tuple(order) for order in orders}) == 5
    for order in orders:
        places = [order.index(at) for at in (0, 4, 8, 12, 16)]
        assert places == sorted(places)


def test_shuffled_runs_one_op_at_a_time_and_what_nobody_waits_for(make_engine: MakeEngine) -> None:
    engine, running, done = make_engine(8, "shuffled:3"), list[int](), threading.Event()

    def alone() -> None:
        running.append(len(running))
        assert len(running) == 1
        running.pop()

    assert engine.workers == 1
    for _ in range(200):
        engine.push(alone)
    engine.push(done.set)
    assert done.wait(SOON)
    engine.wait_for_all()


def test_shuffled_gives_the_same_arrays(make_engine: MakeEngine) -> None:
    def compute(engine: weft.Engine) -> list[list[float]]:
        x = weft.arange(6.0, engine=engine)
        y = x * 2
        x += 1
        z = (x + y).reshape(2, 3).sum(axis=0)
        y[1:] = 0.5
        return [np.asarray(part).tolist() for part in (x, y, z)]

    expected = compute(make_engine(policy="serial"))
    assert all(compute(make_engine(policy=f"shuffled:{seed}")) == expected for seed in range(5))


def test_per_device_has_threads_for_each_device_and_lane(make_engine: MakeEngine) -> None:
    engine = make_engine(2, "per_device")
    threads: dict[weft.Device, set[int]] = {}
    places = [weft.cpu(0), weft.cpu(1), weft.cpu(0).copy, weft.cpu(1).copy]
    for place in places:
        threads[place] = set()
        for _ in range(50):
            engine.push(lambda place=place: threads[place].add(threading.get_ident()), device=place)
    engine.wait_for_all()
    for place in places:
        assert 1 <= len(threads[place]) <= (1 if place.lane == "copy" else 2)
    seen = [thread for place in places for thread in threads[place]]
    assert len(seen) == len(set(seen)), "no thread serves two"


def test_per_device_lanes_do_not_hold_each_other_up(make_engine: MakeEngine, gate: Gate) -> None:
    engine = make_engine(1, "per_device")
    gate.hold(engine, device=weft.cpu(0))
    for place in (weft.cpu(1), weft.cpu(0).copy, weft.cpu(1).copy):
        ran = threading.Event()
        engine.push(ran.set, device=place)
        assert ran.wait(SOON)
    held = threading.Event()
    engine.push(held.set, device=weft.cpu(0))
    assert not held.wait(MOMENT)
    gate.open()
    assert held.wait(SOON)


def test_per_device_orders_across_devices(make_engine: MakeEngine) -> None:
    engine, order = make_engine(1, "per_device"), list[int]()
    x = engine.new_variable()
    for i in range(500):
        place = weft.cpu(i % 3)
        engine.push(lambda i=i: order.append(i), (), (x,), device=place.copy if i % 2 else place)
    engine.wait_for_var(x)
    assert order == list(range(500))


def test_in_work_stealing_a_device_is_a_label(make_engine: MakeEngine) -> None:
    engine, threads = make_engine(1), set[int]()
    for place in (weft.cpu(0), weft.cpu(1).copy, weft.Device("cpu:7")):
        engine.push(lambda: threads.add(threading.get_ident()), device=place)
    engine.wait_for_all()
    assert len(threads) == 1


def test_device() -> None:
    device = weft.cpu(1)
    assert device == weft.Device("cpu:1") != weft.cpu(0)
    assert (device.kind, device.index, device.lane, str(device)) == ("cpu", 1, "compute", "cpu:1")
    assert (device.copy.lane, str(device.copy)) == ("copy", "cpu:1/copy")
    assert device.copy != device
    assert device.copy.copy == device.copy
    assert len({device, weft.cpu(1), device.copy}) == 2
    assert weft.cpu() == weft.cpu(0)
    with pytest.raises(AttributeError):
        device.index = 3


@pytest.mark.parametrize("text", ["", "cpu:", "cpu:-1", "cpu:x", "abacus:0", "cpu:0:1"])
def test_a_device_that_is_none(text: str) -> None:
    with pytest.raises(errors.ArgumentValueError):
        weft.Device(text)


def test_attributes(engine: weft.Engine) -> None:
    assert engine.policy in POLICIES
    assert engine.policy == "serial" or engine.workers in {1, 2, 8}
    assert not engine.closed
    assert engine.pending == 0


def test_defaults(make_engine: MakeEngine) -> None:
    engine = make_engine(name="main")
    assert (engine.policy, engine.workers, engine.name) == ("work_stealing", CPUS, "main")


def test_set_engine_answers_the_previous_one(make_engine: MakeEngine) -> None:
    first, second = weft.get_engine(), make_engine(1)
    assert weft.set_engine(second) is first
    assert weft.get_engine() is second
    assert weft.set_engine(first) is second
    assert weft.get_engine() is first
    with pytest.raises(errors.ArgumentTypeError):
        weft.set_engine("work_stealing")
    assert weft.get_engine() is first


def test_switch_interval_is_set_when_the_engine_starts(script: RunScript) -> None:
    done = script("""
        import sys, weft
        engine = weft.Engine(1, switch_interval=0.0005)
        engine.push(int)
        engine.wait_for_all()
        assert abs(sys.getswitchinterval() - 0.0005) < 1e-6, sys.getswitchinterval()
    """)
    assert done.returncode == 0, done.stderr


DEFAULT = """
    import weft
    try:
        engine = weft.get_engine()
    except ValueError as error:
        assert isinstance(error, weft.errors.ArgumentValueError), error
        print("refused:", error)
    else:
        assert weft.get_engine() is engine
        cell = []
        engine.push(lambda: cell.append(1))
        engine.wait_for_all()
        assert cell == [1]
        print(engine.policy, engine.workers)
"""


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({}, f"work_stealing {CPUS}"),
        ({"WEFT_WORKERS": "3"}, "work_stealing 3"),
        ({"WEFT_POLICY": "per_device", "WEFT_WORKERS": "1"}, "per_device 1"),
        ({"WEFT_POLICY": "serial"}, "serial"),
        ({"WEFT_POLICY": "shuffled:7"}, "shuffled:7 1"),
    ],
)
def test_the_environment_sets_the_default_engine(script: RunScript, env: dict[str, str], expected: str) -> None:
    done = script(DEFAULT, **env)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(expected)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("WEFT_POLICY", "round_robin"),
        ("WEFT_POLICY", "shuffled"),
        ("WEFT_POLICY", "shuffled:x"),
        ("WEFT_WORKERS", "0"),
        ("WEFT_WORKERS", "-2"),
        ("WEFT_WORKERS", "many"),
        ("WEFT_WORKERS", "1.5"),
    ],
)
def test_a_bad_setting_is_a_clear_error(script: RunScript, name: str, value: str) -> None:
    done = script(DEFAULT, **{name: value})
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("refused:")
    assert name in done.stdout
    assert value in done.stdout


def test_a_bad_setting_of_all_engines_is_named_alone(script: RunScript) -> None:
    done = script(DEFAULT, WEFT_CHECK="yes", WEFT_WORKERS="2")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "refused: the environment variable WEFT_CHECK must be 0 or 1, not 'yes'"


def test_the_wheel_is_typed() -> None:
    folder = Path(weft.__file__).parent
    assert (folder / "py.typed").exists()
    assert (folder / "_core.pyi").exists()
