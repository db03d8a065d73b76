// A recording in, its words out, and when each of them was heard.

import { predict } from "./client.js";
import { add } from "./column.js";
import { element, foreign, percent } from "./elements.js";
import { base64, fileInput } from "./file_input.js";
import { showNBest, startNBest } from "./n_best.js";
import { sum, wordsOf } from "./pieces.js";
import { recordButton } from "./record_button.js";
import { decodeSound, drawSpectrogram, wavOf, wavRate } from "./sound.js";
import { wordLine } from "./word_line.js";

const MARK = "rgb(255 140 0)";
const USUAL_RATE = 16000; // of the picture, where that of the model is unknown

export const speech = {
  takes: "audio",
  gives: ["text"],
  template: "speech",
  empty: "Choose a recording to see its text.",
  input: soundInput,

  start(column) {
    column.wav = null;
    startNBest(column, () => column.wav);
  },

  async answer(column, { file, bytes }, signal) {
    const rate = column.target.model.sample_rate;
    const sound = await decodeSound(bytes, rate ?? USUAL_RATE).catch(() => null);
    signal.throwIfAborted();
    const isReady = !rate || !sound || wavRate(bytes) === rate;
    const input = { audio: base64(isReady ? bytes : wavOf(sound)) };
    column.wav = input;
    const best = await predict(
      column.target,
      "serving_default",
      input,
      signal,
    );
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
        explain(column, input, sound, signal),
      );
    }
    await showNBest(column, input, signal);
  },
};

/** A file, or what the microphone hears if it can be made such a file. */
function soundInput(onValue, targets) {
  const label = "Choose a recording, or drop it here";
  const input = fileInput(label, "audio/*", onValue);
  const isPossible = navigator.mediaDevices && window.MediaRecorder;
  if (isPossible && targets.every(({ model }) => model.sample_rate)) {
    input.root.append(recordButton(input.set));
  }
  return input;
}

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

async function explain(column, input, sound, signal) {
  const { target_tokens, source_tokens, attention } = await predict(
    column.target,
    "explain",
    input,
    signal,
  );
  const pieces = wordsOf(target_tokens, false); // letters, as a rule
  const words = pieces.filter((word) => !word.control);
  const times = source_tokens.filter((time) => time).map(Number);
  const step = times.length > 1 ? times[1] - times[0] : 0;
  const duration = sound
    ? sound.samples.length / sound.rate
    : times.at(-1) + step;
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
  const end = Math.max(duration, times.at(-1) + step);
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

/** A row for each word, shaded where it was heard; `only` one, or all. */
function drawAlignment(canvas, rows, times, end, only) {
  const width = 800;
  const height = 8;
  canvas.width = width;
  canvas.height = height * rows.length;
  const context = canvas.getContext("2d");
  context.fillStyle = MARK;
  rows.forEach((row, number) => {
    const most = Math.max(...row) || 1;
    row.forEach((weight, place) => {
      const from = (width * times[place]) / end;
      const to = (width * (times[place + 1] ?? end)) / end;
      const isPale = only !== null && only !== number;
      context.globalAlpha = (weight / most) * (isPale ? 0.2 : 1);
      context.fillRect(from, number * height, to - from, height - 1);
    });
  });
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
