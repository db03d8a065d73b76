// Words of an answer and of its source that light up together.

import { foreign, percent } from "./elements.js";
import { heatMap } from "./heat_map.js";
import { wordsOf, wordWeights } from "./pieces.js";
import { wordLine } from "./word_line.js";

const NAMED = 3; // words that are named with their weights
const LEAST = 0.05; // weight of a word that is named

/**
 * Shows what `explain` returned.
 *
 * hosts: elements {answer, source, note, table}.
 */
export function showLinkedWords(hosts, explained) {
  const answers = wordsOf(explained.target_tokens);
  const sources = wordsOf(explained.source_tokens);
  const weights = wordWeights(explained.attention, answers, sources);
  const spoken = answers.filter((word) => !word.control);
  let shown = null;
  const light = (side, number) => {
    const named = [answers, sources][side === "answer" ? 0 : 1];
    const across = side === "answer" ? sources : answers;
    const toward = across.map((_, other) =>
      side === "answer" ? weights[number][other] : weights[other][number],
    );
    dim(shown);
    shown[side][number]?.classList.add("chosen");
    const others = shown[side === "answer" ? "source" : "answer"];
    others.forEach((word, other) => lightWord(word, toward[other]));
    tell(hosts.note, named[number], across, toward);
  };
  const choose = (side) => (number) => {
    if (number === null) {
      dim(shown);
      hosts.note.replaceChildren();
    } else {
      light(side, number);
    }
  };
  shown = {
    answer: wordLine(hosts.answer, spoken, choose("answer")),
    source: wordLine(hosts.source, sources, choose("source")),
  };
  const table = heatMap(answers, sources, weights, (cell) => {
    choose("answer")(cell && cell[0]);
    if (cell) shown.source[cell[1]].classList.add("chosen");
  });
  hosts.table.replaceChildren(table);
}

/** The text of pieces, with one space for any white space. */
export function spelled(pieces) {
  const words = wordsOf(pieces).filter((word) => !word.control);
  return oneSpaced(words.map((word) => word.text).join(""));
}

/** A text with one space for any white space. */
export function oneSpaced(text) {
  return text.replace(/\s+/g, " ").trim();
}

/** Shades a word by its weight; `lit` if it is large enough. */
function lightWord(word, weight) {
  word.style.setProperty("--weight", weight.toFixed(4));
  word.classList.toggle("lit", weight >= LEAST);
}

/** Says in words which others a word belongs to. */
function tell(note, word, others, weights) {
  const strongest = others
    .map((other, place) => [weights[place], other])
    .filter(([weight]) => weight >= LEAST)
    .sort(([one], [other]) => other - one)
    .slice(0, NAMED);
  const parts = strongest.flatMap(([weight, other], place) => [
    place ? ", " : "",
    name(other),
    ` ${percent(weight)}`,
  ]);
  if (!parts.length) parts.push("no word in particular");
  note.replaceChildren(name(word), ": ", ...parts);
}

function name({ text, control }) {
  const properties = control ? { className: "control" } : {};
  return foreign("bdi", text.trim() || "␣", properties);
}

function dim({ answer, source }) {
  for (const word of [...answer, ...source]) {
    word.classList.remove("chosen", "lit");
    word.style.removeProperty("--weight");
  }
}
