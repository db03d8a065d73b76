// A line of words, each of which can be pointed at or focused.

import { element } from "./elements.js";

/**
 * Shows words in a line that is one stop of the Tab key; arrows go from word to
 * word.
 *
 * words: list of {text, control}.
 * onChoose: called with the number of a word, or null.
 * Returns the elements of the words.
 */
export function wordLine(host, words, onChoose) {
  const shown = words.map(({ text, control }, number) =>
    element(
      "span",
      {
        className: control ? "word control" : "word",
        tabIndex: number === 0 ? 0 : -1,
      },
      text.trim() || "␣",
    ),
  );
  host.replaceChildren(
    ...shown.flatMap((word, number) => {
      const space = /^\s/.test(words[number].text) || words[number].control;
      return space && number ? [" ", word] : [word];
    }),
  );
  shown.forEach((word, number) => {
    word.addEventListener("mouseenter", () => onChoose(number));
    word.addEventListener("mouseleave", () => onChoose(null));
    word.addEventListener("focus", () => onChoose(number));
    word.addEventListener("blur", () => onChoose(null));
    word.addEventListener("keydown", (event) => move(event, shown, number));
  });
  return shown;
}

function move(event, shown, number) {
  const isLeftward = getComputedStyle(shown[number]).direction === "rtl";
  const step = isLeftward ? -1 : 1;
  const places = {
    ArrowRight: number + step,
    ArrowLeft: number - step,
    Home: 0,
    End: shown.length - 1,
  };
  const next = shown[places[event.key]];
  if (!next) return;
  event.preventDefault();
  shown[number].tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
}
