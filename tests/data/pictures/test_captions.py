"""Captions and the features of their pictures, read and batched."""

import json
import os
import zipfile

import numpy as np
import pytest
import tensorflow as tf

from kseq.data import (
    DataError,
    FeaturePreprocessor,
    ImagePreprocessor,
    Tokenizer,
    evaluation_batches,
    read_caption_corpus,
    read_features,
    read_frames,
    tokenize_pairs,
    training_batches,
)
from kseq.data.files.named_texts import read_named_texts
from kseq.data.pictures.caption_table import CaptionTable
from kseq.data.pictures.image_preprocessor import cells_of

NAMES = [f"{i}.jpg" for i in range(12)]


def write_features(**changes):
    draw = np.random.default_rng(1)
    arrays = {
        "features": draw.integers(-9, 9, (12, 4, 3), np.int8),
        "names": np.array(NAMES),
        "scale": np.array([0.5, 1, 2], np.float32),
        **changes,
    }
    kept = {name: x for name, x in arrays.items() if x is not None}
    np.savez("features.npz", **kept)
    return "features.npz"


def write_captions(count=12, path="captions.tsv"):
    lines = [
        f"{name}\t{i}\tA dog number {i} ."
        for name in NAMES[:count]
        for i in range(3)
    ]
    with open(path, "w") as file:
        file.write("\n".join(lines))
    return path


TABLES = {
    "a.tsv": "1.jpg\t0\tA dog .\n1.jpg\t1\tTwo dogs\n2.jpg\t0\tA cat\n",
    "b.tsv": "1.jpg\tA dog .\r\n1.jpg\tTwo dogs\r\n\r\n2.jpg\tA cat",
    "c.tsv": "1.jpg#0\tA dog .\n1.jpg#1\tTwo  dogs\n2.jpg#0\tA cat\n",
    "d.csv": 'image,caption\n1.jpg,"A dog ."\n1.jpg,Two dogs\n2.jpg,A cat\n',
    "e.tsv": "caption\timage\nA dog .\t1.jpg\nTwo dogs\t1.jpg\nA cat\t2.jpg\n",
    "f.jsonl": (
        '{"image": "1.jpg", "caption": "A dog ."}\n'
        '{"caption": "Two dogs", "image": "1.jpg"}\n'
        '{"image": "2.jpg", "caption": "A cat"}\n'
    ),
}


@pytest.mark.parametrize("name", TABLES)
def test_tables_of_captions(here, name):
    (here / name).write_bytes(TABLES[name].encode())
    found, lines, counts = read_named_texts(name)
    assert found == {"1.jpg": ["A dog .", "Two dogs"], "2.jpg": ["A cat"]}
    assert lines["1.jpg"].path == name
    assert not counts
    plain, *_ = read_named_texts(name, plain=True)
    assert plain["1.jpg"] == ["a dog", "two dogs"]


def test_records_with_lists_and_numbers(here):
    """Captions as a data set has them, and labels that are numbers."""
    rows = [
        {"image": "1.jpg", "caption": ["A dog .", "Two dogs"]},
        {"image": 2, "caption": 4.0},
        {"image": "3.jpg", "caption": []},
    ]
    lines = "\n".join(map(json.dumps, rows))
    (here / "a.jsonl").write_text(lines)
    expected = {"1.jpg": ["A dog .", "Two dogs"], "2": ["4"]}
    assert read_named_texts("a.jsonl")[0] == expected


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"image": "1.jpg", "text": null}', "string at 'text'; found None"),
        ('{"image": {"path": "1.jpg"}, "text": ""}', "'image'; found {'path"),
        ('{"image": "1.jpg", "title": ""}', "the keys 'image' and 'caption'"),
    ],
)
def test_records_without_strings(here, line, message):
    (here / "a.jsonl").write_text(line)
    with pytest.raises(DataError, match=message):
        read_named_texts("a.jsonl")


@pytest.mark.parametrize(
    ("name", "text"),
    [("a.tsv", "1.jpg\tGrün\n2.jpg\tA\n"), ("a.jsonl", TABLES["f.jsonl"])],
)
def test_captions_that_are_not_utf_8_are_counted(here, name, text):
    content = text.replace("A dog", "Grün").encode("latin-1")
    (here / name).write_bytes(content)
    problems = CaptionTable(name, (), False).problems
    [problem] = [line for line in problems if "UTF-8" in line]
    assert ": 1 line is not valid UTF-8" in problem


