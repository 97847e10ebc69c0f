# Types of the extension module; its documentation is in the module itself.

from collections.abc import Callable, Generator, Sequence
from types import TracebackType
from typing import Any, Literal, Never, Self, TypeAlias, TypedDict, final

from weft._device import Device

__all__ = [
    "Completion",
    "Engine",
    "Operator",
    "Variable",
    "_after_fork_child",
    "_after_fork_parent",
    "_before_fork",
    "_debug_build",
    "_exit_drain",
]

_Policy: TypeAlias = Literal["work_stealing", "per_device", "serial"]

_debug_build: bool

class _Stats(TypedDict):
    name: str | None
    policy: _Policy
    workers: int
    pending: int
    pending_bytes: int
    pushed: int
    completed: int
    failed: int
    skipped: int
    cancelled: int
    running: int
    variables: int

@final
class Engine:
    def __new__(
        cls,
        workers: int | None = None,
        policy: _Policy = "work_stealing",
        *,
        max_pending_ops: int = 1_048_576,
        max_pending_bytes: int | None = None,
        on_limit: Literal["block", "raise"] = "block",
        switch_interval: float | None = None,
        name: str | None = None,
    ) -> Self: ...
    @property
    def name(self) -> str | None: ...
    @property
    def policy(self) -> _Policy: ...
    @property
    def workers(self) -> int: ...
    @property
    def closed(self) -> bool: ...
    @property
    def pending(self) -> int: ...
    def new_variable(self, name: str | None = None) -> Variable: ...
    def variable_of(self, obj: object) -> Variable: ...
    def push(
        self,
        exec_func: Callable[[], object],
        read_vars: Sequence[Variable] = (),
        mutate_vars: Sequence[Variable] = (),
        *,
        overwrite_vars: Sequence[Variable] = (),
        priority: int = 0,
        name: str | None = None,
        device: Device | None = None,
        always_run: bool = False,
        nbytes: int = 0,
    ) -> None: ...
    def push_async(
        self,
        exec_func: Callable[[Completion], object],
        read_vars: Sequence[Variable] = (),
        mutate_vars: Sequence[Variable] = (),
        *,
        overwrite_vars: Sequence[Variable] = (),
        priority: int = 0,
        name: str | None = None,
        device: Device | None = None,
        always_run: bool = False,
        nbytes: int = 0,
    ) -> None: ...
    def push_native(
        self,
        address: int,
        data: int = 0,
        read_vars: Sequence[Variable] = (),
        mutate_vars: Sequence[Variable] = (),
        *,
        keep_alive: object = None,
        overwrite_vars: Sequence[Variable] = (),
        priority: int = 0,
        name: str | None = None,
        device: Device | None = None,
        always_run: bool = False,
        nbytes: int = 0,
    ) -> None: ...
    def new_operator(
        self,
        exec_func: Callable[[], object],
        read_vars: Sequence[Variable] = (),
        mutate_vars: Sequence[Variable] = (),
        *,
        overwrite_vars: Sequence[Variable] = (),
        priority: int = 0,
        name: str | None = None,
        device: Device | None = None,
        always_run: bool = False,
    ) -> Operator: ...
    def wait_for_var(self, var: Variable, timeout: float | None = None) -> None: ...
    def wait_to_write(self, var: Variable, timeout: float | None = None) -> None: ...
    def wait_for_all(self, timeout: float | None = None) -> None: ...
    def delete_variable(self, var: Variable, finalizer: Callable[[], object] | None = None) -> None: ...
    def stats(self) -> _Stats: ...
    def close(self, cancel: bool = False, timeout: float | None = None) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...

@final
class Variable:
    @property
    def name(self) -> str | None: ...
    @property
    def version(self) -> int: ...
    @property
    def completed_version(self) -> int: ...
    @property
    def engine(self) -> Engine: ...
    @property
    def _deleted(self) -> bool: ...
    def is_ready(self) -> bool: ...
    def exception(self) -> BaseException | None: ...
    def __await__(self) -> Generator[Any]: ...

@final
class Operator:
    def push(self) -> None: ...

@final
class Completion:
    def __call__(self, *args: Never, **kwargs: Never) -> None: ...  # takes none; its slot has no other signature
    def fail(self, exc: BaseException) -> None: ...

def _exit_drain(timeout: float | None) -> None: ...
def _before_fork() -> None: ...
def _after_fork_parent() -> None: ...
def _after_fork_child() -> None: ...
