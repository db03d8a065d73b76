import contextlib
import random
import tempfile
import unicodedata

import keras
import numpy as np
import pytest
import sentencepiece
import tensorflow as tf
from sentencepiece import sentencepiece_model_pb2

from kseq.control_tokens import END, PAD, START, UNK
from kseq.data import DataError, Tokenizer
from kseq.data.text import tokenizer as tokenizer_module
from kseq.data.text import tokenizer_training
from kseq.user_error import ArgumentError

LINES = [
    "the cat sat on the mat and the dog lay on the log",
    "a cat and a dog and a bird went to the sea in a boat",
    "über allen Gipfeln ist Ruh, in allen Wipfeln spürest du",
]
UNUSUAL = {
    "double space": "two  spaces   here",
    "no-break space": "wie\u00a0geht\u202fes ?",
    "ideographic space": "東京\u3000タワー",
    "composed": unicodedata.normalize("NFC", "café Å"),
    "decomposed": unicodedata.normalize("NFD", "café Å"),
    "joiners": "क्\u200dष \u0645\u06cc\u200c\u062e",
    "right to left": "\u05e9\u05dc\u05d5\u05dd \u202b\u0645\u0631\u202c",
    "emoji": "👩‍👩‍👧 🏳️‍🌈 👍🏽",
    "separators": "a\u2028b\u0085c\u2029d\x0be",
    "tab and NUL": "a\tb\x00c",
    "SentencePiece's space": "a\u2581b \u2581",
    "compatibility": "\ufb01 ① ｱ \u2163",
}


def tokenize(tokenizer, *texts):
    return tokenizer.tokenize(list(texts)).to_list()


@pytest.mark.parametrize("model_type", ["bpe", "unigram"])
def test_any_text_comes_back_as_it_was(model_type):
    tokenizer = Tokenizer.train(LINES, 296, model_type)
    texts = list(UNUSUAL.values())

    ids = tokenizer.tokenize(texts).to_tensor()

    returned = [text.decode() for text in tokenizer.detokenize(ids).numpy()]
    assert returned == texts
    assert not (ids == UNK).numpy().any()
    for piece in tokenizer.pieces(ids).numpy().flat:
        piece.decode()


@pytest.mark.parametrize(
    ("model_type", "vocab_size"), [("char", 99), ("word", 28), ("word", 9999)]
)
def test_seen_text_comes_back_without_bytes(model_type, vocab_size):
    tokenizer = Tokenizer.train(LINES, vocab_size, model_type)

    ids = tokenizer.tokenize(LINES).to_tensor()

    returned = [text.decode() for text in tokenizer.detokenize(ids).numpy()]
    assert returned == LINES
    assert UNK in tokenize(tokenizer, "駅")[0]


def test_words_beyond_the_most_frequent_are_unknown():
    lines = ["AH0 L AH0 L", "AH0 AW1"]
    tokenizer = Tokenizer.train(lines, 6, "word")
    assert tokenizer.vocab_size == 6  # two words, and the control tokens
    assert tokenize(tokenizer, "AH0 L AW1")[0] == [4, 5, UNK]


VERBATIM = [
    "  a rose \n",
    "\n",
    "\ta  \u2581rose\u2581 is\n",
    " \u2581 \n",
    "the end ",
]


@pytest.mark.parametrize(
    ("model_type", "vocab_size"),
    [("char", 99), ("bpe", 290), ("unigram", 290)],
)
def test_verbatim_text_comes_back_with_white_space(
    model_type, vocab_size, write
):
    trained = Tokenizer.train(
        [*LINES, *VERBATIM], vocab_size, model_type, verbatim=True
    )
    loaded = Tokenizer.load(write("tokenizer.model", trained.model))
    whole = "".join(VERBATIM)
    for tokenizer in (trained, loaded):
        assert tokenizer.is_verbatim
        texts = [*VERBATIM, whole, " ", ""]
        ids = tokenizer.tokenize(texts).to_tensor()
        returned = tokenizer.detokenize(ids).numpy()
        assert [text.decode() for text in returned] == texts
        # Line by line it is the same, and so are the surfaces.
        [together] = tokenize(tokenizer, whole)
        each = tokenize(tokenizer, *VERBATIM)
        assert together == [i for ids in each for i in ids]
        surfaces = tokenizer.surfaces()
        assert b"".join(surfaces[i] for i in together).decode() == whole


def test_words_are_never_verbatim(tokenizer):
    assert not tokenizer.is_verbatim
    with pytest.raises(ValueError, match="Received: verbatim=True"):
        Tokenizer.train(LINES, 28, "word", verbatim=True)


