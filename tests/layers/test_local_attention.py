import numpy as np
import pytest

from kseq.layers import AttentionDecoder, LocalAttention, LuongAttention
from kseq.user_error import ArgumentError
from tests.layers.arrays import normal, numpy_of, randomize

ALIGNMENTS = ("monotonic", "predictive")


def attention_of(score="general", depth=(4, 3), **options):
    attention = LocalAttention(score, **options)
    query, memory = ((None, None, size) for size in depth)
    attention.build(query, memory)
    return randomize(attention)


def by_definition(attention, query, memory, first=0):
    """Weights of one item, query by query, in NumPy."""
    keys = memory @ numpy_of(attention.memory_projection.kernel)
    length, reach = len(memory), attention.window
    weights = np.zeros((len(query), length))
    for t, vector in enumerate(query):
        center = first + t
        if attention.alignment == "predictive":
            kernel = numpy_of(attention.center_projection.kernel)
            hidden = np.tanh(vector @ kernel)
            energy = hidden @ numpy_of(attention.center_scale)
            center = length / (1 + np.exp(-energy))
        near = [s for s in range(length) if abs(s - center) <= reach]
        if not near:
            continue
        energies = np.array([vector @ keys[s] for s in near])
        chosen = np.exp(energies - energies.max())
        chosen /= chosen.sum()
        if attention.alignment == "predictive":
            sigma = reach / 2
            distances = np.array(near) - center
            chosen *= np.exp(-(distances**2) / (2 * sigma**2))
        weights[t, near] = chosen
    return weights


@pytest.mark.parametrize("alignment", ALIGNMENTS)
@pytest.mark.parametrize("window", [1, 2, 30])
def test_values(seed, alignment, window):
    attention = attention_of(window=window, alignment=alignment)
    query, memory = normal(2, 9, 4), normal(2, 6, 3)
    mask = np.arange(6) < np.array([[6], [4]])
    context, weights = attention(
        query, memory, memory_mask=mask, return_weights=True
    )
    for row, length in enumerate([6, 4]):
        real = memory[row, :length]
        expected = by_definition(attention, query[row], real)
        np.testing.assert_allclose(
            weights[row, :, :length], expected, atol=1e-5
        )
        np.testing.assert_allclose(context[row], expected @ real, atol=1e-5)
    assert not np.any(weights[1, :, 4:])


def test_a_window_of_all_is_global(seed):
    """Monotonic; predictive attention has its bell as well."""
    local = attention_of("dot", (4, 4), window=99, alignment="monotonic")
    query, memory = normal(2, 5, 4), normal(2, 6, 4)
    np.testing.assert_allclose(
        local(query, memory), LuongAttention("dot")(query, memory), atol=1e-6
    )


def test_positions_move_a_monotonic_window(seed):
    attention = attention_of(window=1, alignment="monotonic")
    query, memory = normal(2, 1, 4), normal(2, 6, 3)
    positions = np.array([[3.0], [0.0]])
    _, weights = attention(
        query, memory, positions=positions, return_weights=True
    )
    for row in range(2):
        expected = by_definition(
            attention, query[row], memory[row], int(positions[row, 0])
        )
        np.testing.assert_allclose(weights[row], expected, atol=1e-6)


@pytest.mark.parametrize("alignment", ALIGNMENTS)
def test_hypotheses_read_the_memory_of_their_item(seed, alignment):
    attention = attention_of(window=2, alignment=alignment)
    query, memory = normal(6, 2, 4), normal(2, 5, 3)
    positions = np.random.randint(0, 5, (6, 2)).astype("float32")
    found = attention(
        query,
        projected_memory=attention.project_memory(memory),
        positions=positions,
        return_weights=True,
    )
    expected = attention(
        query,
        np.repeat(memory, 3, axis=0),
        positions=positions,
        return_weights=True,
    )
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)


@pytest.mark.parametrize("alignment", ALIGNMENTS)
def test_padding_changes_no_bit(seed, alignment):
    """The length is that of each item, whatever is at its padding."""
    attention = attention_of(window=2, alignment=alignment)
    query, memory = normal(2, 5, 4), normal(2, 7, 3)
    mask = np.arange(7) < np.array([[4], [7]])
    changed = np.where(mask[..., None], memory, normal(2, 7, 3))
    one, other = (
        attention(query, x, memory_mask=mask, return_weights=True)
        for x in (memory, changed)
    )
    np.testing.assert_array_equal(one[0], other[0])
    np.testing.assert_array_equal(one[1], other[1])
    alone = attention(query[:1], memory[:1, :4])
    np.testing.assert_allclose(one[0][:1], alone, atol=1e-6)


