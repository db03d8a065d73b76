// A picture in, its caption out, and where each word looked.

import { predict } from "./client.js";
import { add } from "./column.js";
import { percent } from "./elements.js";
import { base64, fileInput } from "./file_input.js";
import { showNBest, startNBest } from "./n_best.js";
import { sum, wordsOf } from "./pieces.js";
import { wordLine } from "./word_line.js";

const DARKEST = 200; // of 255, how dark a cell is that gets no attention

export const picture = {
  takes: "image",
  gives: ["text"],
  template: "picture",
  empty: "Choose a picture to see its caption.",
  input: (onValue) =>
    fileInput(
      "Choose a JPEG or PNG picture, or drop it here",
      "image/jpeg,image/png",
      onValue,
    ),

  start(column) {
    startNBest(column, inputOf);
  },

  async answer(column, value, signal) {
    const input = inputOf(value);
    const best = await predict(
      column.target,
      "serving_default",
      input,
      signal,
    );
    showPicture(column.part("image"), value.file);
    column.part("overlay").hidden = true;
    column.part("note").replaceChildren();
    column.part("answer").textContent = best.text || "(an empty answer)";
    column.part("spoken").textContent = best.text;
    column.show(best.truncated);
    if (!best.text)
      column.say("The file may not be a JPEG or PNG picture.", "answered");
    if (best.text && column.has("explain")) {
      await add(column.part("note"), signal, () =>
        explain(column, input, signal),
      );
    }
    await showNBest(column, input, signal);
  },
};

function inputOf({ bytes }) {
  return { image: base64(bytes) };
}

function showPicture(image, file) {
  URL.revokeObjectURL(image.src);
  image.src = URL.createObjectURL(file);
}

async function explain(column, input, signal) {
  const { target_tokens, source_tokens, attention } = await predict(
    column.target,
    "explain",
    input,
    signal,
  );
  const words = wordsOf(target_tokens).filter((word) => !word.control);
  const cells = source_tokens.map((cell) => cell.split(",").map(Number));
  const note = column.part("note");
  const overlay = column.part("overlay");
  wordLine(column.part("answer"), words, (number) => {
    overlay.hidden = number === null;
    note.replaceChildren();
    if (number === null) return;
    const rows = words[number].places.map((place) => attention[place]);
    const weights = cells.map(
      (_, cell) => sum(rows.map((row) => row[cell])) / rows.length,
    );
    cover(overlay, cells, weights);
    note.textContent = strongest(cells, weights);
  });
}

/**
 * Darkens what gets no attention: draws a pixel for each cell, which the page
 * stretches over the picture.
 */
function cover(overlay, cells, weights) {
  const rows = Math.max(...cells.map(([row]) => row));
  const columns = Math.max(...cells.map(([, column]) => column));
  const most = Math.max(...weights) || 1;
  const pixels = new ImageData(columns, rows);
  cells.forEach(([row, column], cell) => {
    const dark = Math.round(DARKEST * (1 - weights[cell] / most));
    const start = 4 * ((row - 1) * columns + column - 1);
    pixels.data.set([0, 0, 0, dark], start);
  });
  overlay.width = columns;
  overlay.height = rows;
  overlay.getContext("2d").putImageData(pixels, 0, 0);
}

function strongest(cells, weights) {
  const place = weights.indexOf(Math.max(...weights));
  const [row, column] = cells[place];
  const rows = Math.max(...cells.map(([last]) => last));
  const columns = Math.max(...cells.map(([, last]) => last));
  return (
    `Strongest at row ${row} of ${rows}, column ${column} of ${columns}: ` +
    percent(weights[place])
  );
}
