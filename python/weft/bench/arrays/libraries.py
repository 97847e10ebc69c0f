"""The array libraries, by the name that a process is started with. None is imported here but NumPy and weft."""

from __future__ import annotations

from weft.bench.arrays.dask_arrays import DaskArrays
from weft.bench.arrays.jax_arrays import JaxArrays
from weft.bench.arrays.mlx_arrays import MlxArrays
from weft.bench.arrays.numexpr_arrays import NumexprArrays
from weft.bench.arrays.numpy_arrays import NumPyArrays, SplitArrays
from weft.bench.arrays.torch_arrays import CompiledTorchArrays, TorchArrays
from weft.bench.arrays.weft_arrays import EagerWeftArrays, WeftArrays

LIBRARIES: dict[str, type[NumPyArrays]] = {
    "weft": WeftArrays,
    "weft, eager": EagerWeftArrays,
    "numpy": NumPyArrays,
    "split": SplitArrays,
    "torch": TorchArrays,
    "torch.compile": CompiledTorchArrays,
    "jax": JaxArrays,
    "mlx": MlxArrays,
    "numexpr": NumexprArrays,
    "dask": DaskArrays,
}
