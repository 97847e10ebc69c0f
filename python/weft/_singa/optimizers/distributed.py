"""Training on several processes: gradients are reduced over the ranks, bucket by bucket, while backward goes on."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from weft._numpy import namespace
from weft._program.unrecorded import outside
from weft._singa.models.timing import place_outside
from weft._singa.optimizers.base import Optimizer, pairs_of
from weft._singa.optimizers.buckets import Buckets, flat, pieces
from weft._singa.optimizers.rules import SGD
from weft._singa.optimizers.schedules import as_number, as_size
from weft._tape.api import backward
from weft._tape.modes import no_grad
from weft.distributed import Communicator
from weft.errors import ArgumentTypeError, ArgumentValueError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import TypeAlias

    from weft._core import NDArray
    from weft._singa.optimizers.schedules import DecayScheduler

    Reduce: TypeAlias = Callable[[NDArray], NDArray]

#: Elements of a bucket by default: SINGA's, 8 MiB of single precision.
THRESHOLD = 2097152


class DistOpt(Optimizer):
    """An optimizer for a model that several processes train, each on its own part of the data.

    Gradients are summed over the ranks and divided by their number before the wrapped optimizer applies them, so all ranks
    keep the same parameters. They travel in buckets, the last layer's first, and each bucket is sent as soon as backward has
    filled it: while the layers below are computed.

    Parameters
    ----------
    opt : Optimizer, optional
        The optimizer that applies the gradients; ``SGD()`` by default.
    nccl_id, local_rank, world_size : optional
        SINGA's way to name the ranks, which MPI names here: the last two must agree with it, the first must be None.
    buffSize : int, default: 4194304
        The most elements of a bucket.
    communicator : weft.distributed.Communicator, optional
        The ranks; by default all of the job.

    Attributes
    ----------
    opt : Optimizer
        The wrapped one.
    communicator : weft.distributed.Communicator
        The ranks.
    world_size, global_rank, local_rank : int
        How many ranks there are, which one this is, and which among those of its machine.

    Examples
    --------
    The model's code does not change; ``mpiexec -n 2 python train.py`` trains on two processes::

        net.set_optimizer(opt.DistOpt(opt.SGD(lr=0.1, momentum=0.9)))
    """

    def __init__(
        self,
        opt: Optimizer | None = None,
        nccl_id: None = None,
        local_rank: int | None = None,
        world_size: int | None = None,
        buffSize: int = 4194304,
        *,
        communicator: Communicator | None = None,
    ) -> None:
        if nccl_id is not None:
            raise ArgumentValueError("ranks find each other by MPI: start them by mpiexec, and leave nccl_id out")
        as_size("buffSize", buffSize, 1)
        self.opt = SGD() if opt is None else opt
        if isinstance(self.opt, DistOpt) or not hasattr(self.opt, "name_of"):
            raise ArgumentTypeError(f"DistOpt wraps an optimizer, such as opt.SGD(), not a {type(self.opt).__name__}")
        if communicator is not None and not isinstance(communicator, Communicator):
            raise ArgumentTypeError(
                f"communicator= is a weft.distributed.Communicator, not {type(communicator).__name__}"
            )
        self.communicator = Communicator() if communicator is None else communicator
        self.world_size = self.communicator.size
        self.global_rank = self.communicator.rank
        self.local_rank = self.communicator.local_rank
        for name, said, found in (
            ("world_size", world_size, self.world_size),
            ("local_rank", local_rank, self.local_rank),
        ):
            if said is not None and said != found:
                raise ArgumentValueError(f"{name} is {found}, as MPI has it, and was given as {said}")
        self.buffSize = buffSize
        self._known: set[str] = set()
        #: Which partition the next partial update sends.
        self.partial = 0
        #: Gradients that sparse updates have not sent yet, by bucket.
        self.gradAccumulation: list[NDArray] = []

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the wrapped optimizer: its numbers, its slots, its names of parameters."""
        if name == "opt":  # before there is one
            raise AttributeError(name)
        return getattr(self.opt, name)

    # The wrapped one's part.

    @property
    def lr(self) -> DecayScheduler:
        """The learning rate's schedule; a number or a schedule may be assigned."""
        return self.opt.lr

    @lr.setter
    def lr(self, value: float | DecayScheduler) -> None:
        self.opt.lr = value

    def schedule(
        self, name: str, value: float | DecayScheduler, least: float | None = 0.0, below: float | None = None
    ) -> None:
        """Enter a number of the wrapped optimizer."""
        self.opt.schedule(name, value, least, below)

    def apply(self, param_name: str, param_value: NDArray, param_grad: NDArray) -> None:
        """Apply a gradient, the mean over all ranks, by the wrapped optimizer."""
        self.opt.apply(param_name, param_value, param_grad)

    def update(self, param: NDArray, grad: NDArray) -> None:
        """Divide a gradient, the sum over all ranks, by their number, and apply it by the wrapped optimizer."""
        with no_grad():
            self.opt.update(param, grad / self.world_size if self.world_size > 1 else grad)

    def apply_gradients(self, gradients: Mapping[NDArray, NDArray] | Iterable[tuple[NDArray, NDArray]]) -> None:
        """Apply the mean over all ranks of gradients that each rank has computed, and maybe bounded, and count the step."""
        for parameter, gradient in pairs_of("apply_gradients", gradients):
            with no_grad():
                total = gradient.copy()
            self.all_reduce(total)
            self.update(parameter, total)
        self.step()

    def step(self) -> None:
        """Count a step, and let all numbers follow their schedules."""
        self.opt.step()

    def get_states(self) -> dict[str, Any]:
        """Return the wrapped optimizer's states."""
        return self.opt.get_states()

    def set_states(self, states: Mapping[str, Any]) -> None:
        """Take over the result of `get_states`."""
        self.opt.set_states(states)

    def prepare(self, parameters: Mapping[str, NDArray]) -> None:
        """Give parameters their names, and the values that rank 0 has for them."""
        self.opt.prepare(parameters)
        self.broadcast(parameters.values())

    def broadcast(self, parameters: Iterable[NDArray]) -> None:
        """Give parameters the values that rank 0 has for them, once: those that have them already are left out."""
        for parameter in parameters:
            name = self.opt.name_of(parameter)
            if name not in self._known:
                self._known.add(name)
                outside(partial(self._broadcast, parameter))

    def _broadcast(self, parameter: NDArray) -> None:
        with no_grad():
            self.communicator.broadcast(parameter, 0)

    # SINGA's verbs.

    def all_reduce(self, tensor: NDArray) -> None:
        """Sum an array over all ranks, in place."""
        with no_grad():
            self.communicator.all_reduce(tensor)

    def fused_all_reduce(self, tensor: Sequence[NDArray], send: bool = True) -> None:
        """Sum arrays over all ranks, in place, by one message; nothing happens until they are sent."""
        self._fused(tensor, self.communicator.all_reduce, send=send)

    def all_reduce_half(self, tensor: NDArray) -> None:
        """Sum an array over all ranks, in place, in half precision on the way."""
        self.fused_all_reduce_half([tensor])

    def fused_all_reduce_half(self, tensor: Sequence[NDArray], send: bool = True) -> None:
        """Sum arrays over all ranks, in place, by one message in half precision; nothing happens until they are sent."""
        self._fused(tensor, self._halved, send=send)

    def sparsification(self, tensor: NDArray, accumulation: NDArray | None, spars: float, topK: bool) -> None:
        """Sum the largest elements of an array over all ranks, in place: see `backward_and_sparse_update`."""
        self.fused_sparsification([tensor], accumulation, spars, topK)

    def fused_sparsification(
        self,
        tensor: Sequence[NDArray],
        accumulation: NDArray | None,
        spars: float,
        topK: bool,
    ) -> None:
        """Sum the largest elements of arrays over all ranks, in place: see `backward_and_sparse_update`."""
        _check_share(spars, top=topK)
        self._fused(tensor, lambda joined: self._sparse(joined, accumulation, spars, top=topK), send=True)

    def wait(self) -> None:
        """Wait until all that was sent is there. Nothing needs it: readers wait for the values that they read."""
        self.communicator.wait()

    def _fused(self, arrays: Sequence[NDArray], reduce: Reduce, *, send: bool) -> None:
        if not send or not arrays:
            return
        with no_grad():
            summed = reduce(flat(arrays))
            for array, piece in zip(arrays, pieces(summed, arrays), strict=True):
                array[...] = piece

    # Updates.

    def __call__(self, loss: NDArray) -> None:
        """Compute the gradients of a loss, reduce them over the ranks, apply them, and count the step."""
        self.backward_and_update(loss)

    def call(self, loss: NDArray) -> None:
        """Compute the gradients of a loss, reduce them over the ranks, and apply them."""
        self._update(loss, THRESHOLD, self.communicator.all_reduce)

    def backward_and_update(self, loss: NDArray, threshold: int = THRESHOLD) -> None:
        """Compute the gradients of a loss, sum them over the ranks, apply their means, and count the step.

        Parameters
        ----------
        loss : NDArray
            This rank's loss.
        threshold : int, default: 2097152
            Elements of a bucket: smaller gradients wait until so many are together; larger ones go by themselves.
        """
        self._update(loss, threshold, self.communicator.all_reduce)
        self.opt.step()

    def backward_and_update_half(
        self,
        loss: NDArray,
        threshold: int = THRESHOLD,
        clipping: bool = False,
        clip_Value: float = 100,
    ) -> None:
        """Do the same with gradients in half precision on the way: each rank's share is summed in single precision.

        Parameters
        ----------
        loss, threshold
            As for `backward_and_update`.
        clipping : bool, default: False
            Whether gradients are clipped to +-`clip_Value` first: half precision ends at 65,504.
        clip_Value : float, default: 100
            As above.
        """
        limit = as_number("clip_Value", clip_Value)
        if not limit > 0:
            raise ArgumentValueError(f"clip_Value is a positive number, not {clip_Value}")
        self._update(loss, threshold, self._halved, limit if clipping else None)
        self.opt.step()

    def backward_and_partial_update(self, loss: NDArray, threshold: int = THRESHOLD) -> None:
        """Apply each rank's own gradients, and average one part of the parameters over the ranks: another one at each step.

        Parameters
        ----------
        loss : NDArray
            This rank's loss.
        threshold : int, default: 2097152
            Elements of a part.
        """
        buckets = Buckets(min(as_size("threshold", threshold), self.buffSize))
        self.opt.places.add(place_outside())
        parts: list[list[NDArray]] = []
        for parameter, gradient in backward(loss):
            self.broadcast([parameter])
            self.opt.update(parameter, gradient)
            parts += [[each for each, _ in bucket] for bucket in buckets.add(parameter, parameter)]
        parts += [[each for each, _ in bucket] for bucket in buckets.rest()]
        if parts:
            chosen = parts[self.partial % len(parts)]
            self.partial = (self.partial + 1) % len(parts)
            self._fused(chosen, lambda joined: self.communicator.all_reduce(joined, "mean"), send=True)
        self.opt.step()

    def backward_and_sparse_update(
        self,
        loss: NDArray,
        threshold: int = THRESHOLD,
        spars: float = 0.05,
        topK: bool = False,
        corr: bool = True,
    ) -> None:
        """Sum only the largest elements of the gradients over the ranks, apply their means, and count the step.

        Parameters
        ----------
        loss, threshold
            As for `backward_and_update`.
        spars : float, default: 0.05
            Which elements are sent: those of at least this absolute value, or with `topK` this share of each bucket.
        topK : bool, default: False
            As above. Only then do messages get smaller: how many elements reach a value is known on each rank alone.
        corr : bool, default: True
            Whether the unsent rest is added to the next step's gradients (error feedback), or dropped.
        """
        _check_share(spars, top=topK)
        at = -1

        def reduce(joined: NDArray) -> NDArray:
            nonlocal at
            at += 1
            if corr and at == len(self.gradAccumulation):
                self.gradAccumulation.append(outside(lambda: namespace.zeros_like(joined)))
            return self._sparse(joined, self.gradAccumulation[at] if corr else None, spars, top=topK)

        self._update(loss, threshold, reduce)
        self.opt.step()

    def _update(self, loss: NDArray, threshold: int, reduce: Reduce, limit: float | None = None) -> None:
        """Send each bucket as backward fills it, and apply the answer."""
        buckets = Buckets(min(as_size("threshold", threshold), self.buffSize))
        self.opt.places.add(place_outside())
        for parameter, gradient in backward(loss):
            self.broadcast([parameter])
            for bucket in buckets.add(parameter, gradient):
                self._send(bucket, reduce, limit)
        for bucket in buckets.rest():
            self._send(bucket, reduce, limit)

    def _send(self, bucket: list[tuple[NDArray, NDArray]], reduce: Reduce, limit: float | None) -> None:
        gradients = [gradient for _, gradient in bucket]
        with no_grad():
            joined = flat(gradients)
            if limit is not None:
                joined = namespace.clip(joined, -limit, limit)
            summed = reduce(joined)
            for (parameter, _), gradient in zip(bucket, pieces(summed, gradients), strict=True):
                self.update(parameter, gradient)

    def _halved(self, joined: NDArray) -> NDArray:
        """Return the sum over the ranks of an array that travels in half precision."""
        half = self.communicator.all_reduce(joined.astype(np.float16))
        return half.astype(joined.dtype)

    def _sparse(self, joined: NDArray, accumulation: NDArray | None, spars: float, *, top: bool) -> NDArray:
        """Return the sum over the ranks of the largest elements; the others stay in `accumulation`."""
        given = joined if accumulation is None else joined + accumulation
        if not top:
            chosen = namespace.abs(given) >= spars
            sent: NDArray = namespace.where(chosen, given, 0)  # type: ignore[assignment] # three operands give an array
            if accumulation is not None:
                accumulation[...] = namespace.where(chosen, 0, given)
            return self.communicator.all_reduce(sent)
        count = max(1, math.ceil(spars * given.size))
        where = namespace.argsort(-namespace.abs(given))[:count]
        values = given[where]
        if accumulation is not None:
            accumulation[...] = given
            accumulation[where] = 0
        total = namespace.zeros_like(given)
        for theirs, each in zip(self.communicator.all_gather(where), self.communicator.all_gather(values), strict=True):
            total[theirs] += each  # each rank names an element once
        return total


def _check_share(spars: float, *, top: bool) -> None:
    """Refuse a share of sent elements that is 0, or no number."""
    number = as_number("spars", spars)
    if not (math.isfinite(number) and number > 0) or (top and number > 1):
        raise ArgumentValueError(f"spars is a positive number{', a share of at most 1' * top}, not {spars}")
