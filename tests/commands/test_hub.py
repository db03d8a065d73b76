"""Models on a hub: that of `tests.files.fake_hub`, on this machine."""

import numpy as np
import pytest

import kseq
from kseq import serving
from kseq.files.hub import hub_folder
from kseq.user_error import UserError
from tests.commands.saved_run import saved_run
from tests.commands.some_lines import lines_of
from tests.files.fake_hub import FakeHub
from tests.recipe_models import make_served

pytest.importorskip("huggingface_hub")


@pytest.fixture
def hub(tmp_path, monkeypatch):
    from huggingface_hub import constants

    fake = FakeHub()
    monkeypatch.setattr(constants, "ENDPOINT", fake.url)
    template = fake.url + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setenv("HF_TOKEN", "hf_of_a_test")
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_TELEMETRY", True)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with fake.running():
        yield fake


def test_a_run_is_published_with_all_that_opens_it(hub, run, call):
    (run / "learning_curve.png").write_bytes(b"drawn")
    output, _ = call("publish", run, "me/tiny", "--private")
    assert output == "kseq predict hf://me/tiny < FILE\n"
    files = hub.repositories["me/tiny"]
    assert {"config.json", "model.json", "source.model"} <= files.keys()
    assert not {"data.json", "metrics.jsonl", "lock"} & files.keys()
    assert files["learning_curve.png"] == b"drawn"  # the card shows it
    card = files["README.md"].decode()
    assert card.startswith("---\nlibrary_name: kseq\n")
    assert "kseq.load('hf://me/tiny')" in card

    assert {"task.json", "target.model"} <= files.keys()
    assert any(name.startswith("checkpoints/") for name in files)
    folder = hub_folder("hf://me/tiny")
    for name, content in files.items():
        assert (folder / name).read_bytes() == content
        assert name == "README.md" or (run / name).read_bytes() == content

    # Again, with one file that has changed: the others are not copied.
    files["README.md"] += b"More.\n"
    hub.requests.clear()
    folder = hub_folder("hf://me/tiny")
    assert (folder / "README.md").read_bytes().endswith(b"More.\n")
    copied = [line for line in hub.requests if line.startswith("GET /me/")]
    assert len(copied) == 1


VECTORS = [[[0.0, 1.0, 0.5]], [[1.0, 0.0, -1.0], [0.5, 0.5, 2.0]]]
LINES = lines_of(map(str, VECTORS))


@pytest.fixture
def bits():
    """What comes the same way as any other model, and is traced soonest."""
    return make_served("learn_algorithms lstm")


def test_a_run_that_is_published_is_loaded(hub, bits, predict, call, tmp_path):
    run = saved_run(bits, tmp_path / "bits")
    call("publish", run, "me/bits")
    found = kseq.load("hf://me/bits")(VECTORS)
    for one, other in zip(found, bits.predictor()(VECTORS), strict=True):
        np.testing.assert_array_equal(one, other)
    expected, _ = predict(run, LINES, "--json")
    answers, _ = predict("hf://me/bits", LINES, "--json")
    assert answers == expected


def test_the_newest_intact_weights_are_published(hub, bits, call, tmp_path):
    run = saved_run(bits, tmp_path / "bits")
    [manifest] = (run / "checkpoints").glob("*/*.sha256")
    files = [p for p in manifest.parent.iterdir() if p.is_file()]
    names = {each.name for each in files}
    for each in files:
        newer = each.name.replace("-", "-9", 1)
        each.with_name(newer).write_bytes(each.read_bytes()[:-1])
    call("publish", run, "me/bits")
    published = hub.repositories["me/bits"]
    folder = f"checkpoints/{manifest.parent.name}/"
    assert {n for n in published if n.startswith("checkpoints/")} == {
        f"{folder}{name}" for name in names
    }


