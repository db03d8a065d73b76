// A file that is chosen or dropped.

import { fromTemplate, part } from "./elements.js";

/**
 * An input of {file, bytes}, see columns.js.
 *
 * label: says what to choose; accept: types, as of an input element.
 */
export function fileInput(label, accept, onValue) {
  const root = fromTemplate("file-input");
  const field = root.querySelector("input");
  part(root, "label").textContent = label;
  field.accept = accept;
  const shown = part(root, "name");
  let newest = null;
  // The field itself shows the name of what was chosen there.
  const read = async (file, name = "") => {
    if (!file) return;
    newest = file;
    shown.textContent = name;
    const bytes = await file.arrayBuffer().catch(() => null);
    if (file !== newest) return;
    if (bytes) onValue({ file, bytes: new Uint8Array(bytes) });
    else shown.textContent = "This file cannot be read.";
  };
  field.addEventListener("change", () => read(field.files[0]));
  root.addEventListener("dragover", (event) => {
    event.preventDefault();
    root.classList.add("over");
  });
  root.addEventListener("dragleave", () => root.classList.remove("over"));
  root.addEventListener("drop", (event) => {
    event.preventDefault();
    root.classList.remove("over");
    const [file] = event.dataTransfer.files;
    field.value = "";
    read(file, file?.name);
  });
  return {
    root,
    set(value) {
      field.value = "";
      newest = value.file;
      shown.textContent = newest.name;
      onValue(value);
    },
  };
}

/** Bytes as a server takes them in JSON. */
export function base64(bytes) {
  const blocks = [];
  for (let start = 0; start < bytes.length; start += 0x8000) {
    const block = bytes.subarray(start, start + 0x8000);
    blocks.push(String.fromCharCode(...block));
  }
  return { b64: btoa(blocks.join("")) };
}
