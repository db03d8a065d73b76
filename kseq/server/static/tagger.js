// A sentence in, and a tag below each of its words.

import { add } from "./column.js";
import { foreign, percent } from "./elements.js";
import { input } from "./text_input.js";
import { wordLine } from "./word_line.js";

const OUTSIDE = "O"; // of all spans, in the CoNLL formats
const NAMED = 3; // tags that are named for a word

export const view = {
  template: "tagger",
  shows: "the tags of its words",
  input,

  start() {},

  async answer(column, text, signal) {
    const request = { text };
    const found = await column.predict("serving_default", request, signal);
    const words = taggedWords(found);
    show(column, words);
    column.show(found.truncated);
    if (!column.has("distribution")) return;
    await add(column.part("note"), signal, async () => {
      const { tagset, probabilities } = await column.predict(
        "distribution",
        request,
        signal,
      );
      words.forEach((word, place) => {
        word.shares = tagset
          .map((tag, number) => ({ tag, share: probabilities[place][number] }))
          .sort((one, other) => other.share - one.share)
          .slice(0, NAMED);
      });
    });
  },
};

/** The words of an answer, without what pads it. */
function taggedWords({ words, tags, probabilities }) {
  return words
    .map((word, place) => ({
      text: ` ${word}`,
      tag: tags[place],
      shares: [{ tag: tags[place], share: probabilities[place] }],
    }))
    .filter(({ tag }) => tag);
}

function show(column, words) {
  const note = column.part("note");
  note.replaceChildren();
  const shown = wordLine(column.part("words"), words, (number) => {
    if (number === null) note.replaceChildren();
    else note.replaceChildren(...sharesOf(words[number]));
  });
  shown.forEach((word, number) => {
    const { tag, shares } = words[number];
    word.style.setProperty("--weight", shares[0].share.toFixed(4));
    word.classList.toggle("lit", tag !== OUTSIDE);
    word.append(" ", foreign("span", tag, { className: "tag" }));
  });
}

function sharesOf({ text, shares }) {
  const parts = shares.flatMap(({ tag, share }, place) => [
    place ? ", " : ": ",
    foreign("bdi", tag),
    ` ${percent(share)}`,
  ]);
  return [foreign("bdi", text.trim()), ...parts];
}
