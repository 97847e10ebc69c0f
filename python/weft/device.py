"""Devices under SINGA's names: the places of tensors, generators of random numbers, graphs of pushes, times.

>>> from weft import device, tensor
>>> dev = device.get_default_device()
>>> dev.SetRandSeed(0)
>>> tensor.Tensor((2, 3), dev).gaussian(0.0, 1.0).shape
(2, 3)
"""

from weft._singa.device import (
    Device,
    create_cpu_device,
    create_cuda_gpu,
    create_cuda_gpu_on,
    create_cuda_gpus,
    create_cuda_gpus_on,
    default_device,
    device_query,
    enable_lazy_alloc,
    get_default_device,
    get_gpu_ids,
    get_gpu_mem_size,
    get_num_gpus,
)

__all__ = [
    "Device", "create_cpu_device", "create_cuda_gpu", "create_cuda_gpu_on", "create_cuda_gpus",
    "create_cuda_gpus_on", "default_device", "device_query", "enable_lazy_alloc", "get_default_device",
    "get_gpu_ids", "get_gpu_mem_size", "get_num_gpus",
]  # fmt: skip