def test_columns_are_chosen(here):
    (here / "a.csv").write_text("id,x,y\n7,1.jpg,A dog\n")
    for columns in (("x", "y"), ("2", "3")):
        found, *_ = read_named_texts("a.csv", columns)
        assert found.pop("1.jpg") == ["A dog"]
    for name in ("a.csv", "a.jsonl"):
        (here / "a.jsonl").write_text('{"x": "1.jpg", "y": "A dog"}')
        for columns in (("x",), ("x", "y", "id"), ("x", "x")):
            with pytest.raises(DataError, match="takes two different names"):
                read_named_texts(name, columns)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("\n\n", "contains no caption"),
        ("1.jpg\t \n", "contains no caption"),
        ("1.jpg\n", "expected the columns of a picture and its caption"),
        ("1.jpg\tx\tA dog\n", "Choose two of them"),
        ("1.jpg\tA dog\n2.jpg\n", "a.tsv:2: expected 2 columns"),
        ("\tA dog\n", "a.tsv:1: expected the name of a picture"),
    ],
)
def test_broken_tables(here, text, message):
    (here / "a.tsv").write_text(text)
    with pytest.raises(DataError, match=message):
        read_named_texts("a.tsv")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"names": None}, "no names"),
        ({"names": np.array(NAMES[:11])}, "each of the 12 pictures"),
        ({"names": np.array(["a"] * 12)}, "'a' is the name of two pictures"),
        ({"names": np.array([""] * 12)}, "picture 1 has no name"),
        ({"names": np.arange(12)}, "found int64"),
        (
            {"names": np.full(12, 2**31).astype("u4").view("U1")},
            "invalid characters",
        ),
        ({"features": np.zeros((12, 3))}, r"found \(12, 3\)"),
        ({"features": np.zeros((12, 0, 3))}, r"found \(12, 0, 3\)"),
        ({"features": np.full((12, 4, 3), "x")}, "are numbers"),
        ({"features": np.full((12, 4, 3), np.nan)}, "not all finite"),
        ({"features": np.full((12, 4, 3), 1e300)}, "not all finite"),
        ({"scale": np.full(3, 1e300)}, "finite factor"),
        ({"scale": np.ones(2)}, "factor for each of the 3"),
        ({"scale": np.full(3, np.inf)}, "finite factor"),
        ({"names": np.array([None] * 12)}, "`names` is an array of Python"),
        ({"features": np.array([None] * 12)}, "`features` is an array of"),
        ({"features": np.ones((12, 4, 3), np.longdouble)}, "are numbers; fo"),
    ],
)
def test_broken_features(here, changes, message):
    path = write_features(**changes)
    with pytest.raises(DataError, match=message):
        read_features(path)


def test_one_array_is_no_file_of_features(here):
    np.save("a.npy", np.zeros((12, 4, 3)))
    for read in (read_features, read_frames):
        with pytest.raises(
            DataError, match=r"a\.npy .* not an \.npz of arrays"
        ):
            read("a.npy")


@pytest.mark.parametrize("change", ["text", "encrypted", "method", "data"])
def test_members_that_are_no_arrays(here, change):
    path = here / write_features()
    content = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as file:
        info = file.getinfo("names.npy")
        start = info.header_offset
    entry = content.rindex(b"names.npy") - 46  # in the directory
    match change:
        case "text":
            with zipfile.ZipFile(path, "w") as file:
                file.writestr("features", b"no array")
                file.writestr("names", b"no array")
            content = path.read_bytes()
        case "encrypted":
            content[start + 6] |= 1
            content[entry + 8] |= 1
        case "method":
            content[start + 8] = content[entry + 10] = 99
        case "data":  # not what was compressed
            content[start + 8] = content[entry + 10] = zipfile.ZIP_DEFLATED
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"features\.npz"):
        read_features("features.npz")


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2,",
        "{[]: 1}",
        "{1: 2, 'a': 3}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (True,)}",
        " x\n  y\n z",
    ],
)
def test_headers_that_are_not_those_of_arrays(here, header):
    """NumPy reads them with the parser of Python, and lets its errors pass."""
    array = b"\x93NUMPY\1\0" + len(header).to_bytes(2, "little")
    with zipfile.ZipFile("a.npz", "w") as file:
        for name in ("features.npy", "names.npy"):
            file.writestr(name, array + header.encode() + bytes(8))
    with pytest.raises(DataError, match=r"a\.npz cannot be read"):
        read_features("a.npz")


