import gc

import keras
import pytest
from keras.src.saving.serialization_lib import ObjectSharingScope

from kseq.layers.recurrent_layer import bidirectional_layer


@pytest.mark.slow
def test_directions_stay_apart_while_a_file_is_loaded():
    """Collected objects leave their ids to new ones."""
    with ObjectSharingScope():
        made = []
        for _ in range(200):
            made.append(bidirectional_layer(keras.layers.GRU(2)))
            gc.collect(0)
    directions = {
        id(layer)
        for both in made
        for layer in (both.forward_layer, both.backward_layer)
    }
    assert len(directions) == 400
