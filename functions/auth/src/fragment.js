// Keeps the fragment of the URL (after the "#") while the browser is at an identity provider. The
// link to the provider would drop it, and the server never receives it. It stays in the storage of
// this tab, under a key that the link carries.
(() => {
  const PREFIX = "mlflow_fragment_";
  for (const link of document.querySelectorAll("a[data-provider]")) {
    link.addEventListener("click", () => {
      if (location.hash.length < 2) {
        return;
      }
      const bytes = crypto.getRandomValues(new Uint8Array(16));
      const key = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
      try {
        sessionStorage.setItem(PREFIX + key, location.hash);
      } catch {
        return; // Without storage, signing in leads to the page without the fragment.
      }
      const url = new URL(link.href);
      url.searchParams.set("fragment", key);
      link.href = url.href;
    });
  }
  const done = document.querySelector("a[data-fragment]");
  if (done) {
    let fragment = null;
    try {
      fragment = sessionStorage.getItem(PREFIX + done.dataset.fragment);
      sessionStorage.removeItem(PREFIX + done.dataset.fragment);
    } catch {
      // See above.
    }
    location.replace(done.getAttribute("href") + (fragment ?? ""));
  }
})();
