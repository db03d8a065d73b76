import math

import numpy as np
import pytest
import tensorflow as tf

from kseq.control_tokens import END, UNK
from kseq.data import Tokenizer
from kseq.decoding import BeamSearch, GreedySearch
from kseq.decoding.end_after_strings import EndAfterStrings, cut_pattern

SURFACES = [b"", b"", b"", b"", b"ab", b"c", b"\xe6\x97", b"\xa5", b"\n", b"."]
STRINGS = ["bc", ".", "日", "\n\n", "(a", "c.c", "\\", "[^x]*$"]


def ended(strings, ids, surfaces=SURFACES):
    """Whether each row has END next, in a graph of any size."""
    ids = np.array(ids, "int32")
    constraint = EndAfterStrings(strings, surfaces)
    function = tf.function(
        constraint,
        input_signature=[
            tf.TensorSpec((None, None), tf.float32),
            tf.TensorSpec((None, None), tf.int32),
        ],
        autograph=False,
    )
    log_probs = np.random.normal(size=(len(ids), len(surfaces)))
    log_probs = log_probs.astype("float32")
    found = function(log_probs, ids).numpy()
    ends = np.isinf(found).any(axis=1)
    np.testing.assert_array_equal(found[~ends], log_probs[~ends])
    np.testing.assert_array_equal(found[ends, END], log_probs[ends, END])
    assert (np.delete(found[ends], END, axis=1) == -math.inf).all()
    return ends.tolist()


@pytest.mark.parametrize(
    ("strings", "ids", "expected"),
    [
        (["bc"], [[4, 5], [5, 4], [4, 4]], [True, False, False]),
        (["abc"], [[5, 4, 5, 8], [4, 8, 5, 5]], [True, False]),
        (["b"], [[4], [5]], [True, False]),
        (["日"], [[6, 7], [6, 6], [7, 6]], [True, False, False]),
        (["\n\n"], [[8, 8], [8, 5]], [True, False]),
        (["."], [[5, 9], [4, 5]], [True, False]),
        (["c.c"], [[5, 9, 5], [5, 5, 5]], [True, False]),
        (["zz", "c"], [[4, 5], [4, 4]], [True, False]),
        (["c"], [[], []], [False, False]),
    ],
)
def test_what_has_a_string_ends(strings, ids, expected):
    assert ended(strings, ids) == expected


@pytest.mark.parametrize("string", STRINGS)
def test_strings_are_no_regular_expressions(string):
    text = f"xa{string}b\nc{string}"
    tokenizer = Tokenizer.train([text], 99, "char", verbatim=True)
    surfaces = tokenizer.surfaces()
    cut = tf.strings.regex_replace([text, "xab"], cut_pattern([string]), "")
    assert cut.numpy().tolist() == [b"xa", b"xab"]
    for each in (text, "xab\nc"):
        ids = tokenizer.tokenize([each]).to_list()
        assert ended([string], ids, surfaces) == [string in each]


@pytest.mark.parametrize("search", [GreedySearch, BeamSearch])
def test_a_search_ends_after_a_string(
    make_model, source_ids, in_graph, scores_of, search
):
    surfaces = [b"", b"", b"", b"", b"a", b"b", b"ca"]
    model = make_model(bias={END: -9.0, UNK: -99.0})
    ends = EndAfterStrings(["ab", "aa"], surfaces)
    best = in_graph(search(constraints=[ends]), model, source_ids, [9] * 3)
    rows = zip(best.ids[:, 0].numpy(), best.lengths[:, 0], strict=True)
    for ids, length in rows:
        texts = [b"".join(surfaces[i] for i in ids[:n]) for n in range(length)]
        are_found = [b"ab" in text or b"aa" in text for text in texts]
        assert not any(are_found[:-1])
        # A text may also end before it contains one.
        assert ids[length - 1] == END or not are_found[-1]
    np.testing.assert_allclose(
        best.scores, scores_of(model, best.ids), atol=1e-4
    )


@pytest.mark.parametrize("strings", [[], [""], ["a", ""], [b"a"], [5]])
def test_wrong_strings(strings):
    with pytest.raises(ValueError, match="strings that are not empty"):
        EndAfterStrings(strings, SURFACES)
