/* Search in pages opened from a folder.

The theme searches in a Web Worker, which browsers refuse to start from file:// addresses. There, and
only there, this runs the worker's script in a hidden frame instead. */
"use strict";

if (location.protocol === "file:") {
  class IFrameWorker extends EventTarget {
    constructor(url) {
      super();
      this.onmessage = null;
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      const answer = (data) => {
        const event = new MessageEvent("message", { data });
        this.dispatchEvent(event);
        if (this.onmessage) this.onmessage(event);
      };
      inside.postMessage = (data) => setTimeout(answer, 0, data);
      inside.importScripts = (...urls) =>
        urls.reduce((before, each) => before.then(() => load(inside.document, each)), Promise.resolve());
      this.ready = load(inside.document, String(url));
    }

    postMessage(data) {
      const inside = this.frame.contentWindow;
      this.ready.then(() => inside.dispatchEvent(new inside.MessageEvent("message", { data })));
    }

    terminate() {
      this.frame.remove();
    }
  }

  const load = (page, url) =>
    new Promise((resolve, reject) => {
      const script = page.createElement("script");
      script.src = url;
      script.onload = () => resolve();
      script.onerror = () => reject(new Error(`cannot load ${url}`));
      page.body.append(script);
    });

  window.IFrameWorker = window.Worker = IFrameWorker;
}
