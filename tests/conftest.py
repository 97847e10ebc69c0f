"""What the tests share: engines over policies and worker counts, gates that hold a worker, scripts in fresh processes.

Every test runs against the installed wheel, never against the source tree, and under two watchdogs: pytest-timeout's
signal for a wait that still answers signals, and faulthandler for a process that no longer does. A machine with a GPU
and without a network may have pytest alone: there the signal is sent from here.
"""

from __future__ import annotations

import ctypes
import faulthandler
import gc
import importlib
import json
import os
import signal
import subprocess
import sys
import sysconfig
import textwrap
import threading
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TypeVar

import numpy as np
import pytest

import weft

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# Started in the background by a shell, tests ignore Ctrl-C, and scripts would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

T = TypeVar("T")

#: Seconds a test waits for what must come; only a broken engine uses them up, however busy the machine is.
SOON = 60.0
#: Seconds a test watches that something does not happen.
MOMENT = 0.15

SERIAL = ("serial", 1)
PARALLEL = [(policy, workers) for policy in ("work_stealing", "per_device") for workers in (1, 2, 8)]
SHUFFLED = ("shuffled:7", 1)

NATIVE_SOURCE = r"""
#include <stdint.h>
#include <time.h>

/* What a thread leaves to be called when it ends, and how it lets others run. */
#ifdef _WIN32
#include <windows.h>
#define API __declspec(dllexport)
#define AT_END(name) static void NTAPI name(void *nothing)
static void at_end(void (NTAPI *called)(void *), void *with) { FlsSetValue(FlsAlloc(called), with); }
static void let_others_run(void) { SwitchToThread(); }
#else
#include <pthread.h>
#include <sched.h>
#define API
#define AT_END(name) static void name(void *nothing)
static void at_end(void (*called)(void *), void *with) {
    pthread_key_t key;
    pthread_key_create(&key, called);
    pthread_setspecific(key, with);
}
static void let_others_run(void) { sched_yield(); }
#endif

API int32_t succeed(void *data) { (void)data; return 0; }
API int32_t fail_with_data(void *data) { return data != 0; }
API int32_t add_one(void *data) { ++*(int64_t *)data; return 0; }
API int32_t fail_with(void *data) { return *(int32_t *)data; }
API int32_t fail_with_seven(void *data) { (void)data; return 7; }
API int32_t raise_flag(void *data) { __atomic_store_n((int32_t *)data, 1, __ATOMIC_RELEASE); return 0; }

/* Called through PyDLL, so with the GIL held: answers whether the flag was raised meanwhile. */
API int32_t spin_until(int32_t *flag, int32_t seconds) {
    time_t const end = time(0) + seconds;
    while (!__atomic_load_n(flag, __ATOMIC_ACQUIRE)) {
        if (time(0) > end) return 0;
    }
    return 1;
}

/* An op that ends when the interpreter is gone, and what Py_AtExit calls then: it waits for the thread of the op to end. */
static int32_t gone, ended;
AT_END(thread_ends) { (void)nothing; raise_flag(&ended); }
API int32_t outlast(void *data) {
    at_end(thread_ends, &gone);
    raise_flag(data);
    while (!__atomic_load_n(&gone, __ATOMIC_ACQUIRE)) let_others_run();
    return 0;
}
API void interpreter_is_gone(void) {
    raise_flag(&gone);
    while (!__atomic_load_n(&ended, __ATOMIC_ACQUIRE)) let_others_run();
}
"""


class Gate:
    """A callable that holds its worker until the test opens it.

    It holds for longer than a test may take: one that waits for what is behind its own gate fails, and is not just slow.
    """

    def __init__(self) -> None:
        self.entered = threading.Event()
        self._open = threading.Event()

    def __call__(self) -> None:
        self.entered.set()
        if not self._open.wait(6 * SOON):
            message = "the test never opened this gate"
            raise TimeoutError(message)

    def hold(
        self, engine: weft.Engine, *, mutate: tuple[weft.Variable | weft.NDArray, ...] = (), **options: Any
    ) -> None:
        """Push this gate and return once a worker stands in it."""
        engine.push(self, (), mutate, **options)
        assert self.entered.wait(SOON)

    def open(self) -> None:
        """Let the worker go."""
        self._open.set()


