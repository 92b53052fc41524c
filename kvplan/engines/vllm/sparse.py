"""The format a sparse MLA model ends up with, which need not be the one that was asked for."""

from __future__ import annotations

from kvplan.engines.vllm.versions import rules_for
from kvplan.errors import ValueProblem

BACKENDS = ("FLASHMLA_SPARSE", "FLASHINFER_MLA_SPARSE", "FLASHINFER_MLA_SPARSE_SM120")
_RECORD = "fp8_ds_mla"


def sparse_latent_format(asked: str, version: str, backend: str = "FLASHMLA_SPARSE") -> str:
    """The value of --kv-cache-dtype a model with an indexer runs with.

    0.11 turns "auto" and fp8 into the 656-byte record whatever the backend; later releases turn
    quantised formats into it with FlashMLA, and "auto" and fp8 with FlashInfer on SM120.
    Source: vLLM 0.11.0 models/config.py DeepseekV32ForCausalLM; 0.20.0 mla_attention.py;
    0.33.0 mla_attention.py _canonicalize_sparse_mla_kv_cache_dtype.
    """
    rules = rules_for(version)
    if backend not in BACKENDS:
        what = f"vLLM has no sparse MLA backend '{backend}' that is read here"
        raise ValueProblem(what, f"known: {', '.join(BACKENDS)}", "choose one of them")
    if _RECORD not in rules.formats:
        return asked
    if rules.version == "0.11.0":
        return _RECORD if asked == "auto" or asked.startswith("fp8") else asked
    quantised = asked not in ("auto", "bf16", "fp16", "bfloat16", "float16", "float32")
    if backend == "FLASHMLA_SPARSE" and quantised and asked != "nvfp4_ds_mla":
        return _RECORD
    late = rules.version == "0.33.0" and backend == "FLASHINFER_MLA_SPARSE_SM120"
    return _RECORD if late and asked in ("auto", "fp8", "fp8_e4m3") else asked
