// A picture in, its caption out, and where each word looked.

import { add } from "./column.js";
import { showNBest, startNBest } from "./n_best.js";
import { cellsOf, cover, input, strongest } from "./picture_input.js";
import { sum, wordsOf } from "./pieces.js";
import { wordLine } from "./word_line.js";

export const view = {
  template: "picture",
  shows: "its caption",
  input,

  start: startNBest,

  async answer(column, value, signal) {
    const request = await input.request(value);
    const best = await column.predict("serving_default", request, signal);
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
        explain(column, request, signal),
      );
    }
    await showNBest(column, request, signal);
  },
};

function showPicture(image, file) {
  URL.revokeObjectURL(image.src);
  image.src = URL.createObjectURL(file);
}

async function explain(column, request, signal) {
  const { target_tokens, source_tokens, attention } = await column.predict(
    "explain",
    request,
    signal,
  );
  const words = wordsOf(target_tokens).filter((word) => !word.control);
  const cells = cellsOf(source_tokens);
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