@pytest.mark.parametrize("text", ["</s>", "<s> <pad> <unk>", "<0x41>", "<s>a"])
def test_text_that_spells_a_control_token_is_text(tokenizer, text):
    ids = tokenizer.tokenize([text])

    assert not {PAD, UNK, START, END} & set(ids.to_list()[0])
    assert tokenizer.detokenize(ids.to_tensor()).numpy()[0].decode() == text


@pytest.mark.parametrize(
    ("kind", "verbatim"),
    [("bpe", False), ("unigram", False), ("char", False), ("bpe", True)],
)
def test_a_text_within_a_text_has_no_space_before_it(kind, verbatim):
    tokenizer = Tokenizer.train(LINES, 290, kind, verbatim)
    for text in ("mat and", "日本 cat", ""):
        found = tokenizer.tokenize_within([text])
        surfaces = tokenizer.surfaces()
        shown = b"".join(surfaces[token] for token in found.to_list()[0])
        assert kind == "char" or shown == text.encode()
        plain = tokenizer.tokenize([text])
        assert (plain.to_list() == found.to_list()) == (verbatim or not text)


def test_ids_do_not_depend_on_line_ends_or_outer_spaces(tokenizer):
    texts = [b"a dog", b"a dog\r", b"a dog\n", b"a dog\r\r\n", b" \t a dog\x0b"]

    ids = tokenize(tokenizer, *texts)

    assert ids == [ids[0]] * len(texts)


def test_invalid_utf8_is_the_replacement_character(tokenizer):
    broken = [b"a\xffb", b"a\xc3", b"\xed\xa0\x80", b"\xf0\x9f\x91 a"]
    replaced = [text.decode(errors="replace") for text in broken]

    assert tokenize(tokenizer, *broken) == tokenize(tokenizer, *replaced)


def test_ids_are_the_same_alone_in_a_batch_and_in_a_graph(tokenizer):
    texts = ["A dog runs.", "", "Die Frau im roten Mantel liest", "駅"]
    alone = [tokenize(tokenizer, text)[0] for text in texts]

    assert tokenize(tokenizer, *texts) == alone
    dataset = tf.data.Dataset.from_tensor_slices(texts).batch(3)
    in_graph = [
        row for batch in dataset.map(tokenizer.tokenize) for row in batch
    ]
    assert [row.numpy().tolist() for row in in_graph] == alone


def test_training_is_deterministic(monkeypatch):
    monkeypatch.setattr(tokenizer_training, "_SAMPLED_LINES", 101)
    lines = [f"{line} {number}" for number in range(99) for line in LINES]

    first = Tokenizer.train(lines, 300)
    sentencepiece.set_random_generator_seed(12345)

    assert Tokenizer.train(iter(lines), 300).model == first.model
    assert tempfile.gettempdir().encode() not in first.model


def test_bytes_and_strings_train_the_same_tokenizer():
    encoded = [line.encode() + b"\r\n" for line in LINES]

    assert (
        Tokenizer.train(encoded, 290).model == Tokenizer.train(LINES, 290).model
    )


@pytest.mark.parametrize("model_type", ["bpe", "unigram"])
def test_a_small_text_has_as_many_pieces_as_it_supports(model_type, caplog):
    caplog.set_level("INFO")

    trained = Tokenizer.train(LINES, 5000, model_type)

    most = trained.vocab_size
    assert caplog.messages[0] == (
        f"The text supports {most} pieces: the vocabulary has fewer than 5,000."
    )
    assert Tokenizer.train(LINES, most, model_type).model == trained.model
    assert Tokenizer.train(LINES, most - 1, model_type).vocab_size == most - 1


@pytest.mark.parametrize("vocab_size", [3, 260, 262])
def test_too_small_a_vocabulary_names_the_smallest(vocab_size):
    with pytest.raises(DataError, match="at least") as error:
        Tokenizer.train(LINES, vocab_size)

    assert "INTERNAL" not in str(error.value)


def test_numbers_are_made_of_digits():
    tokenizer = Tokenizer.train(["in 2024 and 2025 and 2026"] * 9, 270)

    ids = tokenizer.tokenize(["2042"])

    pieces = [piece.decode() for piece in tokenizer.pieces(ids[0]).numpy()]
    assert "".join(pieces[-4:]) == "2042"


def test_a_vocabulary_of_characters_has_no_more_than_there_are():
    assert Tokenizer.train(["aab"], 8000, "char").vocab_size == 4 + 3


