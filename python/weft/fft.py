"""Fourier transforms: the `fft` extension of the Python array API standard, and NumPy's transforms of two axes.

float16, float32 and complex64 transform in single precision, everything else in double. `norm` says which direction is scaled: by
1/n the inverse one ("backward", the default), the forward one ("forward"), or both by 1/sqrt(n) ("ortho").
"""

from weft._numpy.arguments import completed as _completed
from weft._ops.fft import (
    fft,
    fft2,
    fftfreq,
    fftn,
    fftshift,
    hfft,
    ifft,
    ifft2,
    ifftn,
    ifftshift,
    ihfft,
    irfft,
    irfft2,
    irfftn,
    rfft,
    rfft2,
    rfftfreq,
    rfftn,
)

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift", "ihfft", "irfft",
    "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn",
]  # fmt: skip

globals().update(_completed("fft", {name: globals()[name] for name in __all__}))
