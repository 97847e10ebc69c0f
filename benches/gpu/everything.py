"""Checks and measures weft on a GPU, in under nine minutes whatever hangs: `make gpu`.

    python benches/gpu/everything.py [--wheel WHEEL] [--out FOLDER] [--steps NAME,...] [--quick] [--seconds N]

Installs the wheel into a folder of its own, without the network, and runs one step after the other, each in processes
and with a time of its own; what other libraries may break comes last. A step that ends early leaves its time to the
others. The log, the figures and how each step ended are in the folder as soon as they are known: who is cut off keeps
what was there. NumPy and pytest are needed, CuPy and PyTorch are used where they are installed.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).resolve().parents[2]
#: Tests that depend on another library, or on graphs.
APART = "capture or cupy or torch"
#: Seconds in which pip has unpacked a wheel.
INSTALLED = 90
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
        Step("cupy", [*tests, "-k", "cupy and not capture and not torch"], 45, 120),
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
    """Run a step, and answer how it ended."""
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
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            if os.name != "nt":
                process.send_signal(signal.SIGABRT)  # faulthandler writes where it is
                with suppress(subprocess.TimeoutExpired):
                    process.wait(GRACE)
            return f"HUNG (more than {seconds:.0f} s)"
        finally:
            end(process)
    return "ok" if code == 0 else f"FAILED ({code})"


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
    out: Path = options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    (out / "gpu.log").unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(prefix="weft-", ignore_cleanup_errors=True) as folder:
        install = [sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--target", folder]
        try:
            subprocess.run([*install, str(wheels[-1].resolve())], check=True, timeout=INSTALLED)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            print(f"{wheels[-1]} cannot be installed: {error}", file=sys.stderr)
            return 2
        path = os.pathsep.join(filter(None, (folder, os.environ.get("PYTHONPATH"))))
        told = {"WEFT_REQUIRE_GPU": "1", "PYTHONUNBUFFERED": "1", "PYTHONFAULTHANDLER": "1"}
        chosen = [step for step in steps(out, quick=options.quick) if step.name in wanted]
        went_well = run_all(chosen, start + options.seconds, {**os.environ, "PYTHONPATH": path, **told}, out)
    print(f"written: {out / 'gpu.log'}, and the figures beside it")
    return 0 if went_well else 1


if __name__ == "__main__":
    sys.exit(main())
