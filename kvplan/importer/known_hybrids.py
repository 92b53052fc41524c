"""The table of known recurrent, hybrid and encoder-decoder models: model_type to family."""

from __future__ import annotations

from kvplan.importer.encoder_decoder import read_bart, read_t5, read_whisper
from kvplan.importer.family import Experts, Family, Style
from kvplan.importer.hybrid import (
    all_recur,
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
    read_lfm2,
    read_pure_mamba,
    read_rwkv,
)
from kvplan.importer.known_dense import PLAIN
from kvplan.importer.known_mixtures import DEEPSEEK_V3, MIXTRAL
from kvplan.importer.shared_blocks import (
    read_nemotron_h,
    read_recurrent_gemma,
    read_zamba,
    read_zamba2,
)
from kvplan.importer.sparsity import after_dense, every_layer, jamba_period, qwen_steps

QWEN3_NEXT = PLAIN.but(
    read=read_gdn_hybrid,
    style=Style("attention_bias", "attention_bias", qk_norm="head", gate="full"),
    experts=Experts(qwen_steps, shared_width="shared_expert_intermediate_size", shared_gate=True),
    moot=("attn_output_gate", "full_attention_interval", "intermediate_size"),
)
QWEN3_5_MOE = QWEN3_NEXT.but(
    experts=Experts(every_layer, shared_width="shared_expert_intermediate_size", shared_gate=True)
)
LFM2 = PLAIN.but(
    read=read_lfm2,
    aliases={"tie_word_embeddings": ("tie_embedding",)},
    style=Style(qk_norm="head"),
    moot=(
        "full_attn_idxs",
        "conv_dim",
        "conv_dim_out",
        "conv_use_xavier_init",
    ),
)
MINIMAX = MIXTRAL.but(read=read_hybrid(placed_by_words("layer_types", minimax_types), lightning))
T5 = Family(read_t5, defaults={"tie_word_embeddings": True})
BART = Family(read_bart, style=Style(norms=2, learned_positions=2))

HYBRIDS: dict[str, Family] = {
    "qwen3_next": QWEN3_NEXT,
    "qwen3_5_text": QWEN3_5_MOE.but(experts=None),
    "qwen3_5_moe_text": QWEN3_5_MOE,
    "olmo_hybrid": QWEN3_5_MOE.but(
        experts=None, style=Style("attention_bias", "attention_bias", qk_norm="heads")
    ),
    "jamba": PLAIN.but(
        read=read_hybrid(placed_by_words("layers_block_type", jamba_offset), mamba1_with_norms),
        experts=Experts(jamba_period, width="intermediate_size"),
    ),
    "bamba": PLAIN.but(
        read=read_hybrid(
            placed_by_words("layers_block_type", listed("attn_layer_indices")), mamba2_hybrid
        )
    ),
    "granitemoehybrid": PLAIN.but(
        read=read_hybrid(placed_by_words("layer_types", all_recur), mamba2_hybrid),
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
        read=read_falcon_h1, style=Style("attention_bias", "attention_bias", "mlp_bias")
    ),
    "mamba": Family(read_pure_mamba(1)),
    "falcon_mamba": Family(read_pure_mamba(1)),
    "mamba2": Family(
        read_pure_mamba(2), {"hidden_size": ("d_model",)}, moot=("intermediate_size",)
    ),
    "zamba": PLAIN.but(
        read=read_zamba, moot=("n_mamba_heads", "hidden_mamba_act", "attention_hidden_size")
    ),
    "zamba2": PLAIN.but(read=read_zamba2, moot=("attention_hidden_size",)),
    "nemotron_h": PLAIN.but(
        read=read_nemotron_h,
        aliases={
            "head_dim": ("attention_head_dim",),
            "n_groups": ("mamba_n_groups",),
            "conv_kernel": ("mamba_d_conv",),
        },
        style=Style("attention_bias", "attention_bias", "mlp_bias", gated=False),
    ),
    "recurrent_gemma": PLAIN.but(read=read_recurrent_gemma, style=Style("attention_bias", True)),
    "lfm2": LFM2,
    "lfm2_moe": LFM2.but(experts=Experts(after_dense("num_dense_layers", 2))),
    "minimax": MINIMAX,
    "minimax_text_01": MINIMAX,
    "minimax_m1": MINIMAX,
    "kimi_linear": DEEPSEEK_V3.but(
        read=read_kimi_linear,
        aliases={
            "max_position_embeddings": ("model_max_length",),
            "num_experts_per_tok": ("num_experts_per_token",),
            "n_routed_experts": ("num_experts", "num_local_experts"),
            "n_shared_experts": ("num_shared_experts",),
        },
    ),
    "rwkv": Family(read_rwkv, moot=("attention_hidden_size", "intermediate_size")),
    **dict.fromkeys(("rwkv5", "rwkv6"), Family(read_rwkv, defaults={"head_size": 64})),
    "rwkv7": Family(read_rwkv, {"head_size": ("head_dim",)}, defaults={"head_size": 64}),
    "t5": T5,
    "mt5": T5.but(defaults={}),
    "umt5": T5.but(defaults={}),
    "whisper": Family(read_whisper, moot=("classifier_proj_size",)),
    "bart": BART,
    "mbart": BART.but(style=Style(norms=4, learned_positions=2)),
    "plbart": BART,
    "blenderbot": BART.but(style=Style(norms=2, learned_positions=0)),
    "blenderbot-small": BART.but(style=Style(norms=2, learned_positions=0)),
    # Positions without weights.
    "pegasus": BART.but(style=Style(norms=2)),
    "m2m_100": BART.but(style=Style(norms=2)),
    "marian": BART.but(style=Style(norms=0)),
}
