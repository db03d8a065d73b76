import json

import keras
import pytest

from kseq.data import TextPreprocessor
from kseq.decoding import (
    BeamSearch,
    ForbiddenTokens,
    GreedySearch,
    MinLength,
    NoRepeatedNgrams,
    RepetitionPenalty,
    Sampling,
)
from kseq.runs import RunError
from kseq.serving.object_config import (
    object_config,
    preprocessor_from_config,
    search_from_config,
)


@pytest.mark.parametrize(
    "search",
    [
        GreedySearch(),
        BeamSearch(beam_size=7, length_penalty=0.5, patience=2.0),
        Sampling(temperature=0.8, top_k=50, top_p=0.9, seed=1),
        BeamSearch(constraints=(MinLength(3), NoRepeatedNgrams(2))),
        GreedySearch(constraints=(ForbiddenTokens([4]), RepetitionPenalty(2))),
    ],
)
def test_a_search_comes_back(search):
    config = json.loads(json.dumps(object_config(search)))
    found = search_from_config(config)
    assert type(found) is type(search)
    assert object_config(found) == object_config(search)


def test_a_preprocessor_comes_back(tokenizers):
    source, _ = tokenizers
    config = object_config(TextPreprocessor(source, max_length=9))
    assert config == {"class": "TextPreprocessor", "max_length": 9}
    found = preprocessor_from_config(config, source)
    assert found.tokenizer is source
    assert found.max_length == 9


def test_a_function_has_a_name():
    def mine(log_probs, ids):
        return log_probs

    config = object_config(BeamSearch(constraints=(mine, MinLength(3))))
    assert config["constraints"] == [
        "mine",
        {"class": "MinLength", "length": 3},
    ]
    with pytest.raises(RunError, match="'mine'"):
        search_from_config(config)


@pytest.mark.parametrize(
    "config",
    [
        None,
        [],
        "BeamSearch",
        5,
        {},
        {"class": None},
        {"class": ["BeamSearch"]},
        {"class": "os.system", "command": "true"},
        {"class": "__builtins__"},
        {"class": "dataclasses"},
        {"class": "Corpus", "train": 1, "validation": 2, "test": 3},
        {"class": "Tokenizer", "model": "x"},
        {"class": "read_corpus", "train": ["/etc/passwd"]},
        {"class": "length_limits", "lengths": [1]},
        {"class": "MinLength", "length": 3},
        {"class": "TextPreprocessor", "max_length": 9},
        {"class": "BeamSearch", "beam_size": "4"},
        {"class": "BeamSearch", "beam_size": True},
        {"class": "BeamSearch", "beam_size": 4, "command": "true"},
        {"class": "BeamSearch", "length_penalty": float("nan")},
        {"class": "BeamSearch", "constraints": 5},
        {"class": "BeamSearch", "constraints": ["print"]},
        {"class": "BeamSearch", "constraints": [{"class": "os.system"}]},
        {"class": "BeamSearch", "constraints": [{"class": "length_limits"}]},
    ],
)
def test_no_other_search_is_made(config):
    with pytest.raises(RunError, match="Expected the config of a search"):
        search_from_config(config)


@pytest.mark.parametrize("weights", ["imagenet", "weights.h5", "", None])
def test_no_weights_are_downloaded_or_read(weights, monkeypatch):
    """Those of a network are in the run, whatever its config says."""

    def not_called(*args, **options):
        raise AssertionError(f"a network with {args}, {options}")

    monkeypatch.setattr(keras.applications, "MobileNetV3Small", not_called)
    sizes = {"side": 32, "rows": 2, "columns": 3}
    config = {"class": "ImagePreprocessor", "network": "MobileNetV3Small"}
    with pytest.raises(RunError, match="weights="):
        preprocessor_from_config(config | sizes | {"weights": weights})


@pytest.mark.parametrize(
    "config",
    [
        None,
        {},
        {
            "class": "ImagePreprocessor",
            "side": 2,
            "rows": 2,
            "columns": 3,
            "network": ["MobileNetV3Small"],
        },
        {"class": "os.system"},
        {"class": "Corpus", "validation": 2, "test": 3},
        {"class": "Documents", "labels": []},
        {"class": "ParallelText"},
        {"class": "read_lines"},
        {"class": "BeamSearch", "length_penalty": 1.0},
        {"class": "Tokenizer"},
        {"class": "TextPreprocessor", "max_length": "9"},
        {"class": "TextPreprocessor", "max_length": 1},
        {"class": "TextPreprocessor", "max_length": 9.5},
        {"class": "TextPreprocessor", "max_length": True},
        {"class": "TextPreprocessor", "max_length": float("inf")},
        {"class": "TextPreprocessor", "max_length": float("nan")},
        {"class": "TextPreprocessor", "max_length": 2**31},
        {"class": "DocumentPreprocessor", "in_lines": "yes"},
        {"class": "DocumentPreprocessor", "max_pieces": 10**30},
        {"class": "TextPreprocessor", "command": "true"},
        {"class": "DocumentPreprocessor", "max_pieces": None},
        {"class": "DocumentPreprocessor", "max_sentences": 0},
    ],
)
def test_no_other_preprocessor_is_made(config, tokenizers):
    with pytest.raises(RunError, match="Expected the config of a search"):
        preprocessor_from_config(config, tokenizers[0])
