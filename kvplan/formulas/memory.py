"""From the memory of a replica to the share of it one request holds."""

from kvplan.registry import formula
from kvplan.values.ops import floor_div


@formula(
    unit="B",
    symbol="M_w",
    show="GiB",
    digits=1,
    source="each weight is stored once; quantisation scales are left out",
)
def weight_bytes(parameters, weight_element):
    """Bytes of the weights of one replica."""
    return parameters * weight_element


@formula(
    unit="B",
    symbol="M_r",
    show="GiB",
    digits=1,
    source="one replica is tensor_parallel accelerators",
)
def replica_memory(tensor_parallel, device_memory):
    """Memory of all accelerators of a replica."""
    return tensor_parallel * device_memory


@formula(
    unit="B",
    symbol="M_left",
    show="GiB",
    digits=1,
    source="memory that is neither weights nor overhead; all three in bytes",
)
def memory_left_for_kv(replica_memory, weight_bytes, overhead):
    """Bytes left for KV; an engine's memory fraction and fragmentation are left out."""
    return replica_memory - weight_bytes - overhead


@formula(
    unit="B",
    symbol="M_meas",
    show="GiB",
    digits=1,
    source="an engine prints what each rank has left",
)
def measured_pool(tensor_parallel, rank_kv_budget):
    """Bytes for KV that all ranks of a replica report together."""
    return tensor_parallel * rank_kv_budget


@formula(
    unit="B",
    symbol="M_step",
    show="GiB",
    digits=1,
    source="Pope et al. 2022, arXiv:2211.05102, sec. 2",
)
def decode_step_bytes(weight_bytes, kv_budget):
    """Bytes one decode step reads when the KV budget is full: every weight and every KV byte."""
    return weight_bytes + kv_budget


@formula(unit="1", symbol="φ", show="%", digits=1, source="part of the budget")
def replica_share(kv_per_sequence, kv_budget):
    """Share of the KV budget that one sequence holds."""
    return kv_per_sequence / kv_budget


@formula(unit="1", symbol="n_seq", digits=1, source="budget over size, fractions kept")
def sequences_in_budget(kv_budget, kv_per_sequence):
    """Sequences of one length that the budget holds, as a fraction; round down to admit."""
    return kv_budget / kv_per_sequence


@formula(unit="token", symbol="n_slots", source="whole token slots of the budget")
def token_slots(kv_budget, kv_per_token):
    """Whole tokens that the budget holds."""
    return floor_div(kv_budget, kv_per_token)
