// MLflow's page shows HTML artifacts in a sandboxed frame with a blob: URL. Such a frame inherits
// the page's policy, which blocks inline scripts. This script loads preview.html instead, which is
// served with a policy of its own, and sends it the artifact.
(() => {
  "use strict";
  const setAttribute = HTMLIFrameElement.prototype.setAttribute;
  // The latest source of each frame, and the HTML that the frame shows, with the nonce of its
  // document. The previous report runs in the frame until the next one has loaded. It does not know
  // the nonce, so it cannot request the next report's HTML.
  const sources = new WeakMap();
  const contents = new WeakMap();

  async function load(frame, source) {
    const blob = await fetch(source).then((response) => response.blob(), () => null);
    const isHtml = blob !== null && blob.type.split(";")[0] === "text/html";
    const html = isHtml ? await blob.text() : null;
    if (sources.get(frame) !== source) return;
    if (html === null) {
      contents.delete(frame);
      setAttribute.call(frame, "src", source);
    } else if (contents.get(frame)?.html !== html) {
      // The page creates a new URL on each render. Unchanged content is not loaded again.
      const nonce = crypto.getRandomValues(new Uint32Array(4)).join("-");
      contents.set(frame, { html, nonce });
      setAttribute.call(frame, "src", `static-files/preview.html?${nonce}`);
    }
  }

  HTMLIFrameElement.prototype.setAttribute = function (name, value) {
    if (name !== "src") return setAttribute.call(this, name, value);
    sources.set(this, String(value));
    if (String(value).startsWith("blob:")) return void load(this, String(value));
    contents.delete(this);
    setAttribute.call(this, name, value);
  };

  addEventListener("message", (event) => {
    for (const frame of document.getElementsByTagName("iframe")) {
      const content = contents.get(frame);
      if (frame.contentWindow === event.source && content && event.data === `preview-ready?${content.nonce}`) {
        // A sandboxed frame has an opaque origin, which cannot be a target.
        event.source.postMessage(content.html, "*");
      }
    }
  });
})();
