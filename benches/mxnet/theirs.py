"""What MXNet computes: run by the Python that has MXNet 1.9.1, see README.md.

For each network: its symbol, its parameters, an input, the outputs, for some the gradients, and how much memory MXNet plans; and how
long a chain of 100,000 ops takes, step by step.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys

os.environ.setdefault("MXNET_SUBGRAPH_BACKEND", "NONE")

import numpy as np
from mxnet.gluon.model_zoo import vision

import mxnet as mx

ZOO = {
    "resnet18_v1": (224, True),
    "resnet50_v2": (224, False),
    "vgg11": (224, False),
    "alexnet": (224, False),
    "squeezenet1.1": (224, False),
    "mobilenet1.0": (224, False),
    "mobilenetv2_1.0": (224, False),
    "densenet121": (224, False),
    "inceptionv3": (299, False),
}
BATCH = 16


def export_zoo(folder: pathlib.Path) -> None:
    """Write the networks of MXNet's own zoo, with parameters of a seed."""
    for name in ZOO:
        mx.random.seed(7)
        net = vision.get_model(name)
        net.initialize(mx.init.Xavier())
        net.hybridize()
        net(mx.nd.zeros((1, 3, ZOO[name][0], ZOO[name][0])))
        net.export(str(folder / name), 0)


def parameters(
    name: str, symbol: mx.sym.Symbol, folder: pathlib.Path, shapes: dict[str, tuple[int, ...]]
) -> list[dict[str, mx.nd.NDArray]]:
    """Return arguments and states: those of a file if there is one, else numbers of a seed."""
    arguments, _, states = symbol.infer_shape(**shapes)
    wanted = (
        dict(zip(symbol.list_arguments(), arguments, strict=True)),
        dict(zip(symbol.list_auxiliary_states(), states, strict=True)),
    )
    file = folder / f"{name}-0000.params"
    found = mx.nd.load(str(file)) if file.exists() else {}
    draw = np.random.default_rng(11)
    result = []
    for kind, listed in zip(("arg", "aux"), wanted, strict=True):
        arrays = {}
        for each, shape in listed.items():
            if each in shapes:
                continue
            if f"{kind}:{each}" in found and name not in ZOO:
                arrays[each] = found[f"{kind}:{each}"]
            elif each.endswith(("gamma", "moving_var", "running_var")):
                arrays[each] = mx.nd.array(draw.uniform(0.8, 1.2, shape))
            elif each.endswith(("beta", "bias", "moving_mean", "running_mean")):
                arrays[each] = mx.nd.array(draw.normal(0, 0.05, shape))
            elif each.endswith("label"):
                arrays[each] = mx.nd.zeros(shape)
            else:
                wide = max(int(np.prod(shape[1:])), 1)
                arrays[each] = mx.nd.array(draw.normal(0, np.sqrt(2 / wide), shape))
        result.append(arrays)
    return result


def planned(executor: mx.executor.Executor) -> int:
    """Return the megabytes that MXNet says it has planned."""
    return int(re.search(r"Total (\d+) MB allocated", executor.debug_str()).group(1))


def shown(symbol: mx.sym.Symbol) -> mx.sym.Symbol:
    """Return the outputs, and what probabilities are made of: parameters of a seed may make one of them all."""
    made = json.loads(symbol.tojson())["nodes"][-1]["op"] == "SoftmaxOutput"
    return mx.sym.Group([symbol, symbol.get_children()[0]]) if made else symbol


def compute(
    name: str, folder: pathlib.Path, shapes: dict[str, tuple[int, ...]], *, with_gradient: bool
) -> dict[str, object]:
    """Write the parameters, the inputs and what comes out; return the figures."""
    text = (folder / f"{name}-symbol.json").read_text()
    for old in ("MultiBoxPrior", "MultiBoxTarget"):  # what these were called before 1.0
        text = text.replace(f'"op": "{old}"', f'"op": "_contrib_{old}"')
    symbol = mx.sym.load_json(text)
    arguments, states = parameters(name, symbol, folder, shapes)
    named = {f"arg:{each}": array for each, array in arguments.items()}
    named.update({f"aux:{each}": array for each, array in states.items()})
    mx.nd.save(str(folder / f"{name}-0001.params"), named)
    draw = np.random.default_rng(5)
    inputs = {each: draw.normal(size=shape).astype("float32") for each, shape in shapes.items()}
    given = {**arguments, **{each: mx.nd.array(array) for each, array in inputs.items()}}
    executor = shown(symbol).bind(mx.cpu(), given, aux_states=states, grad_req="null")
    results = [each.asnumpy() for each in executor.forward(is_train=False)]
    kept = {f"in:{each}": array for each, array in inputs.items()}
    kept.update({f"out:{at}": array for at, array in enumerate(results)})
    if with_gradient:
        grads = {each: mx.nd.zeros(array.shape) for each, array in given.items()}
        executor = symbol.bind(mx.cpu(), given, args_grad=grads, aux_states=states)
        results = executor.forward(is_train=True)
        heads = [draw.normal(size=each.shape).astype("float32") for each in results]
        executor.backward([mx.nd.array(each) for each in heads])
        kept.update({f"head:{at}": each for at, each in enumerate(heads)})
        kept.update({f"grad:{each}": array.asnumpy() for each, array in grads.items()})
    np.savez(folder / f"{name}-expected.npz", **kept)
    large = {each: (BATCH, *shape[1:]) for each, shape in shapes.items()}
    inference = planned(symbol.simple_bind(mx.cpu(), grad_req="null", **large))
    training = planned(symbol.simple_bind(mx.cpu(), grad_req="write", **large))
    return {"shapes": shapes, "large": large, "inference_mb": inference, "training_mb": training}


def chain_seconds() -> dict[str, float]:
    """Return the shortest time of each step of table N, of three processes."""
    script = pathlib.Path(__file__).resolve().parents[2] / "python/weft/bench/symbols/chain.py"
    command = [sys.executable, str(script), "mxnet", "100000"]
    found = [json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout) for _ in range(3)]
    return {step: round(min(each[step] for each in found), 3) for step in found[0] if step != "verified"}


def main() -> None:
    """Go over the zoo and the files in the folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--only", nargs="*", default=None)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    given = json.loads((pathlib.Path(__file__).parent / "files.json").read_text())
    figures = {}
    if not all((options.folder / f"{name}-symbol.json").exists() for name in ZOO):
        export_zoo(options.folder)
    listed = {name: ({"data": (1, 3, size, size)}, gradient) for name, (size, gradient) in ZOO.items()}
    for name, each in given.items():
        if (options.folder / f"{name}-symbol.json").exists():
            listed[name] = ({key: tuple(shape) for key, shape in each["shapes"].items()}, each.get("gradient", False))
    for name, (shapes, gradient) in listed.items():
        if options.only and name not in options.only:
            continue
        figures[name] = compute(name, options.folder, shapes, with_gradient=gradient)
        print(name, figures[name], file=sys.stderr)
    path = options.folder / "theirs.json"
    known = json.loads(path.read_text())["networks"] if path.exists() and options.only else {}
    path.write_text(
        json.dumps({"mxnet": mx.__version__, "chain": chain_seconds(), "networks": {**known, **figures}}, indent=1)
    )


if __name__ == "__main__":
    main()
