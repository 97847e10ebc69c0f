"""``weft doctor``: runs a script several times, each time in a process of its own, and names its faults."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import tempfile
import time
from argparse import REMAINDER, ArgumentTypeError, RawDescriptionHelpFormatter
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from weft._command.running import INTERRUPTED, CommandError
from weft._command.scripts import check_program
from weft._doctor.findings import KINDS, Finding, Report, parse_kinds
from weft._doctor.orders import WANTED, Logged, differences, findings_of
from weft._doctor.session import CHECKED
from weft._trace.optional import need
from weft.errors import ArgumentValueError

if TYPE_CHECKING:
    from argparse import Namespace, _SubParsersAction

    from weft._doctor.orders import Difference

_EXAMPLES = """\
examples:
  weft doctor script.py --size 3              errors and advice
  weft doctor --json report.json script.py    for CI: the exit status is 1 if there are errors
  weft doctor --only first-nan -m package.module
"""

#: Runs in other orders; and how many, until one differs, where an op reaches arrays that others write.
_RUNS, _MORE = 3, 8
#: How much longer than the check run another one may take, and seconds in any case.
_LONGER, _AT_LEAST = 5, 60
#: Seconds that a run has to end when it was interrupted.
_TO_END = 20
_FAILED, _ERRORS = 2, 1


def add_to(commands: _SubParsersAction[Any]) -> None:
    """Add the command to a parser's."""
    parser = commands.add_parser(
        "doctor",
        help="run a script and say what is wrong with it",
        description="Run a script or a module several times: with checks around each op, in other orders that its declared "
        "accesses allow, and traced. Print what is wrong with it, and what to write instead, on standard error. What the script "
        "prints and reads is the first run's. The exit status is 1 if there are errors, and 2 if the script failed by itself.",
        epilog=_EXAMPLES,
        formatter_class=RawDescriptionHelpFormatter,
        usage="%(prog)s [-h] [--json FILE] [--runs N] [--only KIND,...] (SCRIPT | -m MODULE) [ARGUMENT]...",
    )
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the report as JSON; - for standard output")
    parser.add_argument(
        "--runs", metavar="N", type=_count, default=_RUNS, help=f"runs in other orders (default: {_RUNS}; 0 for none)"
    )
    parser.add_argument(
        "--only",
        metavar="KIND,...",
        type=_kinds,
        default=frozenset(KINDS),
        help=f"kinds of findings: {', '.join(KINDS)}",
    )
    parser.add_argument("-m", "--module", action="store_true", help="what follows is a module, as in python -m")
    parser.add_argument("program", metavar="SCRIPT", help="the script, or the module after -m")
    parser.add_argument("arguments", metavar="ARGUMENT", nargs=REMAINDER, help="what it finds in sys.argv")
    parser.set_defaults(command=_doctor)


def _count(text: str) -> int:
    if not text.isdecimal():
        raise ArgumentTypeError(f"{text!r}: a number of at least 0")
    return int(text)


def _kinds(text: str) -> frozenset[str]:
    try:
        return parse_kinds(text)
    except ArgumentValueError as error:
        raise ArgumentTypeError(str(error)) from None


class Ended(NamedTuple):
    """How a run has ended."""

    report: Report
    log: list[Logged]
    #: The script's exit status; None if it could not tell.
    status: int | None
    interrupted: bool
    seconds: float
    #: Whether there is more to look for in other orders.
    suspects: bool = False
    #: Why the script failed, if it did.
    failure: str = ""


def _doctor(options: Namespace) -> int:
    check_program(options.program, module=options.module)
    to_stdout = str(options.json) == "-"
    if options.json is not None and not to_stdout and not options.json.parent.is_dir():
        raise CommandError(f"{options.json}: there is no folder {options.json.parent}")
    runs = _Runs(options)
    report = runs.all()
    report.sort()
    if to_stdout:
        print(report.to_json())
    elif options.json is not None:
        options.json.write_text(report.to_json() + "\n", encoding="utf-8")
    _show(report)
    if runs.interrupted:
        return _ERRORS if report.errors else INTERRUPTED
    if runs.failed:
        return _FAILED
    return _ERRORS if report.errors else 0


