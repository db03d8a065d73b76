// A recording that is chosen, dropped or made, and what a model heard in it.

import { element, percent } from "./elements.js";
import { base64, fileInput } from "./file_input.js";
import { recordButton } from "./record_button.js";
import { decodeSound, drawSpectrogram, wavOf, wavRate } from "./sound.js";

const MARK = "rgb(255 140 0)";
const USUAL_RATE = 16000; // of the picture, where that of the model is unknown

/** An input of {file, bytes}, see columns.js. */
export const input = {
  ask: "Choose a recording",
  open: soundInput,

  async request({ bytes }, target) {
    return (await decoded(bytes, target)).request;
  },

  /** The spectrogram, and below it the weights of one answer. */
  async showAttention(host, { bytes }, explained, target) {
    const { sound } = await decoded(bytes, target);
    const { source_tokens, attention } = explained;
    const { times, end } = timesOf(source_tokens, sound);
    const canvases = sound ? [element("canvas", { className: "sound" })] : [];
    for (const canvas of canvases) drawSpectrogram(canvas, sound);
    const alignment = element("canvas", { className: "sound" });
    drawAlignment(alignment, attention, times, end, null);
    const [weights] = attention;
    const peak = weights.indexOf(Math.max(...weights));
    const note = `Most of all at ${times[peak].toFixed(2)} s (${percent(
      weights[peak],
    )})`;
    host.replaceChildren(
      element("div", { className: "speech" }, ...canvases, alignment),
      element("p", {}, note),
    );
  },
};

/** The samples of a recording, null if they are unknown, and the request. */
export async function decoded(bytes, target) {
  const rate = target.model.sample_rate;
  const sound = await decodeSound(bytes, rate ?? USUAL_RATE).catch(() => null);
  const isReady = !rate || !sound || wavRate(bytes) === rate;
  return { sound, request: { audio: base64(isReady ? bytes : wavOf(sound)) } };
}

/** The times of what was attended to, their distance, and the end. */
export function timesOf(names, sound) {
  const times = names.filter((time) => time).map(Number);
  const step = times.length > 1 ? times[1] - times[0] : 0;
  const last = times.at(-1) + step;
  const duration = sound ? sound.samples.length / sound.rate : last;
  return { times, step, end: Math.max(duration, last) };
}

/** A file, or what the microphone hears if it can be made such a file. */
function soundInput(onValue, targets) {
  const label = "Choose a recording, or drop it here";
  const input = fileInput(label, "audio/*", onValue);
  const isPossible = navigator.mediaDevices && window.MediaRecorder;
  if (!isPossible || !targets.every(({ model }) => model.sample_rate)) {
    return input;
  }
  const { root, close } = recordButton(input.set);
  input.root.append(root);
  return { ...input, close };
}

/** A row for each word, shaded where it was heard; `only` one, or all. */
export function drawAlignment(canvas, rows, times, end, only) {
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
