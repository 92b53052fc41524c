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
declare(
    "value_head_dim",
    "element/token",
    "d_v",
    "Elements one head keeps of one token in V, where K and V differ.",
    per="layer_group",
    above=0,
    whole=True,
)
declare(
    "window",
    "token",
    "W",
    "Tokens a sliding window looks back over.",
    per="layer_group",
    above=0,
    whole=True,
)
declare(
    "chunk",
    "token",
    "W_c",
    "Tokens of one chunk of chunked local attention.",
    per="layer_group",
    above=0,
    whole=True,
)
declare(
    "latent",
    "element/token",
    "d_c",
    "Elements of the compressed latent that all heads share.",
    per="layer_group",
    above=0,
    whole=True,
)
declare(
    "rope_dim",
    "element/token",
    "d_r",
    "Elements of the rotary key kept beside the latent.",
    per="layer_group",
    at_least=0,
    whole=True,
)
declare(
    "indexer_heads",
    "1",
    "H_x",
    "Heads of a sparse-attention indexer; they share one key.",
    per="layer_group",
    at_least=0,
    whole=True,
)
declare(
    "indexer_dim",
    "element/token",
    "d_x",
    "Elements of the indexer's key.",
    per="layer_group",
    above=0,
    whole=True,
)
declare(
    "compress_ratio",
    "token",
    "ρ_c",
    "Tokens that one compressed entry stands for.",
    per="layer_group",
    above=0,
    whole=True,
)
declare(
    "conv_elements",
    "element",
    "E_c",
    "Elements of the convolution state of one layer.",
    per="layer_group",
    at_least=0,
    whole=True,
)
declare(
    "state_elements",
    "element",
    "E_s",
    "Elements of the recurrent state of one layer.",
    per="layer_group",
    above=0,
    whole=True,
)
declare(
    "encoder_length",
    "token",
    "n_e",
    "Encoder tokens that cross-attention keeps.",
    per="layer_group",
    above=0,
    whole=True,
)
for _name, _symbol, _doc in (
    ("conv_kernel", "κ", "Taps of the convolution before a recurrent layer."),
    ("state_heads", "H_s", "Heads of a recurrent state."),
    ("key_heads", "H_k", "Key heads of a linear-attention layer."),
    ("state_groups", "G_s", "Groups that share the projections of a recurrent state."),
    ("state_dim", "d_s", "Size of one head's recurrent state."),
):
    declare(_name, "1", _symbol, _doc, per="layer_group", at_least=0, whole=True)
declare("parameters", "element", "N", "Weights of the model, embeddings included.", above=0)
declare(
    "max_context", "token", "n_max", "Longest sequence the model was made for.", above=0, whole=True
)

for _name, _symbol, _doc in (
    ("expert_parameters", "N_x", "Weights of the routed experts, all of them."),
    ("active_parameters", "N_a,p", "Weights that work on one token."),
    ("embedding_parameters", "N_e", "Weights of the input and output embeddings."),
    ("vision_parameters", "N_v", "Weights of the vision tower."),
):
    declare(_name, "element", _symbol, _doc, at_least=0)
declare("hidden_size", "1", "d", "Width of the residual stream.", above=0, whole=True)
declare("vocab_size", "1", "V", "Entries of the vocabulary.", above=0, whole=True)

# Storage of elements
declare("conv_element", "B/element", "b_c", "Bytes of one element of a convolution state.", above=0)
declare("state_element", "B/element", "b_s", "Bytes of one element of a recurrent state.", above=0)
declare("indexer_element", "B/element", "b_x", "Bytes of one element of an indexer's key.", above=0)
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
declare(
    "nothing_per_token",
    "B/token",
    "∅_k",
    "Bytes a token of layers that keep nothing of their own.",
    constant=0,
    source="such layers have no cache",
)
