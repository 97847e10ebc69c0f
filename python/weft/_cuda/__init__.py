"""The CUDA backend of arrays. Imported when the first array is put there, never by ``import weft``."""
