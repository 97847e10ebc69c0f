"""Checks and measures weft on a GPU, in under nine minutes whatever hangs: `make gpu`.

    python benches/gpu/everything.py [--wheel WHEEL] [--out FOLDER] [--seconds N]

Installs the wheel into a folder of its own, without the network, and runs one step after the other, each in a process
and with a time of its own; what other libraries may break comes last. Writes a log and the figures to the folder.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: Tests that depend on another library, or on graphs.
APART = "capture or cupy or torch"


@dataclass(frozen=True, slots=True)
class Step:
    """One process: what it is called, its arguments, and the most seconds that it may take."""

    name: str
    arguments: list[str]
    seconds: float


def steps(out: Path, budget: float) -> list[Step]:
    """All of them; of the whole time the benchmark has what the others leave."""
    tests = ["-m", "pytest", "-q", "-m", "gpu", str(ROOT / "tests" / "gpu"), "-p", "no:cacheprovider"]
    bench = ["-m", "weft.bench", "gpu"]
    found = [
        Step("first", [str(ROOT / "benches" / "gpu" / "first.py"), "--json", str(out / "first.json")], 75),
        Step("smoke", [*bench, "--smoke", "--json", str(out / "smoke.json")], 45),
        Step("tests", [*tests, "-k", f"not ({APART})"], 130),
        Step("bench", [*bench, "--json", str(out / "gpu.json")], 0),
        Step("captures", [*tests, "-k", "capture and not torch"], 60),
        Step("cupy", [*tests, "-k", "cupy and not capture and not torch"], 45),
        Step("torch", [*tests, "-k", "torch"], 45),
    ]
    left = budget - sum(step.seconds for step in found)
    return [
        Step(step.name, [*step.arguments, "--seconds", str(int(left - 10))], left) if step.name == "bench" else step
        for step in found
    ]


def run(step: Step, environment: dict[str, str], log: Path) -> str:
    """Run a step, and answer how it ended."""
    start = time.monotonic()
    with log.open("a", encoding="utf-8") as file:
        file.write(f"\n=== {step.name}\n")
        file.flush()
        command = [sys.executable, "-P", *step.arguments]
        try:
            code = subprocess.run(
                command,
                env=environment,
                cwd=ROOT,
                stdout=file,
                stderr=subprocess.STDOUT,
                timeout=step.seconds,
                check=False,
            ).returncode
            ended = "ok" if code == 0 else f"FAILED ({code})"
        except subprocess.TimeoutExpired:
            ended = f"HUNG (more than {step.seconds:.0f} s)"
    return f"{step.name:<10} {ended:<24} {time.monotonic() - start:6.1f} s"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wheel", type=Path, help="the wheel (default: the one in dist)")
    parser.add_argument("--out", type=Path, default=ROOT / "benches" / "results", help="default: %(default)s")
    parser.add_argument("--seconds", type=float, default=530, help="for all of it (default: %(default)s)")
    options = parser.parse_args()
    wheels = [options.wheel] if options.wheel else sorted((ROOT / "dist").glob("weft-*.whl"))
    if not wheels:
        print("there is no wheel in dist: make wheel", file=sys.stderr)
        return 2
    options.out.mkdir(parents=True, exist_ok=True)
    log: Path = options.out / "gpu.log"
    log.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(prefix="weft-") as folder:
        install = [sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--target", folder]
        subprocess.run([*install, str(wheels[-1])], check=True)
        path = os.pathsep.join(filter(None, (folder, os.environ.get("PYTHONPATH"))))
        environment = {**os.environ, "PYTHONPATH": path, "WEFT_REQUIRE_GPU": "1", "PYTHONUNBUFFERED": "1"}
        ends = []
        for step in steps(options.out, options.seconds):
            ends.append(run(step, environment, log))
            print(ends[-1], flush=True)
    with log.open("a", encoding="utf-8") as file:
        file.write("\n".join(["", "=== ends", *ends, ""]))
    print(f"written: {log} and the figures beside it")
    return 1 if any("ok" not in end for end in ends) else 0


if __name__ == "__main__":
    sys.exit(main())
