"""How large each measurement is."""

from __future__ import annotations

from dataclasses import dataclass

#: The names of the tables.
TABLES = ("A", "B", "C", "D", "E", "F", "M", "N", "R")


@dataclass(frozen=True, slots=True)
class Settings:
    """Sizes of one run; the same for every implementation in it."""

    tables: tuple[str, ...] = TABLES
    reps: int = 9
    workers: int = 2
    #: Of programs in C++ and Rust.
    native_ops: int = 100_000
    #: Below this share of ops outside the creating thread, a second thread had no processor: not a run with two workers.
    share_of_others: float = 0.1
    callable_ops: int = 50_000
    verify_ops: int = 10_000
    push_ops: int = 20_000
    threads_ops: int = 100_000
    pairs: int = 2_000
    latency_samples: int = 40
    add_sizes: tuple[int, ...] = (16, 1_000, 100_000, 1_000_000)
    add_ops: int = 1_000
    add_batches: int = 20
    call_sizes: tuple[int, ...] = (16, 1_000, 100_000)
    #: Of table F.
    fused_sizes: tuple[int, ...] = (16, 1_000, 100_000, 1_000_000)
    #: How long calls of one kind are timed in one repetition.
    call_seconds: float = 0.05
    #: Of replays in C++ and Rust.
    replay_ops: tuple[int, ...] = (1_000, 100_000)
    #: Of the networks with timed first calls: layers and their units; channels and the side of an image.
    network_layers: tuple[int, int] = (24, 512)
    network_image: tuple[int, int] = (64, 112)
    chains: int = 8
    chain_floats: int = 1_000_000
    matrix_rows: int = 1024
    #: Of those in `weft.bench.plan.networks`, from the last.
    networks: int = 7
    chain_nodes: int = 100_000
    floor_calls: int = 1_000_000

    @classmethod
    def smoke(cls) -> Settings:
        """Return sizes that show that everything works, and measure nothing."""
        return cls(
            reps=1,
            native_ops=2_000,
            share_of_others=0.0,
            callable_ops=2_000,
            verify_ops=2_000,
            push_ops=1_000,
            threads_ops=2_000,
            pairs=50,
            latency_samples=5,
            add_sizes=(16, 1_000),
            add_ops=50,
            add_batches=2,
            call_sizes=(16,),
            fused_sizes=(16, 10_000),
            call_seconds=0.001,
            replay_ops=(1_000,),
            network_layers=(3, 16),
            network_image=(4, 32),
            chains=2,
            chain_floats=10_000,
            matrix_rows=64,
            networks=1,
            chain_nodes=1_000,
            floor_calls=20_000,
        )
