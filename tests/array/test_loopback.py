"""A third kind of device, made from one object, has arrays, views, copies, programs and gradients as the host does."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import loopback
import numpy as np
import pytest

import weft
from gradient.cases import CASES
from weft._call.backends import Backend, register

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import RunScript

DEVICE = "loopback:1"


def there(x: Any) -> weft.NDArray:
    """An array on the device."""
    return weft.asarray(x, device=DEVICE)


def test_an_array_is_on_the_device_and_its_values_are_read() -> None:
    x = there([[1.0, 2.0], [3.0, 4.0]])
    assert x.device == weft.Device(DEVICE)
    assert x._elsewhere
    np.testing.assert_array_equal(x.numpy(), [[1.0, 2.0], [3.0, 4.0]])
    assert x[1, 0].item() == 3.0


@pytest.mark.parametrize("make", [weft.zeros, weft.ones], ids=lambda make: make.__name__)
def test_arrays_are_made_on_the_device(make: Callable[..., weft.NDArray]) -> None:
    x = make((2, 3), device=DEVICE)
    assert x.device == weft.Device(DEVICE)
    np.testing.assert_array_equal(x.numpy(), make((2, 3)).numpy())
    np.testing.assert_array_equal(weft.arange(5, device=DEVICE).numpy(), np.arange(5))
    np.testing.assert_array_equal(weft.full((2,), 7, device=DEVICE).numpy(), [7, 7])


def test_copies_go_both_ways_and_cast() -> None:
    host = weft.arange(6, dtype=weft.float32).reshape(2, 3)
    x = host.to_device(DEVICE)
    back = x.T.to_device("cpu")
    assert back.device == weft.cpu()
    np.testing.assert_array_equal(back.numpy(), host.numpy().T)
    np.testing.assert_array_equal(x.astype("int64").numpy(), host.numpy().astype("int64"))
    other = x.to_device("loopback:2")
    assert other.device == weft.Device("loopback:2")
    np.testing.assert_array_equal(other.numpy(), host.numpy())
    target = weft.zeros((2, 3), device=DEVICE)
    target[...] = host
    np.testing.assert_array_equal(target.numpy(), host.numpy())


UNARY = ["negative", "exp", "sqrt", "abs", "sin", "isnan", "floor", "square"]
BINARY = ["add", "multiply", "subtract", "divide", "maximum", "less", "power", "hypot"]


@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_array(name: str) -> None:
    given = np.linspace(0.5, 3.0, 12).reshape(3, 4)
    found = getattr(weft, name)(there(given))
    assert found.device == weft.Device(DEVICE)
    np.testing.assert_array_equal(found.numpy(), getattr(weft, name)(given).numpy())


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64"])
@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two(name: str, dtype: str) -> None:
    left, right = np.arange(1, 7).reshape(2, 3).astype(dtype), np.arange(1, 4).astype(dtype)
    function = getattr(weft, name)
    found = function(there(left), there(right))
    assert found.device == weft.Device(DEVICE)
    np.testing.assert_array_equal(found.numpy(), function(left, right).numpy())
    np.testing.assert_array_equal(function(there(left), 2).numpy(), function(weft.asarray(left), 2).numpy())


def test_operators_and_writes_in_place() -> None:
    x = there(np.arange(6.0).reshape(2, 3))
    y = -x * 2.0 + x**2 - 1.0
    given = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(y.numpy(), -given * 2.0 + given**2 - 1.0)
    x += 1.0
    x *= x
    x[0, 1:] = 5.0
    expected = (given + 1.0) ** 2
    expected[0, 1:] = 5.0
    np.testing.assert_array_equal(x.numpy(), expected)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: weft.sum(x, axis=0),
        weft.mean,
        lambda x: weft.max(x, axis=1),
        lambda x: weft.argmax(x, axis=1),
        lambda x: weft.cumulative_sum(x, axis=1),
        lambda x: weft.sort(x, axis=0),
        lambda x: weft.where(x > 2.0, x, 0.0),
        lambda x: weft.clip(x, 1.0, 3.0),
        lambda x: weft.concat([x, x], axis=1),
        lambda x: weft.stack([x, x]),
        lambda x: x @ x.T,
        lambda x: weft.flip(x)[::2, 1:],
        lambda x: weft.roll(x, 1),
        lambda x: weft.linalg.inv(x @ x.T + weft.eye(3, device=x.device)),
    ],
)
def test_functions_of_whole_arrays(call: Callable[[weft.NDArray], weft.NDArray]) -> None:
    given = np.arange(12.0).reshape(3, 4)[::-1].copy()
    found = call(there(given))
    assert found.device == weft.Device(DEVICE)
    np.testing.assert_array_equal(found.numpy(), call(weft.asarray(given)).numpy())


def test_indices_are_arrays_there() -> None:
    x, at = there([10.0, 20.0, 30.0]), there([2, 0])
    np.testing.assert_array_equal(x[at].numpy(), [30.0, 10.0])
    np.testing.assert_array_equal(weft.take(x, at).numpy(), [30.0, 10.0])


def test_a_failure_stays_with_the_array() -> None:
    x = there(np.zeros((2, 2)))
    bad, good = weft.linalg.inv(x), x + 1.0
    with pytest.raises(np.linalg.LinAlgError):
        bad.wait_to_read()
    np.testing.assert_array_equal(good.numpy(), np.ones((2, 2)))


def test_pickles_come_back_to_the_device() -> None:
    x = pickle.loads(pickle.dumps(there([1.0, 2.0])))
    assert x.device == weft.Device(DEVICE)
    np.testing.assert_array_equal(x.numpy(), [1.0, 2.0])


def test_host_and_device_do_not_meet_in_one_op() -> None:
    with pytest.raises(weft.errors.ArgumentValueError):
        weft.add(there([1.0]), weft.asarray([1.0]))


def test_a_program_replays_there() -> None:
    @weft.program
    def step(x: weft.NDArray, y: weft.NDArray) -> weft.NDArray:
        z = weft.exp(x) * y
        return z - z.mean()

    given = np.linspace(0.0, 1.0, 8)
    expected = np.exp(given) * 2.0 - (np.exp(given) * 2.0).mean()
    for _ in range(3):
        found = step(there(given), there(np.full(8, 2.0)))
        assert found.device == weft.Device(DEVICE)
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-15, atol=1e-15)


def test_a_captured_block_changes_its_array() -> None:
    x = weft.zeros(3, device=DEVICE)
    with weft.capture("count") as program:
        x += 1.0
    for _ in range(4):
        program.replay()
    np.testing.assert_array_equal(x.numpy(), [4.0, 4.0, 4.0])


def test_gradients_are_there() -> None:
    def loss(w: weft.NDArray, x: weft.NDArray) -> weft.NDArray:
        return weft.sum(weft.tanh(x @ w) ** 2)

    w, x = np.linspace(-1.0, 1.0, 6).reshape(3, 2), np.arange(12.0).reshape(4, 3) / 10
    found = weft.grad(loss)(there(w), there(x))
    assert found.device == weft.Device(DEVICE)
    np.testing.assert_allclose(found.numpy(), weft.grad(loss)(weft.asarray(w), weft.asarray(x)).numpy(), rtol=1e-12)


def test_the_tape_goes_back_there() -> None:
    x = there([1.0, 2.0, 3.0])
    x.requires_grad = True
    y = (x * x).sum()
    found = dict(weft.autograd.backward(y))
    np.testing.assert_array_equal(found[x].numpy(), [2.0, 4.0, 6.0])


#: Their first cases take indices, masks or matrices that they make on the host.
WITH_ARRAYS_OF_THE_HOST = {
    "heaviside", "ldexp", "linalg.cholesky", "nan_to_num", "nanmax", "nanmean", "nanmedian", "nanmin", "nanprod", "nanstd",
    "nansum", "nanvar", "narrow", "scatter_add", "setitem", "take", "take_along_axis", "where",
}  # fmt: skip


def pulled(name: str, put: Callable[[Any], weft.NDArray]) -> list[weft.NDArray | None]:
    """The results of the first case of a rule, and the gradients of its operands."""
    case = CASES[name][0]
    results, back = weft.vjp(case.function, *map(put, case.operands))
    if isinstance(results, tuple):
        return [*results, *back(tuple(map(weft.ones_like, results)))]
    return [results, *back(weft.ones_like(results))]


@pytest.mark.parametrize("name", sorted(CASES.keys() - WITH_ARRAYS_OF_THE_HOST))
def test_each_rule_gives_the_gradient_of_the_host(name: str) -> None:
    for found, wanted in zip(pulled(name, there), pulled(name, weft.asarray), strict=True):
        assert (found is None) == (wanted is None)
        if found is not None and wanted is not None:
            assert found.device == weft.Device(DEVICE)
            np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-12, atol=1e-12)


def test_operators_push_kernels_that_the_backend_states() -> None:
    x, y = np.array([5.5, 7.0, -3.0]), np.array([2.0, 4.0, 2.5])
    there(x) % there(y)  # the first call finds the loop
    before = loopback.Remainders.pushes
    given = there(x)
    given %= 4.0
    found = [there(x) % there(y), 9.0 % there(y), there(x) % y[:1].item(), there(np.stack([x, x])) % there(y), given]
    assert loopback.Remainders.pushes == before + len(found)
    wanted = [x % y, 9.0 % y, x % 2.0, np.stack([x, x]) % y, x % 4.0]
    for each, value in zip(found, wanted, strict=True):
        assert each.device == weft.Device(DEVICE)
        np.testing.assert_array_equal(each.numpy(), value)


def test_kernels_are_those_of_their_kind_and_dtypes() -> None:
    before = loopback.Remainders.pushes
    np.testing.assert_array_equal((there([5, 7]) % there([3, 4])).numpy(), [2, 3])
    np.testing.assert_array_equal((weft.asarray([5.0]) % weft.asarray([3.0])).numpy(), [2.0])
    np.testing.assert_array_equal((there([5.0]) * there([3.0])).numpy(), [15.0])
    with pytest.raises(weft.errors.ArgumentValueError):
        there([5.0]) % weft.asarray([3.0])
    assert loopback.Remainders.pushes == before


def test_a_program_replays_such_kernels() -> None:
    @weft.program
    def step(x: weft.NDArray) -> weft.NDArray:
        return (x + 1.0) % 4.0

    for start in (0.0, 5.0):
        given = np.arange(start, start + 4.0)
        np.testing.assert_array_equal(step(there(given)).numpy(), (given + 1.0) % 4.0)


def test_an_op_may_have_a_compute_of_the_kind() -> None:
    @weft.register_op("loopback_only", infer=weft.ops.like_first)
    def op(out: np.ndarray, x: np.ndarray) -> None:
        np.add(x, 1, out=out)

    def own(out: np.ndarray, x: np.ndarray) -> None:
        np.add(x, 100, out=out)

    op.set_attribute("compute:loopback", own)
    np.testing.assert_array_equal(op(there([1.0])).numpy(), [101.0])
    np.testing.assert_array_equal(op(weft.asarray([1.0])).numpy(), [2.0])


def test_a_kind_has_a_name_and_numbers_of_its_own() -> None:
    class Second(Backend):
        kind, first, count, dlpack = "second", 0x9003, 1, 12

    with pytest.raises(weft.errors.ArgumentValueError, match="'loopback'"):
        register(Second())
    with pytest.raises(weft.errors.ArgumentValueError, match="known are 'cpu', 'cuda' and 'loopback'"):
        weft.Device("second:0")


def test_more_kinds_than_there_is_room_for_are_refused(script: RunScript) -> None:
    done = script("""
        import numpy as np
        import weft
        from weft._call.backends import Backend, register

        def made(letter):
            class Another(Backend):
                kind, first, count, dlpack = f"kind{letter}", 0xA000 + ord(letter), 1, 12

            register(Another())
            try:
                x = weft.ones(2, device=f"kind{letter}:0") + 1.0
            except weft.errors.ArgumentValueError as error:
                return str(error)
            return x.tolist()

        found = [made(letter) for letter in "abcdefghijklmnopqrst"]
        assert found[:15] == [[2.0, 2.0]] * 15, found  # CUDA is the first of sixteen
        assert all("there may be 16" in each for each in found[15:]), found
        assert weft.ones(2, device="kinda:0").tolist() == [1.0, 1.0]
    """)
    assert done.returncode == 0