class MakeEngine(Protocol):
    """Makes engines that the fixture closes."""

    def __call__(self, *args: Any, **options: Any) -> weft.Engine: ...


class RunScript(Protocol):
    """Runs a script in a fresh interpreter."""

    def __call__(self, source: str, *, timeout: float = ..., **env: str) -> subprocess.CompletedProcess[str]: ...


def background(body: Callable[[], T]) -> Future[T]:
    """Run ``body`` on a daemon thread: a thread that hangs must not hold the test run."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(body())
        except BaseException as error:  # noqa: BLE001 - handed to whoever asks for the result
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future


def still_waits(future: Future[Any]) -> bool:
    """Whether ``future`` stays unfinished for a moment."""
    try:
        future.exception(MOMENT)
    except TimeoutError:
        return True
    return False


def address_of(function: Any) -> int:
    """The address of a ctypes function."""
    address = ctypes.cast(function, ctypes.c_void_p).value
    assert address
    return address


#: Tests on a GPU whose name tells that they depend on another library, or on graphs, come after the others: what they break,
#: or take long to load, is theirs.
LAST = ("capture", "cupy", "networks", "torch")

#: Names a file of the tests that have begun, one a line, and `all` when none is left: a process leaves those out that were
#: begun by one before it, which did not live to tell how they ended.
BEGUN = os.environ.get("WEFT_TESTS_BEGUN")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Order the tests that need a GPU; leave those out that a process before this one has begun."""

    def rank(item: pytest.Item) -> int:
        if item.get_closest_marker("gpu") is None:
            return 0
        return max((at for at, word in enumerate(LAST, 1) if word in item.nodeid), default=0)

    items.sort(key=rank)
    if BEGUN and Path(BEGUN).exists():
        begun = set(Path(BEGUN).read_text(encoding="utf-8").splitlines())
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid in begun])
        items[:] = [item for item in items if item.nodeid not in begun]


def pytest_runtest_logstart(nodeid: str) -> None:
    """Write down that a test begins."""
    _note_begun(nodeid)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write down that no test is left."""
    if not (session.shouldfail or session.shouldstop):
        _note_begun("all")


def _note_begun(what: str) -> None:
    if BEGUN:
        with Path(BEGUN).open("a", encoding="utf-8") as file:
            file.write(what + "\n")


def pytest_collection_finish() -> None:
    """Spare collections the thousands of tests themselves: they live to the end, and many tests collect."""
    gc.collect()
    gc.freeze()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what needs a GPU, or two, where there is none, with the reason; with WEFT_REQUIRE_GPU that is a failure."""
    wanted = 2 if item.get_closest_marker("multi_gpu") else 1 if item.get_closest_marker("gpu") else 0
    if not wanted:
        return
    try:
        name, why = weft._core.cuda_properties(wanted - 1)["name"], ""
    except weft.errors.CudaUnavailableError as error:
        name, why = "", str(error)
    if why:
        _absent(why)
    if name.startswith("Fake"):
        _absent("this process has opened the tests' driver: run tests/gpu on its own")


def _absent(reason: str) -> NoReturn:
    if os.environ.get("WEFT_REQUIRE_GPU"):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Know the setting of pytest-timeout where that is missing."""
    if not pluginmanager.hasplugin("timeout"):
        parser.addini("timeout", "seconds that a test may take")


def pytest_configure(config: pytest.Config) -> None:
    """Refuse to test the source tree; arm the hard watchdog's stream before capture hides it."""
    if not config.pluginmanager.hasplugin("timeout"):
        config.addinivalue_line("markers", "timeout(seconds): more than these are a failure")
    if Path(weft.__file__).is_relative_to(Path(__file__).parent.parent / "python"):
        message = f"weft comes from {weft.__file__}: install the wheel first (`make test` does)"
        raise pytest.UsageError(message)
    config.stash[_STDERR] = os.dup(2)


