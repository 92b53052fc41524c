"""The table of known decoders with experts, latent attention or a twist in their attention: model_type to family."""

from __future__ import annotations

from kvplan.importer.decoder import read_decoder
from kvplan.importer.family import Experts, Family, Style
from kvplan.importer.known_dense import (
    EXAONE4,
    GEMMA3,
    LLAMA,
    MINICPM,
    OLMO2,
    PLAIN,
    QWEN2,
)
from kvplan.importer.latent import read_compressed, read_indexed_mla, read_longcat, read_mla
from kvplan.importer.legacy import read_dbrx, read_jetmoe, read_minicpm_moe
from kvplan.importer.patterns import (
    by_layer_types,
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
    read_arctic,
    read_gemma3n,
    read_gemma4,
    read_hunyuan,
    read_mimo_v2,
    read_minimax_m3,
    read_mllama,
    read_nemotron_nas,
    read_step3,
)

_LOCAL = Experts(every_layer, "num_local_experts", width="intermediate_size")
_DEEPSEEK = Experts(after_dense(), "n_routed_experts", shared_count="n_shared_experts")
_QWEN = Experts(qwen_steps, shared_width="shared_expert_intermediate_size", shared_gate=True)

MIXTRAL = PLAIN.but(
    "MixtralConfig",
    kinds=one_window(),
    experts=_LOCAL,
    defaults={
        "num_key_value_heads": 8,
        "intermediate_size": 14336,
        "num_local_experts": 8,
        "num_experts_per_tok": 2,
        "max_position_embeddings": 131072,
    },
)
QWEN2_MOE = QWEN2.but(
    "Qwen2MoeConfig",
    defaults={
        "hidden_size": 2048,
        "intermediate_size": 5632,
        "num_hidden_layers": 24,
        "num_attention_heads": 16,
        "num_key_value_heads": 16,
        "moe_intermediate_size": 1408,
        "shared_expert_intermediate_size": 5632,
        "num_experts_per_tok": 4,
        "num_experts": 60,
        "qkv_bias": True,
    },
    kinds=qwen_window,
    style=Style("qkv_bias"),
    experts=_QWEN,
)
QWEN3_MOE = QWEN2.but(
    "Qwen3MoeConfig",
    defaults={
        "hidden_size": 2048,
        "intermediate_size": 6144,
        "num_hidden_layers": 24,
        "num_key_value_heads": 4,
        "moe_intermediate_size": 768,
        "num_experts_per_tok": 8,
        "num_experts": 128,
    },
    kinds=qwen_moe_window,
    style=Style("attention_bias", "attention_bias", qk_norm="head"),
    experts=Experts(qwen_steps),
    aliases={"num_experts": ("num_local_experts",)},
)
DEEPSEEK_V3 = Family(
    "DeepseekV3Config",
    read_mla,
    {
        "vocab_size": 129280,
        "hidden_size": 7168,
        "intermediate_size": 18432,
        "moe_intermediate_size": 2048,
        "num_hidden_layers": 61,
        "num_attention_heads": 128,
        "n_shared_experts": 1,
        "n_routed_experts": 256,
        "q_lora_rank": 1536,
        "qk_rope_head_dim": 64,
        "v_head_dim": 128,
        "qk_nope_head_dim": 128,
        "num_experts_per_tok": 8,
        "first_k_dense_replace": 3,
        "max_position_embeddings": 4096,
        "tie_word_embeddings": False,
    },
    style=Style("attention_bias"),
    experts=_DEEPSEEK,
    # A latent has one head, whatever these say.
    moot=("num_key_value_heads", "head_dim", "qk_head_dim", "ep_size"),
)
DEEPSEEK_V2 = DEEPSEEK_V3.but(
    "DeepseekV2Config",
    defaults={
        "n_shared_experts": 2,
        "n_routed_experts": 64,
        "first_k_dense_replace": 0,
        "vocab_size": 102400,
        "moe_intermediate_size": 1407,
        "num_experts_per_tok": None,
    },
)
DEEPSEEK_V32 = DEEPSEEK_V3.but(
    "DeepseekV32Config",
    read=read_indexed_mla,
    defaults={"index_head_dim": 128, "index_n_heads": 64, "max_position_embeddings": 163840},
)
GLM_DSA = DEEPSEEK_V32.but(
    "GlmMoeDsaConfig",
    defaults={"q_lora_rank": 2048, "v_head_dim": 256, "qk_nope_head_dim": 192, "index_n_heads": 32},
)
DEEPSEEK_V4 = Family(
    "DeepseekV4Config",
    read_compressed,
    {
        "vocab_size": 129280,
        "head_dim": 512,
        "qk_rope_head_dim": 64,
        "q_lora_rank": 1024,
        "o_groups": 8,
        "o_lora_rank": 1024,
        "index_head_dim": 128,
        "index_n_heads": 64,
        "n_shared_experts": 1,
        "max_position_embeddings": 1048576,
        "tie_word_embeddings": False,
    },
    moot=("num_key_value_heads", "num_hash_layers", "compress_rope_theta", "qk_nope_head_dim"),
)
GLM4_MOE = LLAMA.but(
    "Glm4MoeConfig",
    defaults={
        "vocab_size": 151552,
        "num_key_value_heads": 8,
        "moe_intermediate_size": 1408,
        "n_shared_experts": 1,
        "n_routed_experts": 128,
        "num_experts_per_tok": 8,
        "first_k_dense_replace": 1,
    },
    style=Style("attention_bias", qk_norm="head", qk_norm_key="use_qk_norm"),
    experts=_DEEPSEEK,
)
HUNYUAN = LLAMA.but(
    "HunYuanConfig",
    read=read_hunyuan,
    aliases={
        "num_experts_per_tok": ("moe_topk",),
        "head_dim": ("attention_head_dim",),
    },
    style=Style("attention_bias", "attention_bias", qk_norm="head", qk_norm_key="use_qk_norm"),
    experts=Experts(every_layer, width="intermediate_size", shared_count="num_shared_expert"),
)
GEMMA3N = GEMMA3.but(
    "Gemma3nTextConfig",
    read=read_gemma3n,
    kinds=by_layer_types(5),
    defaults={
        "vocab_size": 262400,
        "hidden_size": 2048,
        "intermediate_size": 16384,
        "num_hidden_layers": 35,
        "num_key_value_heads": 2,
        "max_position_embeddings": 32768,
        "sliding_window": 512,
        "vocab_size_per_layer_input": 262144,
        "hidden_size_per_layer_input": 256,
        "altup_num_inputs": 4,
        "laurel_rank": 64,
        "num_kv_shared_layers": 15,
    },
)
GEMMA4 = GEMMA3.but(
    "Gemma4TextConfig",
    read=read_gemma4,
    defaults={
        "vocab_size": 262144,
        "num_hidden_layers": 30,
        "sliding_window": 512,
        "vocab_size_per_layer_input": 262144,
        "hidden_size_per_layer_input": 256,
    },
)
STEP3 = LLAMA.but(
    "Step3p7TextConfig",
    read=read_step3,
    defaults={
        "vocab_size": 128815,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "num_experts_per_tok": 8,
    },
    aliases={
        "num_key_value_heads": ("num_attention_groups",),
        "n_routed_experts": ("moe_num_experts", "num_experts", "num_local_experts"),
        "num_experts_per_tok": ("moe_top_k",),
        "share_expert_dim": ("share_expert_dims",),
    },
    style=Style("attention_bias", "attention_bias", "mlp_bias", qk_norm="head", gate="head"),
    experts=Experts(step_enumeration, "n_routed_experts", shared_width="share_expert_dim"),
)
LLAMA4 = LLAMA.but(
    "Llama4TextConfig",
    kinds=llama4_chunks,
    defaults={
        "vocab_size": 202048,
        "hidden_size": 5120,
        "intermediate_size": 8192,
        "intermediate_size_mlp": 16384,
        "num_hidden_layers": 48,
        "num_attention_heads": 40,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "num_experts_per_tok": 1,
        "num_local_experts": 16,
        "attention_chunk_size": 8192,
        "max_position_embeddings": 131072,
        "shared_experts": 1,
    },
    # The norm on queries and keys of Llama 4 has no weights.
    style=Style("attention_bias", "attention_bias"),
    experts=Experts(
        llama4_steps,
        "num_local_experts",
        width="intermediate_size",
        shared_count="shared_experts",
        dense_width="intermediate_size_mlp",
    ),
)

