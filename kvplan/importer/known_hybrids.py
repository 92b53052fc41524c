"""The table of known recurrent, hybrid and encoder-decoder models, and of wrappers around a text model."""

from __future__ import annotations

from dataclasses import dataclass

from kvplan.importer.encoder_decoder import read_bart, read_t5, read_whisper
from kvplan.importer.family import Experts, Family, Style
from kvplan.importer.hybrid import (
    jamba_offset,
    lightning,
    listed,
    mamba1_with_norms,
    mamba2_hybrid,
    minimax_types,
    placed_by_words,
    read_falcon_h1,
    read_gdn_hybrid,
    read_hybrid,
    read_kimi_linear,
    read_pure_mamba,
    read_rwkv,
    short_conv,
)
from kvplan.importer.known_dense import LLAMA, PLAIN
from kvplan.importer.known_mixtures import DEEPSEEK_V3, MIXTRAL
from kvplan.importer.reading import Reading
from kvplan.importer.shared_blocks import (
    read_nemotron_h,
    read_recurrent_gemma,
    read_zamba,
    read_zamba2,
)
from kvplan.importer.sparsity import after_dense, every_layer, jamba_period, qwen_steps


def _all_recur(reading: Reading, layers: int) -> list[bool]:
    """GraniteMoeHybridConfig: without a list every layer is Mamba."""
    return [False] * layers


QWEN3_NEXT = PLAIN.but(
    "Qwen3NextConfig",
    read=read_gdn_hybrid,
    defaults={
        "vocab_size": 151936,
        "hidden_size": 2048,
        "intermediate_size": 5632,
        "num_hidden_layers": 48,
        "num_attention_heads": 16,
        "num_key_value_heads": 2,
        "head_dim": 256,
        "max_position_embeddings": 32768,
        "linear_conv_kernel_dim": 4,
        "linear_key_head_dim": 128,
        "linear_value_head_dim": 128,
        "linear_num_key_heads": 16,
        "linear_num_value_heads": 32,
        "moe_intermediate_size": 512,
        "shared_expert_intermediate_size": 512,
        "num_experts_per_tok": 10,
        "num_experts": 512,
    },
    style=Style("attention_bias", "attention_bias", qk_norm="head", gate="full"),
    experts=Experts(qwen_steps, shared_width="shared_expert_intermediate_size", shared_gate=True),
)
QWEN3_5_MOE = QWEN3_NEXT.but(
    "Qwen3_5MoeTextConfig",
    defaults={
        "vocab_size": 248320,
        "num_hidden_layers": 40,
        "num_experts_per_tok": 8,
        "num_experts": 256,
    },
    experts=Experts(every_layer, shared_width="shared_expert_intermediate_size", shared_gate=True),
)
QWEN3_5 = QWEN3_5_MOE.but(
    "Qwen3_5TextConfig",
    defaults={
        "hidden_size": 4096,
        "intermediate_size": 12288,
        "num_hidden_layers": 32,
        "num_key_value_heads": 4,
    },
    experts=None,
)
LFM2 = PLAIN.but(
    "Lfm2Config",
    read=read_hybrid(placed_by_words("layer_types", listed("full_attn_idxs")), short_conv),
    defaults={
        "vocab_size": 65536,
        "hidden_size": 2560,
        "intermediate_size": 12288,
        "num_key_value_heads": 8,
        "conv_L_cache": 3,
        "max_position_embeddings": 128000,
        "tie_word_embeddings": True,
    },
    aliases={"tie_word_embeddings": ("tie_embedding",)},
    style=Style(qk_norm="head"),
)
MINIMAX = MIXTRAL.but(
    "MiniMaxConfig",
    read=read_hybrid(placed_by_words("layer_types", minimax_types), lightning),
)
T5 = Family("T5Config", read_t5, {"vocab_size": 32128, "d_kv": 64, "tie_word_embeddings": True})
BART = Family(
    "BartConfig",
    read_bart,
    {"vocab_size": 50265, "max_position_embeddings": 1024},
    style=Style(norms=2, learned_positions=2),
)
MAMBA_STYLE = Style()