_STDERR = pytest.StashKey[int]()


@pytest.fixture(autouse=True)
def _last_watchdog(request: pytest.FixtureRequest) -> Iterator[None]:
    """End the process, with every thread's stack, when a test outlives twice its time: it answers signals no more.

    Where a process after this one goes on with the next test, that is the sooner the better.
    """
    marker = request.node.get_closest_marker("timeout")
    config = request.config
    seconds = float(marker.args[0] if marker else config.getoption("timeout", None) or config.getini("timeout") or 60)
    faulthandler.dump_traceback_later(seconds + (15 if BEGUN else seconds), exit=True, file=config.stash[_STDERR])
    if config.pluginmanager.hasplugin("timeout") or not hasattr(signal, "SIGALRM"):
        yield
    else:

        def end(*_: object) -> None:
            pytest.fail(f"more than {seconds:.0f} s")

        before = signal.signal(signal.SIGALRM, end)
        signal.setitimer(signal.ITIMER_REAL, seconds)
        yield
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    faulthandler.cancel_dump_traceback_later()


def pytest_exception_interact(node: pytest.Item | pytest.Collector, report: pytest.TestReport) -> None:
    """Tell of a failure on a GPU where it happens: what comes after it may hang, and end the process.

    A test that has lost the device is the last one of its process: all others would fail for no reason of their own.
    """
    if os.environ.get("WEFT_REQUIRE_GPU"):
        os.write(node.config.stash[_STDERR], f"\n{report.nodeid}\n{report.longreprtext}\n".encode())
        fault = _fault()
        if fault and node.session is not None:
            node.session.shouldfail = f"the device is lost, and with it this process: {fault}"


def _fault() -> str:
    """What has made the first device unusable, if it is."""
    try:
        weft.cuda.memory_stats(0)
    except weft.errors.CudaUnavailableError:
        return ""
    except weft.errors.CudaError as error:
        return str(error)
    return ""


@pytest.fixture
def gates() -> Iterator[Callable[[], Gate]]:
    """Make gates; all open when the test ends."""
    made: list[Gate] = []

    def make() -> Gate:
        made.append(Gate())
        return made[-1]

    yield make
    for gate in made:
        gate.open()


@pytest.fixture
def gate(gates: Callable[[], Gate]) -> Gate:
    """One gate."""
    return gates()


@pytest.fixture
def make_engine() -> Iterator[MakeEngine]:
    """Make engines; they close, dropping what has not started, when the test ends."""
    made: list[weft.Engine] = []

    def make(*args: Any, **options: Any) -> weft.Engine:
        made.append(weft.Engine(*args, **options))
        return made[-1]

    yield make
    for engine in made:
        engine.close(cancel=True, timeout=2 * SOON)


def _ids(setting: tuple[str, int]) -> str:
    return "-".join(map(str, setting))


@pytest.fixture(params=[SERIAL, *PARALLEL], ids=_ids)
def engine(request: pytest.FixtureRequest, make_engine: MakeEngine, gates: object) -> weft.Engine:  # noqa: ARG001 - gates open before engines close
    """Every policy, with one, two and eight workers."""
    policy, workers = request.param
    return make_engine(workers, policy)


@pytest.fixture(params=PARALLEL, ids=_ids)
def parallel(request: pytest.FixtureRequest, make_engine: MakeEngine, gates: object) -> weft.Engine:  # noqa: ARG001 - as above
    """Every policy that has workers, with one, two and eight of them."""
    policy, workers = request.param
    return make_engine(workers, policy)


