"""The table of known decoders with experts, latents or a twist: model_type to family."""

from __future__ import annotations

from kvplan.importer.family import Experts, Family, Style
from kvplan.importer.known_dense import EXAONE4, GEMMA3, LLAMA, MINICPM, OLMO2, PLAIN
from kvplan.importer.latent import read_compressed, read_indexed_mla, read_longcat, read_mla
from kvplan.importer.legacy import read_dbrx, read_jetmoe, read_minicpm_moe
from kvplan.importer.patterns import (
    by_layer_types,
    first_of_four,
    llama4_chunks,
    one_window,
    qwen_moe_window,
    qwen_window,
)
from kvplan.importer.sparsity import (
    after_dense,
    ernie_span,
    every_layer,
    llama4_steps,
    qwen_steps,
    step_enumeration,
)
from kvplan.importer.special import (
    read_gemma3n,
    read_gemma4,
    read_hunyuan,
    read_mllama,
)
from kvplan.importer.varying import (
    read_dense_and_experts,
    read_laguna,
    read_mimo_v2,
    read_minimax_m3,
    read_nemotron_nas,
    read_step3,
    read_step3_factored,
)

_BIASED = Style("attention_bias", "attention_bias")
_QK_NORM = Style("attention_bias", "attention_bias", qk_norm="head")
_LOCAL = Experts(every_layer, "num_local_experts", width="intermediate_size")
_EVERY = Experts(every_layer, width="intermediate_size")
_DEEPSEEK = Experts(after_dense(), "n_routed_experts", shared_count="n_shared_experts")
_SHARED = Experts(after_dense(default=1), shared_count="num_shared_experts")

MIXTRAL = PLAIN.but(kinds=one_window(), experts=_LOCAL)
QWEN3_MOE = PLAIN.but(
    kinds=qwen_moe_window,
    style=_QK_NORM,
    experts=Experts(qwen_steps),
    aliases={"num_experts": ("num_local_experts",)},
    moot=("intermediate_size",),
)
DEEPSEEK_V3 = Family(
    read_mla,
    style=Style("attention_bias"),
    experts=_DEEPSEEK,
    # A latent has one head, whatever these say.
    moot=("num_key_value_heads", "head_dim", "qk_head_dim", "q_head_dim"),
)
DEEPSEEK_V32 = DEEPSEEK_V3.but(read=read_indexed_mla)
DEEPSEEK_V4 = Family(
    read_compressed,
    moot=("num_key_value_heads", "num_hash_layers", "compress_rope_theta", "qk_nope_head_dim"),
    defaults={"qk_rope_head_dim": 64},
)
GLM4_MOE = PLAIN.but(
    style=Style("attention_bias", qk_norm="head", qk_norm_key="use_qk_norm"),
    experts=_DEEPSEEK,
    moot=("intermediate_size",),
)
HUNYUAN = PLAIN.but(
    read=read_hunyuan,
    aliases={"num_experts_per_tok": ("moe_topk",), "head_dim": ("attention_head_dim",)},
    style=Style("attention_bias", "attention_bias", qk_norm="head", qk_norm_key="use_qk_norm"),
    experts=Experts(every_layer, shared_count="num_shared_expert"),
    moot=("use_mixed_mlp_moe",),
)
# per_layer_config repeats what global_head_dim and num_global_key_value_heads say.
GEMMA4 = GEMMA3.but(read=read_gemma4, moot=(*GEMMA3.moot, "per_layer_config"))
STEP3 = PLAIN.but(
    read=read_step3,
    aliases={
        "num_key_value_heads": ("num_attention_groups",),
        "n_routed_experts": ("moe_num_experts", "num_experts", "num_local_experts"),
        "num_experts_per_tok": ("moe_top_k",),
        "share_expert_dim": ("share_expert_dims",),
    },
    style=Style("attention_bias", "attention_bias", "mlp_bias", qk_norm="head", gate="head"),
    experts=Experts(step_enumeration, "n_routed_experts", shared_width="share_expert_dim"),
    moot=("n_shared_experts", "use_moe_router_bias", "use_head_wise_attn_gate"),
)
BAILING = PLAIN.but(
    style=Style("use_qkv_bias", "use_bias", qk_norm="head", qk_norm_key="use_qk_norm"),
    experts=Experts(after_dense(), shared_count="num_shared_experts"),
    moot=("moe_shared_expert_intermediate_size",),
)
GROK = PLAIN.but(
    read=read_dense_and_experts,
    style=Style(norms=4),
    experts=Experts(every_layer, "num_local_experts"),
    aliases={"num_local_experts": ("num_experts",)},
)

