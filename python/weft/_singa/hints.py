"""Names of other libraries' layers, models and optimizers, and their replacements."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NoReturn

from weft._numpy.hints import MOVES, elsewhere

if TYPE_CHECKING:
    from collections.abc import Callable

#: The expression to write for a method of layers and models.
INSTEAD_OF_LAYERS = {
    "children": "dict(net.named()).values()",
    **dict.fromkeys(MOVES, "net.compile([x]) with x on weft.gpu(0): parameters are made beside the inputs"),
    "fit": "a loop over batches: net(x, y) trains on one",
    "load_state_dict": "net.set_states(states); of PyTorch's: net.set_states(weft.model.torch_states(net, states))",
    "modules": "dict(net.named_layers()).values()",
    "named_modules": "net.named_layers()",
    "named_parameters": "net.get_params().items()",
    "parameters": "net.get_params().values(); an optimizer finds them by itself",
    "register_buffer": "self.name = tensor.Tensor(shape): tensors among the attributes are states",
    "requires_grad_": "net.freeze() or net.unfreeze()",
    "state_dict": "net.get_states(), or net.save_states(path) with the optimizer's",
    "zero_grad": "nothing in its place: each walk returns new gradients, and adds to none",
}

#: The expression to write for a method of optimizers.
INSTEAD_OF_OPTIMIZERS = {
    "load_state_dict": "optimizer.set_states(states), or net.load_states(path)",
    "minimize": "optimizer(loss)",
    "param_groups": "opt.ParamGroups({pattern: optimizer, ...}), with a rate for each group; optimizer.lr = rate for one",
    "state_dict": "optimizer.get_states(), or net.save_states(path)",
    "zero_grad": "nothing in its place: optimizer(loss) computes new gradients, and applies them",
}

_LAYERS = {
    "BCELoss": "weft.layer.BinaryCrossEntropy()",
    "CrossEntropyLoss": "weft.layer.SoftMaxCrossEntropy()",
    "Dense": "weft.layer.Linear(out_features)",
    "Identity": "lambda x: x, in weft.layer.Sequential, too",
    "MSELoss": "weft.layer.MeanSquareError()",
    "Module": "weft.layer.Layer, or weft.model.Model for a network with its loss and its optimizer",
    "ModuleDict": "a dict among the attributes: layers in it are found",
    "ModuleList": "a list among the attributes: layers in it are found",
    "MultiheadAttention": "weft.layer.MultiHeadAttention(num_heads)",
    "Parameter": "weft.tensor.Tensor(shape, stores_grad=True)",
    "Softmax": "weft.layer.SoftMax()",
    "functional": "weft.nn: its functions take arrays",
    "init": "weft.initializer",
    "utils": "weft.opt.clip_grad_norm(gradients, max_norm)",
}
_OPTIMIZERS = {
    "AveragedModel": "weft.opt.EMA(net)",
    "CosineAnnealingLR": "weft.opt.CosineDecay(rate, steps)",
    "ExponentialLR": "weft.opt.ExponentialDecay(rate, steps, factor)",
    "LinearLR": "weft.opt.WarmUp(rate, steps)",
    "MultiStepLR": "weft.opt.StepDecay(rate, [30, 60])",
    "OneCycleLR": "weft.opt.OneCycle(rate, steps)",
    "StepLR": "weft.opt.StepDecay(rate, steps)",
    "adam": "weft.opt.Adam(rate)",
    "adamw": "weft.opt.AdamW(rate)",
    "clip_grad_norm_": "weft.opt.clip_grad_norm(gradients, max_norm)",
    "lr_scheduler": "opt.SGD(lr=opt.CosineDecay(...)): a rate may be a schedule",
    "sgd": "weft.opt.SGD(rate)",
    "swa_utils": "weft.opt.EMA(net)",
}
#: The expression to write for a name that a module lacks.
INSTEAD_IN = {"weft.layer": _LAYERS, "weft.model": _LAYERS, "weft.nn": _LAYERS, "weft.opt": _OPTIMIZERS}


def absent_from(module: str) -> Callable[[str], NoReturn]:
    """Return the `__getattr__` of a module; its error names the expression to write."""

    def absent(name: str) -> NoReturn:
        instead = INSTEAD_IN[module].get(name)
        hint = elsewhere(name) if instead is None else f": write {instead}"
        raise AttributeError(f"module {module!r} has no attribute {name!r}{hint}", name=name, obj=sys.modules[module])

    return absent
