"""The time that checks may take beside the script's own."""

from __future__ import annotations

import time

#: The time that checks may take, in times of the script's own.
SHARE = 2.5
#: The same up to which more calls of programs run op by op.
OF_PROGRAMS = 1.5
#: Seconds of the processor that checks may take in any case, so that those of a script of some milliseconds are worth the name.
GRACE = 0.01
#: Seconds that an op takes to come to a worker, and its end to come back, at most.
_HANDED = 1e-4
#: Seconds of the core around a push that is passed by.
_TOLD = 2e-6
#: Seconds for which the core looks at the results of an array op, if these are short.
_LOOKED = 7e-7
#: Seconds that the script takes longer behind a check, which has taken the caches.
_COLD = 1.5e-5


class Budget:
    """The clock of a check run: all of it is the script's own but the time that checks say they spend.

    So nothing is forgotten: a check spends all from its push to the end of its op, without the time for which the op itself
    ran. As far as that is not known, it counts as spent.

    Examples
    --------
    >>> from weft._doctor.budget import Budget
    >>> budget = Budget()
    >>> begun = budget.begin()
    >>> budget.end(2e-3, own=1e-3)
    >>> budget.allows(begun)
    True
    """

    def __init__(self) -> None:
        self._begun, self._spent = time.perf_counter(), 0.0
        #: Seconds of the processor that are left in any case: those of a check do not depend on what else the machine does.
        self._left, self._processor = GRACE, 0.0

    def allows(self, now: float) -> bool:
        """Return whether there is time for one more check."""
        return self._left > 0 or self._spent < SHARE * (now - self._begun - self._spent)

    def allows_program(self, now: float) -> bool:
        """Return whether there is time to run a program op by op: replays are looked at, too."""
        return self._spent < OF_PROGRAMS * (now - self._begun - self._spent)

    @property
    def spent(self) -> float:
        """Seconds that checks have taken."""
        return self._spent

    def begin(self) -> float:
        """Begin a check. Return the time. There is one at a time."""
        self._processor = time.process_time()
        return time.perf_counter()

    def end(self, seconds: float, own: float) -> None:
        """End it: it has taken so many seconds, with those of the script's own. Workers that wait take the processor, too."""
        used = time.process_time() - self._processor
        self._left -= min(max(0.0, seconds - own), used)
        self._spent += max(0.0, max(seconds, used) - own) + _COLD

    def pass_by(self, asked: float) -> None:
        """Note a push that is not checked, of which the hook was told then."""
        self._spent += time.perf_counter() - asked + _TOLD

    def replayed(self, asked: float, own: float) -> None:
        """Note the call of a program that was told of then, and is replayed and looked at. That takes the script so many seconds."""
        self._spent += time.perf_counter() - asked - own + _TOLD

    def look(self, ops: int) -> None:
        """Note array ops with results that the core has looked at."""
        self._spent += _LOOKED * ops

    @staticmethod
    def work_in(waited: float) -> float:
        """Return the part of a wait for ops for which they are certain to have run."""
        return max(0.0, waited - _HANDED)
