// Marks the buttons of the page that a user can press with the attribute `data-sweep`, and returns
// them, the open dialogs and menus, and the state of the page: its lines, and the states and
// icons of its buttons. Buttons behind an open dialog or menu are left out, and tooltips do not count.
() => {
  const BUTTONS = "button, summary, a:not([href]), [data-component-type=button], [role=button], [role=tab], [role=switch], [role=radio], [role=checkbox], [role=combobox], [role^=menuitem], [role=option], label:has(input[type=radio], input[type=checkbox])";
  const LAYERS = "[role=dialog], [role=alertdialog], [role=menu], [role=listbox]";
  const STATES = ["aria-expanded", "aria-selected", "aria-checked", "aria-pressed", "aria-disabled", "data-state", "disabled", "open"];
  const shown = (element) => element.checkVisibility({ checkVisibilityCSS: true, checkOpacity: true }) && element.getClientRects().length > 0;
  const tidy = (text) => (text ?? "").replace(/\s+/g, " ").trim();
  const ignored = (element) => element.closest("[data-assistant-ui=true], [role=tooltip], [data-radix-popper-content-wrapper]:has(> * > [role=tooltip])");
  // A label is pressed in place of its input, which may be hidden.
  const enabled = (element) => !element.matches(":disabled, label:has(:disabled), [role=option] label") && !element.closest("[aria-disabled=true], [inert], [aria-hidden=true]");
  const named = (element) => (element.getAttribute("aria-labelledby") ?? "").split(" ").map((id) => document.getElementById(id)?.textContent).join(" ");
  const label = (element) => tidy(element.getAttribute("aria-label") || element.innerText || named(element) || element.title || element.placeholder).slice(0, 80);

  const layers = [...document.querySelectorAll(LAYERS)].filter((element) => shown(element) && !ignored(element) && enabled(element));
  const title = (layer) => `${layer.getAttribute("role")} ${tidy(layer.getAttribute("aria-label") || (layer.getAttribute("role").endsWith("dialog") && (named(layer) || layer.querySelector("h1, h2, h3, h4")?.textContent)) || "")}`.trim().slice(0, 80);

  for (const element of document.querySelectorAll("[data-sweep]")) element.removeAttribute("data-sweep");
  const buttons = [];
  for (const element of document.querySelectorAll(BUTTONS)) {
    if (!shown(element) || !enabled(element) || ignored(element)) continue;
    const layer = layers.filter((layer) => layer.contains(element)).at(-1);
    const key = [element.getAttribute("role") ?? element.tagName.toLowerCase(), label(element), element.dataset.componentId ?? ""].join(" | ");
    element.setAttribute("data-sweep", String(buttons.length));
    const chosen = ["aria-selected", "aria-checked"].some((name) => element.getAttribute(name) === "true") || element.querySelector("input[type=radio]:checked") !== null;
    buttons.push({ key, layer: layer ? title(layer) : "", aside: !layer && element.closest("aside") !== null, chosen });
  }

  const lines = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT, (node) => {
    if (node.nodeType === Node.TEXT_NODE) return NodeFilter.FILTER_ACCEPT;
    if (["SCRIPT", "STYLE", "NOSCRIPT"].includes(node.tagName) || ignored(node)) return NodeFilter.FILTER_REJECT;
    return NodeFilter.FILTER_ACCEPT;
  });
  for (let node = walker.currentNode; node; node = walker.nextNode()) {
    if (node.nodeType === Node.ELEMENT_NODE) {
      if (["INPUT", "TEXTAREA"].includes(node.tagName) && node.value && shown(node)) lines.push(node.value);
      continue;
    }
    if (tidy(node.textContent) && shown(node.parentElement)) lines.push(tidy(node.textContent));
  }
  const states = [...document.querySelectorAll(BUTTONS)].filter((element) => shown(element) && !ignored(element)).map((element) =>
    [label(element), ...STATES.map((name) => element.getAttribute(name)), element.checked ?? element.querySelector("input")?.checked, ...[...element.querySelectorAll("path")].map((path) => path.getAttribute("d"))].join(" "));
  const busy = [...document.querySelectorAll("[class*=spin-spinning], [aria-busy=true]")].filter(shown).length;
  return { buttons, layers: layers.map(title), lines, states, busy, copied: globalThis.copiedTexts ?? [] };
}
