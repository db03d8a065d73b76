"""An empty batch has an answer without rows, whatever comes in."""

import pytest
import tensorflow as tf

from tests.recipe_models import SERVED, make_served
from tests.slow import others_slow

# The inputs of which had no axes where there were none of them.
OFTEN = ("chat hierarchical", "transcribe_speech", "write_text lstm")


@pytest.mark.parametrize("kind", others_slow(SERVED, OFTEN))
def test_an_empty_batch(kind):
    served = make_served(kind)
    streams = getattr(served, "stream_signatures", {})
    signatures = {
        name: function
        for name, function in (served.signatures | streams).items()
        if name not in ("stream_next", "stream_text")
    }
    for name, function in signatures.items():
        specs = function.input_signature
        shapes = [[0, *(size or 0 for size in s.shape[1:])] for s in specs]
        none = {
            spec.name: tf.constant([], spec.dtype, shape)
            for spec, shape in zip(specs, shapes, strict=True)
        }
        outputs = function(**none)
        names = [key for key in outputs if not key.startswith("state_")]
        assert {outputs[key].shape[0] for key in names} == {0}, name
