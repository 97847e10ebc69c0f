"""Generators of random numbers: the class and the function of `weft.random`."""

# mypy: disable-error-code="empty-body"
# pyright: reportReturnType=false
# The distributions are declared: `distribution` gives each signature its body.

from __future__ import annotations

import copy
import math
import operator
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, final

import numpy as np

from weft._call.calls import call
from weft._call.devices import place
from weft._core import Engine, NDArray, recording, wrap
from weft._engine.default import get_engine
from weft._engine.labels import cpu
from weft._ops.draws import (
    PCG64_WORDS,
    Parameter,
    Size,
    distribution,
    drawn_from,
    is_count,
    output_shape,
    pack,
    push_draw,
    snapshot,
    unpack,
)
from weft._ops.sampling import BYTES, CHOICE, PERMUTATION, PERMUTED, SHUFFLE, check_choice
from weft._registry.shapes import axis_index
from weft.errors import ArgumentTypeError, ArgumentValueError, CaptureError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

Seed: TypeAlias = "int | Sequence[int] | np.random.SeedSequence | None"


def _refuse_recording(why: str) -> None:
    """Raise while this thread records a program."""
    if recording() is not None:
        raise CaptureError(f"generators cannot be made so in a program: {why}")


def default_rng(seed: Seed | Generator = None, *, engine: Engine | None = None) -> Generator:
    """Make a generator.

    Parameters
    ----------
    seed
        An int or several, a ``numpy.random.SeedSequence``, or None for fresh entropy. A `Generator` is returned as is.
    engine
        The engine of the draws; the default engine if None.

    Returns
    -------
    Generator
        One stream of PCG64: the numbers of ``numpy.random.default_rng(seed)``. Its children are streams of Philox.

    Examples
    --------
    >>> import numpy, weft
    >>> weft.random.default_rng(7).integers(0, 10, size=3).numpy()
    array([9, 6, 6])
    >>> numpy.random.default_rng(7).integers(0, 10, size=3)
    array([9, 6, 6])
    """
    if isinstance(seed, Generator):
        return seed
    made = Generator(seed, engine=engine)
    made._own = place(wrap(pack(np.random.PCG64(made._seeds).state), made._own.engine), cpu())
    return made