MIXTURES: dict[str, Family] = {
    "mixtral": MIXTRAL,
    "phimoe": PLAIN.but(
        kinds=one_window(idle_if_longer=True),
        style=Style("attention_bias", "attention_bias", head_bias="lm_head_bias", norm_values=2),
        experts=_LOCAL,
    ),
    "minimax_m2": PLAIN.but(kinds=by_layer_types(), style=Style(qk_norm="heads"), experts=_LOCAL),
    "minimax_m3_vl_text": PLAIN.but(
        read=read_minimax_m3,
        aliases={
            "index_n_heads": ("sparse_attention_config.sparse_num_index_heads",),
            "index_head_dim": ("sparse_attention_config.sparse_index_dim",),
        },
        style=Style(qk_norm="head"),
        experts=Experts(
            after_dense(),
            "num_local_experts",
            width="intermediate_size",
            shared_width="shared_intermediate_size",
            dense_width="dense_intermediate_size",
        ),
    ),
    "gpt_oss": PLAIN.but(
        kinds=by_layer_types(2),
        aliases={"num_experts_per_tok": ("experts_per_token",)},
        style=Style("attention_bias", "attention_bias", sinks=True),
        experts=Experts(
            every_layer,
            "num_local_experts",
            width="intermediate_size",
            router_bias=True,
            expert_bias=True,
        ),
        defaults={"attention_bias": True},
    ),
    "qwen2_moe": PLAIN.but(
        kinds=qwen_window,
        style=Style("qkv_bias"),
        experts=Experts(
            qwen_steps, shared_width="shared_expert_intermediate_size", shared_gate=True
        ),
        moot=("intermediate_size",),
        defaults={"qkv_bias": True},
    ),
    **dict.fromkeys(("qwen3_moe", "qwen3_vl_moe_text", "qwen3_omni_moe_text"), QWEN3_MOE),
    "mellum": PLAIN.but(
        kinds=by_layer_types(),
        style=_QK_NORM,
        experts=Experts(after_dense()),
        aliases={"num_experts": ("num_local_experts",)},
        moot=("intermediate_size",),
    ),
    "olmoe": OLMO2.but(experts=_EVERY),
    "flex_olmo": OLMO2.but(experts=_EVERY),
    "granitemoe": PLAIN.but(style=_BIASED, experts=_LOCAL),
    **dict.fromkeys(
        ("granitemoeshared",),
        PLAIN.but(
            style=_BIASED,
            experts=Experts(
                every_layer,
                "num_local_experts",
                width="intermediate_size",
                shared_width="shared_intermediate_size",
            ),
        ),
    ),
    "aria_text": PLAIN.but(
        style=Style("attention_bias", "attention_bias", "mlp_bias"),
        experts=Experts(
            every_layer,
            "moe_num_experts",
            "moe_topk",
            "intermediate_size",
            shared_count="moe_num_shared_experts",
        ),
    ),
    "grok": GROK,
    "deepseek": PLAIN.but(style=_BIASED, experts=_DEEPSEEK),
    **dict.fromkeys(("deepseek_v2", "deepseek_v3", "kimi_k2", "mistral4"), DEEPSEEK_V3),
    **dict.fromkeys(
        ("axk1", "glm4_moe_lite", "sarvam_mla"),
        DEEPSEEK_V3.but(
            experts=Experts(
                after_dense(default=1), "n_routed_experts", shared_count="n_shared_experts"
            )
        ),
    ),
    # The value heads of MiniCPM3 are hidden_size / num_attention_heads wide.
    "minicpm3": DEEPSEEK_V3.but(
        experts=None, defaults={"v_head_dim": 64, "tie_word_embeddings": True}
    ),
    "youtu": DEEPSEEK_V3.but(experts=None),
    **dict.fromkeys(("deepseek_v32", "glm_moe_dsa"), DEEPSEEK_V32),
    **dict.fromkeys(("deepseek_v4", "deepseek_ref"), DEEPSEEK_V4),
    "longcat_flash": Family(
        read_longcat,
        {"num_hidden_layers": ("num_layers",)},
        style=Style("attention_bias"),
        moot=DEEPSEEK_V3.moot,
    ),
    "glm4_moe": GLM4_MOE,
    "sarvam_moe": GLM4_MOE.but(
        aliases={"n_routed_experts": ("num_experts",), "n_shared_experts": ("num_shared_experts",)},
        style=Style("attention_bias", "attention_bias", qk_norm="head", qk_norm_key="use_qk_norm"),
    ),
    "glm4v_moe_text": GLM4_MOE.but(defaults={"attention_bias": True}),
    "solar_open": GLM4_MOE.but(style=Style("attention_bias")),
    "dots1": GLM4_MOE.but(kinds=by_layer_types(), style=_QK_NORM),
    "ernie4_5_moe": PLAIN.but(
        style=Style("use_bias", "use_bias", "use_bias"),
        experts=Experts(
            ernie_span, "moe_num_experts", "moe_k", shared_count="moe_num_shared_experts"
        ),
    ),
    "exaone_moe": EXAONE4.but(experts=_SHARED),
    **dict.fromkeys(("bailing_moe", "bailing_moe_v2"), BAILING),
    "hy_v3": PLAIN.but(style=_QK_NORM, experts=_SHARED),
    "hunyuan": HUNYUAN,
    "hunyuan_v1_moe": HUNYUAN.but(defaults={"use_qk_norm": True, "num_shared_expert": 1}),
    "jetmoe": Family(
        read_jetmoe,
        {
            "head_dim": ("kv_channels",),
            "num_experts_per_tok": ("moe_top_k",),
            "num_local_experts": ("moe_num_experts",),
        },
        moot=("num_attention_heads",),
    ),
    "dbrx": Family(read_dbrx, experts=Experts(every_layer)),
    "minicpm": MINICPM.but(read=read_minicpm_moe, experts=_EVERY),
    "arctic": PLAIN.but(
        read=read_dense_and_experts,
        style=_BIASED,
        experts=Experts(qwen_steps, "num_local_experts", width="intermediate_size"),
        aliases={"decoder_sparse_step": ("moe_layer_frequency",)},
    ),
    "afmoe": PLAIN.but(
        kinds=by_layer_types(4),
        style=Style("attention_bias", "attention_bias", norms=4, qk_norm="head", gate="full"),
        experts=Experts(after_dense("num_dense_layers", 1), shared_count="num_shared_experts"),
    ),
    "laguna": PLAIN.but(
        read=read_laguna,
        kinds=by_layer_types(),
        style=Style("attention_bias", "attention_bias", qk_norm="head", gate="head"),
        experts=Experts(after_dense(default=1), shared_width="shared_expert_intermediate_size"),
    ),
    "llama4_text": PLAIN.but(
        kinds=llama4_chunks,
        # The norm on queries and keys of Llama 4 has no weights.
        style=_BIASED,
        experts=Experts(
            llama4_steps,
            "num_local_experts",
            width="intermediate_size",
            shared_count="shared_experts",
            dense_width="intermediate_size_mlp",
        ),
        defaults={"shared_experts": 1},
        moot=("intermediate_size_mlp", "for_llm_compressor"),
    ),
    "gemma3n_text": GEMMA3.but(read=read_gemma3n, kinds=by_layer_types(5)),
    "gemma4_text": GEMMA4,
    "gemma4_unified_text": GEMMA4.but(defaults={"hidden_size_per_layer_input": 0}),
    "mllama_text_model": PLAIN.but(read=read_mllama),
    "nemotron-nas": LLAMA.but(read=read_nemotron_nas),
    **dict.fromkeys(
        ("mimo_v2", "mimo_v2_flash"),
        PLAIN.but(
            read=read_mimo_v2,
            style=Style("attention_bias"),
            experts=Experts(
                after_dense(default=1), "n_routed_experts", shared_count="n_shared_experts"
            ),
            moot=("attention_chunk_size", "sliding_window_size"),
        ),
    ),
    **dict.fromkeys(("step3p5", "step3p7"), STEP3),
    "step3_text": STEP3.but(read=read_step3_factored, style=Style()),
}
MIXTURES["granitemoe_swa"] = MIXTURES["granitemoeshared"].but(
    kinds=first_of_four, style=Style("attention_bias", "attention_bias", sinks=True)
)
