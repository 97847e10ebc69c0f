"""Hidden parallelism: a script of NumPy prices options, and weft finds what may run side by side.

`price` is one text for both: `xp` is `numpy` or `weft`. It says nothing about threads. But the two normal
distributions do not need each other, nor do the five results, and each of the some sixty operations is
large enough to be split.

    python docs/examples/hidden_parallelism.py

The formulas are those of Black and Scholes for options without dividends.
"""

from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np

import weft
from comparison import command_line, compare

#: `numpy` or `weft`, and their arrays.
Namespace: TypeAlias = Any
Array: TypeAlias = Any

RATE = 0.03


class Market(NamedTuple):
    """Spot prices, strikes, years to expiry and volatilities of some options, each of shape (n,)."""

    spot: Array
    strike: Array
    years: Array
    volatility: Array


def normal_cdf(xp: Namespace, x: Array) -> Array:
    """Return the standard normal distribution at `x`, to 7.5e-8: Abramowitz and Stegun, 26.2.17."""
    t = 1 / (1 + 0.2316419 * xp.abs(x))
    series = t * (0.319381530 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))))
    tail = density(xp, x) * series
    return xp.where(x < 0, tail, 1 - tail)


def density(xp: Namespace, x: Array) -> Array:
    """Return the standard normal density at `x`."""
    return xp.exp(-0.5 * x * x) / (2 * np.pi) ** 0.5


def price(xp: Namespace, market: Market) -> dict[str, Array]:
    """Return prices of calls and puts, and how they move with spot price and volatility."""
    spot, strike, years, volatility = market
    spread = volatility * xp.sqrt(years)
    d1 = (xp.log(spot / strike) + (RATE + 0.5 * volatility * volatility) * years) / spread
    d2 = d1 - spread
    delta = normal_cdf(xp, d1)
    due = strike * xp.exp(-RATE * years)
    call = spot * delta - due * normal_cdf(xp, d2)
    bell = density(xp, d1)
    return {
        "call": call,
        "put": call - spot + due,
        "delta": delta,
        "gamma": bell / (spot * spread),
        "vega": spot * bell * xp.sqrt(years),
    }


def price_and_wait(market: Market) -> dict[str, Array]:
    """Return what `price` gives with weft, when it is all there."""
    results = price(weft, market)  # returns at once
    weft.wait_all()
    return results


def draw_market(n: int, seed: int = 0) -> Market:
    """Return `n` options, drawn by `seed`."""
    rng = np.random.default_rng(seed)
    ranges = ((80, 120), (80, 120), (0.1, 2), (0.1, 0.5))
    return Market(*(rng.uniform(low, high, n) for low, high in ranges))


def main() -> None:
    """Price options both ways, and compare."""
    options = command_line(__doc__, size=1_000_000, unit="options to price").parse_args()
    market = draw_market(options.size)
    arrays = Market(*map(weft.asarray, market))
    expected, found = compare(partial(price, np, market), partial(price_and_wait, arrays), options)
    for name, values in expected.items():
        same = np.array_equal(found[name].numpy(), values)
        print(f"{name:18}{values.mean():8.3f} on average, {'bit for bit the same' if same else 'DIFFERENT'}")


if __name__ == "__main__":
    main()
