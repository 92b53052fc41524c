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
    read_opt,
    read_qwen1,
)
from kvplan.importer.patterns import by_layer_types, gpt_neo_types, one_window, qwen_window

ALL_BIASED = Style(qkv_bias=True, out_bias=True, mlp_bias=True, gated=False, norm_values=2)

LLAMA = Family(
    "LlamaConfig",
    read_decoder,
    {
        "vocab_size": 32000,
        "hidden_size": 4096,
        "intermediate_size": 11008,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "max_position_embeddings": 2048,
        "tie_word_embeddings": False,
    },
    style=Style("attention_bias", "attention_bias", "mlp_bias"),
)
PLAIN = LLAMA.but("PlainConfig", style=Style())
MISTRAL = PLAIN.but(
    "MistralConfig",
    kinds=one_window(),
    defaults={
        "intermediate_size": 14336,
        "num_key_value_heads": 8,
        "max_position_embeddings": 131072,
        "sliding_window": 4096,
    },
)
MINISTRAL = MISTRAL.but("MinistralConfig", kinds=by_layer_types())
MINISTRAL3 = MISTRAL.but(
    "Ministral3Config",
    defaults={
        "num_hidden_layers": 34,
        "head_dim": 128,
        "sliding_window": None,
        "vocab_size": 131072,
    },
)
QWEN2 = LLAMA.but(
    "Qwen2Config",
    defaults={
        "vocab_size": 151936,
        "intermediate_size": 22016,
        "num_key_value_heads": 32,
        "max_position_embeddings": 32768,
        "sliding_window": 4096,
        "max_window_layers": 28,
    },
    kinds=qwen_window,
    style=Style(qkv_bias=True),
)
QWEN2_VL = QWEN2.but(
    "Qwen2VLTextConfig",
    defaults={
        "vocab_size": 152064,
        "hidden_size": 8192,
        "intermediate_size": 29568,
        "num_hidden_layers": 80,
        "num_attention_heads": 64,
        "num_key_value_heads": 8,
        "max_window_layers": 80,
    },
)
QWEN3 = QWEN2.but(
    "Qwen3Config",
    defaults={"head_dim": 128},
    style=Style("attention_bias", "attention_bias", qk_norm="head"),
)
GEMMA = Family(
    "GemmaConfig",
    read_decoder,
    {
        "vocab_size": 256000,
        "hidden_size": 3072,
        "intermediate_size": 24576,
        "num_hidden_layers": 28,
        "num_attention_heads": 16,
        "num_key_value_heads": 16,
        "head_dim": 256,
        "max_position_embeddings": 8192,
        "tie_word_embeddings": True,
    },
    style=Style("attention_bias", "attention_bias"),
)
_SMALL_GEMMA = {
    "hidden_size": 2304,
    "intermediate_size": 9216,
    "num_hidden_layers": 26,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "sliding_window": 4096,
}
GEMMA2 = GEMMA.but(
    "Gemma2Config",
    defaults=_SMALL_GEMMA,
    kinds=by_layer_types(2),
    style=Style("attention_bias", "attention_bias", norms=4),
)
GEMMA3 = GEMMA2.but(
    "Gemma3TextConfig",
    defaults={"vocab_size": 262208, "max_position_embeddings": 131072},
    kinds=by_layer_types(6),
    style=Style("attention_bias", "attention_bias", norms=4, qk_norm="head"),
)
COHERE = LLAMA.but(
    "CohereConfig",
    defaults={
        "vocab_size": 256000,
        "hidden_size": 8192,
        "intermediate_size": 22528,
        "num_hidden_layers": 40,
        "num_attention_heads": 64,
        "max_position_embeddings": 8192,
        "tie_word_embeddings": True,
    },
    style=Style(
        "attention_bias", "attention_bias", norms=1, qk_norm="heads", qk_norm_key="use_qk_norm"
    ),
)
COHERE2 = COHERE.but("Cohere2Config", defaults={"sliding_window": 4096}, kinds=by_layer_types(4))
GLM = LLAMA.but(
    "GlmConfig",
    defaults={
        "vocab_size": 151552,
        "num_key_value_heads": 2,
        "num_hidden_layers": 40,
        "intermediate_size": 13696,
        "head_dim": 128,
        "max_position_embeddings": 131072,
        "attention_bias": True,
    },
    style=Style("attention_bias"),
)
GPT2 = Family(
    "GPT2Config",
    read_four_times,
    {"vocab_size": 50257, "max_position_embeddings": 1024, "tie_word_embeddings": True},
    {"intermediate_size": ("n_inner",)},
    style=Style(True, True, True, gated=False, norm_values=2, learned_positions=0),
)
GPTJ = GPT2.but(
    "GPTJConfig",
    defaults={"vocab_size": 50400, "max_position_embeddings": 2048, "tie_word_embeddings": False},
    style=Style(False, False, True, head_bias=True, gated=False, norms=1, norm_values=2),
)
GPT_NEOX = Family(
    "GPTNeoXConfig",
    read_decoder,
    {
        "vocab_size": 50432,
        "intermediate_size": 24576,
        "max_position_embeddings": 2048,
        "tie_word_embeddings": False,
        "attention_bias": True,
    },
    style=Style("attention_bias", "attention_bias", True, gated=False, norm_values=2),
)
FALCON = Family(
    "FalconConfig",
    read_falcon,
    {"vocab_size": 65024, "max_position_embeddings": 2048, "tie_word_embeddings": True},
    {"intermediate_size": ("ffn_hidden_size",)},
    style=Style(gated=False, norm_values=2),
)
PHI = LLAMA.but(
    "PhiConfig",
    read=read_four_times,
    defaults={"vocab_size": 51200, "intermediate_size": None},
    aliases={"intermediate_size": ("n_inner",)},
    style=Style(
        True, True, True, True, "halves", "qk_layernorm", gated=False, norms=1, norm_values=2
    ),
)
BAICHUAN = PLAIN.but(
    "BaichuanConfig",
    defaults={"max_position_embeddings": None},
    aliases={"max_position_embeddings": ("model_max_length",)},
)
OLMO2 = LLAMA.but(
    "Olmo2Config",
    defaults={"vocab_size": 50304},
    style=Style("attention_bias", "attention_bias", qk_norm="heads"),
)
EXAONE4 = LLAMA.but(
    "Exaone4Config",
    defaults={
        "vocab_size": 102400,
        "intermediate_size": 16384,
        "num_key_value_heads": 32,
        "sliding_window": 4096,
    },
    kinds=by_layer_types(4),
    style=Style(qk_norm="head"),
)
PHI3 = PLAIN.but(
    "Phi3Config", defaults={"vocab_size": 32064}, kinds=one_window(idle_if_longer=True)
)
INTERNLM = LLAMA.but("InternLMConfig", style=Style("bias", "bias"), defaults={"bias": False})
MINICPM = PLAIN.but("MiniCPMConfig", defaults={"tie_word_embeddings": True})

