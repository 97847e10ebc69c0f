"""Tables M and N beside MiniMalloc and MXNet, which are somewhere else: variables of the environment say where."""

from __future__ import annotations

import json
import os
import subprocess
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from weft.bench.plan.instances import read_folder
from weft.bench.plan.measuring import measure
from weft.bench.samples import Job
from weft.bench.symbols import chain
from weft.bench.symbols.jobs import QUOTED, Chain

if TYPE_CHECKING:
    from collections.abc import Callable

    from weft.bench.measure import Additions
    from weft.bench.plan.instances import Instance
    from weft.bench.plan.measuring import Planned
    from weft.bench.settings import Settings

#: A folder of files as `weft bench plan` takes, MiniMalloc's program, and a Python that has MXNet.
FOLDER, PROGRAM, PYTHON = "MINIMALLOC_FILES", "MINIMALLOC_PROGRAM", "MXNET_PYTHON"
SEARCH_S = 10.0
RESULTS = Path(__file__).resolve().parents[1] / "results" / "mxnet.json"


def add_planning(found: Additions, settings: Settings) -> None:
    """Add the jobs of tables M and N, or the reasons why there are none."""
    if "M" in settings.tables:
        folder = os.environ.get(FOLDER)
        if folder is None:
            for table in ("M fit", "M offsets"):
                found.missing[table, "MiniMalloc's instances"] = f"{FOLDER} names no folder of them"
        else:
            found.jobs["M fit"], found.jobs["M offsets"] = _offset_jobs(Path(folder), os.environ.get(PROGRAM))
    if "N" in settings.tables:
        python = os.environ.get(PYTHON)
        if python is None:
            quoted = json.loads(RESULTS.read_text())["chain"]
            found.jobs["N"] = [
                Job("N", step, QUOTED, partial(lambda figure: [figure], quoted[step])) for step in chain.STEPS
            ]
        else:
            found.jobs["N"] = Chain(
                f"MXNet {_version(python)}", [python, "-P", chain.__file__, "mxnet"], settings.chain_nodes, most=3
            ).jobs()


def _version(python: str) -> str:
    command = [python, "-c", "import mxnet; print(mxnet.__version__)"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def _offset_jobs(folder: Path, program: str | None) -> tuple[list[Job], list[Job]]:
    peer = None if program is None else Path(program)

    # A search takes seconds, MiniMalloc's too: once will do.
    @cache
    def planned(instance: Instance) -> Planned:
        return measure(instance, None, SEARCH_S, 1, peer)

    def job(table: str, instance: Instance, name: str, values: Callable[[Planned], list[float]]) -> Job:
        return Job(table, instance.name, name, lambda: values(planned(instance)))

    instances = read_folder(folder)
    rows: dict[str, Callable[[Planned], list[float]]] = {
        "weft": lambda found: [1e3 * seconds for seconds in found.search_seconds],
        "weft, by rule": lambda found: [1e3 * seconds for seconds in found.rule_seconds],
    }
    if peer is not None:
        rows["MiniMalloc"] = lambda found: [1e3 * seconds for seconds in found.peer_seconds]
    fit = [job("M fit", each, "weft", lambda found: [found.by_rule / found.peak]) for each in instances]
    return fit, [job("M offsets", each, name, values) for each in instances for name, values in rows.items()]
