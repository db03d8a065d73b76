"""Whatever the values of a recipe's options: accepted, or one message."""

import contextlib
import dataclasses
import functools
import io
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kseq import run_recipe
from kseq.command_line import recipe_options
from kseq.command_line.option_types import check_options, option
from kseq.user_error import UserError
from tests.recipes import RECIPES, load_recipe

NUMBERS = (0, 1, -1, 2, 3, 7, 0.5, 1e9, 10**30, "nan", "inf", "-inf", 1e-320)
VALUES = (
    st.sampled_from(NUMBERS).map(str)
    | st.integers().map(str)
    | st.floats().map(str)
    | st.text(max_size=8)
    | st.sampled_from(["", " ", "--", "-", "..", "/", "a" * 5000, "float32"])
)


@pytest.fixture(scope="module", params=RECIPES, ids=lambda path: path.stem)
def page(request):
    yield load_recipe(request.param.stem)
    del sys.modules[request.param.stem]


# To read the source of a class takes longer than all else.
comments_of = functools.cache(recipe_options._comments)


def ended(page, words):
    """(exit code, what is on standard error, the config if it is accepted)."""
    config = page.Config()
    accepted, errors = [], io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["page", *words])
        # Nothing is imported before the values are checked.
        patch.setitem(run_recipe.__globals__, "start_keras", lambda: None)
        patch.setattr("kseq.devices.device_strategy", lambda: None)
        patch.setattr(recipe_options, "_comments", comments_of)
        with contextlib.redirect_stderr(errors):
            try:
                run_recipe(accepted.append, config, without_files=config)
            except SystemExit as stop:
                return stop.code, errors.getvalue(), None
    return 0, errors.getvalue(), accepted[0]


# The recipes share the code that reads and checks, and so the examples.
@settings(max_examples=40, derandomize=True, database=None, deadline=None)
@given(data=st.data())
def test_any_value_is_accepted_or_refused(page, data):
    fields = [field.name for field in dataclasses.fields(page.Config)]
    names = data.draw(st.lists(st.sampled_from(fields), min_size=1, max_size=3))
    glue = data.draw(st.booleans())
    words = []
    for name in names:
        value = data.draw(VALUES)
        one = [f"{option(name)}={value}"]
        words += one if glue else [option(name), value]
    code, errors, config = ended(page, words)
    if config is None:
        assert code == 2, (words, code, errors)
        assert errors.startswith("page: "), words
        assert "Traceback" not in errors
    else:
        assert (code, errors) == (0, "")
        check_options(config)


@pytest.mark.parametrize("value", [float("nan"), -1, 10**30, "3", None])
def test_configs_of_python_are_checked(page, value):
    with pytest.raises(UserError, match="--steps: expected an integer"):
        check_options(dataclasses.replace(page.Config(), steps=value))


@pytest.mark.parametrize("value", ["foo", None, [], 8])
def test_choices_are_checked(page, value):
    has_dtype = hasattr(page.Config, "dtype")
    name, first = ("dtype", "auto") if has_dtype else ("task", "copy")
    with pytest.raises(UserError, match=f"--{name}: expected one of {first}, "):
        check_options(dataclasses.replace(page.Config(), **{name: value}))


def test_the_defaults_are_valid(page):
    built_in = [x for x in vars(page).values() if isinstance(x, page.Config)]
    assert len(built_in) == hasattr(page.Config, "train")
    for config in (page.Config(), *built_in):
        check_options(config)


# What a recipe is given, and the option that it then does not read.
UNREAD = {
    "caption_images": [
        ("--decoder transformer --coverage 1", "--coverage"),
        ("--decoder transformer --order luong", "--order"),
        ("--num-heads 4", "--num-heads"),
    ],
    "chat": [("--model single --max-turns 5", "--max-turns")],
    "classify_documents": [
        ("--layers 3", "--layers"),
        ("--heads 2", "--heads"),
        ("--model transformer --units 3", "--units"),
    ],
    "learn_algorithms": [
        ("--model lstm --slots 9", "--slots"),
        ("--num-layers 3", "--num-layers"),
    ],
    "spot_words": [
        ("--r-drop 1 --dropout 0 --masks 0 --stretch 0", "--r-drop")
    ],
    "tag_words": [("--heads 2", "--heads")],
    "transcribe_speech": [("--ctc 0 --ctc-weight 0.5", "--ctc-weight")],
    "translate_lstm": [
        ("--window 10", "--window"),
        ("--attention none --order luong", "--order"),
        ("--schedule range_test --warmup-steps 9", "--warmup-steps"),
        ("--new-tokenizer", "--new-tokenizer"),
        ("--r-drop 1 --dropout 0", "--r-drop"),
    ],
    "translate_transformer": [
        ("--averaged 8 --ema 0.9", "--averaged"),
        ("--encoder-layers 1 --decoder-layers 2 --layers 4", "--layers"),
        ("--pieces bpe char --share-embeddings", "--share-embeddings"),
    ],
    "write_text": [("--model lstm --heads 4", "--heads")],
}


def test_options_that_nothing_reads_are_refused(page):
    """If they are given, also with the values of their defaults."""
    for words, name in UNREAD.get(page.__name__, ()):
        words = words.split()
        code, errors, _ = ended(page, words)
        assert (code, errors.count("\n")) == (2, 1), words
        assert errors.startswith(f"page: {name}"), (words, errors)


def test_options_whose_defaults_nothing_reads_are_quiet(page):
    fields = {field.name for field in dataclasses.fields(page.Config)}
    for name, value in (
        ("decoder", "transformer"),
        ("model", "single"),
        ("model", "transformer"),
        ("model", "lstm"),
        ("ctc", "0"),
        ("schedule", "range_test"),
        ("attention", "none"),
        ("pieces", "char"),
        ("ema", "0.9"),
        ("dropout", "0"),
    ):
        if name not in fields:
            continue
        code, errors, _ = ended(page, [option(name), value])
        assert code == 0 or "expected one of" in errors
