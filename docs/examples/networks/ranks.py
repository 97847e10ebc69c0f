"""A training that several processes share."""

from dataclasses import replace

import weft
from networks.race import Contest
from weft import opt


class Ranks:
    """The processes of a training, which begin alike and average their gradients; by default there is one.

    Parameters
    ----------
    comm : weft.distributed.Communicator, optional
        All processes.
    """

    def __init__(self, comm: "weft.distributed.Communicator | None" = None) -> None:
        self._comm = comm
        self.size = 1 if comm is None else comm.size
        self.rank = 0 if comm is None else comm.rank

    def share(self, contest: Contest) -> Contest:
        """Return what this process does of a training: its part of each batch."""
        if self._comm is None:
            return contest
        count = len(contest.x) - len(contest.x) % self.size
        return replace(
            contest,
            optimizer=lambda: opt.DistOpt(contest.optimizer(), communicator=self._comm),
            x=contest.x[:count][self.rank :: self.size],
            y=contest.y[:count][self.rank :: self.size],
            batch=contest.batch // self.size,
            ranks=self.size,
        )

    def leave(self) -> None:
        """Wait for the others: a process that ends is missed by those that still train."""
        if self._comm is not None:
            self._comm.barrier()
            self._comm.wait()
