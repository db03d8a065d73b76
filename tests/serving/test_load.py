"""What `kseq.load` gives, in lists of strings."""

import os
import subprocess
import sys

import numpy as np
import pytest

import kseq
from kseq.decoding import BeamSearch, GreedySearch
from kseq.user_error import UserError

TEXTS = ["the cat", "", "日本 a dog", "12 bones"]
DOCUMENTS = ["The cat saw smoke. A dog ate 12 bones.", "", "日本語です。"]


@pytest.fixture(scope="module")
def translators(generators, loaded_exports, run_of):
    """Of the same run, and of its export."""
    return kseq.load(run_of(generators["lstm"])), loaded_exports["lstm"]


@pytest.fixture(scope="module")
def labellers(classifiers, loaded_classifier, run_of):
    """Of the same run, and of its export."""
    return kseq.load(run_of(classifiers["flat"])), loaded_classifier


def test_texts(translators, generators):
    answers, exported = (translator(TEXTS) for translator in translators)
    assert answers == exported
    assert [type(answer) for answer in answers] == [str] * 4
    assert answers == generators["lstm"].predictor()(TEXTS)
    assert answers[1] == ""
    assert all(answers[i] for i in (0, 2, 3))
    for translator in translators:
        assert translator([]) == []


@pytest.mark.slow  # TensorFlow starts once more
def test_in_a_new_session_nothing_but_the_answer_is_printed(
    translators, labellers, exports, classifiers, run_of
):
    """Of the run of a classifier, which is traced sooner, and of an export."""
    paths = [str(run_of(classifiers["flat"])), str(exports["lstm"])]
    done = in_a_new_session(
        # A slow machine would print its progress.
        "import kseq.terminal; kseq.terminal._FIRST = 600\n"
        f"for path in {paths}: print(kseq.load(path)({TEXTS!r}))\n"
        "print('a warning', file=sys.stderr)"
    )
    _, translator = translators
    assert done.stdout == f"{labellers[0](TEXTS)}\n{translator(TEXTS)}\n"
    assert done.stderr == "a warning\n"


def test_a_wrong_path_does_without_tensorflow(tmp_path, exports):
    wrong = f"{str(tmp_path)!r}", f"{str(exports['lstm'])!r}, weights='best'"
    for arguments in wrong:
        done = in_a_new_session(
            f"try: kseq.load({arguments})\n"
            "finally: assert 'tensorflow' not in sys.modules"
        )
        assert "\nkseq.user_error.UserError: " in done.stderr


def test_a_forked_process_does_not_wait_for_ever(
    translators, labellers, exports, monkeypatch
):
    calls = [
        lambda: kseq.load(exports["lstm"]),
        lambda: translators[0](TEXTS),
        lambda: translators[1].paragraphs(TEXTS),
        lambda: translators[1].markup(TEXTS),
        lambda: list(translators[1].stream("a dog")),
        lambda: labellers[1](DOCUMENTS),
    ]
    number = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: number + 1)
    for call in calls:
        with pytest.raises(UserError, match="was forked"):
            call()


def in_a_new_session(program):
    return subprocess.run(
        [sys.executable, "-c", f"import sys, kseq\n{program}"],
        capture_output=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        text=True,
    )


def test_unpaired_surrogates_are_replaced_as_in_files(translators, labellers):
    """JSON has them where a string was cut between the halves of an emoji."""
    broken, whole = ["a \ud83d dog"], ["a \ufffd dog"]
    for predictor in (*translators, *labellers):
        assert predictor(broken) == predictor(whole)
    for translator in translators:
        assert translator.scores(broken, broken) == translator.scores(
            whole, whole
        )
        for method in (translator.paragraphs, translator.markup):
            assert method(broken) == method(whole)
    stream = translators[1].stream
    assert list(stream(*broken)) == list(stream(*whole))


def test_one_at_a_time(translators):
    run, _ = translators
    together = run(TEXTS)
    assert [run([text])[0] for text in TEXTS] == together
    run.batch_size = 3
    assert run(TEXTS) == together
    run.batch_size = 32


