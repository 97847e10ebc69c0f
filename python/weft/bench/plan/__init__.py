"""Offsets for the intervals of files: how near the peak of live bytes, and how long it takes."""