HYBRIDS: dict[str, Family] = {
    "qwen3_next": QWEN3_NEXT,
    "qwen3_5_text": QWEN3_5,
    "qwen3_5_moe_text": QWEN3_5_MOE,
    "olmo_hybrid": QWEN3_5.but(
        "OlmoHybridConfig", style=Style("attention_bias", "attention_bias", qk_norm="heads")
    ),
    "jamba": PLAIN.but(
        "JambaConfig",
        read=read_hybrid(placed_by_words("layers_block_type", jamba_offset), mamba1_with_norms),
        defaults={
            "vocab_size": 65536,
            "num_key_value_heads": 8,
            "max_position_embeddings": 262144,
            "num_experts": 16,
            "num_experts_per_tok": 2,
        },
        experts=Experts(jamba_period, width="intermediate_size"),
    ),
    "bamba": PLAIN.but(
        "BambaConfig",
        read=read_hybrid(
            placed_by_words("layers_block_type", listed("attn_layer_indices")), mamba2_hybrid
        ),
        defaults={
            "vocab_size": 128000,
            "num_key_value_heads": 8,
            "mamba_d_state": 256,
            "mamba_n_heads": 128,
        },
    ),
    "granitemoehybrid": PLAIN.but(
        "GraniteMoeHybridConfig",
        read=read_hybrid(placed_by_words("layer_types", _all_recur), mamba2_hybrid),
        defaults={"mamba_d_state": 256, "mamba_n_heads": 128},
        aliases={"layer_types": ("layers_block_type",)},
        style=Style("attention_bias", "attention_bias"),
        experts=Experts(
            every_layer,
            "num_local_experts",
            width="intermediate_size",
            shared_width="shared_intermediate_size",
        ),
    ),
    "falcon_h1": PLAIN.but(
        "FalconH1Config",
        read=read_falcon_h1,
        defaults={
            "vocab_size": 128000,
            "num_key_value_heads": 8,
            "mamba_d_state": 256,
            "mamba_n_heads": 128,
        },
        style=Style("attention_bias", "attention_bias", "mlp_bias"),
    ),
    "mamba": Family(
        "MambaConfig", read_pure_mamba(1), {"vocab_size": 50280, "tie_word_embeddings": True}
    ),
    "falcon_mamba": Family(
        "FalconMambaConfig", read_pure_mamba(1), {"vocab_size": 50280, "tie_word_embeddings": True}
    ),
    "mamba2": Family(
        "Mamba2Config",
        read_pure_mamba(2),
        {
            "vocab_size": 32768,
            "state_size": 128,
            "tie_word_embeddings": False,
            "num_heads": 128,
            "n_groups": 8,
        },
        {"hidden_size": ("d_model",)},
    ),
    "zamba": PLAIN.but("ZambaConfig", read=read_zamba, defaults={"tie_word_embeddings": True}),
    "zamba2": PLAIN.but(
        "Zamba2Config",
        read=read_zamba2,
        defaults={
            "tie_word_embeddings": True,
            "intermediate_size": None,
            "mamba_d_state": 64,
            "n_mamba_heads": 8,
        },
    ),
    "nemotron_h": PLAIN.but(
        "NemotronHConfig",
        read=read_nemotron_h,
        defaults={
            "vocab_size": 131072,
            "num_key_value_heads": 8,
            "head_dim": 128,
            "ssm_state_size": 128,
            "n_groups": 8,
        },
        aliases={
            "head_dim": ("attention_head_dim",),
            "n_groups": ("mamba_n_groups",),
            "conv_kernel": ("mamba_d_conv",),
        },
        style=Style("attention_bias", "attention_bias", "mlp_bias", gated=False),
    ),
    "recurrent_gemma": PLAIN.but(
        "RecurrentGemmaConfig",
        read=read_recurrent_gemma,
        defaults={
            "vocab_size": 256000,
            "tie_word_embeddings": True,
            "max_position_embeddings": None,
        },
        style=Style("attention_bias", True),
    ),
    "lfm2": LFM2,
    "lfm2_moe": LFM2.but(
        "Lfm2MoeConfig",
        defaults={"num_experts": 32, "num_experts_per_tok": 4, "moe_intermediate_size": 1792},
        experts=Experts(after_dense("num_dense_layers", 2)),
    ),
    "minimax": MINIMAX,
    "minimax_text_01": MINIMAX.but("MiniMaxText01Config"),
    "kimi_linear": DEEPSEEK_V3.but(
        "KimiLinearConfig",
        read=read_kimi_linear,
        defaults={"q_lora_rank": None, "first_k_dense_replace": 1, "vocab_size": 163840},
        aliases={
            "max_position_embeddings": ("model_max_length",),
            "num_experts_per_tok": ("num_experts_per_token",),
            "n_routed_experts": ("num_experts",),
            "n_shared_experts": ("num_shared_experts",),
        },
    ),
    "rwkv": Family("RwkvConfig", read_rwkv, {"vocab_size": 50277, "tie_word_embeddings": False}),
    "rwkv5": Family(
        "Rwkv5Config",
        read_rwkv,
        {"vocab_size": 65536, "tie_word_embeddings": False, "head_size": 64},
    ),
    "rwkv6": Family(
        "Rwkv6Config",
        read_rwkv,
        {"vocab_size": 65536, "tie_word_embeddings": False, "head_size": 64},
    ),
    "rwkv7": Family(
        "Rwkv7Config",
        read_rwkv,
        {"vocab_size": 65536, "tie_word_embeddings": False, "head_size": 64},
        {"head_size": ("head_dim",)},
    ),
    "t5": T5,
    "mt5": T5.but("MT5Config", defaults={"tie_word_embeddings": False}),
    "umt5": T5.but("UMT5Config", defaults={"tie_word_embeddings": False}),
    "whisper": Family(
        "WhisperConfig", read_whisper, {"vocab_size": 51865, "max_source_positions": 1500}
    ),
    "bart": BART,
    "mbart": BART.but("MBartConfig", style=Style(norms=4, learned_positions=2)),
}