def test_n_best(translators):
    of_run, of_export = (t.n_best(TEXTS, 3) for t in translators)
    best = translators[0](TEXTS)
    for ours, theirs, text in zip(of_run, of_export, best, strict=True):
        assert [h.text for h in ours] == [h.text for h in theirs]
        scores = [h.score for h in ours]
        assert scores == pytest.approx([h.score for h in theirs], abs=1e-4)
        assert scores == sorted(scores, reverse=True)
        assert len(ours) <= 3
        assert ours[0].text == text
    for translator in translators:
        with pytest.raises(ValueError, match="Received: n_best=0"):
            translator.n_best(TEXTS, 0)
        with pytest.raises(
            UserError, match=r"^n_best=5 is more than the 4 answers that"
        ):
            translator.n_best(TEXTS, 5)


def test_scores(translators):
    of_run, of_export = (t.scores(TEXTS, TEXTS[::-1]) for t in translators)
    assert [type(score) for score in of_run] == [float] * 4
    assert of_run == pytest.approx(of_export, abs=1e-4)
    assert max(of_run) < 0
    assert translators[0].scores([""], [""]) == [0]


def test_prefixes(translators):
    prefixes = ["cat", "", "", "the "]
    of_run, of_export = (t(TEXTS, prefixes=prefixes) for t in translators)
    assert of_run == of_export
    for prefix, answer in zip(prefixes, of_run, strict=True):
        assert answer.startswith(prefix.strip())
    for hypotheses in translators[0].n_best(TEXTS[:1], 2, ["dog"]):
        assert all(h.text.startswith("dog") for h in hypotheses)
    for wrong in (["a"], ["a"] * 5, "abcd"):
        with pytest.raises(ValueError, match="Received: prefix="):
            translators[0](TEXTS, prefixes=wrong)


def test_attention_shows_itself(translators):
    of_run, of_export = (t.attention(TEXTS) for t in translators)
    for ours, theirs, text in zip(
        of_run, of_export, translators[0](TEXTS), strict=True
    ):
        assert ours[:2] == theirs[:2]
        np.testing.assert_allclose(ours.weights, theirs.weights, atol=1e-4)
        assert ours.weights.shape == tuple(map(len, ours[1::-1]))
        spelled = "".join(ours.target_tokens).removesuffix("</s>")
        assert spelled.replace("▁", " ").strip() == text.strip()
    assert of_run[0]._repr_png_().startswith(b"\x89PNG\r\n")


def test_an_explanation_is_a_page(translators):
    for translator in translators:
        explained = translator.explain(["the cat", "", "日本 a dog " * 40])
        assert [found.truncated for found in explained] == [False, False, True]
        page = translator.page(explained)
        assert page.count("<article") == 3
        assert page.count("its end was left out") == 1


def test_a_blank_input_has_one_answer(translators):
    for translator in translators:
        assert translator.n_best(["", " \t"], 3) == [[("", 0.0)]] * 2
        prefixed = translator.n_best([""], 3, prefixes=["cat"])
        assert prefixed == [[("", 0.0)]]


def test_records_of_answers(translators):
    for translator in translators:
        plain, best = (
            translator.answers(TEXTS[:1], **options)[0]
            for options in ({}, {"n_best": 2, "attention": True})
        )
        assert plain.record.keys() == {"text", "score"}
        assert best.record.keys() == {*plain.record, "hypotheses", "attention"}
        assert best.record["text"] == plain.record["text"]
        assert best.record["attention"] == best.explanation.to_json()
        assert not plain.truncated
        assert translator.answers(["a " * 99])[0].truncated


def test_a_run_has_its_model(translators, generators):
    run, export = translators
    assert export.model is None
    expected = generators["lstm"].model.variables
    for found, variable in zip(run.model.variables, expected, strict=True):
        np.testing.assert_array_equal(found, variable)


