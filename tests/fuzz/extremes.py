"""A script: gives numbers at the ends of integer types to every argument of every public function, in a process with little memory.

``python extremes.py 2**63 '({n}, {n})'``. It prints a line for each call that raises what is no error of weft, and before each function
its name, so that a process that ends tells where.
"""

from __future__ import annotations

import inspect
import itertools
import resource
import signal
import sys
import warnings
from types import FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np

import weft
from weft._core import ArrayFunction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: Bytes of the process's addresses: what is too large is refused at once.
MEMORY = 3 << 30
#: Seconds for one call.
SECONDS = 20
MODULES = {"weft": weft, "linalg": weft.linalg, "fft": weft.fft, "random": weft.random, "nn": weft.nn}
#: What reads files, sets up the process, or makes as many arrays as it is told to.
LEFT_OUT = {
    "load",
    "save",
    "set_engine",
    "array_split",
    "wait",
    "wait_all",
    "trace",
    "progress",
    "load_ipython_extension",
}
#: Results, by which the namespace itself is not left.
NAMED = ("dtype", "device", "engine", "out")
#: What the standard of arrays has a function raise, if another library's array cannot be shown to it.
STANDARD = {"weft.from_dlpack": BufferError}


def arguments() -> list[Any]:
    """Return what functions may take where they need something."""
    x = weft.asarray(np.arange(1.0, 13.0).reshape(3, 4))
    v, i = weft.asarray(np.arange(1.0, 5.0)), weft.asarray(np.arange(4))
    square, mask = weft.asarray(np.eye(3) + 1), weft.asarray([True, False, True, True])
    return [x, v, i, square, mask, 2, (2, 2), [x, x], [v, v], "int64", 1.5, abs, weft.ones((1, 1, 4, 4))]


def works(function: Callable[..., Any], given: list[Any]) -> bool:
    try:
        finish(function(*given))
    except Exception:  # noqa: BLE001 - it takes something else
        return False
    return True


def finish(result: Any) -> None:
    """Wait for what a call returned."""
    for each in result if isinstance(result, tuple | list) else (result,):
        if isinstance(each, weft.NDArray):
            each.wait_to_read()


def base(function: Callable[..., Any], parameters: list[inspect.Parameter]) -> list[Any] | None:
    """Return arguments that the function takes; None if none are found."""
    needed = [each for each in parameters if each.default is each.empty and each.kind < each.VAR_POSITIONAL]
    several = any(each.kind is each.VAR_POSITIONAL for each in parameters)
    tries = itertools.islice(itertools.product(arguments(), repeat=len(needed) + several), 2500)
    return next((list(given) for given in tries if works(function, list(given))), None)


def functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    for where, module in MODULES.items():
        for name in sorted(getattr(module, "__all__", None) or dir(module)):
            function = getattr(module, name)
            if isinstance(function, FunctionType | ArrayFunction) and name[0] != "_" and name not in LEFT_OUT:
                yield f"{where}.{name}", function


def say(text: str) -> None:
    """Write a line at once: the process may end in the next call."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def late(*_: object) -> None:
    raise TimeoutError


def attempt(name: str, given: str, call: Callable[[], Any]) -> None:
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        finish(call())
    except (weft.errors.WeftError, STANDARD.get(name, weft.errors.WeftError)):
        pass
    except BaseException as error:  # noqa: BLE001 - told
        say(f"wrong: {name}, {given} raises {error!r}")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def attack(name: str, function: Callable[..., Any], rounds: list[tuple[int, str]]) -> None:
    """Give the numbers to each argument, one at a time."""
    parameters = list(inspect.signature(function).parameters.values())
    given = base(function, parameters)
    if given is None:
        return
    say(name)
    optional = [
        each.name
        for each in parameters
        if each.default is not each.empty and each.kind is not each.POSITIONAL_ONLY and each.name not in NAMED
    ]
    for number, form in rounds:
        value = eval(form.format(n=number), {"np": np})
        for at in range(len(given)):
            changed = [*given[:at], value, *given[at + 1 :]]
            attempt(name, f"argument {at} = {value!r}", lambda changed=changed: function(*changed))
        for keyword in optional:
            attempt(name, f"{keyword}={value!r}", lambda changed={keyword: value}: function(*given, **changed))


def main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGALRM, late)
    warnings.simplefilter("ignore")
    words = sys.argv[1:]
    rounds = [(int(eval(number)), form) for number, form in zip(words[::2], words[1::2], strict=True)]
    for name, function in functions():
        attack(name, function, rounds)


main()
