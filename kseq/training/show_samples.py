"""What a model makes of some examples, as a table and as pictures."""

import html

import tensorflow as tf

from kseq.devices import is_chief


def show_samples(run, step, columns, rows, pictures):
    """Writes a table to `samples/` and to TensorBoard, and pictures there.

    In a cluster only the chief does.

    Args:
        run: `RunDirectory`.
        step: int, of the training.
        columns: names of the columns.
        rows: tuples of str, as many as there are columns.
        pictures: dict, name -> PNG image.
    """
    if not is_chief():
        return
    table = [columns, ["---"] * len(columns)]
    table += [map(_cell, row) for row in rows]
    text = "".join(f"| {' | '.join(row)} |\n" for row in table)
    run.samples.mkdir(exist_ok=True)
    path = run.samples / f"{step:08d}.md"
    path.write_text(text, encoding="utf-8")

    writer = tf.summary.create_file_writer(str(run.tensorboard))
    with writer.as_default(step=step):
        tf.summary.text("samples", text)
        for name, png in pictures.items():
            image = tf.io.decode_png(png, channels=3)
            tf.summary.image(name, image[None])
    writer.close()


def _cell(text):
    return html.escape(text).replace("|", "&#124;")
