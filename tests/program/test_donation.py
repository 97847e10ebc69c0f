"""Arguments that are given away: their memory is the results', and their handles raise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft
from weft.errors import ArgumentTypeError, CaptureError, VariableDeletedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import MakeEngine


def address(x: weft.NDArray) -> int:
    """Return where an array's elements are, without keeping a view of them."""
    return int(np.asarray(x).__array_interface__["data"][0])


def pushed(body: Callable[..., Any], **options: Any) -> weft.NDArray | Any:
    """Return a program of a function that is pushed however small it is."""

    def function(w: Any, g: Any) -> Any:
        w.engine.push(lambda: None)
        return body(w, g)

    return weft.program(function, **options)


UPDATES: dict[str, Callable[[Any, Any], Any]] = {
    "in place": lambda w, g: w - 0.5 * g,
    "fused": lambda w, g: weft.tanh(w * 0.9 + g) * w,
    "another first": lambda w, g: (w * 2.0, w + g),
    "looked at later": lambda w, g: (w + g, (w * g).sum()),
    "mutated": lambda w, g: (w.__iadd__(g), w * 2.0)[1],
    "product": lambda w, g: w @ g,
    "reversed": lambda w, g: w[::-1] + g,
}


@pytest.mark.parametrize("n", [8, 160])
@pytest.mark.parametrize("name", UPDATES)
def test_donated_arrays_change_no_bit(make_engine: MakeEngine, name: str, n: int) -> None:
    engine = make_engine(2)
    rng = np.random.default_rng(n)
    start, g = rng.normal(size=(n, n)) / n, weft.asarray(rng.normal(size=(n, n)) / n, engine=engine)
    update = UPDATES[name]
    found = []
    for call in (update, pushed(update, donate="w"), weft.program(update, donate=("w",))):
        w = weft.asarray(start, engine=engine, copy=True)
        values = []
        for _ in range(4):
            results = call(w, g)
            results = results if isinstance(results, tuple) else (results,)
            w = results[0]
            values.extend(result.tobytes() for result in results)
        found.append(values)
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("make", [pushed, weft.program])
def test_the_handle_raises_and_names_the_program(make_engine: MakeEngine, make: Callable[..., Any]) -> None:
    engine = make_engine(2)
    w, g = weft.ones((8, 8), engine=engine) * 1.0, weft.ones((8, 8), engine=engine)
    w.wait_to_read()

    def update(w: Any, g: Any) -> Any:
        return w + g

    step = make(update, donate="w")
    given = w
    w = step(given, g)
    uses: list[Callable[[], object]] = [
        given.tolist,
        lambda: given + 1,
        lambda: step(given, g),
        lambda: given[0, 0],
    ]
    for use in uses:
        with pytest.raises(VariableDeletedError, match="donate"):
            use()
    assert "shape=(8, 8)" in repr(given)
    assert w.tolist() == [[2.0] * 8] * 8
    assert g.tolist() == [[1.0] * 8] * 8


def test_the_memory_is_the_results(make_engine: MakeEngine) -> None:
    engine = make_engine(2)
    w, g = weft.ones((64, 64), engine=engine) * 1.0, weft.ones((64, 64), engine=engine)
    step = pushed(lambda w, g: w + g, donate="w")
    places = set()
    for _ in range(4):
        places.add(address(w))
        w = step(w, g)
    places.add(address(w))
    assert len(places) == 1
    assert w.tolist() == [[5.0] * 64] * 64


@pytest.mark.parametrize("keep", [lambda w: w[:2], lambda w: w.T, np.asarray])
def test_what_others_see_stays(make_engine: MakeEngine, keep: Callable[[weft.NDArray], Any]) -> None:
    engine = make_engine(2)
    w, g = weft.ones((8, 8), engine=engine) * 1.0, weft.ones((8, 8), engine=engine)
    w.wait_to_read()
    step = pushed(lambda w, g: w + g, donate="w")
    kept = keep(w)
    assert step(w, g).tolist() == [[2.0] * 8] * 8
    assert w.tolist() == [[1.0] * 8] * 8
    assert np.asarray(kept).tolist() == [[1.0] * 8] * len(kept)
    with weft.eager():
        step(w, g).wait_to_read()
    assert w.tolist() == [[1.0] * 8] * 8


def test_what_is_returned_stays(make_engine: MakeEngine) -> None:
    engine = make_engine(2)
    w, g = weft.ones(8, engine=engine) * 1.0, weft.ones(8, engine=engine)
    step = pushed(lambda w, g: (w, w + g), donate="w")
    same, more = step(w, g)
    assert same is w
    assert w.tolist() == [1.0] * 8
    assert more.tolist() == [2.0] * 8


def test_a_name_that_is_none() -> None:
    with pytest.raises(ArgumentTypeError, match="donate names 'v'"):
        weft.program(lambda w: w + 1, donate="v")
    with pytest.raises(ArgumentTypeError, match="donate holds names"):
        weft.program(lambda w: w + 1, donate=[1])  # type: ignore[list-item]
    assert weft.program(lambda w: w + 1, donate=())(weft.ones(2)).tolist() == [2.0, 2.0]


def test_an_array_that_comes_out_of_use_during_the_call_stays_or_goes_whole(make_engine: MakeEngine) -> None:
    engine = make_engine(2)
    g, small = weft.ones((128, 128), engine=engine), weft.ones(4, engine=engine)

    def body(w: Any, g: Any, small: Any) -> Any:
        engine.push(lambda: None)
        return w + g, *(small * float(at) for at in range(500))  # so many that the call takes a while to be pushed

    step = weft.program(body, donate="w")
    step(weft.ones((128, 128), engine=engine) * 1.0, g, small)[0].wait_to_read()
    for turn in range(800):
        w = weft.ones((128, 128), engine=engine) * 1.0
        w.wait_to_read()
        read = w @ g  # has it in hand for about as long
        for _ in range(turn % 50):
            address(small)
        result = step(w, g, small)[0]
        try:
            own = w + 0.0
        except VariableDeletedError:
            continue
        assert address(w) != address(result), "two arrays of one memory, and neither knows"
        assert (own[0, 0].item(), result[0, 0].item(), read[0, 0].item()) == (1.0, 2.0, 128.0)


def test_an_array_that_was_given_away_says_so() -> None:
    w = weft.ones(3)
    weft.program(lambda w: w + 1, donate=("w",))(w)
    assert repr(w) == str(w) == "NDArray(<given away>, shape=(3,), dtype=float64)"


@pytest.mark.parametrize("n", [4, 20_001])
def test_calls_that_give_arrays_away_are_verified(n: int) -> None:
    scale = [2.0]
    step = weft.program(lambda w, g: (w * scale[0] + g, g.sum()), donate="w", verify=1)
    w, g = weft.ones(n), weft.ones(n)
    for _ in range(3):
        given = w
        w, _ = step(w, g)
        with pytest.raises(VariableDeletedError):
            given.tolist()
    np.testing.assert_array_equal(w.numpy(), np.full(n, 15.0))
    scale[0] = 3.0
    with pytest.raises(CaptureError, match=r"result 0 differs, and op 0, 'multiply' .* by now"):
        step(w, g)
