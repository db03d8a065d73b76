"""Small models of OpenNMT-tf, made and answered by it.

    python tests/conversion/opennmt_tf_oracle.py

writes `tests/conversion/opennmt_tf.tar.xz`, which the tests read. The slow
tests make others, in a process of its own, because OpenNMT-tf needs TensorFlow
2.13 or earlier. `OPENNMT_PYTHON` names a Python that has them: tensorflow-cpu
2.13, tensorflow-addons, ctranslate2 3, pyonmttok, pyyaml, rouge, sacrebleu,
sentencepiece, and OpenNMT-tf 2.32 without its dependencies.
"""

import json
import random
import sys
import tarfile
import tempfile
from pathlib import Path


def make(
    folder,
    *,
    seed=1,
    steps=0,
    sharing="NONE",
    separate=False,
    source_end=False,
    num_heads=4,
    **options,
):
    """Writes a model and what it answers.

    Args:
        folder: `pathlib.Path`, created.
        seed: int.
        steps: int, of training; a model that is not trained is random, and
            answers nothing.
        sharing: str, of `EmbeddingsSharingLevel`.
        separate: bool, whether source and target have two vocabularies and
            two SentencePiece models.
        source_end: bool, whether sources end with the token of an end.
        num_heads: int.
        **options: of `opennmt.models.Transformer`.
    """
    import opennmt
    import sentencepiece
    import tensorflow as tf
    from marian_oracle import SOURCES, sentences

    folder.mkdir(parents=True, exist_ok=True)
    tf.random.set_seed(seed)
    pairs = list(sentences(400, seed))
    sides = dict(
        zip(("source", "target"), zip(*pairs, strict=True), strict=True)
    )
    if not separate:
        sides = {"source": [*sides["source"], *sides["target"]]}
    processors = {}
    for side, lines in sides.items():
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines),
            model_prefix=str(folder / side),
            vocab_size=40 if separate else 60,
            hard_vocab_limit=False,
            normalization_rule_name="identity",  # it is small
            minloglevel=2,
        )
        model = sentencepiece.SentencePieceProcessor(
            model_file=str(folder / f"{side}.model")
        )
        processors[side] = model
        pieces = [model.id_to_piece(i) for i in range(3, len(model))]
        pieces.remove("▁drei" if "▁drei" in pieces else pieces[7])
        random.Random(seed).shuffle(pieces)
        tokens = ["<blank>", "<s>", "</s>", *pieces]
        (folder / f"{side}.vocab").write_text("\n".join(tokens) + "\n", "utf-8")

    level = getattr(opennmt.models.EmbeddingsSharingLevel, sharing)
    model = opennmt.models.Transformer(
        num_layers=(2, 1),
        num_units=16,
        num_heads=num_heads,
        ffn_inner_dim=24,
        dropout=0.0,
        attention_dropout=0.0,
        ffn_dropout=0.0,
        share_embeddings=level,
        **options,
    )
    target = "target" if separate else "source"
    config = {
        "source_vocabulary": str(folder / "source.vocab"),
        "target_vocabulary": str(folder / f"{target}.vocab"),
        "source_sequence_controls": {"end": source_end},
    }
    model.initialize(
        config, params={"optimizer": "Adam", "learning_rate": 0.01}
    )
    optimizer = model.get_optimizer()
    model.create_variables(optimizer=optimizer)
    draw = random.Random(seed)
    for variable in model.trainable_variables:
        noise = tf.random.normal(
            variable.shape, 0.0, 0.1, seed=draw.randint(0, 999)
        )
        variable.assign_add(noise)

    def tokens(side, texts):
        found = [processors[side].encode(text, out_type=str) for text in texts]
        own = opennmt.tokenizers.OpenNMTTokenizer(
            mode="none", sp_model_path=str(folder / f"{side}.model")
        )
        for text, each in zip(texts, found, strict=True):
            if text.strip():
                assert own.tokenize(text) == each, (text, each)
        return tf.ragged.constant(found, ragged_rank=1, dtype=tf.string)

    def features(texts):
        return _numbered(model.features_inputter, tokens("source", texts))

    def labels(texts):
        return _numbered(model.labels_inputter, tokens(target, texts))

    if steps:
        _train(model, optimizer, features, labels, sentences, steps, seed)
    for variable in optimizer.variables():  # they take no room in an archive
        variable.assign(tf.zeros_like(variable))
    checkpoint = opennmt.utils.checkpoint.Checkpoint(
        model, optimizer=optimizer, model_dir=str(folder)
    )
    checkpoint.save(steps)

    expected = []
    for text in SOURCES:
        if not text.strip():
            continue
        source, forced = features([text]), labels(["two red dogs"])
        outputs, _ = model(source, labels=forced)
        answers = {}
        searches = {"greedy": 1, "beam": 4} if steps else {}
        for name, size in searches.items():
            model.params.update(beam_width=size, maximum_decoding_length=30)
            _, found = model(source)
            length = int(found["length"][0, 0])
            pieces = [each.decode() for each in found["tokens"][0, 0].numpy()]
            answers[name] = processors[target].decode(pieces[:length])
        expected.append(
            {
                "source": text,
                "source_ids": source["ids"][0].numpy().tolist(),
                "target": "two red dogs",
                "target_ids": forced["ids_out"][0].numpy().tolist(),
                "logits": [
                    [round(value, 5) for value in row]
                    for row in outputs["logits"][0].numpy().tolist()
                ],
                **answers,
            }
        )
    (folder / "expected.json").write_text(
        json.dumps(expected, ensure_ascii=False), "utf-8"
    )


def _numbered(inputter, tokens):
    length = tokens.row_lengths()
    found = inputter.make_features(
        features={
            "tokens": tokens.to_tensor("<blank>"),
            "length": length,
        }
    )
    return {key: each for key, each in found.items() if key != "tokens"}


def _train(model, optimizer, features, labels, sentences, steps, seed):
    import tensorflow as tf

    data = list(sentences(steps * 16, seed + 1))

    @tf.function(reduce_retracing=True)
    def update(source, target):
        with tf.GradientTape() as tape:
            outputs, _ = model(source, labels=target, training=True)
            loss = tf.nn.sparse_softmax_cross_entropy_with_logits(
                target["ids_out"], outputs["logits"]
            )
            weights = tf.sequence_mask(
                target["length"], tf.shape(loss)[1], loss.dtype
            )
            loss = tf.reduce_sum(loss * weights) / tf.reduce_sum(weights)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(
            zip(gradients, model.trainable_variables, strict=True)
        )
        return loss

    for step in range(steps):
        both = zip(*data[16 * step : 16 * step + 16], strict=True)
        sources, targets = map(list, both)
        loss = update(features(sources), labels(targets))
    print(f"loss {float(loss):.4f}", file=sys.stderr)


def make_archive(path):
    """Writes what the tests read without OpenNMT-tf."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "trained"
        make(folder, steps=300)
        with tarfile.open(path, "w:xz") as archive:
            archive.add(folder, folder.name)


if __name__ == "__main__":
    if sys.argv[1:]:
        make(Path(sys.argv[1]), **json.loads(sys.argv[2]))
    else:
        make_archive(Path(__file__).with_name("opennmt_tf.tar.xz"))
