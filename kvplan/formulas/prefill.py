"""Computing KV: floating-point operations and time of a prefill."""

from kvplan.registry import formula

LINEAR = "Kaplan et al. 2020, arXiv:2001.08361, sec. 2.1"


@formula(unit="FLOP/token", symbol="f", show="GFLOP/token", digits=0, source=LINEAR)
def prefill_flops_per_token(flop_per_parameter, parameters):
    """Operations of the weights for one token; attention itself is left out.

    The omission grows with the prefix: for a 70B model 4 % at 4,096 tokens, 31 % at 32,768 and
    126 % at 131,072.
    """
    return flop_per_parameter * parameters


@formula(unit="s/token", symbol="τ", show="us/token", digits=1, source=LINEAR)
def prefill_time_per_token(prefill_flops_per_token, peak_flops, tensor_parallel):
    """Time to compute one token at all of the dense peak; engines reach 40 to 65 % of it."""
    return prefill_flops_per_token / (peak_flops * tensor_parallel)


@formula(unit="s", symbol="t_re", show="ms", digits=1, source=LINEAR)
def recompute_time(prefix, prefill_time_per_token):
    """Time to compute a prefix again."""
    return prefix * prefill_time_per_token
