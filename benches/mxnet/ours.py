"""What weft makes of the same files: read, inferred, planned, computed, and compared with what MXNet has computed."""

import argparse
import json
import pathlib
import platform
import time
from collections.abc import Iterable
from typing import Any

import numpy as np

import weft
import weft.mxnet

TOLERANCE, GRADIENT_TOLERANCE, ABOVE_PEAK = 1e-4, 2e-3, 1.12


def plan(graph: weft.graph.Graph, shapes: dict[str, tuple[int, ...]], **options: object) -> tuple[int, int]:
    """Return the bytes of the arena, and the most that are live."""
    known = weft.graph.infer_type(weft.graph.infer_shape(graph, shapes))
    attrs = weft.graph.plan_memory(known, **options).attrs
    return attrs["storage_allocated_bytes"], attrs["storage_peak_live_bytes"]


def training_graph(net: weft.symbol.Symbol, data: Iterable[str]) -> tuple[weft.graph.Graph, list[str]]:
    """Return forwards and backwards as one graph, and the names of the gradients, which lie elsewhere."""
    wrt = [name for name in net.list_arguments() if name not in data]
    grads = net.gradient(wrt)
    return weft.graph.Graph(weft.symbol.Group([net, grads])), [entry.node.name for entry in grads.entries]


def difference(found: np.ndarray, wanted: np.ndarray) -> float:
    """Return the largest difference, relative to the largest number."""
    return float(np.abs(found - wanted).max() / max(np.abs(wanted).max(), 1e-30))


def compare(name: str, folder: pathlib.Path, figures: dict[str, Any]) -> dict[str, Any]:
    """Return the figures of one network."""
    began = time.perf_counter()
    net, arguments, states = weft.mxnet.load_checkpoint(folder / name, 1)
    read = time.perf_counter() - began
    kept = np.load(folder / f"{name}-expected.npz")
    inputs = {key[3:]: kept[key] for key in kept.files if key.startswith("in:")}
    given = {**arguments, **{key: weft.asarray(value) for key, value in inputs.items()}}
    wanted = {key[5:]: kept[key] for key in kept.files if key.startswith("grad:")}
    found = {"read_s": round(read, 3)}

    made = net.entries[-1].node.op.name == "SoftmaxOutput"
    both = weft.symbol.Group([net, net.get_children()[0]]) if made else net
    executor = both.bind(given, aux_states=states, grad_req="null")
    results = [each.numpy() for each in executor.forward()]
    found["outputs"] = [difference(each, kept[f"out:{at}"]) for at, each in enumerate(results)]
    if wanted:
        grads = {key: weft.zeros(given[key].shape, dtype=given[key].dtype) for key in wanted}
        executor = net.bind(given, args_grad=grads, aux_states=states)
        count = len(executor.forward(is_train=True))
        executor.backward([weft.asarray(kept[f"head:{at}"]) for at in range(count)])
        largest = max(float(np.abs(each).max()) for each in wanted.values())
        found["gradients"] = max(
            float(np.abs(executor.grad_dict[key].numpy() - each).max()) / max(float(np.abs(each).max()), 1e-3 * largest)
            for key, each in wanted.items()
        )
    large = {key: tuple(shape) for key, shape in figures["large"].items()}
    arena, peak = plan(weft.graph.Graph(net), large)
    found |= {"inference_bytes": arena, "inference_above_peak": round(arena / peak, 4)}
    found |= {"inference_mxnet_mb": figures["inference_mb"], "training_mxnet_mb": figures["training_mb"]}
    graph, outside = training_graph(net, large)
    found["training_bytes"] = plan(graph, large, external=outside)[0]
    found["as_wanted"] = {
        "outputs": max(found["outputs"]) <= TOLERANCE,
        "gradients": found.get("gradients", 0.0) <= GRADIENT_TOLERANCE,
        # MXNet says whole megabytes, rounded down.
        "inference": arena < (figures["inference_mb"] + 1) * 2**20 and arena <= ABOVE_PEAK * peak,
        "training": found["training_bytes"] < (figures["training_mb"] + 1) * 2**20,
    }
    return found


def main() -> None:
    """Compare all networks of a folder that MXNet has computed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--only", nargs="*", default=None)
    options = parser.parse_args()
    theirs = json.loads((options.folder / "theirs.json").read_text())
    sources = json.loads((pathlib.Path(__file__).parent / "files.json").read_text())
    found = {}
    for name, figures in theirs["networks"].items():
        if options.only and name not in options.only:
            continue
        found[name] = compare(name, options.folder, figures)
        if name in sources:
            found[name] |= {key: sources[name][key] for key in ("source", "version")}
        wrong = [key for key, well in found[name]["as_wanted"].items() if not well]
        print(
            f"{name:20} outputs {max(found[name]['outputs']):.1e} gradients {found[name].get('gradients', 0):.1e} "
            f"inference {found[name]['inference_bytes'] / 2**20:.1f} ({found[name]['inference_above_peak']}) of "
            f"{figures['inference_mb']} MB, training {found[name]['training_bytes'] / 2**20:.1f} of {figures['training_mb']} MB"
            f"{'  NOT: ' + ', '.join(wrong) if wrong else ''}",
            flush=True,
        )
    if options.json:
        head = {"mxnet": theirs["mxnet"], "weft": weft.__version__, "python": platform.python_version()}
        limits = {"outputs": TOLERANCE, "gradients": GRADIENT_TOLERANCE, "inference_above_peak": ABOVE_PEAK}
        options.json.write_text(
            json.dumps({**head, "limits": limits, "chain": theirs["chain"], "networks": found}, indent=1) + "\n"
        )


if __name__ == "__main__":
    main()