@dataclass(frozen=True)
class Wrapper:
    """Where a multimodal config keeps its text model, and the text model_type if it leaves that out."""

    path: tuple[str, ...]
    text_type: str = ""


_TEXT = ("text_config",)
_LLM = ("llm_config",)
WRAPPERS: dict[str, Wrapper] = {
    **{
        name: Wrapper(_TEXT, "llama")
        for name in (
            "llava",
            "llava_next",
            "llava_next_video",
            "llava_onevision",
            "video_llava",
            "vipllava",
        )
    },
    **{
        name: Wrapper(_TEXT, "llama")
        for name in ("idefics3", "smolvlm", "aya_vision", "ultravox", "voxtral")
    },
    "mistral3": Wrapper(_TEXT, "mistral"),
    "idefics2": Wrapper(_TEXT, "mistral"),
    "internvl": Wrapper(_TEXT, "qwen2"),
    "internvl_chat": Wrapper(_LLM),
    "qwen2_vl": Wrapper(_TEXT, "qwen2_vl_text"),
    "qwen2_5_vl": Wrapper(_TEXT, "qwen2_5_vl_text"),
    "qwen2_audio": Wrapper(_TEXT, "qwen2"),
    "qwen2_5_omni": Wrapper(("thinker_config", "text_config"), "qwen2_5_omni_text"),
    "qwen2_5_omni_thinker": Wrapper(_TEXT, "qwen2_5_omni_text"),
    "qwen3_vl": Wrapper(_TEXT, "qwen3_vl_text"),
    "qwen3_vl_moe": Wrapper(_TEXT, "qwen3_vl_moe_text"),
    "qwen3_omni_moe": Wrapper(("thinker_config", "text_config"), "qwen3_omni_moe_text"),
    "qwen3_omni_moe_thinker": Wrapper(_TEXT, "qwen3_omni_moe_text"),
    "qwen3_5": Wrapper(_TEXT, "qwen3_5_text"),
    "qwen3_5_moe": Wrapper(_TEXT, "qwen3_5_moe_text"),
    "paligemma": Wrapper(_TEXT, "gemma"),
    "gemma3": Wrapper(_TEXT, "gemma3_text"),
    "gemma3n": Wrapper(_TEXT, "gemma3n_text"),
    "gemma4": Wrapper(_TEXT, "gemma4_text"),
    "gemma4_unified": Wrapper(_TEXT, "gemma4_unified_text"),
    "cohere2_vision": Wrapper(_TEXT, "cohere2"),
    "glm4v": Wrapper(_TEXT, "glm4v_text"),
    "glm4v_moe": Wrapper(_TEXT, "glm4v_moe_text"),
    "kimi_k25": Wrapper(_TEXT, "deepseek_v3"),
    "kimi_vl": Wrapper(_TEXT, "deepseek_v3"),
    "kimi_k3": Wrapper(_TEXT, "kimi_linear"),
    "lfm2_vl": Wrapper(_TEXT, "lfm2"),
    "llama4": Wrapper(_TEXT, "llama4_text"),
    "mllama": Wrapper(_TEXT, "mllama_text_model"),
    "minimax_m3_vl": Wrapper(_TEXT, "minimax_m3_vl_text"),
    "step3p7": Wrapper(_TEXT, "step3p5"),
    "granite_speech": Wrapper(_TEXT, "granite"),
    "deepseek_vl": Wrapper(("language_config",), "llama"),
    "deepseek_vl_v2": Wrapper(("language_config",), "deepseek_v2"),
    "ovis2": Wrapper(_LLM),
    "ovis": Wrapper(_LLM),
    "NemotronH_Nano_VL_V2": Wrapper(_LLM, "nemotron_h"),
}

# Files without model_type, and classes that share a model_type with another model.
ARCHITECTURES: dict[str, str] = {
    "GPT2LMHeadModel": "gpt2",
    "GPTNeoXForCausalLM": "gpt_neox",
    "DeciLMForCausalLM": "nemotron-nas",
}

# Keys that only one class has ever written, for files from before model_type.
SIGNATURES: tuple[tuple[frozenset[str], str], ...] = (
    (frozenset({"n_ctx", "n_embd", "n_head", "n_layer", "n_positions", "summary_type"}), "gpt2"),
)
