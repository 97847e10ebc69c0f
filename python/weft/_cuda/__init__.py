"""What arrays need on CUDA devices. Imported when the first array is put there, never by ``import weft``."""