@pytest.fixture(params=[setting for setting in PARALLEL if setting[1] > 1], ids=_ids)
def many(request: pytest.FixtureRequest, make_engine: MakeEngine, gates: object) -> weft.Engine:  # noqa: ARG001 - as above
    """Every policy that has workers, with at least two of them."""
    policy, workers = request.param
    return make_engine(workers, policy)


@pytest.fixture(params=[setting for setting in PARALLEL if setting[1] == 1], ids=_ids)
def single(request: pytest.FixtureRequest, make_engine: MakeEngine, gates: object) -> weft.Engine:  # noqa: ARG001 - as above
    """Every policy that has workers, with only one."""
    policy, workers = request.param
    return make_engine(workers, policy)


@pytest.fixture
def default_engine(make_engine: MakeEngine) -> Iterator[weft.Engine]:
    """An engine that is the default one while the test runs."""
    engine = make_engine(2)
    previous = weft.get_engine()
    weft.set_engine(engine)
    yield engine
    weft.set_engine(previous)


@pytest.fixture
def often() -> Iterator[None]:
    """Threads switch a thousand times as often, so that races show."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(5e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.fixture
def script(tmp_path: Path) -> RunScript:
    """Run a script in a fresh interpreter; its standard error is in the failure message when its exit status is not 0."""

    def run(source: str, *, timeout: float = 4 * SOON, **env: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-X", "faulthandler", write_script(tmp_path, source)]
        process = subprocess.Popen(
            command,
            env=script_env(**env),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,  # what it writes goes with it
            start_new_session=True,
        )
        try:
            output, errors = process.communicate(timeout=timeout)
        except BaseException:
            if sys.platform == "win32":
                process.kill()
            else:
                os.killpg(process.pid, signal.SIGKILL)  # its forked children with it: they may hang too
            process.communicate()
            raise
        return subprocess.CompletedProcess(command, process.returncode, output, errors)

    return run


def write_script(folder: Path, source: str) -> Path:
    """Save a dedented script."""
    path = folder / "script.py"
    path.write_text(textwrap.dedent(source), encoding="utf-8")
    return path


def script_env(**env: str) -> dict[str, str]:
    """Our environment without weft's own settings, and ``env``."""
    return {key: value for key, value in os.environ.items() if not key.startswith("WEFT_")} | env


#: Imports what its arguments name, and forks for each line, which describes a script: the child leaves the loop, and is a process
#: like any that has imported as much.
FORKING = """
import importlib, json, os, sys, weft

for name in sys.argv[1:]:
    importlib.import_module(name)
for line in sys.stdin:
    if not os.fork():
        break
    print(os.waitstatus_to_exitcode(os.wait()[1]), flush=True)
else:
    sys.exit()

wanted = json.loads(line)
os.chdir(wanted["folder"])
os.environ.update(wanted["env"])
for name, stream in ((os.devnull, 0), ("output", 1), ("errors", 2)):
    os.dup2(os.open(name, os.O_RDWR | os.O_CREAT | os.O_TRUNC), stream)
__file__, sys.argv, sys.stdin = wanted["script"], [wanted["script"], *wanted["arguments"]], open(0, closefd=False)
sys.path[:1] = [os.path.dirname(__file__), *filter(None, wanted["env"].get("PYTHONPATH", "").split(os.pathsep))]
del line, name, stream, wanted
exec(compile(open(__file__, encoding="utf-8").read(), __file__, "exec"))
"""


#: macOS's libraries do not bear a fork, and Windows has none.
FORKS = sys.platform == "linux"