@pytest.mark.parametrize("verbatim", [False, True])
def test_all_characters_of_a_text_are_in_a_vocabulary_of_characters(verbatim):
    """Also where SentencePiece uses them, or skips the line."""
    texts = [f"x{text}y" for text in UNUSUAL.values() if "\0" not in text]
    texts += ["x\u2585y", "x\x1fy", "x\x01\x7fy", "\ufeffz", "\ufffd\uffff"]
    texts += ["<s>", "</s>", "<unk>", "<pad>", "<0x0A>", "q" * 70_000 + "Q"]
    tokenizer = Tokenizer.train(texts, 999, "char", verbatim=verbatim)

    ids = tokenizer.tokenize(texts)

    assert not (ids.flat_values == UNK).numpy().any()
    returned = tokenizer.detokenize(ids.to_tensor()).numpy()
    assert [text.decode() for text in returned] == texts


@pytest.mark.parametrize("model_type", ["bpe", "unigram"])
def test_a_line_with_a_character_of_sentencepiece_counts(model_type):
    lines = ["zebra </s> zebra \u2585 zebra", "zebra\0 zebra"]
    tokenizer = Tokenizer.train(lines * 9, 266, model_type)

    for line in lines:
        ids = tokenizer.tokenize([line])
        assert not (ids.flat_values == UNK).numpy().any()
        assert tokenizer.detokenize(ids.to_tensor()).numpy() == line.encode()
    assert tf.reduce_min(tokenizer.tokenize(["zebra"])[0]) >= 4 + 256


@pytest.mark.parametrize("model_type", ["bpe", "unigram", "char", "word"])
def test_a_long_line_is_text(model_type):
    words = ["rose", "dog", "\u3042\u3044", "\U0001f600"] * 10_000
    text = " ".join(words)
    assert len(text.encode()) > 100_000
    sizes = {"bpe": 272, "unigram": 272}
    tokenizer = Tokenizer.train([text], sizes.get(model_type, 99), model_type)

    ids = tokenizer.tokenize([" ".join(words[:4])])
    assert not (ids.flat_values == UNK).numpy().any()
    if model_type == "word":
        assert tokenizer.vocab_size == 4 + 4


def test_characters_of_lines_that_are_not_drawn(monkeypatch):
    monkeypatch.setattr(tokenizer_training, "_SAMPLED_LINES", 101)
    lines = [f"a{chr(0x4E00 + number)}" for number in range(400)]
    tokenizer = Tokenizer.train(lines, 8000, "char")
    assert not (tokenizer.tokenize(lines).flat_values == UNK).numpy().any()


def test_more_characters_than_pieces_are_said(caplog):
    lines = ["a" * 9, "".join(chr(0x4E00 + number) for number in range(300))]
    assert Tokenizer.train(lines, 100, "char").vocab_size == 100
    [message] = caplog.messages
    assert message == (
        "206 of 302 different characters (66.24% of the text) do not fit "
        "into vocab_size=100: they are unknown, and cannot be read or written. "
        "Set vocab_size to 306 to keep all."
    )
    caplog.clear()
    Tokenizer.train(lines, 306, "char")
    assert not caplog.messages


def test_characters_that_are_spelled_in_bytes_are_said(caplog):
    caplog.set_level("INFO", "kseq")
    Tokenizer.train(["a rose is a rose " * 999 + "\u3042"], 270, "bpe")
    [message] = caplog.messages
    assert message.startswith("1 of 8 different characters (0.01%")
    assert "spelled in bytes" in message


def test_nuls_are_said(caplog):
    Tokenizer.train(["a\0b\0"], 99, "char")
    assert caplog.messages == ["2 NUL characters in the text are unknown."]


def test_noncharacters_with_a_meaning_are_the_replacement_character(tokenizer):
    assert tokenize(tokenizer, "a\ufdd0 \ufdd1b") == tokenize(
        tokenizer, "a\ufffd \ufffdb"
    )


@pytest.mark.parametrize("lines", [[], ["", " \r\n"], ["\u3000", "\u200b"]])
def test_an_empty_corpus_is_named(lines):
    with pytest.raises(DataError, match="no text to train"):
        Tokenizer.train(lines, 300)


@pytest.mark.parametrize(
    ("lines", "received"),
    [
        ("a rose.txt", "'a rose.txt'"),
        (["a rose", None], "None"),
        ([["a", "rose"]], r"\['a', 'rose'\]"),
    ],
)
def test_one_text_is_no_iterable_of_lines(lines, received):
    with pytest.raises(ArgumentError, match=f"iterable.* Received: {received}"):
        Tokenizer.train(lines, 300)


