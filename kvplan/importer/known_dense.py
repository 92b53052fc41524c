"""The table of known decoders without experts: model_type to family."""

from __future__ import annotations

from kvplan.importer.decoder import read_decoder
from kvplan.importer.family import Family, Style
from kvplan.importer.legacy import (
    read_bigcode,
    read_chatglm,
    read_falcon,
    read_four_times,
    read_mpt,
    read_openelm,
    read_opt,
    read_qwen1,
)
from kvplan.importer.patterns import (
    by_layer_types,
    first_of_four,
    gpt_neo_types,
    one_window,
    qwen_window,
)

_BIASED = Style("attention_bias", "attention_bias")

LLAMA = Family(read_decoder, style=Style("attention_bias", "attention_bias", "mlp_bias"))
PLAIN = Family(read_decoder)
NAMED_BIAS = PLAIN.but(style=Style("use_bias", "use_bias", "use_bias"))
MISTRAL = PLAIN.but(kinds=one_window())
QWEN2 = PLAIN.but(kinds=qwen_window, style=Style(qkv_bias=True))
QWEN3 = PLAIN.but(
    kinds=qwen_window, style=Style("attention_bias", "attention_bias", qk_norm="head")
)
GEMMA = PLAIN.but(style=_BIASED)
GEMMA2 = PLAIN.but(
    kinds=by_layer_types(2),
    style=Style("attention_bias", "attention_bias", norms=4),
    moot=("sliding_window_size",),
)
GEMMA3 = PLAIN.but(
    kinds=by_layer_types(6),
    style=Style("attention_bias", "attention_bias", norms=4, qk_norm="head"),
    moot=("sliding_window_pattern", "_sliding_window_pattern"),
)
COHERE = PLAIN.but(
    style=Style(
        "attention_bias", "attention_bias", norms=1, qk_norm="heads", qk_norm_key="use_qk_norm"
    )
)
GLM = PLAIN.but(style=Style("attention_bias"))
GPT2 = Family(
    read_four_times,
    {"intermediate_size": ("n_inner",)},
    style=Style(True, True, True, gated=False, norm_values=2, learned_positions=0),
)
GPTJ = GPT2.but(
    style=Style(False, False, True, head_bias=True, gated=False, norms=1, norm_values=2)
)
GPT_NEOX = PLAIN.but(
    style=Style("attention_bias", "attention_bias", True, gated=False, norm_values=2),
    defaults={"attention_bias": True},
)
FALCON = Family(
    read_falcon,
    {"intermediate_size": ("ffn_hidden_size",)},
    style=Style(gated=False, norm_values=2),
)
PHI = Family(
    read_four_times,
    {"intermediate_size": ("n_inner",)},
    style=Style(
        True, True, True, True, "halves", "qk_layernorm", gated=False, norms=1, norm_values=2
    ),
)
PHI3 = PLAIN.but(kinds=one_window(idle_if_longer=True))
OLMO2 = PLAIN.but(style=Style("attention_bias", "attention_bias", qk_norm="heads"))
EXAONE4 = PLAIN.but(kinds=by_layer_types(4), style=Style(qk_norm="head"))
INTERNLM = PLAIN.but(style=Style("bias", "bias"))
MINICPM = PLAIN.but(defaults={"tie_word_embeddings": True})
STABLELM = PLAIN.but(style=Style("use_qkv_bias", norm_values=2))

# Text models of wrappers that are plain Llamas or Granites.
_LLAMA_TEXTS = ("emu3_text_model", "granite_docling_text", "granite4_vision_text")

