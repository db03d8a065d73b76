"""What is saved opens, also where a class has another module or name now."""

import json

import keras
import pytest

from kseq import layers, models

MOVED = {
    "join_sentences.JoinSentences": ("FlattenSentences", {}),
    "scaled_similarity.ScaledSimilarity": ("ScaledSimilarity", {}),
    "sentence_dropout.SentenceDropout": ("SentenceDropout", {"rate": 0.5}),
    "unit_projection.UnitProjection": ("NormalizedProjection", {"dim": 4}),
}


@pytest.mark.parametrize("path", MOVED)
def test_a_saved_layer_opens(path):
    module, _, name = path.partition(".")
    now, config = MOVED[path]
    layer = keras.saving.deserialize_keras_object(
        {
            "module": f"kseq.layers.{module}",
            "class_name": name,
            "config": {**config, "name": "saved"},
            "registered_name": f"kseq>{name}",
        }
    )
    assert type(layer) is getattr(layers, now)
    assert layer.get_config().items() >= {**config, "name": "saved"}.items()


def test_what_is_saved_now_has_the_registered_name():
    """So that a version before this one opens it, too."""
    for path, (now, config) in MOVED.items():
        saved = keras.saving.serialize_keras_object(
            getattr(layers, now)(**config)
        )
        assert saved["registered_name"] == f"kseq>{path.partition('.')[2]}"


def test_a_saved_model_opens_whatever_modules_it_names():
    model = models.LSTMSeq2Seq(
        source_vocab_size=9,
        target_vocab_size=9,
        embedding_dim=4,
        units=4,
        attention=layers.LuongAttention(),
    )
    text = json.dumps(keras.saving.serialize_keras_object(model))
    assert '"kseq.layers.attention_scores"' in text
    moved = text.replace('"kseq.layers.', '"kseq.layers.before.')
    moved = moved.replace('"kseq.models.', '"kseq.models.before.')
    opened = keras.saving.deserialize_keras_object(json.loads(moved))
    assert type(opened) is models.LSTMSeq2Seq
    assert opened.get_config() == model.get_config()
