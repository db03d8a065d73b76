import json
import random
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

CLIENT = Path(__file__).with_name("client_without_kseq.py")
TEXTS = [
    "the cat sat",
    "",
    " ",
    "\t",
    "a\u00a0b\u3000c",  # spaces that are not ASCII
    "é e\u0301",  # composed and not
    "line\u2028separator\u0085next\x0bline",
    "nul\x00inside",
    "cr\rlf\nend",
    "\ufeffbom",
    "👩‍👩‍👧‍👦 🏳️‍🌈 🇮🇸",
    "שלום עולם مرحبا",
    "日本語とテスト",
    "</s> <pad> <s> <unk> <0x0A>",
    "▁under▁",
    "\ufdd0 \uffff \U0010ffff",
    "z" * 300,
]
DOCUMENTS = [
    "The baker saw smoke. A dog ate 12 bones.",
    *("", " <br>\n", "nul \0 and 😀. 日本語です。", "e. " * 150),
]


def random_texts(count):
    """Strings of any code points, those that Unicode leaves free too."""
    ranges = [(0x20, 0x7F), (0, 0x250), (0x250, 0xD800), (0xE000, 0x110000)]
    return [
        "".join(
            chr(random.randrange(*random.choice(ranges)))
            for _ in range(random.randrange(12))
        )
        for _ in range(count)
    ]


@pytest.fixture(scope="module")
def texts():
    random.seed(0)
    return TEXTS + random_texts(50)


def ask(folder, jobs):
    """What a client answers with copies of the exports, in two ways."""
    moved = [
        (str(shutil.copytree(path, folder / kind)), lines)
        for kind, (path, lines) in jobs.items()
    ]
    client = subprocess.run(
        [sys.executable, "-I", CLIENT],
        input=json.dumps(moved),
        capture_output=True,
        cwd=folder,
        text=True,
    )
    assert client.returncode == 0, client.stderr
    return dict(zip(jobs, json.loads(client.stdout), strict=True))


@pytest.mark.slow  # a client of labels below; in test_load_export.py, answers
def test_client_has_the_same_texts(generator, kind, exported, texts, tmp_path):
    text = tf.constant(texts)
    expected = generator.signatures["serving_default"](text=text)
    lines = [line.decode() for line in expected["text"].numpy()]
    for answer in ask(tmp_path, {kind: (exported, texts)})[kind]:
        assert answer["text"] == lines
        np.testing.assert_allclose(
            answer["score"], expected["score"], atol=1e-4
        )
        assert answer["truncated"] == expected["truncated"].numpy().tolist()


@pytest.mark.slow
def test_client_has_the_same_labels(classifiers, classifier_export, tmp_path):
    answers = ask(tmp_path, {"classifier": (classifier_export, DOCUMENTS)})
    text = tf.constant(DOCUMENTS)
    signatures = classifiers["flat"].signatures
    expected = signatures["serving_default"](text=text)
    labels = [label.decode() for label in expected["label"].numpy()]
    for answer in answers["classifier"]:
        assert answer["label"] == labels
        np.testing.assert_allclose(
            answer["probabilities"], expected["probabilities"], atol=1e-5
        )
    _, served = answers["classifier"]
    assert served["method"] == "tensorflow/serving/classify"
    np.testing.assert_allclose(
        served["scores"][0], served["probabilities"][0], atol=1e-5
    )
    assert served["classes"][0] == ["fire", "flood", "größer"]
