// A recording in, its words out, and when each of them was heard.

import { add } from "./column.js";
import { element, foreign, percent } from "./elements.js";
import { showNBest, startNBest } from "./n_best.js";
import { sum, wordsOf } from "./pieces.js";
import { drawSpectrogram } from "./sound.js";
import { decoded, drawAlignment, input, timesOf } from "./sound_input.js";
import { wordLine } from "./word_line.js";

export const view = {
  template: "speech",
  shows: "its text",
  input,

  start: startNBest,

  async answer(column, { file, bytes }, signal) {
    const { sound, request } = await decoded(bytes, column.target);
    signal.throwIfAborted();
    const best = await column.predict("serving_default", request, signal);
    const player = column.part("player");
    URL.revokeObjectURL(player.src);
    player.src = URL.createObjectURL(file);
    const canvas = column.part("sound");
    canvas.hidden = !sound || !drawSpectrogram(canvas, sound);
    clearExplanation(column);
    column.part("answer").textContent = best.text || "(an empty answer)";
    column.part("spoken").textContent = best.text;
    column.show(best.truncated);
    if (!best.text) column.say(emptyAnswer(sound), "answered");
    if (best.text && column.has("explain")) {
      await add(column.part("note"), signal, () =>
        explain(column, request, sound, signal),
      );
    }
    await showNBest(column, request, signal);
  },
};

function emptyAnswer(sound) {
  return sound
    ? "Nothing was heard. The model takes WAV files of 16-bit PCM in its own " +
        "sample rate."
    : "The browser cannot read this file as a recording.";
}

function clearExplanation(column) {
  column.part("note").replaceChildren();
  column.part("letters").replaceChildren();
  column.part("alignment").hidden = true;
  column.part("times-section").hidden = true;
}

async function explain(column, request, sound, signal) {
  const { target_tokens, source_tokens, attention } = await column.predict(
    "explain",
    request,
    signal,
  );
  const pieces = wordsOf(target_tokens, false); // letters, as a rule
  const words = pieces.filter((word) => !word.control);
  const { times, step, end } = timesOf(source_tokens, sound);
  const rows = words.map(({ places }) =>
    times.map(
      (_, time) => sum(places.map((row) => attention[row][time])) / places.length,
    ),
  );
  const peaks = rows.map((row) => row.indexOf(Math.max(...row)));
  const heard = rows.map((row, number) => {
    const seconds = times[peaks[number]].toFixed(2);
    return `${seconds} s (${percent(row[peaks[number]])})`;
  });
  const canvas = column.part("alignment");
  column.part("letters").replaceChildren(
    ...words.map(({ text }, number) => {
      const letter = foreign("span", text.trim());
      const share = (times[peaks[number]] + step / 2) / end;
      letter.style.insetInlineStart = `${100 * share}%`;
      return letter;
    }),
  );
  drawAlignment(canvas, rows, times, end, null);
  canvas.hidden = false;
  wordLine(column.part("answer"), words, (number) => {
    drawAlignment(canvas, rows, times, end, number);
    const note = column.part("note");
    if (number === null) note.replaceChildren();
    else {
      const name = foreign("bdi", words[number].text.trim() || "␣");
      note.replaceChildren(name, `: most of all at ${heard[number]}`);
    }
  });
  column.part("times").replaceChildren(timesTable(words, heard));
  column.part("times-section").hidden = false;
}

function timesTable(words, heard) {
  const rows = words.map(({ text }, number) =>
    element(
      "tr",
      {},
      foreign("th", text.trim() || "␣", { scope: "row" }),
      element("td", {}, heard[number]),
    ),
  );
  return element(
    "table",
    { className: "n-best" },
    element("caption", { className: "hidden" }, "When each part was heard"),
    element("tbody", {}, ...rows),
  );
}
