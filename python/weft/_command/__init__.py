"""The command line: ``weft`` or ``python -m weft``, with ``info``, ``bench``, ``trace``, ``graph`` and ``doctor``."""
