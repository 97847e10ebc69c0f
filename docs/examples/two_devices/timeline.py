"""The picture: who ran what when."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import main_thread

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from .workbench import Span

COLOURS = {"compute": "#4477aa", "copy": "#ee7733"}


def save(path: Path, runs: Mapping[str, Sequence[Span]], batches: int = 2) -> None:
    """Draw several runs of the same ops, one below the other, on one scale of time.

    Parameters
    ----------
    path : Path
        The file to write; its suffix says in which format.
    runs : mapping of str to sequence of Span
        What was run, under the title that it gets.
    batches : int
        How many batches, from the middle of the run, the first run has room for.
    """
    first = next(iter(runs.values()))
    middle = max(span.batch for span in first) // 2
    end = max(span.end for span in first if middle <= span.batch < middle + batches)
    seconds = end - starts(first)[middle]

    lanes = [names_of_threads(spans) for spans in runs.values()]
    heights = [1 + len(names) for names in lanes]
    figure = Figure(figsize=(14, 1 + 0.5 * sum(heights)), layout="constrained")
    panels = figure.subplots(len(runs), sharex=True, squeeze=False, height_ratios=heights)[:, 0]
    for axes, names, (title, spans) in zip(panels, lanes, runs.items(), strict=True):
        draw(axes, names, spans, middle, seconds)
        axes.set_title(title, loc="left", pad=16)
    panels[-1].set_xlabel("milliseconds")
    figure.legend(
        handles=[Patch(color=colour, label=kind) for kind, colour in COLOURS.items()],
        loc="outside upper right",
        ncols=len(COLOURS),
        frameon=False,
    )
    figure.savefig(path, dpi=120)


def starts(spans: Sequence[Span]) -> dict[int, float]:
    """Return when the computation of each batch began."""
    began: dict[int, float] = {}
    for span in spans:
        if span.device.lane == "compute":
            began[span.batch] = min(span.start, began.get(span.batch, span.start))
    return began


def names_of_threads(spans: Sequence[Span]) -> dict[int, str]:
    """Return a name for each thread that ran ops: its device's, if it served only one."""
    devices: dict[int, set[str]] = {}
    for span in spans:
        devices.setdefault(span.thread, set()).add(str(span.device))
    names = {}
    for number, (thread, served) in enumerate(devices.items()):
        if thread == main_thread().ident:
            names[thread] = "main thread"
        else:
            names[thread] = served.pop() if len(served) == 1 else f"worker {number}"
    return dict(sorted(names.items(), key=lambda item: item[1]))


def draw(axes: Axes, names: Mapping[int, str], spans: Sequence[Span], batch: int, seconds: float) -> None:
    """Draw a lane for each thread, for some `seconds` from the start of `batch`."""
    began = starts(spans)
    lanes = {thread: number for number, thread in enumerate(names)}
    for span in spans:
        left, right = (1e3 * (time - began[batch]) for time in (span.start, span.end))
        if right < 0 or left > 1e3 * seconds:
            continue
        lane, width = lanes[span.thread], right - left
        colour = COLOURS[span.device.lane]
        # A copy is often narrower than a white edge: its own colour keeps it in sight.
        edge = colour if span.device.lane == "copy" else "white"
        axes.barh(lane, width, left=left, color=colour, edgecolor=edge, linewidth=0.5)
        if width > 8 * seconds:  # there is room for a name
            axes.text(
                (left + right) / 2,
                lane,
                span.name,
                rotation=0 if width > 35 * seconds else 90,
                color="white",
                fontsize=8,
                ha="center",
                va="center",
                clip_on=True,
            )
    for number, start in began.items():
        left = 1e3 * (start - began[batch])
        if 0 <= left < 950 * seconds:  # further right its number would not fit
            axes.axvline(left, color="black", linewidth=0.8, linestyle=":")
            axes.text(left, -0.55, f"batch {number}", fontsize=8, va="bottom")
    axes.set_xlim(0, 1e3 * seconds)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_yticks(range(len(names)), names.values())
    axes.tick_params(left=False)
    axes.spines[["left", "right", "top"]].set_visible(False)
