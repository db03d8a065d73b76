// Text in, text out: translators, and models that find an answer.

import { predictWords } from "./client.js";
import { add } from "./column.js";
import { oneSpaced, showLinkedWords, spelled } from "./linked_words.js";
import { showNBest, startNBest } from "./n_best.js";
import { input } from "./text_input.js";

// More than a line, or a sentence after another. In Chinese and Japanese there
// is no space between them.
const SEVERAL = [
  /\n\s*\S/,
  /[\p{STerm}…]["'”’»)\]」』）]*\s+\S/u,
  /[。！？．｡][”’」』）]*[\p{Ps}\p{Pi}\p{L}\p{N}]/u,
];

export const view = {
  template: "translator",
  shows: "the answer",
  input,

  start: startNBest,

  async answer(column, text, signal) {
    const request = { text };
    const answer = column.part("answer");
    // Sentences are answered one by one where the model can do that.
    const areSeveral = SEVERAL.some((sign) => sign.test(text.trim()));
    const isOne = !(column.has("paragraphs") && areSeveral);
    column.part("attention").hidden = !(isOne && column.has("explain"));
    column.part("n-best").hidden = !(isOne && column.has("n_best"));
    const best = await predictWords(
      column.target,
      isOne ? "serving_default" : "paragraphs",
      request,
      signal,
      (words) => {
        answer.textContent = words;
        column.show(false);
      },
    );
    answer.textContent = best.text || "(an empty answer)";
    answer.classList.toggle("lines", !isOne);
    column.part("spoken").textContent = best.text;
    column.part("note").replaceChildren();
    column.show(best.truncated);
    if (!isOne) return;
    if (column.has("explain")) await explain(column, request, best.text, signal);
    await showNBest(column, request, signal);
  },
};

async function explain(column, request, text, signal) {
  const table = column.part("heat-map");
  await add(table, signal, async () => {
    const explained = await column.predict("explain", request, signal);
    // A search that draws its answers draws a new one.
    const isOther = spelled(explained.target_tokens) !== oneSpaced(text);
    const answer = column.part("answer");
    const hosts = {
      answer: isOther && text ? other(answer) : answer,
      source: column.part("source"),
      note: column.part("note"),
      table,
    };
    showLinkedWords(hosts, explained);
    if (!text) answer.textContent = "(an empty answer)";
  });
}

/** A line for the answer that was drawn for `explain`. */
function other(answer) {
  const line = document.createElement("span");
  line.className = "other";
  answer.append(document.createElement("br"), "Also: ", line);
  return line;
}