def test_what_a_translator_does_not_do(translators):
    for translator in translators:
        with pytest.raises(ValueError, match="Received: text='a line'"):
            translator("a line")


@pytest.mark.slow
def test_a_search_of_choice(generators, run_of, exports):
    path = run_of(generators["lstm"])
    greedy = kseq.load(path, search=GreedySearch())
    expected = generators["lstm"].with_search(BeamSearch(beam_size=1))
    assert greedy(TEXTS) == expected.predictor()(TEXTS)
    assert greedy.served.search == GreedySearch()
    for options in ({"search": GreedySearch()}, {"weights": "last"}):
        [name] = options
        message = f"{name} can be chosen for run directories; .* is an export"
        with pytest.raises(UserError, match=message):
            kseq.load(exports["lstm"], **options)


def test_a_run_of_a_user_s_own_constraint(generators, run_of):
    """Its function is not in the run: the search has to be given again."""

    def nothing(log_probs, ids):
        return log_probs

    search = GreedySearch(constraints=(nothing,))
    path = run_of(generators["lstm"].with_search(search))
    with pytest.raises(UserError, match="config of a search"):
        kseq.load(path)
    assert kseq.load(path, search=search).served.search is search


def test_nothing_to_load(tmp_path):
    for path in (tmp_path, str(tmp_path / "missing")):
        with pytest.raises(UserError, match="neither a run directory nor an"):
            kseq.load(path)


def test_labels(labellers, classifiers):
    of_run, of_export = (labeller(DOCUMENTS) for labeller in labellers)
    assert of_run == of_export
    assert of_run == classifiers["flat"].predictor()(DOCUMENTS)
    for labeller in labellers:
        assert labeller.labels == ["fire", "flood", "größer"]
        assert set(of_run) <= set(labeller.labels)
        assert labeller([]) == []


def test_probabilities(labellers):
    of_run, of_export = (
        labeller.probabilities(DOCUMENTS) for labeller in labellers
    )
    for ours, theirs, label in zip(
        of_run, of_export, labellers[0](DOCUMENTS), strict=True
    ):
        assert list(ours) == labellers[0].labels
        assert ours == pytest.approx(theirs, abs=1e-5)
        assert sum(ours.values()) == pytest.approx(1, abs=1e-5)
        assert max(ours, key=ours.get) == label


def test_explanation_shows_itself(labellers):
    of_run, of_export = (labeller.explain(DOCUMENTS) for labeller in labellers)
    for ours, theirs, label in zip(
        of_run, of_export, labellers[0](DOCUMENTS), strict=True
    ):
        assert ours.label == label
        assert (ours.sentences, ours.words) == (theirs.sentences, theirs.words)
        np.testing.assert_allclose(
            ours.sentence_weights, theirs.sentence_weights, atol=1e-5
        )
    assert of_run[0].sentences == ["The cat saw smoke.", "A dog ate 12 bones."]
    page = of_run[0]._repr_html_()
    assert page.startswith("<!doctype html>")
    assert page.count("<article") == 1


def test_likeliest_labels(labellers):
    for labeller in labellers:
        for answer in labeller.answers(DOCUMENTS, n_best=2, attention=True):
            first, second = answer.hypotheses
            assert first.score >= second.score
            assert (
                answer.record["label"] == first.text == answer.explanation.label
            )
        assert len(labeller.answers([""], n_best=99)[0].hypotheses) == 3
        with pytest.raises(ValueError, match="Received: n_best=0"):
            labeller.answers([""], n_best=0)


def test_what_a_classifier_does_not_do(labellers, classifiers, run_of):
    for labeller in labellers:
        with pytest.raises(UserError, match="models that generate text"):
            labeller.scores(DOCUMENTS, DOCUMENTS)
        with pytest.raises(UserError, match="Prefixes are for models"):
            labeller.answers(DOCUMENTS, prefixes=DOCUMENTS)
    with pytest.raises(UserError, match="returns labels; a search is"):
        kseq.load(run_of(classifiers["flat"]), search=GreedySearch())