MIXTURES: dict[str, Family] = {
    "mixtral": MIXTRAL,
    "phimoe": MIXTRAL.but(
        "PhimoeConfig",
        kinds=one_window(idle_if_longer=True),
        defaults={"vocab_size": 32064, "num_local_experts": 16, "intermediate_size": 6400},
        style=Style("attention_bias", "attention_bias", head_bias="lm_head_bias", norm_values=2),
    ),
    "minimax_m2": MIXTRAL.but(
        "MiniMaxM2Config",
        kinds=by_layer_types(),
        defaults={"vocab_size": 200064, "head_dim": 128},
        style=Style(qk_norm="heads"),
    ),
    "minimax_m3_vl_text": MIXTRAL.but(
        "MiniMaxM3VLTextConfig",
        read=read_minimax_m3,
        defaults={"vocab_size": 200064, "head_dim": 128, "index_n_heads": 4, "index_head_dim": 128},
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
    "gpt_oss": MIXTRAL.but(
        "GptOssConfig",
        kinds=by_layer_types(2),
        defaults={
            "vocab_size": 201088,
            "head_dim": 64,
            "sliding_window": 128,
            "attention_bias": True,
            "num_experts_per_tok": 4,
        },
        aliases={"num_experts_per_tok": ("experts_per_token",)},
        style=Style("attention_bias", "attention_bias", sinks=True),
        experts=Experts(
            every_layer,
            "num_local_experts",
            width="intermediate_size",
            router_bias=True,
            expert_bias=True,
        ),
    ),
    "qwen2_moe": QWEN2_MOE,
    "qwen3_moe": QWEN3_MOE,
    "qwen3_vl_moe_text": QWEN3_MOE.but("Qwen3VLMoeTextConfig"),
    "qwen3_omni_moe_text": QWEN3_MOE.but("Qwen3OmniMoeTextConfig"),
    "olmoe": OLMO2.but(
        "OlmoeConfig",
        defaults={"intermediate_size": 2048, "num_experts_per_tok": 8, "num_experts": 64},
        experts=Experts(every_layer, width="intermediate_size"),
    ),
    "flex_olmo": OLMO2.but(
        "FlexOlmoConfig",
        defaults={"num_experts_per_tok": 5, "num_experts": 7},
        experts=Experts(every_layer, width="intermediate_size"),
    ),
    "granitemoe": LLAMA.but(
        "GraniteMoeConfig",
        defaults={"num_local_experts": 8, "num_experts_per_tok": 2},
        style=Style("attention_bias", "attention_bias"),
        experts=_LOCAL,
    ),
    "granitemoeshared": LLAMA.but(
        "GraniteMoeSharedConfig",
        defaults={"num_local_experts": 8, "num_experts_per_tok": 2},
        style=Style("attention_bias", "attention_bias"),
        experts=Experts(
            every_layer,
            "num_local_experts",
            width="intermediate_size",
            shared_width="shared_intermediate_size",
        ),
    ),
    "deepseek": LLAMA.but(
        "DeepseekConfig", style=Style("attention_bias", "attention_bias"), experts=_DEEPSEEK
    ),
    "deepseek_v2": DEEPSEEK_V2,
    "deepseek_v3": DEEPSEEK_V3,
    "kimi_k2": DEEPSEEK_V3,
    "axk1": DEEPSEEK_V3.but("AXK1Config"),
    "glm4_moe_lite": DEEPSEEK_V3.but(
        "Glm4MoeLiteConfig",
        defaults={
            "qk_nope_head_dim": 192,
            "v_head_dim": 256,
            "q_lora_rank": 768,
            "first_k_dense_replace": 1,
        },
    ),
    "mistral4": DEEPSEEK_V3.but(
        "Mistral4Config",
        defaults={"q_lora_rank": 1024, "qk_nope_head_dim": 64, "first_k_dense_replace": 0},
    ),
    "minicpm3": DEEPSEEK_V3.but(
        "MiniCPM3Config",
        defaults={
            "tie_word_embeddings": True,
            "qk_rope_head_dim": 32,
            "v_head_dim": 64,
            "qk_nope_head_dim": 64,
            "q_lora_rank": 768,
        },
        experts=None,
    ),
    "youtu": DEEPSEEK_V3.but("YoutuConfig", experts=None),
    "deepseek_v32": DEEPSEEK_V32,
    "glm_moe_dsa": GLM_DSA,
    "deepseek_v4": DEEPSEEK_V4,
    "deepseek_ref": DEEPSEEK_V4.but("DeepseekV4Config (reference)"),
    "longcat_flash": Family(
        "LongcatFlashConfig",
        read_longcat,
        {
            "vocab_size": 131072,
            "q_lora_rank": 1536,
            "qk_rope_head_dim": 64,
            "v_head_dim": 128,
            "qk_nope_head_dim": 128,
            "max_position_embeddings": 131072,
            "tie_word_embeddings": False,
        },
        style=Style("attention_bias"),
    ),
    "glm4_moe": GLM4_MOE,
    "glm4v_moe_text": GLM4_MOE.but("Glm4vMoeTextConfig", defaults={"attention_bias": True}),
    "solar_open": GLM4_MOE.but(
        "SolarOpenConfig", style=Style("attention_bias"), defaults={"first_k_dense_replace": 0}
    ),
    "dots1": GLM4_MOE.but(
        "Dots1Config",
        kinds=by_layer_types(),
        defaults={"n_routed_experts": None, "n_shared_experts": None, "first_k_dense_replace": 0},
        style=Style("attention_bias", "attention_bias", qk_norm="head"),
    ),
    "ernie4_5_moe": LLAMA.but(
        "Ernie4_5_MoeConfig",
        defaults={
            "vocab_size": 103424,
            "num_key_value_heads": 4,
            "tie_word_embeddings": True,
            "moe_k": 6,
        },
        style=Style("use_bias", "use_bias", "use_bias"),
        experts=Experts(
            ernie_span, "moe_num_experts", "moe_k", shared_count="moe_num_shared_experts"
        ),
    ),
    "exaone_moe": EXAONE4.but(
        "ExaoneMoeConfig",
        defaults={"first_k_dense_replace": 1},
        experts=Experts(after_dense(), shared_count="num_shared_experts"),
    ),
    "hunyuan": HUNYUAN,
    "hunyuan_v1_moe": HUNYUAN.but(
        "HunYuanMoEV1Config", defaults={"use_qk_norm": True, "num_shared_expert": 1}
    ),
    "jetmoe": Family(
        "JetMoeConfig",
        read_jetmoe,
        {"vocab_size": 32000, "max_position_embeddings": 4096, "tie_word_embeddings": True},
        {
            "head_dim": ("kv_channels",),
            "num_experts_per_tok": ("moe_top_k",),
            "num_local_experts": ("moe_num_experts",),
        },
    ),
    "dbrx": Family(
        "DbrxConfig",
        read_dbrx,
        {"vocab_size": 32000, "tie_word_embeddings": False},
        experts=Experts(every_layer),
    ),
    "minicpm": MINICPM.but(
        "MiniCPMConfig",
        read=read_minicpm_moe,
        experts=Experts(every_layer, width="intermediate_size"),
    ),
    "arctic": LLAMA.but(
        "ArcticConfig",
        read=read_arctic,
        defaults={"moe_layer_frequency": 2, "parallel_attn_mlp_res": False},
        style=Style("attention_bias", "attention_bias"),
        experts=Experts(every_layer, "num_local_experts", width="intermediate_size"),
    ),
    "afmoe": LLAMA.but(
        "AfmoeConfig",
        kinds=by_layer_types(4),
        defaults={"sliding_window": 1024, "head_dim": 128},
        style=Style("attention_bias", "attention_bias", norms=4, qk_norm="head", gate="full"),
        experts=Experts(after_dense("num_dense_layers", 1), shared_count="num_shared_experts"),
    ),
    "llama4_text": LLAMA4,
    "gemma3n_text": GEMMA3N,
    "gemma4_text": GEMMA4,
    "gemma4_unified_text": GEMMA4.but(
        "Gemma4UnifiedTextConfig",
        defaults={"hidden_size_per_layer_input": 0, "sliding_window": 1024},
    ),
    "mllama_text_model": LLAMA.but(
        "MllamaTextConfig",
        read=read_mllama,
        style=Style(),
        defaults={
            "vocab_size": 128256,
            "num_hidden_layers": 40,
            "num_key_value_heads": 8,
            "intermediate_size": 14336,
        },
    ),
    "nemotron-nas": LLAMA.but("DeciLMConfig", read=read_nemotron_nas),
    "mimo_v2_flash": QWEN3_MOE.but(
        "MiMoV2FlashConfig",
        read=read_mimo_v2,
        defaults={"num_experts": None, "v_head_dim": 128, "head_dim": 192},
        style=Style("attention_bias"),
        experts=Experts(
            after_dense(default=1), "n_routed_experts", shared_count="n_shared_experts"
        ),
    ),
    "step3p5": STEP3.but("Step3p5Config"),
    "step3p7": STEP3,
}