DENSE: dict[str, Family] = {
    **dict.fromkeys(
        ("llama", "code_llama", "granite", "iquestcoder", "hyperclovax", *_LLAMA_TEXTS), LLAMA
    ),
    **dict.fromkeys(("Yi", "xverse", "aquila", "exaone", "bitnet", "minicpmv"), PLAIN),
    "mistral": MISTRAL,
    "ministral": PLAIN.but(kinds=by_layer_types()),
    "ministral3": MISTRAL,
    "qwen": PLAIN.but(
        read=read_qwen1,
        style=Style(qkv_bias=True),
        aliases={"head_dim": ("kv_channels",), "max_position_embeddings": ("seq_length",)},
    ),
    **dict.fromkeys(("qwen2", "qwen2_vl", "qwen2_vl_text", "qwen2_5_vl", "qwen2_5_vl_text"), QWEN2),
    "qwen2_5_omni_text": QWEN2,
    "mimo": PLAIN.but(
        kinds=qwen_window, style=Style("attention_bias"), defaults={"attention_bias": True}
    ),
    **dict.fromkeys(("qwen3", "qwen3_vl_text"), QWEN3),
    "gemma": GEMMA,
    "gemma2": GEMMA2,
    "gemma3_text": GEMMA3,
    "vaultgemma": GEMMA2.but(style=_BIASED),
    "cohere": COHERE,
    "cohere2": COHERE.but(
        kinds=by_layer_types(4), moot=("layer_switch", "order_of_interleaved_layers")
    ),
    **dict.fromkeys(("phi3", "phi3_v", "phi4_multimodal"), PHI3),
    "phi4mm": PHI3,
    "phi3small": PLAIN.but(
        aliases={"intermediate_size": ("ff_intermediate_size",)},
        style=Style(True, True, True, norm_values=2),
    ),
    **dict.fromkeys(("phi", "phi-msft", "mixformer-sequential"), PHI),
    "starcoder2": PLAIN.but(
        kinds=one_window(),
        style=Style("use_bias", "use_bias", "use_bias", gated=False, norm_values=2),
    ),
    "gpt_bigcode": GPT2.but(read=read_bigcode),
    "gpt2": GPT2,
    "openai-gpt": GPT2,
    "gpt_neo": GPT2.but(
        kinds=gpt_neo_types,
        style=Style(False, True, True, gated=False, norm_values=2, learned_positions=0),
    ),
    "gpt_neox": GPT_NEOX,
    "gpt-neox-japanese": GPT_NEOX,
    "gptj": GPTJ,
    "codegen": GPTJ,
    "bloom": GPT2.but(
        aliases={"max_position_embeddings": ("seq_length",)},
        style=Style(True, True, True, gated=False, norm_values=2, embedding_norm=True),
    ),
    **dict.fromkeys(("falcon", "RefinedWebModel"), FALCON),
    "RefinedWeb": FALCON.but(defaults={"new_decoder_architecture": True}),
    "mpt": Family(read_mpt, style=Style(gated=False)),
    "opt": Family(
        read_opt,
        {"intermediate_size": ("ffn_dim",)},
        style=Style(True, True, True, gated=False, norm_values=2, learned_positions=2),
        moot=("do_layer_norm_before",),
    ),
    "xglm": Family(
        read_decoder,
        {"intermediate_size": ("ffn_dim",), "num_attention_heads": ("attention_heads",)},
        style=Style(True, True, True, gated=False, norm_values=2),
    ),
    "chatglm": Family(
        read_chatglm,
        {"intermediate_size": ("ffn_hidden_size",), "head_dim": ("kv_channels",)},
        style=Style("add_qkv_bias", "add_bias_linear", "add_bias_linear"),
    ),
    "glm": GLM,
    "glm4": GLM.but(style=Style("attention_bias", norms=4)),
    "glm4v_text": GLM.but(style=Style(True, norms=4)),
    "stablelm": STABLELM,
    "stablelm_epoch": STABLELM,
    "olmo": PLAIN.but(style=Style("attention_bias", "attention_bias", norm_values=0)),
    "olmo2": OLMO2,
    "olmo3": OLMO2.but(kinds=by_layer_types(4)),
    "exaone4": EXAONE4,
    "smollm3": LLAMA.but(kinds=by_layer_types()),
    "cwm": LLAMA.but(kinds=first_of_four),
    "granite_swa": LLAMA.but(
        kinds=first_of_four, style=Style("attention_bias", "attention_bias", sinks=True)
    ),
    "ernie4_5": NAMED_BIAS,
    "hunyuan_v1_dense": PLAIN.but(
        style=Style("attention_bias", "attention_bias", qk_norm="head"),
        aliases={"head_dim": ("attention_head_dim",)},
    ),
    "seed_oss": PLAIN.but(style=Style("attention_bias", "attention_out_bias", "mlp_bias")),
    "internlm": INTERNLM,
    "internlm2": INTERNLM,
    "internlm3": PLAIN.but(style=Style("qkv_bias", "bias", "bias")),
    "baichuan": PLAIN.but(aliases={"max_position_embeddings": ("model_max_length",)}),
    "orion": PLAIN.but(style=Style(norm_values=2)),
    "nemotron": PLAIN.but(
        style=Style("attention_bias", "attention_bias", "mlp_bias", gated=False, norm_values=2)
    ),
    "jais2": PLAIN.but(
        style=Style("attention_bias", "attention_bias", "mlp_bias", gated=False, norm_values=2)
    ),
    "persimmon": PLAIN.but(
        style=Style(True, True, True, False, "halves", "qk_layernorm", gated=False, norm_values=2)
    ),
    "helium": GLM,
    "arcee": LLAMA.but(style=Style("attention_bias", "attention_bias", "mlp_bias", gated=False)),
    "nanochat": PLAIN.but(
        style=Style("attention_bias", "attention_bias", gated=False, norm_values=0)
    ),
    **dict.fromkeys(
        ("apertus", "apertus1p5_text"),
        PLAIN.but(style=Style("attention_bias", "attention_bias", gated=False, qk_norm="head")),
    ),
    # KV heads, and in OpenELM query heads too, are lists with one number a layer.
    "deci": PLAIN.but(aliases={"num_key_value_heads": ("num_key_value_heads_per_layer",)}),
    "openelm": PLAIN.but(
        read=read_openelm,
        style=Style(qk_norm="head"),
        aliases={
            "num_hidden_layers": ("num_transformer_layers",),
            "hidden_size": ("model_dim",),
            "num_attention_heads": ("num_query_heads",),
            "max_position_embeddings": ("max_context_length",),
            "tie_word_embeddings": ("share_input_output_layers",),
        },
    ),
}
