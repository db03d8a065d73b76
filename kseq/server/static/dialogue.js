// Turns in, the next turn out, and how much each turn was read.

import { predict, predictWords } from "./client.js";
import { element, foreign, fromTemplate, part, percent } from "./elements.js";
import { heatMap } from "./heat_map.js";
import { sum, wordsOf, wordWeights } from "./pieces.js";
import { addSampling } from "./sampling.js";

const END = "</s>";
const RESET = "/reset"; // as in `kseq chat`
const REMEMBERED = 100; // turns; a model reads fewer

export const view = {
  open({ host, targets: [target] }) {
    const conversation = new Conversation(target);
    host.replaceChildren(conversation.root);
    return () => conversation.abort.abort();
  },
};

class Conversation {
  constructor(target) {
    this.target = target;
    this.root = fromTemplate("dialogue");
    this.area = this.root.querySelector("textarea");
    this.list = part(this.root, "turns");
    this.abort = new AbortController();
    this.drawn = addSampling(part(this.root, "sampling"), target.model);
    part(this.root, "send").addEventListener("click", () => this.send());
    part(this.root, "restart").addEventListener("click", () => this.restart());
    this.area.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      this.send();
    });
    this.restart();
  }

  restart() {
    this.abort.abort();
    this.list.removeAttribute("aria-busy");
    this.turns = [];
    this.list.replaceChildren();
    part(this.root, "attention").hidden = true;
    this.say("Say something, and the model answers.");
    this.isBusy = false;
  }

  say(message, state = "answered") {
    this.root.dataset.state = state;
    part(this.root, "message").textContent = message;
  }

  async send() {
    const text = this.area.value.trim();
    if (text === RESET) {
      this.area.value = "";
      this.restart();
    }
    if (!text || text === RESET || this.isBusy) return;
    this.abort = new AbortController();
    const { signal } = this.abort;
    this.isBusy = true;
    const turns = [...this.turns, text].slice(-REMEMBERED);
    this.say("Waiting for the answer…", "waiting");
    const shown = []; // the two turns
    const write = (words) => {
      if (!shown.length) {
        shown.push(this.show("You", text), this.show("Model", ""));
      }
      shown[1].querySelector(".said").textContent = words;
    };
    this.list.setAttribute("aria-busy", "true");
    try {
      const [signature, draws] = this.drawn();
      const input = { turns, ...draws };
      const { target } = this;
      const best = await predictWords(target, signature, input, signal, write);
      // What was typed meanwhile is kept.
      if (this.area.value.trim() === text) this.area.value = "";
      this.turns = [...turns, best.text];
      this.say(
        best.truncated ? "A turn was too long; its end was not read." : "",
      );
      write(best.text || "(an empty answer)");
      this.list.removeAttribute("aria-busy");
      if (best.attention) {
        this.explain(best);
      } else if (target.model.signatures.includes("explain")) {
        this.explain(await predict(target, "explain", { turns }, signal));
      }
    } catch (error) {
      if (signal.aborted) return;
      if (this.list.hasAttribute("aria-busy")) {
        shown.forEach((turn) => turn.remove());
      }
      this.say(error.message, "failed");
    } finally {
      if (!signal.aborted) {
        this.list.removeAttribute("aria-busy");
        this.isBusy = false;
      }
    }
  }

  show(who, text) {
    if (this.list.children.length === REMEMBERED) {
      this.list.firstElementChild.remove();
    }
    const turn = element(
      "li",
      { className: who === "You" ? "you" : "model" },
      element("span", { className: "who" }, `${who}: `),
      foreign("span", text, { className: "said" }),
      element("span", { className: "read" }),
    );
    this.list.append(turn);
    return turn;
  }

  /**
   * Says at each turn how much of the attention it got, if it was read, and
   * shows that of each word of the answer.
   */
  explain(found) {
    const answers = wordsOf(found.target_tokens);
    const sources = wordsOf(found.source_tokens);
    const ofWords = wordWeights(found.attention, answers, sources);
    part(this.root, "heat-map").replaceChildren(
      heatMap(answers, sources, ofWords, () => {}),
    );
    part(this.root, "attention").hidden = false;
    const weights = turnWeights(found);
    const count = this.list.children.length - 1;
    const first = count - weights.length;
    [...this.list.children].forEach((turn, place) => {
      const weight = weights[place - first];
      const isAnswer = place === count;
      turn.classList.toggle("unread", weight === undefined && !isAnswer);
      const read = weight === undefined ? "not read" : `read: ${percent(weight)}`;
      turn.querySelector(".read").textContent = isAnswer ? "" : read;
    });
  }
}

/** The share of the attention that each turn got, over the whole answer. */
function turnWeights({ source_tokens, target_tokens, attention }) {
  const rows = attention.filter((_, row) => target_tokens[row]);
  const turns = [0];
  source_tokens.forEach((piece, place) => {
    turns[turns.length - 1] += sum(rows.map((row) => row[place]));
    if (piece === END) turns.push(0);
  });
  return turns.slice(0, -1).map((weight) => weight / (rows.length || 1));
}
