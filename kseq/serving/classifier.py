"""A classifier of documents: text in, label out."""

import tensorflow as tf

from kseq.control_tokens import PAD


class Classifier:
    """Text in, label out: tokenizer and model as one graph.

    A blank document gets the probabilities that the model gives to nothing.
    One of more sentences than the tokenizer admits is cut.

    Args:
        model: has `explain`, as `kseq.models.HierarchicalAttention` does.
        tokenizer: a `kseq.data.DocumentTokenizer`.
        labels: C strings, in the order of the model's classes.

    Each of these takes `text`, a (B,) string tensor, and gives a dict:

    - `classify`: `label` (B,) string and `probability` (B,) float32, of the
      likeliest; `labels` and `probabilities` (B, C), all of them in order;
      `truncated` (B,) bool, whether the document was cut.
    - `explain`: `sentences` (B, L) and `words` (B, L, W), strings, "" at
      padding; `sentence_weights` (B, L) and `word_weights` (B, L, W)
      float32, which sum to 1 over a document and over a sentence; `label`
      and `probability`.

    `classify_examples` takes serialized `tf.train.Example`s with a feature
    `text`, and gives `classes` and `scores` (B, C): the classification
    signature of TensorFlow Serving.

    Raises:
        ValueError: if there are not as many labels as the model has classes.

    Example:
        >>> documents = kseq.data.Documents(["A rose. A rose?"], ["yes"])
        >>> tokenizer = kseq.data.DocumentTokenizer.train(documents, 270)
        >>> model = kseq.models.FlatAttention(
        ...     270, 2, embedding_dim=8, units=5, attention_units=5
        ... )
        >>> classifier = Classifier(model, tokenizer, ("no", "yes"))
        >>> classifier.classify(tf.constant(["A rose.", ""]))["label"].shape
        TensorShape([2])
    """

    def __init__(self, model, tokenizer, labels):
        if len(labels) != model.num_classes:
            raise ValueError(
                f"labels must be as many as the {model.num_classes} classes "
                f"of the model. Received: labels={labels}"
            )
        self.model = model
        self.tokenizer = tokenizer
        self.labels = tuple(labels)

        text = tf.TensorSpec((None,), tf.string, name="text")
        examples = tf.TensorSpec((None,), tf.string, name="inputs")
        self.classify, self.explain, self.classify_examples = (
            tf.function(method, input_signature=[spec], autograph=False)
            for method, spec in (
                (self._classify, text),
                (self._explain, text),
                (self._classify_examples, examples),
            )
        )
        # A function of its own, for a recurrence takes long to be traced.
        ids = tf.TensorSpec((None, None, None), tf.int32, name="source_ids")
        self._read = tf.function(
            model.explain, input_signature=[ids], autograph=False
        )
        self.signatures = {
            "serving_default": self.classify,
            "classify": self.classify_examples,
            "explain": self.explain,
        }

    def describe(self):
        """What an export says of itself, a dict."""
        return {
            "labels": self.labels,
            **self.tokenizer.get_config(),
            "vocab_size": self.tokenizer.vocab_size,
        }

    def _classify(self, text):
        ids, truncated = self._ids(text)
        probabilities = tf.nn.softmax(self._read(ids)["logits"])
        labels = tf.broadcast_to(self.labels, tf.shape(probabilities))
        return {
            **self._best(probabilities),
            "labels": labels,
            "probabilities": probabilities,
            "truncated": truncated,
        }

    def _explain(self, text):
        ids, _ = self._ids(text)
        explained = self._read(ids)
        sentences, words = self.tokenizer.strings(ids)
        return {
            "sentences": sentences,
            "sentence_weights": explained["sentence_weights"],
            "words": words,
            "word_weights": explained["word_weights"],
            **self._best(tf.nn.softmax(explained["logits"])),
        }

    def _classify_examples(self, inputs):
        features = {"text": tf.io.FixedLenFeature((), tf.string)}
        parsed = tf.io.parse_example(inputs, features)
        answer = self.classify(parsed["text"])
        return {"classes": answer["labels"], "scores": answer["probabilities"]}

    def _ids(self, text):
        """Ids (B, L, W), L and W at least 1, and what was cut (B,)."""
        ids, truncated = self.tokenizer.tokenize_and_cut(text)
        sentences = tf.maximum(ids.bounding_shape(axis=1), 1)
        words = tf.maximum(ids.bounding_shape(axis=2), 1)
        shape = tf.stack([ids.nrows(), sentences, words])
        return ids.to_tensor(PAD, shape=shape), truncated

    def _best(self, probabilities):
        best = tf.argmax(probabilities, axis=-1)
        return {
            "label": tf.gather(tf.constant(self.labels), best),
            "probability": tf.reduce_max(probabilities, axis=-1),
        }
