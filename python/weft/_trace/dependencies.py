"""The dependencies of a run, from the accesses of a record.

An access waits for earlier ones of the same variable: a read for the last mutation, a mutation for all reads since, or
for the last mutation if there are none. Implied pairs are left out. Nothing waits for a wait.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from weft._trace.record import Access, Record

if TYPE_CHECKING:
    import numpy.typing as npt


def dependencies(record: Record) -> npt.NDArray[np.int64]:
    """Return pairs of ops; the second of a pair waits for the first.

    Parameters
    ----------
    record : Record
        The record.

    Returns
    -------
    ndarray
        Of shape (n, 2): indices of ops, sorted by the second and then by the first. The first is always the smaller one.
    """
    accesses = record.accesses
    count = len(accesses)
    if not count:
        return np.empty((0, 2), np.int64)
    accesses = accesses[np.lexsort((accesses["op"], accesses["variable"]))]
    ops = accesses["op"].astype(np.int64)
    at = np.arange(count)
    first = np.empty(count, np.bool_)  # first access of its variable
    first[0] = True
    np.not_equal(accesses["variable"][1:], accesses["variable"][:-1], out=first[1:])
    head = np.maximum.accumulate(np.where(first, at, 0))
    wait = record.waits[ops]
    mutates = (accesses["kind"] != Access.READ) & ~wait
    reads = (accesses["kind"] == Access.READ) & ~wait

    # The last mutation before each access, -1 if the variable has none.
    written = np.maximum.accumulate(np.where(mutates, at, -1))
    writer = np.concatenate(([-1], written[:-1]))
    writer[writer < head] = -1
    # The last read before each access: one after the last mutation stands between the two.
    looked = np.maximum.accumulate(np.where(reads, at, -1))
    reader = np.concatenate(([-1], looked[:-1]))
    # The first mutation after each access, of any variable; `count` if there is none.
    following = np.minimum.accumulate(np.where(mutates, at, count)[::-1])[::-1]
    following = np.concatenate((following[1:], [count]))
    rewritten = reads & (following < count)
    rewritten[rewritten] = head[following[rewritten]] == head[rewritten]

    direct = (writer >= 0) & ~(mutates & (reader > writer))
    before = np.concatenate((ops[writer[direct]], ops[rewritten]))
    after = np.concatenate((ops[direct], ops[following[rewritten]]))
    other = before != after  # an op that names a variable twice does not wait for itself
    keys = np.unique(after[other] * len(record.ops) + before[other])
    return np.stack((keys % len(record.ops), keys // len(record.ops)), axis=1)
