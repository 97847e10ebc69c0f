"""Checks and measures weft on a GPU, in under nine minutes whatever hangs: `make gpu`.

    python benches/gpu/everything.py [--wheel WHEEL] [--out FOLDER] [--steps NAME,...] [--quick] [--seconds N]

Installs the wheel into a folder of its own, without the network, and runs one step after the other, each in processes
and with a time of its own; what other libraries may break comes last. A step that ends early leaves its time to the
others. A test that ends its process, or loses the device, is left behind: a new process goes on with the next one. The
log, the figures and how each step ended are in the folder as soon as they are known: who is cut off keeps what was
there. NumPy and pytest are needed, CuPy and PyTorch are used where they are installed.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).resolve().parents[2]
#: Tests that depend on another library, or on graphs.
APART = "capture or cupy or networks or torch"
#: Seconds in which pip has unpacked a wheel.
INSTALLED = 90
#: Seconds that are worth one more process of tests, and what pytest answers where it finds nothing to run.
WORTH, NOTHING = 10, 5
#: Seconds for a process that is ended to say where it was, and for one that is killed to be gone.
GRACE = 2


@dataclass(frozen=True, slots=True)
class Step:
    """One process and what it starts: its name, its arguments, and seconds.

    `least` are kept for it while others run, `most` is what it may take. Where `tells` is an option, it says so to the
    process, some seconds less.
    """

    name: str
    arguments: list[str]
    least: float
    most: float
    tells: str = ""

    def allowed(self, later: Sequence[Step], left: float) -> float:
        """What it may take of the seconds that are left."""
        return min(self.most, left - sum(step.least for step in later))


def steps(out: Path, *, quick: bool = False) -> list[Step]:
    """All of them."""
    first = [str(ROOT / "benches" / "gpu" / "first.py"), *["--quick"] * quick]
    tests = ["-m", "pytest", "-v", "--tb=short", "-m", "gpu", str(ROOT / "tests" / "gpu"), "-p", "no:cacheprovider"]
    bench = ["-m", "weft.bench", "gpu"]
    return [
        Step("first", [*first, "--json", str(out / "first.json")], 30, 75),
        Step("smoke", [*bench, "--smoke", "--json", str(out / "smoke.json")], 30, 60),
        Step("tests", [*tests, "-k", f"not ({APART})"], 90, 150),
        Step("bench", [*bench, "--json", str(out / "gpu.json")], 90, 180, "--seconds"),
        Step("captures", [*tests, "-k", "capture and not torch"], 45, 90),
        Step("cupy", [*tests, "-k", "cupy and not capture and not networks and not torch"], 45, 120),
        Step("networks", [*tests, "-k", "networks and not capture and not torch"], 30, 120),
        Step("torch", [*tests, "-k", "torch"], 30, 60),
    ]


def end(process: subprocess.Popen[bytes]) -> None:
    """End a process and all that it has started. One that the driver does not let go of is left behind."""
    with suppress(ProcessLookupError):
        if os.name == "nt":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):
        process.wait(GRACE)


def run(step: Step, seconds: float, environment: dict[str, str], log: Path) -> str:
    """Run a step, in as many processes as it takes, and answer how they ended."""
    ends_at, found = time.monotonic() + seconds, list[str]()
    with tempfile.TemporaryDirectory(prefix="weft-") as folder:
        begun = Path(folder) / "begun"
        while True:
            before = lines(begun)
            left = ends_at - time.monotonic()
            code = run_once(step, left, {**environment, "WEFT_TESTS_BEGUN": str(begun)}, log)
            if code is None:
                found.append(f"HUNG (more than {left:.0f} s)")
            elif code and not (before and code == NOTHING):
                found.append(f"FAILED ({code})")
            after = lines(begun)
            goes_on = code and len(after) > len(before) and after[-1] != "all"
            if not goes_on or ends_at - time.monotonic() < WORTH:
                counted = [(how, len(list(same))) for how, same in groupby(found)]
                return " then ".join(how if many == 1 else f"{how} x {many}" for how, many in counted) or "ok"


def lines(begun: Path) -> list[str]:
    """The tests that have begun, and `all` behind them when there are no more: the conftest of the tests writes them down."""
    return begun.read_text(encoding="utf-8").splitlines() if begun.exists() else []


def run_once(step: Step, seconds: float, environment: dict[str, str], log: Path) -> int | None:
    """Run a process, and answer its exit status; none if it hung."""
    told = [step.tells, str(max(1, int(seconds - 10)))] if step.tells else []
    with log.open("a", encoding="utf-8") as file:
        file.write(f"\n=== {step.name}, {seconds:.0f} s at most\n")
        file.flush()
        process = subprocess.Popen(
            [sys.executable, "-P", *step.arguments, *told],
            env=environment,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            if os.name != "nt":
                process.send_signal(signal.SIGABRT)  # faulthandler writes where it is
                with suppress(subprocess.TimeoutExpired):
                    process.wait(GRACE)
            return None
        finally:
            end(process)


def run_all(chosen: Sequence[Step], ends_at: float, environment: dict[str, str], out: Path) -> bool:
    """Run steps, and write how each ended. Answers whether all went well."""
    log, told = out / "gpu.log", out / "gpu-steps.json"
    ends: dict[str, dict[str, str | float]] = {}
    for at, step in enumerate(chosen):
        start = time.monotonic()
        seconds = step.allowed(chosen[at + 1 :], ends_at - start)
        ends[step.name] = {"ended": "not done when the run was ended", "allowed_s": round(seconds, 1)}
        told.write_text(json.dumps(ends, indent=1) + "\n", encoding="utf-8")
        ended = run(step, seconds, environment, log)
        ends[step.name] |= {"ended": ended, "took_s": round(time.monotonic() - start, 1)}
        told.write_text(json.dumps(ends, indent=1) + "\n", encoding="utf-8")
        line = f"{step.name:<10} {ended:<24} {time.monotonic() - start:6.1f} s"
        print(line, flush=True)
        with log.open("a", encoding="utf-8") as file:
            file.write(f"=== {line}\n")
    return all(found["ended"] == "ok" for found in ends.values())


def strange(wheel: Path) -> list[str]:
    """The modules of this checkout that the wheel does not have, or has otherwise."""
    sources = ROOT / "python"
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        modules = [
            path.relative_to(sources).as_posix() for path in sorted(sources.rglob("*.py*")) if path.suffix != ".pyc"
        ]
        return [name for name in modules if name not in names or archive.read(name) != (sources / name).read_bytes()]


def install(wheel: Path, folder: str) -> None:
    """Unpack a wheel into a folder."""
    if importlib.util.find_spec("pip") is None:  # an environment without it
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder)
        return
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--target", folder, str(wheel)]
    subprocess.run(command, check=True, timeout=INSTALLED)


def surroundings(folder: str) -> dict[str, str]:
    """The environment of all processes: weft from this folder, and a place for what CuPy compiles."""
    path = os.pathsep.join(filter(None, (folder, os.environ.get("PYTHONPATH"))))
    told = {"WEFT_REQUIRE_GPU": "1", "PYTHONUNBUFFERED": "1", "PYTHONFAULTHANDLER": "1"}
    environment = {**os.environ, "PYTHONPATH": path, **told}
    if not is_home_writable():
        environment.setdefault("CUPY_CACHE_DIR", str(Path(folder) / ".cupy"))
    return environment


def is_home_writable() -> bool:
    """Whether CuPy can keep what it compiles where it does."""
    try:
        kept = Path("~/.cupy").expanduser()
    except RuntimeError:  # nobody knows whose home
        return False
    while not kept.exists():
        kept = kept.parent
    return os.access(kept, os.W_OK)


def main() -> int:
    start = time.monotonic()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wheel", type=Path, help="the wheel (default: the newest in dist)")
    parser.add_argument("--out", type=Path, default=ROOT / "benches" / "results", help="default: %(default)s")
    parser.add_argument("--seconds", type=float, default=525, help="for all of it (default: %(default)s)")
    names = [step.name for step in steps(Path())]
    parser.add_argument("--steps", default=",".join(names), help="default: %(default)s")
    parser.add_argument("--quick", action="store_true", help="tiny sizes for the first step: see that it works")
    options = parser.parse_args()
    wanted = options.steps.split(",")
    if not set(wanted) <= set(names):
        parser.error(f"--steps {options.steps}: the steps are {', '.join(names)}")
    wheels = [options.wheel] if options.wheel else sorted((ROOT / "dist").glob("weft-*.whl"), key=os.path.getmtime)
    if not wheels:
        print("there is no wheel in dist: make wheel", file=sys.stderr)
        return 2
    wheel: Path = wheels[-1].resolve()
    others = strange(wheel)
    if others:
        print(f"{wheel} is not of this checkout: {', '.join(others[:3])} differ; make wheel", file=sys.stderr)
        if options.wheel is None:
            return 2
    out: Path = options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    (out / "gpu.log").unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(prefix="weft-", ignore_cleanup_errors=True) as folder:
        try:
            install(wheel, folder)
        except (OSError, zipfile.BadZipFile, subprocess.SubprocessError) as error:
            print(f"{wheel} cannot be installed: {error}", file=sys.stderr)
            return 2
        chosen = [step for step in steps(out, quick=options.quick) if step.name in wanted]
        went_well = run_all(chosen, start + options.seconds, surroundings(folder), out)
    print(f"written: {out / 'gpu.log'}, and the figures beside it")
    return 0 if went_well else 1


if __name__ == "__main__":
    sys.exit(main())
