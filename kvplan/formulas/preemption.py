"""The preemption model of a hands-on page, restated; no measurement supports its curve."""

from kvplan.registry import formula
from kvplan.values.ops import maximum
from kvplan.values.simulate import occupancy_after, reprefilled_in_draws, reprefilled_in_rounds

ASSERTED = "asserted by KV cache memory and paged attention (hands-on page), block 6"


@formula(unit="1", symbol="x_u", source=ASSERTED)
def preemption_pressure(occupancy, preemption_onset, preemption_span):
    """How far the occupancy is above the onset, in spans."""
    return maximum(0, (occupancy - preemption_onset) / preemption_span)


@formula(unit="1", symbol="P_u", show="%", digits=1, source=ASSERTED)
def preemption_probability(preemption_pressure):
    """Probability that one decision preempts: the pressure squared."""
    return preemption_pressure * preemption_pressure


@formula(unit="token", symbol="T_re", source=ASSERTED)
def reprefilled_tokens(
    preemption_probability, preemption_draws, draw_seed, prompt_mu, prompt_sigma
):
    """Tokens prefilled again over the decisions drawn."""
    return reprefilled_in_draws(
        preemption_probability, preemption_draws, draw_seed, prompt_mu, prompt_sigma
    )


@formula(unit="s", symbol="t_waste", show="ms", digits=0, source=ASSERTED)
def reprefill_time(reprefilled_tokens, prefill_time_per_token):
    """Time spent on prefilling again, at all of the dense peak."""
    return reprefilled_tokens * prefill_time_per_token


@formula(unit="1", symbol="u_R", digits=2, source=ASSERTED)
def cascade_occupancy(
    occupancy,
    preemption_onset,
    preemption_span,
    preemptions_per_round,
    occupancy_per_preemption,
    rounds,
):
    """Occupancy after the rounds of a cascade."""
    return occupancy_after(
        occupancy,
        preemption_onset,
        preemption_span,
        preemptions_per_round,
        occupancy_per_preemption,
        rounds,
    )


@formula(unit="token", symbol="T_R", source=ASSERTED)
def cascade_reprefilled_tokens(
    occupancy,
    preemption_onset,
    preemption_span,
    preemptions_per_round,
    occupancy_per_preemption,
    rounds,
    draw_seed,
    prompt_mu,
    prompt_sigma,
):
    """Tokens prefilled again over the rounds of a cascade."""
    return reprefilled_in_rounds(
        occupancy,
        preemption_onset,
        preemption_span,
        preemptions_per_round,
        occupancy_per_preemption,
        rounds,
        draw_seed,
        prompt_mu,
        prompt_sigma,
    )


@formula(unit="1", symbol="ν", digits=2, source="vLLM pull request 44594 counts both")
def measured_preemptions(counted_preemptions, counted_requests):
    """Preemptions for each request of a run; one request can be preempted several times."""
    return counted_preemptions / counted_requests
