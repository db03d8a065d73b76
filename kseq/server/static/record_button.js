// A button that records the microphone.

import { element } from "./elements.js";

/** Calls onValue with {file, bytes} of each recording. */
export function recordButton(onValue) {
  const button = element("button", { type: "button" }, "Record");
  const message = element("p", { className: "message", role: "status" });
  let recorder = null;
  button.addEventListener("click", async () => {
    if (recorder?.state === "recording") {
      recorder.stop();
      return;
    }
    try {
      const stream = await navigator.mediaDevices.getUserMedia({ audio: true });
      recorder = record(stream, onValue);
    } catch {
      message.textContent = "Microphone access is blocked by the browser.";
      return;
    }
    message.textContent = "Recording…";
    button.textContent = "Stop";
    recorder.addEventListener("stop", () => {
      message.textContent = "";
      button.textContent = "Record";
    });
  });
  return element("div", { className: "record" }, button, message);
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
