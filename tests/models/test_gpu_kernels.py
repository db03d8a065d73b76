"""What a GPU copies to the host in a training step and in a search.

As they are traced without XLA, which copies nothing within a step.
"""

import pytest
import tensorflow as tf

from kseq import decoding
from tests.gpu_memory import HOST, GraphMemory, has_gpu_kernels, training_step
from tests.recipe_models import SERVED, make_served
from tests.slow import others_slow

pytestmark = pytest.mark.skipif(
    not has_gpu_kernels(), reason="this TensorFlow has no kernels for GPUs"
)

OFTEN = ["translate_transformer"]
GENERATORS = [
    kind
    for kind in SERVED
    if not kind.startswith(
        ("classify_documents", "tag_words", "retrieve_", "learn_algorithms")
    )
]
CONSTRAINTS = (
    decoding.ForbiddenTokens([4]),
    decoding.MinLength(2),
    decoding.NoRepeatedNgrams(2),
    decoding.RepetitionPenalty(1.2),
)
SEARCHES = {
    "greedy": decoding.GreedySearch(constraints=CONSTRAINTS),
    "beam": decoding.BeamSearch(2),
    "patience": decoding.BeamSearch(3, patience=2.0, constraints=CONSTRAINTS),
    "sampling": decoding.Sampling(0.8, 5, 0.9, num_samples=2),
}
_TOKENS = 3  # loops: over groups, over those of them that are done, over tokens

# What reads it on the host, and why it may: none is as large as features, and
# each is read once a step, unless it is in a loop.
SMALL_IN_A_STEP = {
    "bool Assert.condition": "loss and gradient are finite",
    "float32 Assert.data": "what they are, if they are not",
    "bool Branch": "the side that runs",
    "bool LoopCond": "the end of a loop over time, which is known there",
    "int32 StatelessRandomGetKeyCounter.seed": "the seed of a mask",
    "int32 Pack.values": "sizes of a product of rank 3, or of a gradient",
    "int32 ConcatV2.values": "the same",
    "int32 Mul.y": "the same",
    "int32 BroadcastGradientArgs.s0": "a shape, which a loop has kept",
    "int32 BroadcastGradientArgs.s1": "the same",
    "int32 BroadcastTo.shape": "the same",
    "int32 InvertPermutation.x": "the same",
    "int32 Reshape.shape": "the same",
    "int32 StridedSlice.input": "the same",
    "int32 StridedSliceGrad.shape": "the same",
    "int32 ConcatOffset.shape": "the same",
    "int32 Slice.begin": "the same",
    "int32 Slice.size": "the same",
    "int32 Sum.reduction_indices": "the same",
    "int32 Tile.multiples": "the same",
    "int32 TensorListGetItem.index": "the same, of the step of a loop",
    "int32 TensorListReserve.element_shape": "the same",
    "int32 TensorListReserve.num_elements": "the same",
    "int32 TensorListSetItem.index": "the same",
    "int32 AddV2.y": "the longest sentence, or a size of SpecAugment",
    "int64 Range.start": "the gradient of a maximum over pieces",
    "int64 Range.limit": "the same",
    "int64 Range.delta": "the same",
    "float32 Range.start": "positions in SpecAugment",
    "float32 Range.limit": "the same",
    "float32 Range.delta": "the same",
    "float32 MatrixDiagV3.padding_value": "the transitions of CTC",
    "float32 PadV2.constant_values": "the same",
}
# Ids and lengths, which come from the host, and are int32.
DATA_IN_A_STEP = {
    "int32 Size.input": "the gradient of an embedding asks how many ids it has",
    "int32 Shape.input": "ids after dropout of sentences, lengths in CTC",
    "int32 Reshape.tensor": "ids of sentences that are joined",
    "int32 StridedSlice.input": "the same, and first pieces of words",
    "int32 Mul.x": "the same",
    "int32 Mul.y": "the same",
    "int32 Sub.x": "the same",
    "int32 Sum.input": "lengths",
    "int32 Max.input": "the same",
    "int32 Less.x": "the same",
    "int32 NotEqual.x": "the same",
    "int32 AddV2.x": "labels of CTC",
    "int32 AddV2.y": "positions in SpecAugment",
}
IN_A_TOKEN = {
    "bool LoopCond": "the end of a loop over seeds",
    "int32 Less.x": "how many items are done, by which the loop ends",
    "int32 Maximum.x": "how many rows the next step of a beam has",
    "int32 Pack.values": "sizes of a product of rank 3",
    "int32 ConcatV2.values": "the same",
    "int64 StatelessRandomGetKeyCounter.seed": "the seed of an item",
}
# Made of shapes alone, on the host.
TO_THE_GPU_IN_A_TOKEN = {
    "bool ConcatV2.values": "which row is whose, for the mask of attention",
    "bool ExpandDims.input": "the same",
    "bool LogicalAnd.y": "which positions are near",
    "int32 Cast.x": "ranges of rows and positions",
    "int32 GatherV2.indices": "the places of n-grams",
}
# Strings that end an answer are compared as text.
READ_FOR_STRINGS = {"int32 StridedSlice.input"}
WRITTEN_BY_STRINGS = {"bool StridedSlice.input"}
STRING_OPS = {"GatherV2", "ReduceJoin", "StaticRegexFullMatch", "StringJoin"}