@pytest.mark.parametrize("alignment", ALIGNMENTS)
def test_nothing_to_attend_to_gives_zeros(seed, alignment):
    attention = attention_of(window=1, alignment=alignment)
    outputs = attention(
        normal(1, 2, 4),
        normal(1, 3, 3),
        memory_mask=np.zeros((1, 3), bool),
        return_weights=True,
    )
    assert not any(np.any(numpy_of(output)) for output in outputs)


def test_a_window_past_the_end_gives_zeros(seed):
    attention = attention_of(window=1, alignment="monotonic")
    positions = np.array([[3.0, 4.0, 1e9]], "float32")
    _, weights = attention(
        normal(1, 3, 4),
        normal(1, 3, 3),
        positions=positions,
        return_weights=True,
    )
    assert numpy_of(weights)[0].any(axis=1).tolist() == [True, False, False]


def test_a_distant_position_is_exact_in_half_precision():
    """Past 256, bfloat16 has no odd numbers."""
    attention = LocalAttention(
        "dot", window=1, alignment="monotonic", dtype="bfloat16"
    )
    vectors = np.ones((1, 601, 2))
    _, weights = attention(vectors, vectors, return_weights=True)
    reached = [np.flatnonzero(row).tolist() for row in numpy_of(weights)[0]]
    assert reached[599] == [598, 599, 600]

    _, weights = attention(
        vectors[:, :1],
        vectors,
        positions=np.array([[599]]),
        return_weights=True,
    )
    assert np.flatnonzero(numpy_of(weights)).tolist() == [598, 599, 600]


def test_a_decoder_in_half_precision(seed):
    decoder = AttentionDecoder(
        4,
        attention=LocalAttention("dot", window=1, alignment="monotonic"),
        input_feeding=True,
        dtype="mixed_bfloat16",
    )
    outputs = decoder(normal(2, 6, 3), normal(2, 5, 4))
    assert np.isfinite(numpy_of(outputs)).all()


@pytest.mark.parametrize("alignment", ALIGNMENTS)
@pytest.mark.parametrize(
    "wiring",
    [{}, {"input_feeding": True}, {"order": "bahdanau"}, {"cell": "gru"}],
    ids=str,
)
def test_a_decoder_moves_the_window(seed, alignment, wiring):
    """Step by step and whole; weights of 0 tell where it was."""
    decoder = AttentionDecoder(
        4,
        attention=LocalAttention("dot", window=1, alignment=alignment),
        **wiring,
    )
    inputs, memory = normal(2, 6, 3), normal(2, 5, 4)
    mask = np.arange(5) < np.array([[5], [3]])
    outputs, weights = decoder(
        inputs, memory, memory_mask=mask, return_weights=True
    )
    if alignment == "monotonic":
        near = abs(np.arange(6)[:, None] - np.arange(5)) <= 1
        expected = near & mask[:, None]
        np.testing.assert_array_equal(numpy_of(weights) > 0, expected)
    state = decoder.start(memory)
    projected = decoder.project_memory(memory)
    for t in range(6):
        output, state = decoder.step(inputs[:, t], state, projected, mask)
        np.testing.assert_allclose(output, outputs[:, t], atol=1e-5)


@pytest.mark.parametrize("wrong", [0, -1, 1.5, None, True, 10**12, "2"])
def test_the_window_is_checked(wrong):
    with pytest.raises(ArgumentError, match="window must be an integer"):
        LocalAttention(window=wrong)


@pytest.mark.parametrize("wrong", ["", "local-p", None, 1])
def test_the_alignment_is_checked(wrong):
    with pytest.raises(ArgumentError, match="alignment must be one of"):
        LocalAttention(alignment=wrong)


def test_the_score_is_checked():
    with pytest.raises(ValueError, match="score must be one of"):
        LocalAttention("location")
    with pytest.raises(ValueError, match="units must be given"):
        LocalAttention("concat")


def test_the_config_is_complete():
    attention = LocalAttention("concat", 5, 3, "monotonic", use_bias=True)
    config = attention.get_config()
    again = LocalAttention.from_config(config)
    assert again.get_config() == config
    assert (again.units, again.window, again.alignment) == (5, 3, "monotonic")
