"""The quantities an experiment can give: nothing here is computed, nothing has a default."""

from kvplan.registry import declare

# The shape of a model
declare("layers", "1", "L", "Layers of one group.", per="layer_group", at_least=0, whole=True)
declare(
    "query_heads", "1", "H_q", "Query heads of a layer.", per="layer_group", above=0, whole=True
)
declare(
    "kv_heads",
    "1",
    "H_kv",
    "Key and value heads of a layer.",
    per="layer_group",
    above=0,
    whole=True,
)
declare(
    "head_dim",
    "element/token",
    "d_h",
    "Elements one head keeps of one token, in K and in V.",
    per="layer_group",
    above=0,
    whole=True,
)
declare("parameters", "element", "N", "Weights of the model, embeddings included.", above=0)
declare(
    "max_context", "token", "n_max", "Longest sequence the model was made for.", above=0, whole=True
)

# Storage of elements
declare("kv_element", "B/element", "b", "Bytes of one stored K or V element.", above=0)
declare("weight_element", "B/element", "b_w", "Bytes of one stored weight.", above=0)

# The machine
declare(
    "peak_flops",
    "FLOP/s",
    "F",
    "Dense peak of one accelerator at 16 bit.",
    show="TFLOP/s",
    digits=1,
    above=0,
)
declare(
    "sparse_peak_flops",
    "FLOP/s",
    "F_s",
    "Peak of one accelerator with 2:4 structured sparsity, at 16 bit; formulas do not use it.",
    show="TFLOP/s",
    digits=1,
    above=0,
)
declare(
    "memory_bandwidth",
    "B/s",
    "β",
    "Memory bandwidth of one accelerator.",
    show="GB/s",
    digits=0,
    above=0,
)
declare(
    "device_memory",
    "B",
    "M_d",
    "Memory of one accelerator as its driver reports it.",
    show="GiB",
    digits=2,
    above=0,
)
declare(
    "tensor_parallel", "1", "t", "Accelerators one replica is split over.", at_least=1, whole=True
)
declare(
    "overhead",
    "B",
    "M_o",
    "Memory of a replica for activations, graphs and communication.",
    show="GiB",
    digits=1,
    at_least=0,
)
declare(
    "tier_bandwidth",
    "B/s",
    "B_t",
    "Bandwidth of a storage tier towards the accelerators.",
    show="GB/s",
    digits=0,
    above=0,
)
declare(
    "kv_budget",
    "B",
    "M_kv",
    "Bytes of a replica left for KV after everything else.",
    show="GiB",
    digits=1,
    at_least=0,
)
declare(
    "rank_kv_budget",
    "B",
    "M_rank",
    "Bytes one rank reports as available for KV.",
    show="GiB",
    digits=2,
    at_least=0,
)

# The workload
declare(
    "prompt_tokens", "token", "p_i", "Prompt length of each request.", per="request", at_least=0
)
declare(
    "output_tokens", "token", "o_i", "Output length of each request.", per="request", at_least=0
)
declare("context", "token", "n", "Tokens one sequence holds.", at_least=0, whole=True)
declare(
    "prefix",
    "token",
    "p",
    "Tokens at the start that requests have in common.",
    at_least=0,
    whole=True,
)
declare("concurrent", "1", "c", "Requests held at once.", at_least=1, whole=True)
declare(
    "reserve",
    "token",
    "r",
    "Token slots reserved for a sequence before it runs.",
    above=0,
    whole=True,
)
declare("page", "token", "B_s", "Token slots of one page (block).", above=0, whole=True)

# What a simulation asserts
declare(
    "occupancy", "1", "u", "Share of the KV pool in use.", show="%", digits=0, at_least=0, at_most=1
)
declare(
    "preemption_onset",
    "1",
    "u_0",
    "Occupancy at which preemption is said to begin.",
    show="%",
    digits=0,
    at_least=0,
    at_most=1,
)
declare(
    "preemption_span",
    "1",
    "Δu",
    "Occupancy from the onset to certain preemption.",
    show="%",
    digits=0,
    above=0,
    at_most=1,
)
declare(
    "counted_preemptions",
    "1",
    "X",
    "Preemptions that an engine counted.",
    at_least=0,
    whole=True,
)
declare(
    "counted_requests", "1", "Q_x", "Requests of the run that was counted.", above=0, whole=True
)
declare("preemption_draws", "1", "K", "Scheduling decisions drawn.", at_least=0, whole=True)
declare(
    "preemptions_per_round",
    "1",
    "K_r",
    "Most preemptions in one round of a cascade.",
    at_least=0,
    whole=True,
)
declare(
    "occupancy_per_preemption",
    "1",
    "δ",
    "Occupancy one preemption adds when it comes back.",
    at_least=0,
)
declare("rounds", "1", "R", "Rounds of a cascade.", at_least=0, whole=True)
declare("draw_seed", "1", "σ_0", "Seed of the random draws.", at_least=0, whole=True)
declare("prompt_mu", "1", "μ_p", "Mean of the logarithm of the prompt length in tokens.")
declare("prompt_sigma", "1", "σ_p", "Standard deviation of that logarithm.", at_least=0)

# Constants with a source
declare(
    "flop_per_parameter",
    "FLOP/element/token",
    "a",
    "A multiplication and an addition for each weight and token.",
    constant=2,
    source="Kaplan et al. 2020, arXiv:2001.08361, sec. 2.1",
)