class Forks:
    """Runs scripts in forks of a process that has imported weft and more, where imports are most of what they would take.

    Parameters
    ----------
    *modules : str
        What else it has imported.
    **env : str
        Its environment, beside ours without weft's own settings.
    """

    def __init__(self, *modules: str, **env: str) -> None:
        self._command = [sys.executable, "-X", "faulthandler", "-c", FORKING, *modules]
        self._env = script_env(**env)
        self._process: subprocess.Popen[str] | None = None

    def run(self, folder: Path, script: Path, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
        """Run a script in a folder, with arguments and more of an environment."""
        process = self._process = self._process or subprocess.Popen(
            self._command,
            env=self._env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        wanted = {"folder": str(folder), "script": str(script), "arguments": arguments, "env": env}
        try:
            process.stdin.write(json.dumps(wanted) + "\n")
            process.stdin.flush()
            status = int(process.stdout.readline())
        except BaseException:  # it hangs: the test's time is over
            self.close()
            raise
        output, errors = ((folder / name).read_text(encoding="utf-8") for name in ("output", "errors"))
        return subprocess.CompletedProcess([str(script), *arguments], status, output, errors)

    def close(self) -> None:
        """End the process, and all that hangs with it."""
        process, self._process = self._process, None
        if process is not None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


@pytest.fixture(scope="session")
def native_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A shared library of native functions, made with the machine's C compiler."""
    folder = tmp_path_factory.mktemp("native")
    source = folder / "native.c"
    source.write_text(NATIVE_SOURCE, encoding="utf-8")
    library = folder / f"native{sysconfig.get_config_var('SHLIB_SUFFIX') or '.so'}"
    compiler = os.environ.get("CC", "cc").split()
    # Position-independent everywhere but on Windows, where MinGW's own libraries, which nobody looks for, come along.
    shared = ["-shared", "-static"] if sys.platform == "win32" else ["-shared", "-fPIC"]
    subprocess.run([*compiler, "-O2", *shared, "-o", library, source], check=True)
    return library


@pytest.fixture(scope="session")
def native(native_path: Path) -> ctypes.CDLL:
    """The native functions, called with the GIL released."""
    return ctypes.CDLL(str(native_path))


def flag() -> np.ndarray[Any, np.dtype[np.int32]]:
    """A flag that native functions raise."""
    return np.zeros(1, np.int32)


@pytest.fixture(scope="session")
def fake_cuda(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A CUDA driver and a compiler on the host (tests/cuda): this process's, and by the answer that of a script.

    A process opens one driver, for good: where it has opened that of a GPU, the tests that need this one are skipped.
    """
    if sys.platform != "linux":
        pytest.skip("the driver of the host is written for Linux")
    folder = tmp_path_factory.mktemp("cuda")
    kept = tmp_path_factory.getbasetemp() / "kernels"
    if "PYTEST_XDIST_WORKER" in os.environ:  # the folder above is that of all processes of this run
        kept = kept.parents[1] / "kernels"
    kept.mkdir(exist_ok=True)
    sources = Path(__file__).parent / "cuda"
    driver, compiler = folder / "libcuda.so", folder / "libnvrtc.so"
    shared = ["-O1", "-shared", "-fPIC", "-o"]
    subprocess.run([*os.environ.get("CC", "cc").split(), *shared, driver, sources / "libcuda.c", "-ldl"], check=True)
    subprocess.run([*os.environ.get("CXX", "g++").split(), *shared, compiler, sources / "nvrtc.cpp"], check=True)
    variables = {
        "WEFT_CUDA_LIBRARY": str(driver),
        "WEFT_NVRTC_LIBRARY": str(compiler),
        "FAKE_NVRTC_FOLDER": str(folder),
        "FAKE_NVRTC_KEPT": str(kept),
    }
    os.environ.update(variables)
    from weft import _core  # no CUDA is opened before a test asks for it

    if not _core.cuda_properties(0)["name"].startswith("Fake"):
        pytest.skip("this process has opened the driver of a GPU")
    return variables


@pytest.fixture
def cupy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A CuPy for memory that is the host's: tests/cuda/cupy_on_host.py."""
    source = (Path(__file__).parent / "cuda" / "cupy_on_host.py").read_text(encoding="utf-8")
    (tmp_path / "cupy.py").write_text(source, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "cupy", raising=False)  # the real one is back afterwards
    yield importlib.import_module("cupy")
    weft.wait_all(SOON)
    del sys.modules["cupy"]
