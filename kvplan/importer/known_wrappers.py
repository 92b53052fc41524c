"""Tables that lead to a family: wrappers of a text model, class names, classes that are shared."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Wrapper:
    """Where a multimodal config keeps its text model, and its model_type if it leaves that out."""

    path: tuple[str, ...]
    text_type: str = ""


# The names under which a wrapper keeps its text model.
SPELLINGS = ("text_config", "llm_config", "language_config")
_TEXT, _LLM, _LANGUAGE = ((key,) for key in SPELLINGS)
_THINKER = ("thinker_config", "text_config")

# Text model_type by wrapper, for wrappers that keep the text model under text_config.
_UNDER_TEXT_CONFIG: dict[str, str] = {
    "apertus1p5": "apertus",
    "aria": "aria_text",
    "audioflamingo3": "qwen2",
    "aya_vision": "cohere2",
    "cohere2_vision": "cohere2",
    "emu3": "llama",
    "exaone4_5": "exaone4",
    "fast_vlm": "qwen2",
    "gemma3": "gemma3_text",
    "gemma3n": "gemma3n_text",
    "gemma4": "gemma4_text",
    "gemma4_unified": "gemma4_unified_text",
    "glm46v": "glm4v_moe_text",
    "glm4v": "glm4v_text",
    "glm4v_moe": "glm4v_moe_text",
    "got_ocr2": "qwen2",
    "granite_speech": "granite",
    "granite4_vision": "granitemoehybrid",
    "granite_docling": "llama",
    "idefics2": "mistral",
    "idefics3": "llama",
    "internvl": "qwen2",
    "janus": "llama",
    "kimi_k25": "deepseek_v3",
    "kimi_k3": "kimi_linear",
    "kimi_vl": "deepseek_v3",
    "lfm2_vl": "lfm2",
    "lighton_ocr": "qwen3",
    "llama4": "llama4_text",
    "llava": "llama",
    "llava_next": "llama",
    "llava_next_video": "llama",
    "llava_onevision": "qwen2",
    "minimax_m3_vl": "minimax_m3_vl_text",
    "mistral3": "mistral",
    "mllama": "mllama_text_model",
    "paligemma": "gemma",
    "perception_lm": "llama",
    "qwen2_5_omni_thinker": "qwen2_5_omni_text",
    "qwen2_5_vl": "qwen2_5_vl_text",
    "qwen2_audio": "qwen2",
    "qwen2_vl": "qwen2_vl_text",
    "qwen3_5": "qwen3_5_text",
    "qwen3_5_moe": "qwen3_5_moe_text",
    "qwen3_omni_moe_thinker": "qwen3_omni_moe_text",
    "qwen3_vl": "qwen3_vl_text",
    "qwen3_vl_moe": "qwen3_vl_moe_text",
    "shieldgemma2": "gemma3_text",
    "smolvlm": "llama",
    "step3_vl": "step3_text",
    "step3p7": "step3p5",
    "ultravox": "llama",
    "video_llama_3": "qwen2",
    "video_llava": "llama",
    "vipllava": "llama",
    "voxtral": "llama",
}

WRAPPERS: dict[str, Wrapper] = {
    **{outer: Wrapper(_TEXT, inner) for outer, inner in _UNDER_TEXT_CONFIG.items()},
    "qwen2_5_omni": Wrapper(_THINKER, "qwen2_5_omni_text"),
    "qwen3_omni_moe": Wrapper(_THINKER, "qwen3_omni_moe_text"),
    "internvl_chat": Wrapper(_LLM),
    "ovis": Wrapper(_LLM),
    "ovis2": Wrapper(_TEXT, "qwen2"),
    "NemotronH_Nano_VL_V2": Wrapper(_LLM, "nemotron_h"),
    "deepseek_vl": Wrapper(_LANGUAGE, "llama"),
    "deepseek_vl_v2": Wrapper(_LANGUAGE, "deepseek_v2"),
    "multi_modality": Wrapper(_LANGUAGE, "llama"),
}

# Files whose model_type is left out or not the model's own.
ARCHITECTURES: dict[str, str] = {
    "GPT2LMHeadModel": "gpt2",
    "DeciLMForCausalLM": "nemotron-nas",
    "Grok1ForCausalLM": "grok",
    "Grok1ModelForCausalLM": "grok",
}

# Keys that only one class has ever written, for files from before model_type and architectures.
SIGNATURES: tuple[tuple[frozenset[str], str], ...] = (
    (
        frozenset({"n_ctx", "n_embd", "n_head", "n_layer", "n_positions", "initializer_range"}),
        "gpt2",
    ),
)

# Model types that share the configuration class, and so the defaults, of another.
SAME_CLASS: dict[str, str] = {
    "code_llama": "llama",
    "mimo": "qwen2",
    "phi-msft": "phi",
    "RefinedWeb": "falcon",
    "RefinedWebModel": "falcon",
    "stablelm_epoch": "stablelm",
    "kimi_k2": "deepseek_v3",
    "deepseek_ref": "deepseek_v4",
    "minimax_text_01": "minimax",
    "minimax_m1": "minimax",
    "step3p7": "step3p5",
    "mimo_v2": "mimo_v2_flash",
}