def test_model_type_is_checked():
    with pytest.raises(ValueError, match="Received: model_type=words"):
        Tokenizer.train(LINES, 300, "words")


def test_end_is_appended_and_counts_in_max_length(tokenizer):
    texts = ["The woman", "", "a dog"]
    tokens = tokenize(tokenizer, *texts)
    longest = len(tokens[0])

    whole, _ = tokenizer.tokenize_with_end(texts)
    assert whole.to_list() == [[*row, END] for row in tokens]
    assert whole.dtype == tf.int32

    for max_length, is_cut in ((longest + 1, False), (longest, True)):
        ids, truncated = tokenizer.tokenize_with_end(texts, max_length)
        assert ids.to_list() == [
            [*row[: max_length - 1], END] for row in tokens
        ]
        assert truncated.numpy().tolist() == [is_cut, False, False]


def test_detokenize_stops_at_end_and_leaves_out_padding(tokenizer):
    dog, cat = tokenize(tokenizer, "a dog", "The woman")
    rows = [[START, *dog, END, *cat], [*cat, PAD, PAD], [END], []]
    ids = tf.ragged.constant(rows, dtype=tf.int64).to_tensor(PAD)

    text = tokenizer.detokenize(ids).numpy().tolist()

    assert text == [b"a dog", b"The woman", b"", b""]


@pytest.mark.parametrize("shape", [(0, 3), (2, 0), (0, 0)])
def test_empty_batches_have_texts_too(tokenizer, shape):
    ids = tf.zeros(shape, tf.int32)

    assert tokenizer.detokenize(ids).shape == shape[:1]
    assert tokenizer.pieces(ids).shape == shape
    assert tokenizer.tokenize(tf.zeros((0,), tf.string)).shape[0] == 0


def test_pieces_have_the_shape_of_the_ids(tokenizer):
    ids = tokenizer.tokenize(["A dog", "The woman"]).to_tensor()

    pieces = tokenizer.pieces(ids)

    assert pieces.shape == ids.shape
    text = b"".join(pieces[0].numpy()).replace(b"<pad>", b"")
    assert text.decode() == "\u2581A\u2581dog"


def test_loaded_it_is_the_same(tokenizer, write):
    loaded = Tokenizer.load(write("tokenizer.model", tokenizer.model))

    assert loaded.model == tokenizer.model


def test_a_damaged_model_is_one_message(tokenizer):
    """Of SentencePiece, whose message may not be UTF-8."""
    start = tokenizer.model.index(b"</s>")
    for place in range(start, start + 300):
        model = bytearray(tokenizer.model)
        model[place] = 0xFF
        with contextlib.suppress(DataError):
            Tokenizer(bytes(model))


@pytest.mark.parametrize("model_type", ["bpe", "unigram", "char", "word"])
def test_a_model_that_only_tensorflow_cannot_use(model_type):
    """It fails in the graph, or ends the process."""
    sizes = {"bpe": 296, "unigram": 296, "char": 99, "word": 28}
    tokenizer = Tokenizer.train(LINES, sizes[model_type], model_type)
    broken = sentencepiece_model_pb2.ModelProto.FromString(tokenizer.model)
    [*_, last] = broken.pieces

    def refused():
        with pytest.raises(DataError, match="Not a SentencePiece model"):
            Tokenizer(broken.SerializeToString())

    last.piece, text = "\0", last.piece
    refused()
    last.piece = "@@"
    content = broken.SerializeToString()
    with pytest.raises(DataError, match=r"model: piece \d+, b'@\\xff', cannot"):
        Tokenizer(content.replace(b"@@", b"@\xff"))
    last.piece, last.type = text, last.CONTROL
    if model_type == "unigram":  # which looks for other pieces alone
        Tokenizer(broken.SerializeToString()).tokenize(LINES)
    else:
        refused()


def test_load_says_what_is_wrong(tmp_path, write):
    with pytest.raises(DataError, match=r"Cannot read .*missing: No such file"):
        Tokenizer.load(tmp_path / "missing")
    with pytest.raises(DataError, match=r"text: Not a SentencePiece model"):
        Tokenizer.load(write("text", b"these are words"))
    with pytest.raises(DataError, match="control tokens must be"):
        Tokenizer.load(write("empty", b""))


def test_it_lives_in_a_saved_model(tokenizer, tmp_path):
    class There(tf.Module):
        def __init__(self):
            super().__init__()
            self.tokenizer = tokenizer

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
        def and_back(self, text):
            return tokenizer.detokenize(tokenizer.tokenize(text).to_tensor())

    tf.saved_model.save(There(), str(tmp_path))

    text = np.array(["A dog", "", "駅"], object)
    returned = tf.saved_model.load(str(tmp_path)).and_back(text)
    assert [line.decode() for line in returned.numpy()] == text.tolist()


