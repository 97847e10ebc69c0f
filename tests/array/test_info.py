"""`__array_namespace_info__`."""

from __future__ import annotations

import numpy as np
import pytest

import weft


def test_capabilities() -> None:
    found = weft.__array_namespace_info__().capabilities()
    assert found["boolean indexing"]
    assert found["data-dependent shapes"]
    most = found["max dimensions"]
    assert weft.zeros((1,) * most).ndim == most


def test_defaults_are_what_creation_gives() -> None:
    info = weft.__array_namespace_info__()
    defaults = info.default_dtypes()
    assert weft.asarray(1.0).dtype == defaults["real floating"]
    assert weft.asarray(1j).dtype == defaults["complex floating"]
    assert weft.asarray(1).dtype == defaults["integral"]
    assert weft.argmax(weft.zeros(3)).dtype == defaults["indexing"]
    assert info.default_device() == weft.zeros(1).device
    assert info.default_device() in info.devices()
    assert info.default_dtypes(device=weft.cpu(1)) == defaults


def test_dtypes() -> None:
    info = weft.__array_namespace_info__()
    every = info.dtypes()
    assert len(every) == 13, "those of the standard: float16 is not one"
    for name, dtype in every.items():
        assert weft.zeros(1, dtype=dtype).dtype == np.dtype(name) == getattr(weft, name)
    assert list(info.dtypes(kind="bool")) == ["bool"]
    assert list(info.dtypes(kind=("signed integer", "complex floating"))) == [
        "int8",
        "int16",
        "int32",
        "int64",
        "complex64",
        "complex128",
    ]
    assert info.dtypes(kind="integral") == {
        **info.dtypes(kind="signed integer"),
        **info.dtypes(kind="unsigned integer"),
    }
    assert every == {**info.dtypes(kind="bool"), **info.dtypes(kind="numeric")}
    with pytest.raises(ValueError, match="'quaternion'"):
        info.dtypes(kind="quaternion")
