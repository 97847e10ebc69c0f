"""All-reduces of several ranks on this machine, timed in a job of their own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import weft
from weft._command.running import CommandError

#: The mark of the line that tells the figures.
_MARK = "weft-scale "


def measure(ranks: int, sizes: list[int], reps: int) -> list[tuple[int, int, float]]:
    """Return ranks, bytes and the least seconds of an all-reduce of each size.

    Raises
    ------
    CommandError
        If there is no mpiexec, or the job fails.
    """
    beside = Path(sys.executable).parent / "mpiexec"
    mpiexec = str(beside) if beside.exists() else shutil.which("mpiexec")
    if mpiexec is None:
        raise CommandError("there is no mpiexec: pip install mpich mpi4py, or say --alpha and --beta")
    command = [mpiexec, "-n", str(ranks), sys.executable, "-m", __name__, json.dumps([sizes, reps])]
    env = {**os.environ, "WEFT_COMM_CHECK": "0"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)  # noqa: S603 - itself
    told = next((line for line in done.stdout.splitlines() if line.startswith(_MARK)), None)
    if done.returncode or told is None:
        raise CommandError(f"{ranks} ranks failed with exit status {done.returncode}:\n{done.stderr[-2000:]}")
    return [(ranks, nbytes, seconds) for nbytes, seconds in json.loads(told.removeprefix(_MARK))]


def main(text: str) -> None:
    """Time on one rank; rank 0 prints the times."""
    sizes, reps = json.loads(text)
    found: list[tuple[int, float]] = []
    with weft.distributed.Communicator() as comm:
        for nbytes in sizes:
            x = weft.zeros(nbytes // 4, dtype="float32")
            row = max(1, min(100, (1 << 20) // nbytes))
            best = float("inf")
            for _ in range(reps):
                comm.barrier()
                comm.wait()
                began = time.perf_counter()
                for _ in range(row):
                    comm.all_reduce(x)
                x.wait_to_read()
                best = min(best, (time.perf_counter() - began) / row)
            found.append((nbytes, best))
        if comm.rank == 0:
            sys.stdout.write(_MARK + json.dumps(found) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1])
