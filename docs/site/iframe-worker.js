// Search from a folder of files: browsers start no worker from file://, so a hidden frame does its
// work. Served over http the browser's own Worker stays.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const base = new URL(url, document.baseURI);
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.appendChild(frame);
      this.inside = frame.contentWindow;
      this.waiting = [];
      const load = (source) =>
        new Promise((done, failed) => {
          const script = this.inside.document.createElement("script");
          script.src = new URL(source, base).href;
          script.onload = done;
          script.onerror = failed;
          this.inside.document.body.appendChild(script);
        });
      this.inside.importScripts = (...sources) =>
        sources.reduce((before, source) => before.then(() => load(source)), Promise.resolve());
      this.inside.postMessage = (data) => this.tell(this, data);
      load(base.href).then(() => {
        const told = this.waiting;
        this.waiting = null;
        told.forEach((data) => this.postMessage(data));
      });
    }
    tell(listener, data) {
      const event = new MessageEvent("message", { data });
      listener.dispatchEvent(event);
      if (typeof listener.onmessage === "function" && listener === this) listener.onmessage(event);
    }
    postMessage(data) {
      if (this.waiting) this.waiting.push(data);
      else this.tell(this.inside, data);
    }
    terminate() {
      this.inside.frameElement.remove();
    }
  };
}
