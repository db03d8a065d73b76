import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import keras
import pytest
import tensorflow as tf
import tensorflow_text
from tensorflow.core.protobuf import saved_model_pb2

import kseq
from kseq.model_path import model_path
from kseq.runs import model_card
from kseq.serving import export, load_export

ROOT = Path(kseq.__file__).parents[1]
EXPORTER = """
    import sys
    from kseq.data import TextPreprocessor, Tokenizer
    from kseq.decoding import GreedySearch
    from kseq.models import LSTMSeq2Seq
    from kseq.serving import Generator, export

    tokenizer = Tokenizer.train(["the cat sat on the mat"] * 3, 20, "char")
    model = LSTMSeq2Seq(
        source_vocab_size=tokenizer.vocab_size,
        target_vocab_size=tokenizer.vocab_size,
        embedding_dim=4,
        units=4,
        attention=None,
    )
    preprocessor = TextPreprocessor(tokenizer)
    generator = Generator(model, preprocessor, tokenizer, GreedySearch())
    while True:
        export(generator, sys.argv[1])
    """


def test_graph_has_no_python_and_no_files(exported):
    saved = saved_model_pb2.SavedModel()
    saved.ParseFromString((exported / "saved_model.pb").read_bytes())
    graph = saved.meta_graphs[0].graph_def
    nodes = [
        *graph.node,
        *(node for f in graph.library.function for node in f.node_def),
    ]
    forbidden = re.compile("PyFunc|ReadFile|WriteFile")
    assert not [node.op for node in nodes if forbidden.search(node.op)]


def test_describes_itself(generator, exported):
    description = exported / "assets.extra" / "kseq.json"
    assert json.loads(description.read_text()) == {
        "versions": {
            "kseq": kseq.__version__,
            "keras": keras.__version__,
            "tensorflow": tf.__version__,
            "tensorflow_text": tensorflow_text.__version__,
        },
        "preprocessor": {"class": "TextPreprocessor", "max_length": 32},
        "search": {
            "class": "BeamSearch",
            "beam_size": 4,
            "length_penalty": 1.0,
            "penalty_offset": 5.0,
            "patience": None,
            "constraints": [],
        },
        "max_length": 32,
        "vocab_sizes": {
            "source": 300,
            "target": generator.tokenizer.vocab_size,
        },
        "parameters": generator.model.count_params(),
    }


def test_killed_while_exporting(tmp_path, seed):
    exporter = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(EXPORTER), tmp_path],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stderr=subprocess.DEVNULL,
    )
    while not (tmp_path / "1").exists():
        assert exporter.poll() is None
        time.sleep(0.01)
    time.sleep(random.random())
    exporter.send_signal(signal.SIGKILL)
    exporter.wait()

    def content(version):
        files = version.rglob("*")
        return {(file.relative_to(version), file.is_dir()) for file in files}

    versions = [path for path in tmp_path.iterdir() if path.name.isdecimal()]
    for version in versions:
        assert content(version) == content(tmp_path / "1")
    assert model_path(tmp_path).name == str(len(versions))
    assert len(load_export(tmp_path)(["a cat"])) == 1


@pytest.fixture
def quick_save(monkeypatch):
    """Makes an export a matter of milliseconds."""

    def save(module, path, signatures):
        Path(path).mkdir()
        Path(path, "saved_model.pb").write_text("saved")

    monkeypatch.setattr(tf.saved_model, "save", save)


def test_versions_are_never_reused(generator, tmp_path, quick_save):
    (tmp_path / "7").mkdir()
    assert export(generator, tmp_path) == tmp_path / "8"
    shutil.rmtree(tmp_path / "8")
    assert export(generator, tmp_path) == tmp_path / "9"


def test_carries_the_readme_of_its_run(generator, tmp_path, quick_save):
    readme = "assets.extra/README.md"
    assert not (export(generator, tmp_path) / readme).exists()
    served = generator.with_search(generator.search)
    served.model_card = "# Größe\n"
    card = (export(served, tmp_path) / readme).read_text("utf-8")
    assert card == "# Größe\n"


def test_the_readme_names_the_signatures(generators, classifiers):
    for served in generators.values():
        assert served.signatures.keys() == model_card.OF_TEXT.keys()
    for served in classifiers.values():
        assert served.signatures.keys() == model_card.OF_LABELS.keys()


def test_exports_at_once(generator, tmp_path, quick_save):
    with ThreadPoolExecutor(8) as pool:
        paths = pool.map(lambda _: export(generator, tmp_path), range(24))
        assert {path.name for path in paths} == {str(n) for n in range(1, 25)}


def test_failed_export_leaves_nothing(
    generator, tmp_path, quick_save, monkeypatch
):
    def no_space(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(OSError, match="No space"):
        export(generator, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [".versions"]
