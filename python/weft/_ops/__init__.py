"""The ops of arrays, one file a family."""