def test_an_export_that_is_published_is_loaded(hub, bits, call, tmp_path):
    call("publish", serving.export(bits, tmp_path / "bits"), "me/served")
    assert any(
        name.endswith("/saved_model.pb")
        for name in hub.repositories["me/served"]
    )
    found = kseq.load("hf://me/served")(VECTORS)
    for one, other in zip(found, bits.predictor()(VECTORS), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_weights_that_are_no_numbers_are_refused(
    hub, bits, refused, tmp_path, monkeypatch, value
):
    """As by all that loads them."""
    variable = bits.model.trainable_variables[0]
    kept = variable.numpy()
    variable.assign(np.full_like(kept, value))
    monkeypatch.setattr("kseq.serving.saved_model.check_finite", lambda *_: 0)
    try:
        run = saved_run(bits, tmp_path / "bits")
        export = serving.export(bits, tmp_path / "served")
    finally:
        variable.assign(kept)
    for path in (run, export):
        message = refused("publish", path, "me/bits")
        assert "weights that are NaN or infinite" in message
        assert "me/bits" not in hub.repositories


def test_an_export_without_weights_is_refused(hub, bits, refused, tmp_path):
    export = serving.export(bits, tmp_path / "served")
    (export / "variables" / "variables.index").unlink()
    message = refused("publish", export, "me/bits")
    assert "is broken" in message


def test_what_is_published_last_is_loaded(hub, bits, call, tmp_path):
    """Not weights of more steps, nor the run instead of its export."""
    run = saved_run(bits, tmp_path / "bits")
    [best] = (run / "checkpoints").glob("*/*.index")
    files = hub.repositories["me/bits"] = {
        "notes.md": b"of the author",
        **{
            f"checkpoints/average/{each.name.replace('-', '-9', 1)}": b"old"
            for each in best.parent.iterdir()
        },
        "answers.txt": b"of another model",
        "7/saved_model.pb": b"old",
    }
    folder = hub_folder("hf://me/bits")
    assert (folder / "7" / "saved_model.pb").is_file()
    for path in (run, serving.export(bits, tmp_path / "served")):
        call("publish", path, "me/bits")
        assert files["notes.md"] == b"of the author"
        assert b"old" not in files.values()
        assert "answers.txt" not in files
        found = kseq.load("hf://me/bits")(VECTORS)
        for one, other in zip(found, bits.predictor()(VECTORS), strict=True):
            np.testing.assert_allclose(one, other, atol=1e-5)
        copied = [p for p in folder.rglob("*") if p.is_file()]
        names = {p.relative_to(folder).as_posix() for p in copied}
        assert {n for n in names if not n.startswith(".cache")} == {*files}
    assert "config.json" not in files

    hub.answer = lambda request: request.send_error(503)
    assert hub_folder("hf://me/bits") == folder
    assert (folder / "notes.md").is_file()


def test_copies_are_not_inside_of_each_other(hub):
    """Those of a branch whose name has slashes."""
    hub.repositories["me/one"] = {"README.md": b"one"}
    hub.repositories["me/two"] = {"README.md": b"two"}
    two = hub_folder("hf://me/two@main/me/one")
    one = hub_folder("hf://me/one")  # deletes what the model does not have
    assert one not in two.parents
    assert (one / "README.md").read_bytes() == b"one"
    assert (two / "README.md").read_bytes() == b"two"


def test_what_is_not_on_the_hub(hub, refused, tmp_path, monkeypatch):
    message = refused("predict", "hf://me/none")
    assert "hf://me/none cannot be read: 404" in message
    hub.repositories["me/other"] = {"README.md": b"# other"}
    message = refused("predict", "hf://me/other")
    assert "is neither a run directory nor an export" in message
    for url in (
        "hf://",
        "hf://me",
        "hf://me/a/b",
        "hf://../..",
        "hf://a/b@",
        "hf://a/b@x/../../y",
    ):
        assert "Expected hf://owner/name" in refused("inspect", url)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UserError, match="need its package"):
        hub_folder("hf://me/other")


@pytest.mark.parametrize("token", ["hf_\u00e4bc", "\u201chf_abc\u201d"])
def test_a_token_that_is_none(hub, run, refused, monkeypatch, token):
    """As when the quotes of a document are copied."""
    monkeypatch.setenv("HF_TOKEN", token)
    for words in (("publish", run, "me/tiny"), ("inspect", "hf://me/tiny")):
        message = refused(*words)
        assert "HF_TOKEN or that of `hf auth login`, has char" in message
        assert token not in message


def test_names_that_are_none(hub, run, refused):
    message = refused("publish", run, "nobody")
    assert "Expected owner/name" in message
    hub.answer = lambda request: request.send_error(403)
    message = refused("publish", run, "me/tiny")
    assert "me/tiny cannot be written: 403" in message


def test_a_hub_that_ends_the_connection(hub, run, refused):
    hub.answer = lambda request: setattr(request, "close_connection", True)
    message = refused("publish", run, "me/tiny")
    assert "me/tiny cannot be written: " in message
    assert "hf://me/tiny cannot be" in refused("predict", "hf://me/tiny")