@pytest.mark.parametrize("content", [b"", b"PK", b"\x93NUMPY", b"x" * 99])
def test_files_that_are_no_features(here, content):
    (here / "a.npz").write_bytes(content)
    with pytest.raises(DataError, match=r"a\.npz"):
        read_features("a.npz")


def test_a_truncated_file_of_features(here):
    content = (here / write_features()).read_bytes()
    (here / "a.npz").write_bytes(content[: len(content) // 2])
    with pytest.raises(DataError, match="is truncated"):
        read_features("a.npz")


@pytest.mark.parametrize(
    ("shape", "rows", "columns"),
    [((2, 9, 3), 3, 3), ((2, 6, 3), 1, 6), ((2, 2, 3, 3), 2, 3)],
)
def test_the_shape_of_a_grid(here, shape, rows, columns):
    features = np.ones(shape, "float16")
    path = write_features(features=features, names=["a", "b"], scale=None)
    grid = read_features(path).preprocessor
    assert (grid.rows, grid.columns, grid.num_features) == (rows, columns, 3)
    assert grid.scale == 1
    with pytest.raises(DataError, match="the model expects 5 cells"):
        read_features(path, FeaturePreprocessor(1, 5, 3))


def test_pictures_are_held_out_with_all_their_captions(here):
    corpus = read_caption_corpus(write_captions(), features=write_features())
    train, held_out = corpus.train, corpus.validation
    assert len(held_out.names) == 1
    assert not {*train.names} & {*held_out.names}
    assert [len(each) for each in held_out.references] == [3]
    assert len(list(train.pairs())) == 33
    # Whatever the order of the lines.
    lines = (here / "captions.tsv").read_text().split("\n")
    (here / "captions.tsv").write_text("\n".join(lines[::-1]))
    again = read_caption_corpus("captions.tsv", features="features.npz")
    assert again.validation.names == held_out.names


def test_what_is_said_of_a_corpus(here):
    write_captions(count=11)
    with open("captions.tsv", "a") as file:
        file.write("\n0.jpg\t4\t \n0.jpg\t4\t" + "x" * 70_000)
    write_captions(count=2, path="validation.tsv")
    corpus = read_caption_corpus(
        "captions.tsv", "validation.tsv", features=write_features()
    )
    assert corpus.describe() == [
        "Training pictures: 11, with 33 captions (captions.tsv)",
        "Validation pictures: 2, with 6 captions (validation.tsv)",
        "1 of 12 pictures in features.npz have no caption.",
        "captions.tsv: 1 captions are left out: they are blank.",
        "captions.tsv: 1 captions are left out: they are too long.",
        "2 of 2 validation pictures are also in training: scores on them will "
        "be too high.",
    ]


def test_a_caption_without_its_picture(here):
    with open(write_captions(), "a") as file:
        file.write("\n99.jpg\t0\tA ghost .")
    with pytest.raises(DataError, match=r"captions.tsv:37: .*'99.jpg'"):
        read_caption_corpus("captions.tsv", features=write_features())


def test_one_picture_cannot_be_held_out(here):
    write_captions(count=1)
    with pytest.raises(DataError, match="there is only one"):
        read_caption_corpus("captions.tsv", features=write_features())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"features": "x.npz"}, "features needs train"),
        ({"plain": True}, "plain needs train"),
        ({"train": "captions.tsv"}, "--features"),
        ({"train": "captions.tsv", "features": "x.npz"}, "no file 'x.npz'"),
        ({"train": "", "features": "features.npz"}, "an empty one"),
        (
            {
                "train": "captions.tsv",
                "validation": "",
                "features": "features.npz",
            },
            "an empty one",
        ),
    ],
)
def test_arguments_that_do_not_fit(here, arguments, message):
    write_captions()
    write_features()
    with pytest.raises(DataError, match=message):
        read_caption_corpus(**arguments)


@pytest.fixture
def corpus(here):
    return read_caption_corpus(write_captions(), features=write_features())


@pytest.fixture
def tokenizer(corpus):
    return Tokenizer.train(corpus.train.lines(), 280)


