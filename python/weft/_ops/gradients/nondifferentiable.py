"""Ops without a gradient: their results are integers, booleans or draws, or depend on no operand.

The one place where that is said; what has neither a rule nor a line here fails a test.
"""

from __future__ import annotations

from weft._registry.gradients import no_gradient, refuse_gradient

#: Questions, whose results are booleans.
no_gradient("all", "any", "isin")
#: Positions, counts and ranks.
no_gradient(
    "argmax", "argmin", "argpartition", "argsort", "count_nonzero", "digitize", "lexsort", "linalg.matrix_rank",
    "nanargmax", "nanargmin", "searchsorted", "unravel_index",
)  # fmt: skip
#: Of no operand.
no_gradient("arange", "constant", "eye", "fft.fftfreq", "fft.rfftfreq", "linspace")
#: Of an operand that is to be taken for a constant.
no_gradient("stop_gradient")
#: Draws: their parameters are no operands of a derivative. What a loss needs of it is computed from draws of a fixed distribution.
refuse_gradient(
    "random.beta", "random.binomial", "random.bytes", "random.chisquare", "random.choice", "random.dirichlet",
    "random.exponential", "random.f", "random.gamma", "random.geometric", "random.gumbel", "random.hypergeometric",
    "random.integers", "random.laplace", "random.logistic", "random.lognormal", "random.logseries",
    "random.multinomial", "random.multivariate_hypergeometric", "random.multivariate_normal",
    "random.negative_binomial", "random.noncentral_chisquare", "random.noncentral_f", "random.normal",
    "random.pareto", "random.permutation", "random.permuted", "random.poisson", "random.power", "random.random",
    "random.rayleigh", "random.shuffle", "random.standard_cauchy", "random.standard_exponential",
    "random.standard_gamma", "random.standard_normal", "random.standard_t", "random.triangular", "random.uniform",
    "random.vonmises", "random.wald", "random.weibull", "random.zipf",
)  # fmt: skip
