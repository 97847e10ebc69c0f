"""How far copies overlap with compute: a pipeline over chunks, in arrays, beside threads written by hand."""
