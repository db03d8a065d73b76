"""Runs and exports that earlier versions made open, resume and answer.

`version_<version>/models.tar.xz` holds a small run and its export of each
recipe, with the files that it was trained on. `expected.json` has the config
of the run, what that version answered, and the sum of each weight after two
more steps with that version, whose data were in a different order. Those of 0.2
were trained by the code of commit a65eea6 without dropout; their answers are
what `kseq predict --json` printed. Pairs of 0.1 come with a file for
validation: without one 0.1 held out others than are now.
"""

import dataclasses
import json
import shutil
from pathlib import Path

import keras
import numpy as np
import pytest

import kseq
from kseq.runs.checkpoint_files import (
    checkpoint_paths,
    numbered,
    read_checkpoint,
)
from tests.recipes import load_recipe
from tests.slow import slow
from tests.unpack import unpack

HERE = Path(__file__).parent
EXPECTED = {
    version: json.loads(
        (HERE / f"version_{version}" / "expected.json").read_text("utf-8")
    )
    for version in ("0_1", "0_2")
}
MODELS = [
    f"{version} {name}" for version in EXPECTED for name in EXPECTED[version]
]
ANSWERS = [
    (f"0_2 {name}", kind)
    for name in EXPECTED["0_2"]
    for kind in ("run", "export")
]
# The cheapest.
OFTEN = [("0_2 tag_words", "run"), ("0_2 tag_words", "export")]


@dataclasses.dataclass(frozen=True)
class OldModel:
    """A run of an earlier version in the working directory, and its export.

    Args:
        run: path.
        export: path.
        expected: dict of `expected.json`.
    """

    run: Path
    export: Path
    expected: dict

    def resume(self):
        """Trains two more steps with the config that it was started with."""
        recipe = load_recipe(self.expected["recipe"])
        config = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in self.expected["config"].items()
        }
        config["steps"] += 2
        recipe.main(recipe.Config(run=str(self.run), **config))

    def last_weights(self):
        path = checkpoint_paths(self.run / "checkpoints" / "last")[-1]
        return Path(path).name, numbered(read_checkpoint(path), "vars")


@pytest.fixture(scope="session")
def unpacked(tmp_path_factory):
    """The folders of all versions."""
    folder = tmp_path_factory.mktemp("versions")
    for version in EXPECTED:
        path = HERE / f"version_{version}" / "models.tar.xz"
        unpack(path, folder / version)
    return folder


@pytest.fixture
def old(request, unpacked, tmp_path, monkeypatch):
    """The `OldModel` of a version and a name in its `expected.json`."""
    version, name = request.param.split()
    expected = EXPECTED[version][name]
    folder = tmp_path / expected["folder"]
    source = unpacked / version / expected["folder"]
    shutil.copytree(source, folder, dirs_exist_ok=True)
    monkeypatch.chdir(folder)
    return OldModel(
        run=Path("runs", expected["run"]),
        export=Path("saved_models", expected["run"], "1"),
        expected=expected,
    )


@pytest.mark.parametrize(
    ("old", "kind"),
    [case if case in OFTEN else slow(*case) for case in ANSWERS],
    indirect=["old"],
)
def test_answers_of_version_0_2(old, kind, call):
    """The same texts, scores, alternatives and attention."""
    path = old.run if kind == "run" else old.export
    answers = old.expected["answers"]
    printed = call(
        *("predict", path, "--json", *answers["options"]),
        lines=answers["lines"],
    )
    found = list(map(json.loads, printed.splitlines()))
    check_equal(found, answers[kind])
    facts = call("inspect", path)
    assert facts.splitlines()[0].split() == [kind, str(path)]


@pytest.mark.parametrize(
    ("old", "kind"),
    [
        *(("0_1 lstm", "run"), slow("0_1 lstm", "export")),
        *(slow("0_1 hierarchical", "run"), ("0_1 hierarchical", "export")),
        *(slow("0_1 transformer", "run"), slow("0_1 transformer", "export")),
    ],
    indirect=["old"],
)
def test_answers_of_version_0_1(old, kind):
    """The same answers: of the run with the search that it had then."""
    expected = old.expected["answers"]
    predictor = kseq.load(old.run if kind == "run" else old.export)
    found = predictor.answers(expected["texts"])
    best = [answer.hypotheses[0] for answer in found]
    if old.run.name == "hierarchical":
        assert [label.text for label in best] == expected["labels"]
        scores = expected["probabilities"]
    else:
        scores = expected["scores"]
        if kind == "export":
            assert [answer.text for answer in best] == expected["answers"]
        else:  # a search of this version finds the same or better
            assert all(
                answer.score >= score - 1e-4
                for answer, score in zip(best, scores, strict=True)
            )
            return
    np.testing.assert_allclose(
        [answer.score for answer in best], scores, atol=1e-4
    )


@pytest.mark.parametrize(
    "old",
    ["0_2 tag_words", slow("0_1 transformer")],
    indirect=True,
)
def test_its_state_is_restored(old, monkeypatch):
    """The weights, the optimizer and the epoch, before the first step."""

    class StateRestoredError(Exception):
        pass

    def fit(model, batches, *, initial_epoch, **_):
        steps = old.expected["config"]["steps"]
        assert (
            initial_epoch == steps // old.expected["config"]["evaluate_every"]
        )
        assert model.optimizer.iterations == steps
        _, weights = old.last_weights()
        for found, saved in zip(model.variables, weights, strict=True):
            np.testing.assert_array_equal(found, saved)
        raise StateRestoredError

    monkeypatch.setattr(keras.Model, "fit", fit)
    with pytest.raises(StateRestoredError):
        old.resume()


@pytest.mark.slow  # that it starts from the same state is tested above
@pytest.mark.parametrize("old", MODELS, indirect=True)
def test_resumes(old):
    """Two more steps, of other batches than those that the old version had."""
    old.resume()

    expected = old.expected["resumed"]
    checkpoint, weights = old.last_weights()
    assert checkpoint == expected["checkpoint"]
    sums = [np.abs(w.numpy().astype("float64")).sum() for w in weights]
    sums, expected_sums = np.array(sums), np.array(expected["sums"])
    is_large = expected_sums > 1
    np.testing.assert_allclose(
        sums[is_large], expected_sums[is_large], rtol=0.05
    )
    lines = (old.run / "metrics.jsonl").read_text().splitlines()
    metrics = json.loads(lines[-1])
    assert metrics["step"] == expected["metrics"]["step"]

    steps = metrics["step"]
    assert f"{steps} of {steps} steps" in (old.run / "README.md").read_text()
    exported = kseq.load(old.export.with_name("2"))
    assert exported.model is None


def check_equal(found, expected):
    """JSON values are equal, numbers nearly."""
    if isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-4, abs=1e-4)
    elif isinstance(expected, list | dict):
        assert len(found) == len(expected)
        keys = expected if isinstance(expected, dict) else range(len(expected))
        for key in keys:
            check_equal(found[key], expected[key])
    else:
        assert found == expected
