// Which model is shown, and the link that keeps it.

import { listModels } from "./client.js";
import { openColumns } from "./columns.js";
import { element } from "./elements.js";

const RETRY = 3000; // milliseconds until the models are asked for again

const selects = Object.fromEntries(
  ["model", "version", "compare"].map((id) => [
    id,
    document.getElementById(id),
  ]),
);
const message = document.getElementById("message");
const host = document.getElementById("view");

// How models are shown, by the names of the modules that do it.
const kinds = new Map();
let models = [];
let choice = { model: "", version: null, compare: null, value: null };
let close = () => {};

async function start() {
  try {
    models = await listModels();
    await Promise.all(models.map(loadKind));
  } catch (error) {
    message.textContent = error.message;
    setTimeout(start, RETRY);
    return;
  }
  if (!models.length) {
    message.textContent = "No model is ready yet. The page keeps looking.";
    setTimeout(start, RETRY);
    return;
  }
  readLink();
  window.addEventListener("hashchange", readLink);
  selects.model.addEventListener("change", chooseModel);
  selects.version.addEventListener("change", chooseOther);
  selects.compare.addEventListener("change", chooseOther);
}

function readLink() {
  const link = new URLSearchParams(location.hash.slice(1));
  const named = models.find(({ name }) => name === link.get("model"));
  message.textContent =
    link.has("model") && !named
      ? `The model of this link is not served here: ${link.get("model")}`
      : "";
  const model = named ?? models[0];
  choice = {
    model: model.name,
    version: versionOf(link.get("version")),
    compare: link.has("compare")
      ? {
          name: link.get("compare"),
          version: versionOf(link.get("compare-version")),
        }
      : null,
    value: link.get("text"),
  };
  open();
}

function writeLink() {
  const link = new URLSearchParams({ model: choice.model });
  if (choice.version !== null) link.set("version", choice.version);
  if (choice.compare) {
    link.set("compare", choice.compare.name);
    if (choice.compare.version !== null) {
      link.set("compare-version", choice.compare.version);
    }
  }
  if (typeof choice.value === "string") link.set("text", choice.value);
  history.replaceState(null, "", `#${link}`);
}

function chooseModel() {
  const before = kindOf(find(choice.model));
  choice.model = selects.model.value;
  choice.version = choice.compare = null;
  const isSame = kindOf(find(choice.model)) === before;
  if (!isSame && typeof choice.value !== "string") choice.value = null;
  message.textContent = "";
  open();
}

function chooseOther() {
  choice.version = versionOf(selects.version.value);
  const chosen = selects.compare.value;
  choice.compare = chosen ? JSON.parse(chosen) : null;
  open();
}

function open() {
  const model = find(choice.model);
  const kind = kindOf(model);
  fillSelects(model, kind);
  const targets = [targetOf(model.name, choice.version)];
  if (choice.compare) {
    targets.push(targetOf(choice.compare.name, choice.compare.version));
  }
  // A model of pictures does not use the text of a link.
  const isText = typeof choice.value === "string";
  if (isText !== Boolean((kind.input ?? kind).isText)) choice.value = null;
  close();
  document.title = `${model.name} - kseq`;
  const view = {
    host,
    targets,
    value: choice.value,
    onValue(value) {
      choice.value = value;
      writeLink();
    },
  };
  close = kind.open ? kind.open(view) : openColumns(kind, view);
  writeLink();
}

function fillSelects(model, kind) {
  fill(
    selects.model,
    models.map(({ name }) => [name, name]),
    model.name,
  );
  const numbers = model.versions.map((number) => [`${number}`, `${number}`]);
  const newest = ["", `newest (${model.versions[0]})`];
  const known = numbers.some(([number]) => number === `${choice.version}`);
  if (!known) choice.version = null;
  fill(selects.version, [newest, ...numbers], `${choice.version ?? ""}`);

  // A kind with its own view shows one model.
  const others = kind.open ? [] : comparable(model, kind);
  document.getElementById("comparison").hidden = !others.length;
  const chosen = choice.compare && JSON.stringify(choice.compare);
  const isKnown = others.some(([value]) => value === chosen);
  if (!isKnown) choice.compare = null;
  fill(selects.compare, [["", "none"], ...others], isKnown ? chosen : "");
}

/** What a model of a kind can be compared with: [value, label]. */
function comparable(model, kind) {
  return models
    .filter((other) => kindOf(other) === kind)
    .flatMap((other) =>
      other.versions
        .filter(() => other !== model || other.versions.length > 1)
        .map((version) => [
          JSON.stringify({ name: other.name, version }),
          `${other.name}, version ${version}`,
        ]),
    );
}

function fill(select, options, value) {
  select.replaceChildren(
    ...options.map(([value, label]) => element("option", { value }, label)),
  );
  select.value = value;
}

function find(name) {
  return models.find((model) => model.name === name);
}

/** Loads the modules that a model names: one shows it, one may read its input. */
async function loadKind({ view, input }) {
  const { view: kind } = await import(`./${view}.js`);
  const source = input ? await import(`./${input}.js`) : {};
  const key = `${view} ${input}`;
  if (!kinds.has(key)) kinds.set(key, { ...source, ...kind });
}

function kindOf({ view, input }) {
  return kinds.get(`${view} ${input}`);
}

function targetOf(name, version) {
  return { name, version, model: find(name) };
}

/** A version as the server names it: a string where a number is rounded. */
function versionOf(text) {
  if (!/^\d{1,19}$/.test(text ?? "")) return null;
  return Number.isSafeInteger(Number(text)) ? Number(text) : text;
}

start();
