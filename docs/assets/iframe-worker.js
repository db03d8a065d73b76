// From the disk (file://) a browser starts no worker, which the search needs:
// its script runs in a hidden frame instead.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      const page = frame.contentWindow;
      page.postMessage = (data) =>
        this.dispatchEvent(new MessageEvent("message", { data }));
      const script = page.document.createElement("script");
      this.started = new Promise((resolve) => {
        script.onload = () => resolve(page);
      });
      script.src = new URL(url, location);
      page.document.body.append(script);
    }

    postMessage(data) {
      this.started.then((page) =>
        page.dispatchEvent(new page.MessageEvent("message", { data })),
      );
    }
  };
}
