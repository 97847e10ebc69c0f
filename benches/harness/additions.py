"""What a checkout times beside the package's own implementations."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from harness.build import PARKED_THREAD
from harness.native import floor_jobs, native_jobs, replay_jobs
from harness.planning import add_planning
from weft.bench.latency import Slot, flag_latency
from weft.bench.measure import Additions
from weft.bench.samples import Job

if TYPE_CHECKING:
    from harness.build import Bell, Binaries
    from weft.bench.settings import Settings


def additions(binaries: Binaries, settings: Settings) -> Additions:
    """Return the jobs of what was built, and the reasons for what was not."""
    found = Additions()
    if "A" in settings.tables:
        found.jobs["A"] = native_jobs(binaries, settings)
    if "R" in settings.tables:
        found.jobs["R replay"] = replay_jobs(binaries, settings)
    add_planning(found, settings)
    if binaries.floors is not None:
        found.jobs["floors"] = floor_jobs(binaries.floors, settings)
    if binaries.bell is not None:
        wake = partial(_wake, binaries.bell, settings.latency_samples)
        found.jobs["E"] = [Job("E", "native op", PARKED_THREAD, wake)]
    for name, reason in binaries.missing.items():
        found.missing[_table(name), name] = reason
    for name, reason in binaries.replays_missing.items():
        found.missing["R replay", name] = reason
    return found


def _table(name: str) -> str:
    return {"floors": "floors", PARKED_THREAD: "E"}.get(name, "A")


def _wake(bell: Bell, samples: int) -> list[float]:
    """Time a parked native thread that is only woken: the system's own share of every latency in table E."""
    slot = Slot()
    bell.open(None)
    try:
        return flag_latency(slot, lambda: bell.ring(slot.address), samples)
    finally:
        bell.close(None)
