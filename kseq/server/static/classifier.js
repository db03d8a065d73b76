// Anything in, a label out, and what the model attended to.

import { add } from "./column.js";
import { element, foreign, percent } from "./elements.js";
import { sum, wordsOf } from "./pieces.js";
import { wordLine } from "./word_line.js";

const NAMES_SOMETHING = /[\p{L}\p{N}]/u;

export const view = {
  template: "classifier",
  shows: "its label",

  start(column) {
    column.part("document-section").hidden = !column.has("explain");
  },

  async answer(column, value, signal) {
    const { input } = column.kind;
    const request = await input.request(value, column.target);
    signal.throwIfAborted();
    const found = await column.predict("serving_default", request, signal);
    column.part("label").textContent = found.label;
    column.part("bars").replaceChildren(...bars(found));
    column.show(found.truncated);
    if (!column.has("explain")) return;
    const host = column.part("document");
    await add(host, signal, async () => {
      const explained = await column.predict("explain", request, signal);
      column.part("note").replaceChildren();
      const isText = "sentences" in explained;
      column.part("legend").hidden = !isText;
      if (isText) {
        host.replaceChildren(...sentences(explained, column.part("note")));
      } else {
        const media = column.part("media");
        await input.showAttention(media, value, explained, column.target);
        host.replaceChildren();
      }
    });
  },
};

function bars({ label, labels, probabilities }) {
  return labels.map((name, place) => {
    const className = name === label ? "best" : "";
    const number = element("td", {}, percent(probabilities[place]));
    number.className = "bar";
    number.style.setProperty("--weight", probabilities[place].toFixed(4));
    const th = foreign("th", name, { scope: "row" });
    return element("tr", { className }, th, number);
  });
}

/** A list item for each sentence, its words shaded by their shares. */
function sentences(explained, note) {
  const rows = explained.words
    .map((pieces, place) => ({
      weight: explained.sentence_weights[place],
      words: wordsOf(pieces).map((word) => ({
        ...word,
        weight: sum(word.places.map((at) => explained.word_weights[place][at])),
      })),
    }))
    .filter(({ words }) => words.length);
  const most = largestShare(rows);
  return rows.map((row) => sentence(row, most, note));
}

function sentence({ weight, words }, most, note) {
  const text = foreign("p", "", { className: "sentence" });
  const shown = wordLine(text, words, (number) => {
    if (number === null) note.replaceChildren();
    else note.replaceChildren(...shareOf(words[number], weight));
  });
  shown.forEach((word, number) => {
    const share = (weight * words[number].weight) / most;
    word.style.setProperty("--weight", Math.min(share, 1).toFixed(4));
    word.classList.toggle("lit", share >= 0.1);
  });
  const share = element("span", { className: "share" }, percent(weight));
  share.style.setProperty("--weight", weight.toFixed(4));
  return element("li", {}, share, text);
}

/** The largest share of a word: a full stop, which can get more, is none. */
function largestShare(rows) {
  const words = rows.flatMap(({ weight, words }) =>
    words.map((word) => [weight * word.weight, word.text]),
  );
  const named = words.filter(([, text]) => NAMES_SOMETHING.test(text));
  const shares = (named.length ? named : words).map(([share]) => share);
  return shares.reduce((one, other) => Math.max(one, other), 0) || 1;
}

function shareOf(word, weight) {
  return [
    foreign("bdi", word.text.trim() || "␣"),
    `: ${percent(word.weight)} of its sentence, `,
    `${percent(weight * word.weight)} of the text`,
  ];
}
