// A button that records the microphone.

import { element } from "./elements.js";

/**
 * Calls onValue with {file, bytes} of each recording.
 *
 * Returns {root, close()}, which ends a recording and drops it.
 */
export function recordButton(onValue) {
  const button = element("button", { type: "button" }, "Record");
  const message = element("p", { className: "message", role: "status" });
  let recorder = null;
  let isAsking = false;
  let isClosed = false;
  button.addEventListener("click", async () => {
    if (isAsking) return;
    if (recorder?.state === "recording") {
      recorder.stop();
      return;
    }
    isAsking = true;
    try {
      const stream = await navigator.mediaDevices.getUserMedia({ audio: true });
      recorder = record(stream, (value) => isClosed || onValue(value));
    } catch {
      message.textContent = "Microphone access is blocked by the browser.";
      return;
    } finally {
      isAsking = false;
    }
    message.textContent = "Recording…";
    button.textContent = "Stop";
    recorder.addEventListener("stop", () => {
      message.textContent = "";
      button.textContent = "Record";
    });
    if (isClosed) recorder.stop();
  });
  const close = () => {
    isClosed = true;
    if (recorder?.state === "recording") recorder.stop();
  };
  const root = element("div", { className: "record" }, button, message);
  return { root, close };
}

function record(stream, onValue) {
  const recorder = new MediaRecorder(stream);
  const blocks = [];
  recorder.addEventListener("dataavailable", ({ data }) => blocks.push(data));
  recorder.addEventListener("stop", async () => {
    for (const track of stream.getTracks()) track.stop();
    const file = new File(blocks, "Recording", { type: recorder.mimeType });
    onValue({ file, bytes: new Uint8Array(await file.arrayBuffer()) });
  });
  recorder.start();
  return recorder;
}