def test_batches_look_features_up(corpus, tokenizer):
    options = {"batch_tokens": 64, "max_length": 32, "seed": 1}
    pairs = tokenize_pairs(corpus.train.pairs(), corpus.features, tokenizer)
    batches = training_batches(pairs, **options)
    raw = corpus.features.features.astype("float32") * [0.5, 1, 2]
    for inputs, labels, weights in batches.take(20):
        assert inputs["source"].shape[1:] == (4, 3)
        assert inputs["source_mask"].numpy().all()
        assert inputs["target_ids"].shape == labels.shape == weights.shape
        assert len(labels) * max(labels.shape[1], 4) <= 64
        expected = raw / corpus.preprocessor.scale
        for cells in inputs["source"]:
            errors = np.abs(expected - cells).max(axis=(1, 2))
            assert errors.min() < 1e-6


def test_captions_stay_with_their_pictures(corpus, tokenizer):
    captions = tf.data.Dataset.from_tensor_slices(
        (
            [str(i) for i in range(12)],
            [f"A dog number {i} ." for i in range(12)],
        )
    )
    seen = set()
    for inputs, labels, _ in evaluation_batches(
        captions, corpus.features, tokenizer
    ):
        texts = tokenizer.detokenize(labels).numpy()
        for cells, text in zip(inputs["source"].numpy(), texts, strict=True):
            number = int(text.split()[3])
            features = corpus.features[number] / corpus.preprocessor.scale
            np.testing.assert_allclose(cells, features, rtol=1e-6)
            seen.add(number)
    assert seen == set(range(12))


PICTURE = np.random.default_rng(1).integers(0, 255, (8, 12, 3), np.uint8)


def encoded(kind="png", pixels=PICTURE):
    encode = {"png": tf.io.encode_png, "jpeg": tf.io.encode_jpeg}[kind]
    return encode(pixels).numpy()


def test_cells_are_parts_of_a_picture():
    cells = cells_of(PICTURE[None], 4).numpy()[0].reshape(2, 3, 4, 4, 3)
    np.testing.assert_array_equal(cells[1, 2], PICTURE[4:, 8:])


def test_encoded_pictures_and_what_is_none():
    preprocessor = ImagePreprocessor(4, 2, 3, scale=2.0)
    png, jpeg = encoded(), encoded("jpeg")
    grey = tf.io.encode_png(PICTURE[:, :, :1]).numpy()
    large = encoded(pixels=np.repeat(PICTURE, 3, axis=0))
    bad = [b"", b"no picture", png[:-20], b"\x89PNG", b"GIF89a"]
    good = [png, jpeg, grey, large, png + b" "]
    source = preprocessor(tf.constant([*bad, *good]))
    assert source.blank.numpy().tolist() == [True] * 5 + [False] * 5
    assert source.lengths.numpy().tolist() == [0] * 5 + [6] * 5
    assert not source.inputs["source"][:5].numpy().any()
    exact = (cells_of(PICTURE[None].astype("float32"), 4)[0] - 128) / 2
    np.testing.assert_allclose(source.inputs["source"][5], exact, atol=1e-4)
    tokens = preprocessor.tokens(source.inputs).numpy()
    assert tokens[5].tolist()[-1] == b"2,3"
    assert not any(tokens[0])
    assert preprocessor(tf.constant([], tf.string)).lengths.shape == (0,)


@pytest.mark.parametrize("kind", [ImagePreprocessor, FeaturePreprocessor])
@pytest.mark.parametrize("size", [0, -1, 1.5, True, 10**10, "3", None])
def test_wrong_sizes(kind, size):
    with pytest.raises(ValueError, match="Received"):
        kind(2, size, 3)


@pytest.mark.parametrize("scale", [0, -1, float("nan"), float("inf"), "x"])
def test_wrong_scales(scale):
    with pytest.raises(ValueError, match="scale must be positive"):
        FeaturePreprocessor(1, 1, 1, scale)


def test_the_name_of_a_file_stays_as_it_is(here):
    """With two spaces, and with bytes that are not UTF-8."""
    names = b"a  b.jpg", b"\xff.jpg"
    with open("names.tsv", "wb") as file:
        file.write(b"".join(b" %b\tA  dog\n" % name for name in names))
    texts, *_ = read_named_texts("names.tsv")
    assert texts == {os.fsdecode(name): ["A dog"] for name in names}
