"""Names that people bring from other libraries: the error says what to write, `hasattr` says no, and `dir` is silent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft
from weft import layer, model, opt
from weft._engine.handle_hints import INSTEAD_OF_OPERATORS, INSTEAD_OF_RESULTS
from weft._numpy.hints import INSTEAD, INSTEAD_OF_METHODS
from weft._singa.hints import INSTEAD_IN, INSTEAD_OF_LAYERS, INSTEAD_OF_OPTIMIZERS
from weft.errors import ArgumentTypeError

if TYPE_CHECKING:
    from types import ModuleType


def handle() -> weft.TaskHandle:
    return weft.task(lambda: 1)()


@pytest.mark.parametrize(
    ("make", "table"),
    [
        (lambda: weft.ones(2), INSTEAD_OF_METHODS),
        (handle, INSTEAD_OF_RESULTS),
        (lambda: layer.Linear(2), INSTEAD_OF_LAYERS),
        (model.Model, INSTEAD_OF_LAYERS),
        (lambda: opt.SGD(0.1), INSTEAD_OF_OPTIMIZERS),
    ],
    ids=["array", "handle", "layer", "model", "optimizer"],
)
def test_methods_of_other_libraries(make: Any, table: dict[str, str]) -> None:
    x = make()
    for name, instead in table.items():
        assert not hasattr(x, name)
        assert name not in dir(x)
        with pytest.raises(AttributeError) as caught:
            getattr(x, name)
        assert str(caught.value) == f"{type(x).__name__!r} object has no attribute {name!r}: write {instead}"


@pytest.mark.parametrize(
    ("module", "names"),
    [(weft, INSTEAD), *((getattr(weft, name.removeprefix("weft.")), names) for name, names in INSTEAD_IN.items())],
    ids=["weft", *INSTEAD_IN],
)
def test_names_of_other_libraries(module: ModuleType, names: dict[str, str]) -> None:
    for name, instead in names.items():
        with pytest.raises(AttributeError) as caught:
            getattr(module, name)
        assert str(caught.value) == f"module {module.__name__!r} has no attribute {name!r}: write {instead}"


@pytest.mark.parametrize(
    ("module", "name", "instead"),
    [
        (weft, "softmax", "weft.nn.softmax"),
        (weft, "norm", "weft.linalg.norm"),
        (weft, "Linear", "weft.layer.Linear"),
        (weft.nn, "LayerNorm", "weft.layer.LayerNorm"),
        (weft.layer, "softmax", "weft.nn.softmax"),
        (weft.model, "AdamW", "weft.opt.AdamW"),
    ],
)
def test_names_of_another_module(module: ModuleType, name: str, instead: str) -> None:
    with pytest.raises(AttributeError, match=f": write {instead}$"):
        getattr(module, name)


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        ("h + 1", r"\+: 'TaskHandle' and 'int'"),
        ("1 - h", r"-: 'int' and 'TaskHandle'"),
        ("h * h", r"\*: 'TaskHandle' and 'TaskHandle'"),
        ("sum([h, h])", r"\+: 'int' and 'TaskHandle'"),
        ("h + weft.ones(2)", r"\+: 'TaskHandle' and 'NDArray'"),
        ("weft.ones(2) + h", r"\+: 'NDArray' and 'TaskHandle'"),
        ("h < 2", r"<: 'TaskHandle' and 'int'"),
        ("h == 1", r"==: 'TaskHandle' and 'int'"),
        ("'a' != h", r"!=: 'TaskHandle' and 'str'"),
        ("h ** 2", r"\*\*: 'TaskHandle' and 'int'"),
    ],
)
def test_operators_on_handles(expression: str, names: str) -> None:
    with pytest.raises(
        TypeError,
        match=rf"^unsupported operand types for {names}: write {INSTEAD_OF_OPERATORS}$".replace("()", r"\(\)"),
    ):
        eval(expression, {"h": handle(), "weft": weft})


@pytest.mark.parametrize(
    ("expression", "error", "message"),
    [
        ("h.upper()", AttributeError, "'TaskHandle' object has no attribute 'upper': write handle.result().upper"),
        ("h.__upper__", AttributeError, "'TaskHandle' object has no attribute '__upper__'"),
        ("len(h)", TypeError, "object of type 'TaskHandle' has no len(): write len(handle.result())"),
        (
            "h[2]",
            TypeError,
            "'TaskHandle' object has no items: write handle.result()[i], or for item in handle.result()",
        ),
        (
            "[*h]",
            TypeError,
            "'TaskHandle' object has no items: write handle.result()[i], or for item in handle.result()",
        ),
    ],
)
def test_a_handle_is_not_its_result(expression: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        eval(expression, {"h": handle()})
    assert str(caught.value) == message


def test_handles_equal_themselves() -> None:
    h, other = handle(), handle()
    assert h not in (other, None, [1])
    assert h != other
    assert {h: 1, other: 2}[h] == 1
    assert [other, h, None].index(h) == 1


def test_arrays_of_numpy_take_handles() -> None:
    h = handle()
    assert (np.arange(3) == h).tolist() == (h == np.arange(3)).tolist() == [False, True, False]
    for x in (np.ones(2), np.float64(1.0)):
        np.testing.assert_array_equal(np.asarray(x + h), np.full(np.shape(x), 2.0))
        np.testing.assert_array_equal(np.asarray(h - x), np.zeros(np.shape(x)))


def test_names_that_nobody_has() -> None:
    for module in (weft, weft.nn, weft.layer, weft.opt, weft.model):
        with pytest.raises(AttributeError, match=r"has no attribute 'nothing_of_this_name'$"):
            _ = module.nothing_of_this_name


@pytest.mark.parametrize("call", ["sum(dim=0)", "mean(dim=0, keepdim=True)", "argmax(dim=0)", "squeeze(dim=0)"])
def test_arguments_of_other_libraries(call: str) -> None:
    with pytest.raises(ArgumentTypeError, match=r"unexpected keyword argument 'dim': write axis=$"):
        eval(f"weft.ones((1, 2)).{call}", {"weft": weft})
    with pytest.raises(ArgumentTypeError, match=r"'dim': write axis=$"):
        weft.nn.softmax(weft.ones((1, 2)), dim=0)  # type: ignore[call-arg]
    with pytest.raises(ArgumentTypeError, match=r"'keepdim': write keepdims=$"):
        weft.sum(weft.ones(2), keepdim=True)  # type: ignore[call-arg]


def test_arguments_that_have_another_meaning_elsewhere() -> None:
    with pytest.raises(ArgumentTypeError, match=r"view\(\) takes a dtype, and -1 was given: .* write x\.reshape\(-1\)"):
        weft.ones(4).view(-1)
    with pytest.raises(
        ArgumentTypeError, match=r"view\(\) takes a dtype, and 2, 2 was given: .* write x\.reshape\(2, 2\)"
    ):
        weft.ones(4).view(2, 2)  # type: ignore[arg-type]
    with pytest.raises(ArgumentTypeError, match=r"arrays as one list: write weft\.concat\(\[x, y\], axis=0\)"):
        weft.concat(weft.ones(2), weft.ones(2))
    with pytest.raises(ArgumentTypeError, match=r"'in_dims': write in_axes=$"):
        weft.vmap(abs, in_dims=1)


def test_arguments_of_other_pools() -> None:
    with pytest.raises(
        ArgumentTypeError, match=r"Engine\(\) got an unexpected keyword argument 'threads': write workers="
    ):
        weft.Engine(threads=2)  # type: ignore[call-arg]
    with pytest.raises(ArgumentTypeError, match=r"Engine\(\) got an unexpected keyword argument 'colour'$"):
        weft.Engine(colour=2)  # type: ignore[call-arg]
