"""Networks that the demo trains, with SINGA's names: each is a model and a batch to try it with."""