DENSE: dict[str, Family] = {
    "llama": LLAMA,
    "code_llama": LLAMA,
    "Yi": LLAMA.but("YiConfig"),
    "xverse": PLAIN.but("XverseConfig"),
    "aquila": PLAIN.but("AquilaConfig"),
    "mistral": MISTRAL,
    "ministral": MINISTRAL,
    "ministral3": MINISTRAL3,
    "qwen": PLAIN.but(
        "QWenConfig",
        read=read_qwen1,
        style=Style(qkv_bias=True),
        aliases={"head_dim": ("kv_channels",), "max_position_embeddings": ("seq_length",)},
    ),
    "qwen2": QWEN2,
    "qwen2_vl": QWEN2_VL,
    "qwen2_vl_text": QWEN2_VL,
    "qwen2_5_vl": QWEN2_VL.but("Qwen2_5_VLTextConfig"),
    "qwen2_5_vl_text": QWEN2_VL.but("Qwen2_5_VLTextConfig"),
    "qwen2_5_omni_text": QWEN2_VL.but("Qwen2_5OmniTextConfig"),
    "qwen3": QWEN3,
    "qwen3_vl_text": QWEN3.but("Qwen3VLTextConfig", defaults={"max_position_embeddings": 128000}),
    "mimo": QWEN2.but(
        "MiMoConfig", style=Style(qkv_bias="attention_bias"), defaults={"attention_bias": True}
    ),
    "gemma": GEMMA,
    "gemma2": GEMMA2,
    "gemma3_text": GEMMA3,
    "cohere": COHERE,
    "cohere2": COHERE2,
    "phi3": PHI3,
    "phi": PHI,
    "phi-msft": PHI.but("PhiConfig (first form)"),
    "mixformer-sequential": PHI.but("MixFormerSequentialConfig"),
    "starcoder2": LLAMA.but(
        "Starcoder2Config",
        kinds=one_window(),
        defaults={
            "vocab_size": 49152,
            "num_key_value_heads": 2,
            "tie_word_embeddings": True,
            "use_bias": True,
        },
        style=Style("use_bias", "use_bias", "use_bias", gated=False, norm_values=2),
    ),
    "gpt_bigcode": GPT2.but("GPTBigCodeConfig", read=read_bigcode),
    "gpt2": GPT2,
    "gpt_neo": GPT2.but(
        "GPTNeoConfig",
        kinds=gpt_neo_types,
        defaults={"max_position_embeddings": 2048},
        style=Style(False, True, True, gated=False, norm_values=2, learned_positions=0),
    ),
    "gpt_neox": GPT_NEOX,
    "gptj": GPTJ,
    "codegen": GPTJ.but("CodeGenConfig"),
    "bloom": GPT2.but(
        "BloomConfig",
        defaults={"vocab_size": 250880, "max_position_embeddings": None},
        aliases={"max_position_embeddings": ("seq_length",)},
        style=Style(True, True, True, gated=False, norm_values=2, embedding_norm=True),
    ),
    "falcon": FALCON,
    "RefinedWebModel": FALCON.but("FalconConfig (RefinedWebModel)"),
    "RefinedWeb": FALCON.but(
        "FalconConfig (RefinedWeb)", defaults={"new_decoder_architecture": True}
    ),
    "mpt": Family(
        "MptConfig",
        read_mpt,
        {"vocab_size": 50368, "tie_word_embeddings": True},
        style=Style(gated=False),
    ),
    "opt": Family(
        "OPTConfig",
        read_opt,
        {"vocab_size": 50272, "max_position_embeddings": 2048, "tie_word_embeddings": True},
        {"intermediate_size": ("ffn_dim",)},
        style=Style(True, True, True, gated=False, norm_values=2, learned_positions=2),
    ),
    "xglm": Family(
        "XGLMConfig",
        read_decoder,
        {"vocab_size": 256008, "max_position_embeddings": 2048, "tie_word_embeddings": True},
        {"intermediate_size": ("ffn_dim",), "num_attention_heads": ("attention_heads",)},
        style=ALL_BIASED,
    ),
    "chatglm": Family(
        "ChatGLMConfig",
        read_chatglm,
        {"tie_word_embeddings": False, "add_qkv_bias": False, "add_bias_linear": False},
        {
            "intermediate_size": ("ffn_hidden_size",),
            "head_dim": ("kv_channels",),
            "tie_word_embeddings": ("tie_word_embeddings",),
        },
        style=Style("add_qkv_bias", "add_bias_linear", "add_bias_linear"),
    ),
    "glm": GLM,
    "glm4": GLM.but("Glm4Config", style=Style("attention_bias", norms=4)),
    "glm4v_text": GLM.but(
        "Glm4vTextConfig", style=Style(True, norms=4), defaults={"head_dim": None}
    ),
    "stablelm": LLAMA.but(
        "StableLmConfig",
        defaults={"vocab_size": 50304, "num_key_value_heads": 32, "max_position_embeddings": 4096},
        style=Style("use_qkv_bias", norm_values=2),
    ),
    "stablelm_epoch": LLAMA.but("StableLMEpochConfig", style=Style("use_qkv_bias", norm_values=2)),
    "olmo": LLAMA.but(
        "OlmoConfig",
        defaults={"vocab_size": 50304},
        style=Style("attention_bias", "attention_bias", norm_values=0),
    ),
    "olmo2": OLMO2,
    "olmo3": OLMO2.but("Olmo3Config", kinds=by_layer_types(4), defaults={"sliding_window": 4096}),
    "granite": LLAMA.but("GraniteConfig"),
    "exaone": LLAMA.but("ExaoneConfig", defaults={"vocab_size": 102400, "num_key_value_heads": 8}),
    "exaone4": EXAONE4,
    "smollm3": LLAMA.but(
        "SmolLM3Config",
        kinds=by_layer_types(),
        defaults={"vocab_size": 128256, "num_key_value_heads": 4, "tie_word_embeddings": True},
    ),
    "ernie4_5": LLAMA.but(
        "Ernie4_5Config",
        defaults={
            "vocab_size": 103424,
            "head_dim": 128,
            "num_key_value_heads": 2,
            "tie_word_embeddings": True,
        },
        style=Style("use_bias", "use_bias", "use_bias"),
    ),
    "hunyuan_v1_dense": LLAMA.but(
        "HunYuanDenseV1Config",
        defaults={"vocab_size": 290943},
        style=Style("attention_bias", "attention_bias", qk_norm="head"),
        aliases={"head_dim": ("attention_head_dim",)},
    ),
    "seed_oss": LLAMA.but(
        "SeedOssConfig",
        defaults={
            "vocab_size": 155136,
            "num_key_value_heads": 8,
            "head_dim": 128,
            "attention_bias": True,
        },
        style=Style("attention_bias", "attention_out_bias", "mlp_bias"),
    ),
    "internlm": INTERNLM,
    "internlm2": INTERNLM.but("InternLM2Config"),
    "internlm3": LLAMA.but(
        "InternLM3Config",
        defaults={"vocab_size": 128512, "num_key_value_heads": 2, "head_dim": 128},
        style=Style("qkv_bias", "bias", "bias"),
    ),
    "baichuan": BAICHUAN,
    "orion": PLAIN.but("OrionConfig", style=Style(norm_values=2)),
    "minicpm": MINICPM,
    "nemotron": LLAMA.but(
        "NemotronConfig",
        defaults={"vocab_size": 256000},
        style=Style("attention_bias", "attention_bias", "mlp_bias", gated=False, norm_values=2),
    ),
    "persimmon": LLAMA.but(
        "PersimmonConfig",
        defaults={"qk_layernorm": True, "vocab_size": 262144},
        style=Style(True, True, True, False, "halves", "qk_layernorm", gated=False, norm_values=2),
    ),
    "helium": LLAMA.but(
        "HeliumConfig",
        defaults={"vocab_size": 48000, "head_dim": 128},
        style=Style("attention_bias"),
    ),
    "arcee": LLAMA.but(
        "ArceeConfig", style=Style("attention_bias", "attention_bias", "mlp_bias", gated=False)
    ),
    "apertus": LLAMA.but(
        "ApertusConfig",
        defaults={"vocab_size": 131072, "max_position_embeddings": 65536},
        style=Style("attention_bias", "attention_bias", gated=False, qk_norm="head"),
    ),
    "bitnet": LLAMA.but("BitNetConfig", defaults={"vocab_size": 128256, "num_key_value_heads": 5}),
    "vaultgemma": GEMMA2.but(
        "VaultGemmaConfig", style=Style("attention_bias", "attention_bias", norms=2)
    ),
    "gpt-neox-japanese": GPT_NEOX.but("GPTNeoXJapaneseConfig"),
}