class _Runs:
    """The runs of one command."""

    def __init__(self, options: Namespace) -> None:
        self._options = options
        self._kinds: frozenset[str] = options.only
        self._report = Report()
        self.interrupted = self.failed = False
        self._limit: float | None = None
        self._failures: set[str] = set()

    def all(self) -> Report:
        """Run the script as often as the wanted kinds of findings need."""
        report = self._report
        drawn = self._kinds & {"undeclared-read", "nondeterministic"}
        first = None
        if self._kinds & CHECKED or drawn:
            first = self._run("check", "checks each op")
            report.findings += first.report.findings
            report.checked.update(first.report.checked)
            self._limit = max(_AT_LEAST, _LONGER * first.seconds)
        if self._kinds - CHECKED - {"nondeterministic"} and not self.interrupted and not self.failed:
            advice = self._run("advice", "looks for slow habits")
            for finding in advice.report.findings:
                report.add(finding)
            for what, number in advice.report.checked.items():
                report.count(what, number)
        if first is not None and first.log and drawn and not self.interrupted and not self.failed:
            self._orders(first)
        return report

    def _orders(self, first: Ended) -> None:
        base = first.log
        logged = {(one.thread, one.number) for one in base}
        found: dict[tuple[str, str, int], Difference] = {}
        compared = runs = 0
        wanted = self._options.runs
        for seed in range(1, 1 + (max(wanted, _MORE) if first.suspects and wanted else wanted)):
            if seed > wanted and found:
                break
            ended = self._run(f"shuffled:{seed}", f"order {seed}", logged)
            if self.interrupted:
                return
            differ, count = differences(base, ended.log)
            compared, runs = compared + count, runs + bool(ended.log)
            found = {**differ, **found}
        again: dict[tuple[str, str, int], Difference] = {}
        if found:
            again = differences(base, self._run("serial", "the same order again", logged).log)[0]
        for finding in findings_of(found, again, self._report.findings):
            if finding.kind in self._kinds:
                self._report.add(finding)
        self._report.count("runs in other orders", runs)
        self._report.count("ops compared in them", compared)

    def _run(self, what: str, shown: str, logged: set[tuple[str, int]] | None = None) -> Ended:
        """Run the script once; in another order, to log the ops that the check run has logged."""
        first = not self._report.checked and self._limit is None
        _progress(shown)
        with tempfile.TemporaryDirectory() as folder:
            answer = Path(folder, "answer")
            if logged is not None:
                answer.with_name(WANTED).write_bytes(pickle.dumps(logged))
            command = [
                sys.executable,
                "-m",
                "weft._command.doctor_run",
                what,
                str(answer),
                ",".join(sorted(self._kinds)),
            ]
            command += ["-m"] if self._options.module else []
            begun = time.monotonic()
            quiet = None if first else subprocess.DEVNULL
            environment = {**os.environ}
            if what.partition(":")[0] in {"serial", "shuffled"}:
                environment["WEFT_POLICY"] = what
            to_stdout = str(self._options.json) == "-"  # where the report goes
            process = subprocess.Popen(  # noqa: S603 - the script that was asked for
                [*command, self._options.program, *self._options.arguments],
                stdin=quiet,
                stdout=sys.stderr if first and to_stdout else quiet,
                stderr=quiet,
                env=environment,
            )
            interrupted = self._wait(process)
            seconds = time.monotonic() - begun
            ended = _read(answer, interrupted=interrupted, seconds=seconds)
        if interrupted:
            self.interrupted = True
        elif first:
            status = ended.status or process.returncode  # which tells of an op that failed without a wait to say so
            if status == INTERRUPTED:
                self.interrupted = True
            self.failed = status != 0 and not self.interrupted
            if ended.status is None:
                self._report.count("runs that ended without a report")
        elif ended.status is None:
            self._report.count("runs that were too long or ended without a report")
        elif ended.status != 0:
            self._report.count("other runs that failed")
            if ended.failure not in self._failures:
                self._failures.add(ended.failure)
                print(
                    f"weft doctor: {shown}: the script failed, and was looked at up to there: {ended.failure}",
                    file=sys.stderr,
                )
        return ended

    def _wait(self, process: subprocess.Popen[bytes]) -> bool:
        """Wait for a run. Return whether it was interrupted."""
        try:
            process.wait(self._limit)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        except KeyboardInterrupt:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(_TO_END)
            except (subprocess.TimeoutExpired, KeyboardInterrupt):
                process.kill()
                process.wait()
            return True
        return False


def _read(path: Path, *, interrupted: bool, seconds: float) -> Ended:
    report = Report()
    try:
        # Written by the process that was started for it, into a private folder.
        answer = pickle.loads(path.read_bytes())  # noqa: S301
    except (OSError, EOFError, pickle.UnpicklingError):
        return Ended(report, [], None, interrupted, seconds)
    report.findings = [Finding(**row) for row in answer["findings"]]
    report.checked = answer["checked"]
    log = [Logged(*row) for row in answer["log"]]
    return Ended(report, log, answer["status"], interrupted, seconds, answer["suspects"], answer["failure"])


def _progress(what: str) -> None:
    if sys.stderr.isatty():
        print(f"weft doctor: {what}", file=sys.stderr)


def _show(report: Report) -> None:
    """Print the report on standard error: standard output is the script's."""
    if report.findings and sys.stderr.isatty() and find_spec("rich") is not None:
        text = need("rich.text").Text  # a name in brackets is no markup
        table = need("rich.table").Table(show_lines=True)
        for name in ("line", "kind", "message", "to do"):
            table.add_column(name, overflow="fold")
        for one in report.findings:
            table.add_row(*map(text, (one.place, one.kind, one.message, one.advice)))
        console = need("rich.console").Console(stderr=True)
        console.print(table)
        console.print(text(report.last_line()))
    else:
        print(report.summary(), file=sys.stderr)