def read_on_the_host(memory, loops=0):
    """(Readers of data, readers of shapes and numbers)."""
    copies = [c for c in memory.copies if c.to == HOST and c.loops >= loops]
    return (
        {copy.reader for copy in copies if copy.is_data},
        {copy.reader for copy in copies if not copy.is_data},
    )


@pytest.mark.parametrize("kind", others_slow(SERVED, OFTEN))
def test_what_a_training_step_reads_on_the_host(kind):
    memory = GraphMemory(training_step(kind, make_served(kind)))
    data, others = read_on_the_host(memory)
    assert data <= DATA_IN_A_STEP.keys()
    assert others <= SMALL_IN_A_STEP.keys()
    assert not memory.without_kernel


def check_search(function, *, compares_strings=False):
    memory = GraphMemory(function.get_concrete_function())
    data, others = read_on_the_host(memory, _TOKENS)
    assert data <= (READ_FOR_STRINGS if compares_strings else set())
    assert others <= IN_A_TOKEN.keys()
    written = {
        copy.reader
        for copy in memory.copies
        if copy.to != HOST and copy.loops >= _TOKENS and copy.is_data
    }
    if compares_strings:
        written -= WRITTEN_BY_STRINGS
    assert written <= TO_THE_GPU_IN_A_TOKEN.keys()
    types = {t for t, loops in memory.without_kernel if loops >= _TOKENS}
    assert types <= (STRING_OPS if compares_strings else set())


@pytest.mark.parametrize("name", others_slow(SEARCHES, ["beam"]))
def test_each_token_of_a_search_stays_on_the_gpu(name):
    """Of answers with and without a prefix: of the latter that is all."""
    served = make_served("translate_transformer")
    check_search(served.with_search(SEARCHES[name]).signatures["prefix"])


@pytest.mark.slow
@pytest.mark.parametrize("kind", GENERATORS)
@pytest.mark.parametrize("signature", ["serving_default", "sample"])
def test_each_token_of_a_model_stays_on_the_gpu(kind, signature):
    signatures = make_served(kind).signatures
    if signature not in signatures:
        pytest.skip("its answers are not drawn")
    has_stops = kind.startswith("write_text")
    check_search(signatures[signature], compares_strings=has_stops)


@pytest.mark.slow
@pytest.mark.parametrize("name", SEARCHES)
def test_each_token_of_a_search_with_ctc_stays_on_the_gpu(name):
    served = make_served("transcribe_speech")
    search = type(SEARCHES[name])(**{**vars(SEARCHES[name]), "ctc_weight": 0.5})
    check_search(served.with_search(search).signatures["prefix"])


def test_a_copy_to_the_host_is_found():
    """Of an int32 that a GPU computes: it compares it on the host."""

    @tf.function(input_signature=[tf.TensorSpec((None, 9))])
    def best(x):
        return tf.argmax(x, axis=1, output_type=tf.int32) == 3

    data, others = read_on_the_host(GraphMemory(best.get_concrete_function()))
    assert (data, others) == ({"int32 Equal.x"}, set())
