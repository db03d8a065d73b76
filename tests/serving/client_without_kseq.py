"""A client of exports: TensorFlow, tensorflow_text and the folders alone.

Reads pairs of a path and lines as JSON; prints what `serving_default` answers
to the lines when the export is loaded in Python, and as TensorFlow Serving
does it, there also what `classify` answers to the first line.
"""

import json
import sys

sys.modules["kseq"] = None
import tensorflow as tf  # noqa: E402
import tensorflow_text  # noqa: E402, F401, it has the operations of tokenizers


def load(path, lines):
    signature = tf.saved_model.load(path).signatures["serving_default"]
    answers = signature(text=tf.constant(lines))
    return {name: value.numpy().tolist() for name, value in answers.items()}


def load_as_serving_does(path, lines):
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        model = v1.saved_model.loader.load(session, ["serve"], path)

        def run(name, values):
            signature = model.signature_def[name]
            [tensor] = signature.inputs.values()
            outputs = {k: v.name for k, v in signature.outputs.items()}
            answers = session.run(outputs, {tensor.name: values})
            return {name: value.tolist() for name, value in answers.items()}

        answers = run("serving_default", lines)
        if "classify" in model.signature_def:
            answers |= run("classify", [example(lines[0])])
            answers["method"] = model.signature_def["classify"].method_name
    return answers


def example(line):
    message = tf.train.Example()
    message.features.feature["text"].bytes_list.value.append(line.encode())
    return message.SerializeToString()


print(
    json.dumps(
        [
            [answer(path, lines) for answer in (load, load_as_serving_does)]
            for path, lines in json.load(sys.stdin)
        ],
        default=bytes.decode,
    )
)