@final
class Generator:
    """A stream of random numbers, drawn in the order of the pushes: those of NumPy's Philox, or of PCG64 from `default_rng`.

    Parameters
    ----------
    seed
        An int or several, a ``numpy.random.SeedSequence``, or None for fresh entropy.
    engine
        The engine of the draws; the default engine if None.

    Examples
    --------
    >>> import weft
    >>> rng = weft.random.Generator(7)
    >>> x = rng.normal(size=(2, 3))  # neither of these waits
    >>> y = rng.normal(loc=x)
    >>> y.shape
    (2, 3)
    """

    __module__ = "weft.random"
    __slots__ = ("_own", "_seeds")

    def __init__(self, seed: Seed = None, *, engine: Engine | None = None) -> None:
        if isinstance(seed, np.random.BitGenerator | np.random.Generator):
            raise ArgumentTypeError(f"seed must be an int, ints, a SeedSequence or None, not a {type(seed).__name__}")
        if seed is None:
            _refuse_recording("fresh entropy would be drawn once and replayed: give the generator a seed")
        try:
            seeds = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
        except TypeError as error:
            raise ArgumentTypeError(f"a seed is an int, ints, a SeedSequence or None: {error}") from None
        except ValueError as error:
            raise ArgumentValueError(f"the seed {seed!r}: {error}") from None
        self._seeds: np.random.SeedSequence = seeds
        words = wrap(pack(np.random.Philox(seeds).state), get_engine() if engine is None else engine)
        self._own: NDArray = place(words, cpu())

    @property
    def _state(self) -> NDArray:
        """What draws mutate."""
        return drawn_from(self._own)

    def __repr__(self) -> str:
        """Name the algorithm."""
        return f"weft.random.Generator({'PCG64' if self._own.size == PCG64_WORDS else 'Philox'})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Wait for the draws pushed before; the copy continues after them, on the default engine."""
        self._state.wait_to_read()
        return _restore, (pack(unpack(self._state._storage())), copy.deepcopy(self._seeds))

    def spawn(self, n_children: int) -> list[Generator]:
        """Make independent generators; waits for nothing.

        Parameters
        ----------
        n_children
            How many.

        Returns
        -------
        list of Generator
            Streams of Philox, with the seeds of NumPy's ``Generator.spawn``, on the same engine.

        Examples
        --------
        >>> import weft
        >>> first, second = weft.random.default_rng(7).spawn(2)
        """
        if n_children < 0:
            raise ArgumentValueError(f"n_children must not be negative, not {n_children}")
        _refuse_recording("each call gives other children, and a replay would give the same: spawn them before")
        return [Generator(seed, engine=self._own.engine) for seed in self._seeds.spawn(n_children)]

    def bytes(self, length: int) -> bytes:
        """Draw bytes; waits for them.

        Parameters
        ----------
        length
            How many.

        Examples
        --------
        >>> import weft
        >>> len(weft.random.default_rng(7).bytes(5))
        5
        """
        size = operator.index(length)
        if size < 0:
            raise ArgumentValueError(f"length must not be negative, not {size}")
        drawn = push_draw(BYTES, self._state, length=size)
        drawn.wait_to_read()
        return bytes(drawn._storage().data)

    @distribution(example="size=3")
    def random(self, size: Size = None, dtype: npt.DTypeLike = np.float64, out: NDArray | None = None) -> NDArray:
        """Uniform in [0, 1)."""

    @distribution(trial=1, example="0, 10, size=3")
    def integers(
        self,
        low: Parameter,
        high: Parameter | None = None,
        size: Size = None,
        dtype: npt.DTypeLike = np.int64,
        endpoint: bool = False,
    ) -> NDArray:
        """Uniform integers from `low` up to `high`, or from 0 up to `low` if `high` is None."""

    @distribution(example="size=3")
    def standard_normal(
        self, size: Size = None, dtype: npt.DTypeLike = np.float64, out: NDArray | None = None
    ) -> NDArray:
        """Draw from the normal distribution with mean 0 and standard deviation 1."""

    @distribution(example="size=3")
    def standard_exponential(
        self,
        size: Size = None,
        dtype: npt.DTypeLike = np.float64,
        method: Literal["zig", "inv"] = "zig",
        out: NDArray | None = None,
    ) -> NDArray:
        """Draw from the exponential distribution with mean 1."""

    @distribution(example="2.0, size=3")
    def standard_gamma(
        self,
        shape: Parameter,
        size: Size = None,
        dtype: npt.DTypeLike = np.float64,
        out: NDArray | None = None,
    ) -> NDArray:
        """Draw from the gamma distribution of scale 1."""

    @distribution(example="size=3")
    def standard_cauchy(self, size: Size = None) -> NDArray:
        """Draw from the Cauchy distribution with mode 0."""

    @distribution(example="4.0, size=3")
    def standard_t(self, df: Parameter, size: Size = None) -> NDArray:
        """Draw from Student's t distribution."""

    @distribution(example="0.0, 2.0, size=3")
    def uniform(self, low: Parameter = 0.0, high: Parameter = 1.0, size: Size = None) -> NDArray:
        """Uniform in [low, high)."""

    @distribution(example="0.0, 2.0, size=3")
    def normal(self, loc: Parameter = 0.0, scale: Parameter = 1.0, size: Size = None) -> NDArray:
        """Draw from the normal (Gaussian) distribution."""

    @distribution(example="2.0, size=3")
    def exponential(self, scale: Parameter = 1.0, size: Size = None) -> NDArray:
        """Draw from the exponential distribution with mean `scale`."""

    @distribution(example="2.0, 1.0, size=3")
    def gamma(self, shape: Parameter, scale: Parameter = 1.0, size: Size = None) -> NDArray:
        """Draw from the gamma distribution."""

    @distribution(example="2.0, 3.0, size=3")
    def beta(self, a: Parameter, b: Parameter, size: Size = None) -> NDArray:
        """Draw from the beta distribution."""

    @distribution(example="4.0, size=3")
    def chisquare(self, df: Parameter, size: Size = None) -> NDArray:
        """Draw from the chi-square distribution."""

    @distribution(example="4.0, 1.0, size=3")
    def noncentral_chisquare(self, df: Parameter, nonc: Parameter, size: Size = None) -> NDArray:
        """Draw from the noncentral chi-square distribution."""

    @distribution(example="4.0, 5.0, size=3")
    def f(self, dfnum: Parameter, dfden: Parameter, size: Size = None) -> NDArray:
        """Draw from the F distribution."""

    @distribution(example="4.0, 5.0, 1.0, size=3")
    def noncentral_f(self, dfnum: Parameter, dfden: Parameter, nonc: Parameter, size: Size = None) -> NDArray:
        """Draw from the noncentral F distribution."""

    @distribution(example="0.0, 1.0, size=3")
    def lognormal(self, mean: Parameter = 0.0, sigma: Parameter = 1.0, size: Size = None) -> NDArray:
        """Draw numbers whose logarithm is normally distributed."""

    @distribution(example="size=3")
    def gumbel(self, loc: Parameter = 0.0, scale: Parameter = 1.0, size: Size = None) -> NDArray:
        """Draw from the Gumbel distribution of maxima."""

    @distribution(example="size=3")
    def laplace(self, loc: Parameter = 0.0, scale: Parameter = 1.0, size: Size = None) -> NDArray:
        """Draw from the Laplace (double exponential) distribution."""

    @distribution(example="size=3")
    def logistic(self, loc: Parameter = 0.0, scale: Parameter = 1.0, size: Size = None) -> NDArray:
        """Draw from the logistic distribution."""

    @distribution(example="size=3")
    def rayleigh(self, scale: Parameter = 1.0, size: Size = None) -> NDArray:
        """Draw from the Rayleigh distribution."""

    @distribution(example="3.0, size=3")
    def pareto(self, a: Parameter, size: Size = None) -> NDArray:
        """Draw from the Pareto II (Lomax) distribution."""

    @distribution(example="3.0, size=3")
    def power(self, a: Parameter, size: Size = None) -> NDArray:
        """Draw from [0, 1] with a density that grows with the power ``a - 1``."""

    @distribution(example="3.0, size=3")
    def weibull(self, a: Parameter, size: Size = None) -> NDArray:
        """Draw from the Weibull distribution of scale 1."""

    @distribution(example="1.0, 2.0, size=3")
    def wald(self, mean: Parameter, scale: Parameter, size: Size = None) -> NDArray:
        """Draw from the Wald (inverse Gaussian) distribution."""

    @distribution(example="0.0, 4.0, size=3")
    def vonmises(self, mu: Parameter, kappa: Parameter, size: Size = None) -> NDArray:
        """Draw angles in [-pi, pi] from the von Mises distribution."""

    @distribution(example="0.0, 1.0, 4.0, size=3")
    def triangular(self, left: Parameter, mode: Parameter, right: Parameter, size: Size = None) -> NDArray:
        """Draw from the triangular distribution."""

    @distribution(np.int64, example="10, 0.5, size=3")
    def binomial(self, n: Parameter, p: Parameter, size: Size = None) -> NDArray:
        """Draw the number of successes in `n` trials."""

    @distribution(np.int64, example="10, 0.5, size=3")
    def negative_binomial(self, n: Parameter, p: Parameter, size: Size = None) -> NDArray:
        """Draw the number of failures before the success number `n`."""

    @distribution(np.int64, example="0.5, size=3")
    def geometric(self, p: Parameter, size: Size = None) -> NDArray:
        """Draw the number of trials up to the first success."""

    @distribution(np.int64, example="4, 5, 3, size=3")
    def hypergeometric(self, ngood: Parameter, nbad: Parameter, nsample: Parameter, size: Size = None) -> NDArray:
        """Draw the number of good items among `nsample` taken without putting back."""

    @distribution(np.int64, example="0.5, size=3")
    def logseries(self, p: Parameter, size: Size = None) -> NDArray:
        """Draw from the logarithmic series distribution."""

    @distribution(np.int64, example="4.0, size=3")
    def poisson(self, lam: Parameter = 1.0, size: Size = None) -> NDArray:
        """Draw from the Poisson distribution."""

    @distribution(np.int64, example="2.0, size=3")
    def zipf(self, a: Parameter, size: Size = None) -> NDArray:
        """Draw from the Zipf (zeta) distribution; `a` must be above 1."""

    @distribution(core=(1,), example="[1.0, 2.0], size=3")
    def dirichlet(self, alpha: Parameter, size: Size = None) -> NDArray:
        """Draw vectors of k numbers that sum to 1."""

    @distribution(np.int64, core=(0, 1), stacked=True, trial=1, example="10, [0.5, 0.5], size=3")
    def multinomial(self, n: Parameter, pvals: Parameter, size: Size = None) -> NDArray:
        """Draw the counts of each of k outcomes in `n` trials."""

    @distribution(np.int64, core=(1, 0), example="[4, 5], 3, size=3")
    def multivariate_hypergeometric(
        self,
        colors: Parameter,
        nsample: Parameter,
        size: Size = None,
        method: Literal["count", "marginals"] = "marginals",
    ) -> NDArray:
        """Draw the counts of each of k kinds among `nsample` items taken without putting back."""

    @distribution(core=(1, 2), example="[0.0, 1.0], [[1.0, 0.5], [0.5, 1.0]], size=3")
    def multivariate_normal(
        self,
        mean: Parameter,
        cov: Parameter,
        size: Size = None,
        check_valid: Literal["warn", "raise", "ignore"] = "warn",
        tol: float = 1e-8,
        *,
        method: Literal["svd", "eigh", "cholesky"] = "svd",
    ) -> NDArray:
        """Draw vectors from the normal distribution with the mean vector `mean`, shape ``(k,)``."""

    def choice(
        self,
        a: Parameter,
        size: Size = None,
        replace: bool = True,
        p: Parameter | None = None,
        axis: int = 0,
        shuffle: bool = True,
    ) -> NDArray:
        """Draw elements of an array, or integers below a number.

        Parameters
        ----------
        a
            Array to draw from along `axis`, or an int n to draw from 0 to n - 1.
        size
            Shape of the draw; by default one element.
        replace
            Whether an element may be drawn again.
        p
            Probability of each element; by default all the same. Shape ``(n,)``.
        axis
            Along which to draw.
        shuffle
            Whether a draw without replacement comes in random order.

        Returns
        -------
        NDArray
            The elements; the call does not wait for them.

        Examples
        --------
        >>> import weft
        >>> weft.random.default_rng(7).choice([10, 20, 30], size=4).numpy()
        array([30, 20, 30, 30])
        """
        wanted = output_shape(size)
        source: Any = snapshot(a)
        weights = snapshot(p)
        given: dict[str, Any] = {"a": source, "p": weights}
        if is_count(source):
            count = operator.index(source)
        else:
            given["a"] = source = _array(source, self._state.engine)
            axis = axis_index(axis, source.ndim)
            count = source.shape[axis]
        check_choice(count, math.prod(wanted or ()), weights, replace=replace)
        arrays = {name: value for name, value in given.items() if isinstance(value, NDArray)}
        values = {name: value for name, value in given.items() if name not in arrays}
        options = {"replace": replace, "axis": axis, "shuffle": shuffle}
        return push_draw(
            CHOICE, self._state, *arrays.values(), names=tuple(arrays), values=values, size=wanted, options=options
        )

    def permutation(self, x: Parameter, axis: int = 0) -> NDArray:
        """Shuffle a copy of an array along an axis, or the integers below a number.

        Parameters
        ----------
        x
            The array, or an int n for 0 to n - 1.
        axis
            An array; its slices change places.

        Examples
        --------
        >>> import weft
        >>> weft.random.default_rng(7).permutation(5).numpy()
        array([2, 0, 4, 1, 3])
        """
        source: Any = snapshot(x)
        if is_count(source):
            source = np.arange(operator.index(source))
        source = _array(source, self._state.engine)
        axis = axis_index(axis, source.ndim)
        return push_draw(PERMUTATION, self._state, source, axis=axis)

    def permuted(self, x: Parameter, *, axis: int | None = None, out: NDArray | None = None) -> NDArray:
        """Shuffle each slice along an axis on its own, in a copy or in `out`.

        Parameters
        ----------
        x
            The array.
        axis
            Along which to shuffle; None for all elements.
        out
            Array to fill, which may be `x`.

        Examples
        --------
        >>> import weft
        >>> weft.random.default_rng(7).permuted([[1, 2, 3], [4, 5, 6]], axis=1).numpy()
        array([[1, 3, 2],
               [5, 6, 4]])
        """
        source = _array(snapshot(x), self._state.engine)
        if axis is not None:
            axis = axis_index(axis, source.ndim)
        if out is not None and not isinstance(out, NDArray):
            raise ArgumentTypeError(f"permuted: out must be an NDArray, not {type(out).__name__}")
        return push_draw(PERMUTED, self._state, source, out=out, axis=axis)

    def shuffle(self, x: NDArray, axis: int = 0) -> None:
        """Shuffle an array in place along an axis; does not wait.

        Parameters
        ----------
        x
            The array.
        axis
            The array; its slices change places.

        Examples
        --------
        >>> import weft
        >>> x = weft.asarray([1, 2, 3, 4])
        >>> weft.random.default_rng(7).shuffle(x)
        """
        if not isinstance(x, NDArray):
            raise ArgumentTypeError(
                f"shuffle works in place on an NDArray, not on a {type(x).__name__}: try permutation"
            )
        axis = axis_index(axis, x.ndim)
        call(SHUFFLE, self._state, x, out=(), axis=axis)


def _array(value: object, engine: Engine) -> NDArray:
    return value if isinstance(value, NDArray) else wrap(np.asarray(value), engine)


def _restore(words: npt.NDArray[np.uint64], seeds: np.random.SeedSequence) -> Generator:
    """Make a pickled generator."""
    generator = Generator(seeds)
    generator._own = place(wrap(words, generator._own.engine), cpu())
    return generator


_restore.__module__ = "weft.random"  # pickles look for it there
