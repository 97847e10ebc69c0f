"""How large each measurement on a GPU is."""

from __future__ import annotations

from dataclasses import dataclass

_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Settings:
    """Sizes of one run; the same for every implementation in it.

    Attributes
    ----------
    reps : int
        Repetitions of every cell.
    chunks, chunk_bytes : int
        Of the pipeline. A pipeline of three stages that hides all it can takes two chunks longer than the longest
        stage: chunks are many.
    calls : int
        Calls in a row, from an idle device; one sample is their mean.
    launches : int
        Launches behind a gate, each with an event behind it: together fewer than the 1,024 that a device's queue holds, or
        the driver would wait for the device.
    dependent : int
        Small kernels in a chain.
    graph_kernels, replays : int
        Kernels of a graph; replays in flight: so many that the wait for the last one is a small part of their time.
    add_sizes : tuple of int
        Floats of the arrays that are added.
    side_by_side : int
        Kernels on each stream.
    kernel_us : float
        How long each of those is to take, and one of the pipeline at least.
    rounds : int or None
        Rounds of a kernel's computation per element; None finds out how many fill its time.
    run_s : float
        Seconds that all lines may take together. Of these a line leaves a tenth to each of those after it; its
        figures until then stay.
    measures : bool
        Whether the figures mean anything.
    """

    reps: int = 15
    chunks: int = 128
    chunk_bytes: int = 8 * _MIB
    calls: int = 64
    launches: int = 450
    dependent: int = 1_000
    graph_kernels: int = 100
    replays: int = 60
    add_sizes: tuple[int, ...] = (1_000, 1_000_000)
    side_by_side: int = 50
    kernel_us: float = 100.0
    rounds: int | None = None
    run_s: float = 420.0
    measures: bool = True

    @classmethod
    def smoke(cls) -> Settings:
        """Return sizes that show that everything works, and measure nothing."""
        return cls(
            reps=1,
            chunks=5,
            chunk_bytes=4096,
            calls=4,
            launches=20,
            dependent=20,
            graph_kernels=5,
            replays=3,
            add_sizes=(10, 1_000),
            side_by_side=3,
            rounds=3,
            measures=False,
        )
