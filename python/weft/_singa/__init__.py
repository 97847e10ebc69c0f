"""SINGA's names: operators for `weft.autograd`, and the parts of `weft.layer`, `opt`, `model`, `tensor` and `device`."""
