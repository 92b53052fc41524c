"""Configs of encoder-decoders in, shape out: decoder layers keep their own KV and that of the
encoder's output.
"""

from __future__ import annotations

from kvplan.importer import parameters
from kvplan.importer.decoder import Heads, attention_state
from kvplan.importer.family import Family
from kvplan.importer.reading import Reading
from kvplan.importer.records import Figure, Layer, Shape, dense, state


def _layers(
    heads: Heads, count: int, weights: int, encoder: Figure | None = None
) -> tuple[Layer, ...]:
    cross = state(
        "cross",
        query_heads=heads.query,
        kv_heads=heads.kv,
        head_dim=heads.size,
        encoder_length=encoder,
    )
    return (Layer((attention_state(("full", None), heads), cross), dense(weights)),) * count


def read_t5(reading: Reading, family: Family) -> Shape:
    """T5: relative positions in the first layer, no biases; d_kv is the head size, not d_model /
    heads.
    """
    width, vocabulary = reading.core("hidden_size").value, reading.count("vocab_size")
    query, size = reading.core("num_attention_heads"), reading.figure("d_kv")
    encoder = reading.core("num_hidden_layers").value
    decoder = reading.count("num_decoder_layers", encoder)
    heads = Heads(query, query, size, size)
    gated = reading.word("feed_forward_proj", "relu").startswith("gated")
    block = parameters.attention(width, query.value, query.value, size.value, size.value)
    ff = parameters.mlp(width, reading.count("d_ff"), gated)
    buckets = 2 * reading.count("relative_attention_num_buckets", 32) * query.value
    rest = encoder * (block + ff + 2 * width) + 2 * width + buckets
    tied = reading.flag("tie_word_embeddings", True)
    reading.note(
        "cross layers keep KV for the encoder's tokens: their number is an input of the plan"
    )
    return Shape(
        layers=_layers(heads, decoder, 2 * block + ff + 3 * width),
        embedding=vocabulary * width * (1 if tied else 2),
        rest=dense(rest),
    )


def read_bart(reading: Reading, family: Family) -> Shape:
    """BART and its kin: biases everywhere, learned positions two rows longer, scale and shift
    norms.
    """
    width = reading.core("hidden_size").value
    block = parameters.attention(width, 1, 1, width, width, True, True)
    layers, encoder = _decoder_and_encoder(reading, width, block)
    longest = reading.figure("max_position_embeddings")
    extra = family.style.learned_positions
    rows = 0 if extra is None else 2 * (longest.value + extra)
    # Norms after both embeddings (and, for mBART, after both stacks).
    rest = encoder + rows * width + family.style.norms * 2 * width
    embedding = reading.count("vocab_size") * width
    return Shape(layers, embedding, dense(rest), max_context=longest)


def read_whisper(reading: Reading, family: Family) -> Shape:
    """Whisper: keys have no bias; the encoder starts with two convolutions and yields
    max_source_positions tokens.
    """
    width = reading.core("hidden_size").value
    block = parameters.attention(width, 1, 1, width, width, True, True) - width
    source = reading.figure("max_source_positions")
    layers, encoder = _decoder_and_encoder(reading, width, block, source)
    target = reading.figure("max_target_positions")
    mels = reading.count("num_mel_bins", 80)
    convolutions = (3 * mels + 1) * width + (3 * width + 1) * width
    rest = encoder + convolutions + (source.value + target.value) * width + 4 * width
    embedding = reading.count("vocab_size") * width
    return Shape(layers, embedding, dense(rest), max_context=target)


def _decoder_and_encoder(
    reading: Reading, width: int, block: int, source: Figure | None = None
) -> tuple[tuple[Layer, ...], int]:
    """The decoder's layers, and the parameters of the encoder's."""
    query = reading.figure("decoder_attention_heads")
    size = Figure(max(width // query.value, 1), "d_model / decoder_attention_heads")
    heads = Heads(query, query, size, size)
    ff = parameters.mlp(width, reading.count("decoder_ffn_dim"), False, True)
    layers = _layers(heads, reading.count("decoder_layers"), 2 * block + ff + 6 * width, source)
    inner = parameters.mlp(width, reading.count("encoder_ffn_dim"), False, True)
    reading.has("encoder_attention_heads")
    reading.has("num_hidden_layers")
    return layers, reading.count("encoder_layers") * (block + inner + 4 * width)