def test_two_in_a_saved_model_are_not_mixed_up(tokenizer, tmp_path):
    """Also where each of two functions has its own first tokenizer."""
    other = Tokenizer.train(LINES, 40, "char")
    text = tf.constant(["a dog"])
    spec = [tf.TensorSpec([None], tf.string)]

    class Both(tf.Module):
        @tf.function(input_signature=spec)
        def both(self, text):
            return tokenizer.tokenize(text).values, other.tokenize(text).values

        @tf.function(input_signature=spec)
        def alone(self, text):
            return (other.tokenize(text).values,)

    tf.saved_model.save(Both(), str(tmp_path))

    loaded = tf.saved_model.load(str(tmp_path))
    expected = tokenize(tokenizer, "a dog"), tokenize(other, "a dog")
    for ids, (row,) in zip(loaded.both(text), expected, strict=True):
        assert ids.numpy().tolist() == row
    assert loaded.alone(text)[0].numpy().tolist() == expected[1][0]


def test_it_outlives_a_keras_session(tokenizer):
    dataset = tf.data.Dataset.from_tensors(["A dog"]).map(tokenizer.tokenize)
    expected = tokenize(tokenizer, "A dog")

    keras.utils.clear_session()

    assert tokenize(tokenizer, "A dog") == expected
    assert next(iter(dataset)).to_list() == expected


def test_it_is_quiet(capfd):
    Tokenizer(Tokenizer.train(LINES, 290).model).tokenize(["a"])

    assert capfd.readouterr() == ("", "")


ERRORS = KeyboardInterrupt(), SystemExit(143), DataError("x")


@pytest.mark.parametrize("error", ERRORS)
def test_an_error_in_the_lines_goes_through(error):
    def lines():
        yield "a rose is a rose"
        raise error

    with pytest.raises(type(error)):
        Tokenizer.train(lines(), 270)


HOSTILE = [
    *(b"a\0b", b"\xe2\x96\x81x", b"\xef\xb7\x90y\xef\xb7\x91", b"c\r"),
    *(b"d\re", b"\xff\xc3", b"</s> <s><unk>", b"\xc3\r\xa9", b" a b  c "),
    *(b"\xe3\x80\x80", b"", b"\xef\xbb\xbfz", "e\u0301 \u00e9 \u212b".encode()),
    *("\U0001f600\u200d\U0001f4a9".encode(), b"<0x41> <0xFF>", b"\x85\xa0"),
    *("\u2028x\u2029".encode(), b"x" * 3000, "\u2585\ufffe\ud7ff".encode()),
    *(b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\t tab\tinside\t", b"a\nb"),
]


def random_texts(draw):
    letters = "abcdefg hij  klmno\u00e9\u00fc\u4e00\u4e8c\u3000\u2581.,!0123 "
    return [
        "".join(draw.choices(letters, k=draw.randint(1, 60))).encode()
        for _ in range(1000)
    ]


def test_of_equally_probable_pieces_the_same_are_chosen():
    """The package alone would choose others in some of these texts."""
    texts = random_texts(random.Random(0))
    tokenizer = Tokenizer.train(texts[:300], 330, "unigram")
    plain = [text for text in texts if tokenizer_module._plain_text([text])]
    ids, _ = tokenizer.encode_with_end(plain)
    expected, _ = tokenizer.tokenize_with_end(plain)
    assert ids.tolist() == expected.flat_values.numpy().tolist()


@pytest.mark.parametrize("verbatim", [False, True])
@pytest.mark.parametrize("kind", ["bpe", "unigram", "char", "word"])
def test_ids_without_tensorflow_are_the_same(kind, verbatim):
    if verbatim and kind == "word":
        return
    texts = random_texts(random.Random())
    size = 330 if kind in ("bpe", "unigram") else 200
    tokenizer = Tokenizer.train(texts[:300], size, kind, verbatim)
    plain = [text for text in HOSTILE if tokenizer_module._plain_text([text])]
    assert 8 < len(plain) < len(HOSTILE) - 8
    for block in (texts[100:], HOSTILE, plain):
        ids, lengths = tokenizer.encode_with_end(block)
        expected, _ = tokenizer.tokenize_with_end(block)
        assert lengths.tolist() == expected.row_lengths().numpy().tolist()
        assert ids.tolist() == expected.flat_values.numpy().tolist()
