"""Small networks as MXNet of each version wrote them, and what they compute, by definition."""

import json
import struct

import numpy as np

#: Convolution, normalisation over the batch, an activation, pooling, a dense layer, probabilities.
OPS = [
    ("Convolution", "conv", {"kernel": "(3, 3)", "num_filter": "4", "pad": "(1, 1)"}, ["data", "weight", "bias"]),
    ("BatchNorm", "bn", {"fix_gamma": "False", "eps": "0.001"}, ["conv", "gamma", "beta", "moving_mean", "moving_var"]),
    ("Activation", "act", {"act_type": "relu"}, ["bn"]),
    ("Pooling", "pool", {"kernel": "(2, 2)", "stride": "(2, 2)", "pool_type": "max"}, ["act"]),
    ("Flatten", "flat", {}, ["pool"]),
    ("FullyConnected", "fc", {"num_hidden": "3"}, ["flat", "weight", "bias"]),
    ("SoftmaxOutput", "softmax", {}, ["fc", "label"]),
]
DATA = (2, 3, 6, 6)
STATES = ("moving_mean", "moving_var")


def symbol_file(version: str) -> str:
    """Return the network as MXNet of this version writes it."""
    first = version == "0.8"
    nodes, numbers = [], {}

    def add(op: str, name: str, inputs: list[int], attributes: dict[str, str]) -> None:
        node = {"op": op, "name": name}
        if first:  # attributes and notes apart, and whose gradient a node is
            node |= {"param": attributes, "inputs": [[at, 0] for at in inputs], "backward_source_id": -1}
        else:
            key = "attrs" if version in {"1.2", "2.0"} else "attr"
            node |= {key: attributes} if attributes else {}
            node["inputs"] = [[at, 0, 0] for at in inputs]
        numbers[name] = len(nodes)
        nodes.append(node)

    add("null", "data", [], {})
    for op, name, attributes, inputs in OPS:
        found = []
        for each in inputs:
            full = each if each in numbers else f"{name}_{each}"
            if each in STATES and first:
                continue  # states were no inputs
            if full not in numbers:
                add("null", full, [], {})
            found.append(numbers[full])
        add(op, name, found, attributes)
    file = {"nodes": nodes, "arg_nodes": [at for at, node in enumerate(nodes) if node["op"] == "null"]}
    file["heads"] = [[len(nodes) - 1, 0]] if first else [[len(nodes) - 1, 0, 0]]
    if not first:
        file["node_row_ptr"] = list(range(len(nodes) + 1))
        file["attrs"] = {"mxnet_version": ["int", {"0.9": 904, "0.11": 1100, "1.2": 10200, "2.0": 20000}[version]]}
    return json.dumps(file, indent=2)


def parameters(seed: int = 0) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Return numbers for the network's arguments and states."""
    draw = np.random.default_rng(seed)

    def normal(*shape: int) -> np.ndarray:
        return draw.normal(size=shape).astype(np.float32)

    arguments = {
        "conv_weight": normal(4, 3, 3, 3),
        "conv_bias": normal(4),
        "bn_gamma": normal(4),
        "bn_beta": normal(4),
        "fc_weight": normal(3, 36),
        "fc_bias": normal(3),
    }
    return arguments, {"bn_moving_mean": normal(4), "bn_moving_var": np.abs(normal(4)) + 0.5}


def convolved(x: np.ndarray, weight: np.ndarray, bias: np.ndarray, pad: int) -> np.ndarray:
    """Return the convolution of data with a weight, element by element."""
    x = np.pad(x, [(0, 0), (0, 0), (pad, pad), (pad, pad)])
    height, width = x.shape[2] - weight.shape[2] + 1, x.shape[3] - weight.shape[3] + 1
    found = np.zeros((x.shape[0], weight.shape[0], height, width), x.dtype)
    for top in range(height):
        for left in range(width):
            part = x[:, None, :, top : top + weight.shape[2], left : left + weight.shape[3]]
            found[:, :, top, left] = (part * weight).sum((2, 3, 4)) + bias
    return found


def computed(data: np.ndarray, arguments: dict[str, np.ndarray], states: dict[str, np.ndarray]) -> np.ndarray:
    """Return what the network gives, by the definition of each layer."""
    x = convolved(data, arguments["conv_weight"], arguments["conv_bias"], 1)
    spread = (1, -1, 1, 1)
    x = (x - states["bn_moving_mean"].reshape(spread)) / np.sqrt(states["bn_moving_var"].reshape(spread) + 1e-3)
    x = np.maximum(x * arguments["bn_gamma"].reshape(spread) + arguments["bn_beta"].reshape(spread), 0)
    x = x.reshape(2, 4, 3, 2, 3, 2).max((3, 5)).reshape(2, -1)
    x = np.exp(x @ arguments["fc_weight"].T + arguments["fc_bias"])
    return x / x.sum(1, keepdims=True)


def node_file(op: str, inputs: list[str], attributes: dict[str, object], outputs: int = 1) -> str:
    """Return a file with one call of an op."""
    nodes = [{"op": "null", "name": name, "inputs": []} for name in inputs]
    call = {"op": op, "name": "op", "inputs": [[at, 0, 0] for at in range(len(inputs))]}
    nodes.append(call | {"attrs": {key: str(value) for key, value in attributes.items()}})
    heads = [[len(inputs), at, 0] for at in range(outputs)]
    return json.dumps({"nodes": nodes, "heads": heads, "attrs": {"mxnet_version": ["int", 10901]}})


def record(array: np.ndarray, kind: str, *, number: int = 0) -> bytes:
    """Return an array as MXNet wrote it: before 0.9 ("old"), and since ("v1", "v2", "v3")."""
    shape, rank = array.shape, array.ndim
    if kind == "old":
        head = struct.pack(f"<I{rank}I", rank, *shape)
    elif kind == "v1":
        head = struct.pack(f"<II{rank}q", 0xF993FAC8, rank, *shape)
    else:
        head = struct.pack(f"<Iii{rank}q", 0xF993FAC9 if kind == "v2" else 0xF993FACA, 0, rank, *shape)
    return head + struct.pack("<3i", 1, 0, number) + array.tobytes()


def params_file(records: list[bytes], names: list[str]) -> bytes:
    """Return a file of records."""
    listed = b"".join(struct.pack("<Q", len(name)) + name.encode() for name in names)
    return struct.pack("<3Q", 0x112, 0, len(records)) + b"".join(records) + struct.pack("<Q", len(names)) + listed
