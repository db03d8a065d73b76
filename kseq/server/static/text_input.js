// A text that is answered while it is typed.

import { fromTemplate } from "./elements.js";

const PAUSE = 250; // milliseconds without a key, until the text is sent

/** An input, see columns.js. */
export const input = {
  isText: true,
  ask: "Type a text",
  open: textInput,
  request: async (text) => ({ text }),
};

function textInput(onValue) {
  const root = fromTemplate("text-input");
  const area = root.querySelector("textarea");
  let waiting = 0;
  const send = () => {
    clearTimeout(waiting);
    waiting = 0;
    onValue(area.value.trim() ? area.value : null);
  };
  area.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(send, PAUSE);
  });
  // Whoever leaves the field may change the model next.
  area.addEventListener("change", () => waiting && send());
  return {
    root,
    set(text) {
      area.value = text;
      area.dir = "auto"; // again: Chromium only looks when a key is pressed
      send();
    },
  };
}
