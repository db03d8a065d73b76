import pytest
import tensorflow as tf
from sacrebleu.metrics import CHRF

from kseq.evaluation import Score, Translations, chrf, exact_match, metrics
from kseq.serving import GeneratorPredictor

SOURCES = ["a b", "c", "d e f"]
REFERENCES = ["A B", "C", "d e f"]


@pytest.fixture
def pairs():
    return tf.data.Dataset.from_tensor_slices((SOURCES, REFERENCES))


@pytest.mark.parametrize("size", [2, 4096])
def test_scores_rows_and_report(translator, pairs, size, monkeypatch):
    monkeypatch.setattr("kseq.evaluation.score._CHUNK", size)
    translations = Translations(translator, pairs)
    assert len(translations) == 3
    scores = translations.scores()
    assert list(scores) == ["bleu", "chrf", "exact_match"]
    assert scores["exact_match"] == pytest.approx(2 / 3)
    assert translations.rows(2) == [("a b", "A B", "A B"), ("c", "C", "C")]
    assert len(translations.rows(9)) == 3
    bleu, chrf, exact = translations.report()
    assert bleu.startswith(f"BLEU {scores['bleu']:.2f} ")
    assert chrf.startswith(f"chrF {scores['chrf']:.2f} ")
    assert exact == "exact match 66.67 ± 50.00 %  bs:1000|seed:12345"


def test_sacrebleu_counts_the_lines_of_a_metric_once(
    translator, pairs, monkeypatch
):
    """For 20,000 lines that takes ten seconds for BLEU and chrF."""
    counted = []

    class Counted(CHRF):
        def _extract_corpus_statistics(self, *texts):
            counted.append(self.word_order)
            return super()._extract_corpus_statistics(*texts)

    made = "chrF", Counted
    monkeypatch.setitem(metrics._BY_SACREBLEU, "chrf", made)
    translations = Translations(translator, pairs, [chrf])
    translations.scores()
    translations.report()
    assert counted == [0]
    translations.generate()
    assert translations.outputs == ["A B", "C", "D E F"] and len(counted) == 1


def test_several_references(translator):
    pairs = [("a b c d", ["X", "A B C D"]), ("e", ["E", "F", "G"])]
    translations = Translations(translator, pairs)
    scores = translations.scores()
    assert scores == pytest.approx({"bleu": 100, "chrf": 100, "exact_match": 1})
    assert translations.rows(1) == [("a b c d", "X / A B C D", "A B C D")]
    assert "nrefs:var|" in translations.report()[0]


def test_other_inputs_than_sources(translator):
    """A source is a name, and the predictor is given what it names."""
    drawn = []

    def draw(source, attention):
        drawn.append((source, attention.source_tokens))
        return b"png"

    translations = Translations(
        *(translator, [("one", ["A"]), ("two", ["C"])]),
        inputs=["a", "b"],
        draw=draw,
    )
    assert translations.scores()["exact_match"] == 0.5
    assert translations.pictures(1) == {"attention/0": b"png"}
    assert drawn == [("one", ["a"])]


def test_a_user_s_own_metric(translator, pairs):
    def length_ratio(outputs, references):
        value = len("".join(outputs)) / len("".join(references))
        return Score(value, f"length ratio {value:.1f}")

    translations = Translations(
        translator, pairs, metrics=[length_ratio, exact_match]
    )
    assert translations.scores() == {
        "length_ratio": 1,
        "exact_match": pytest.approx(2 / 3),
    }
    assert translations.report()[0] == "length ratio 1.0"


def test_pictures(translator, pairs):
    pictures = Translations(translator, pairs).pictures(2)
    assert list(pictures) == ["attention/0", "attention/1"]
    assert all(png.startswith(b"\x89PNG\r\n") for png in pictures.values())


def test_no_pictures_without_attention(translator, pairs):
    signatures = {"serving_default": translator.signatures["serving_default"]}
    assert Translations(GeneratorPredictor(signatures), pairs).pictures(2) == {}


def test_progress(translator, pairs):
    calls = []
    translator.batch_size = 2
    Translations(translator, pairs).scores(calls.append)
    assert calls == [2, 1]


def test_bytes_that_are_no_utf8_are_replaced(translator):
    pairs = tf.data.Dataset.from_tensors((b"\xff", "é"))
    translations = Translations(translator, pairs)
    assert (translations.sources, translations.references) == (
        ["\ufffd"],
        ["é"],
    )
