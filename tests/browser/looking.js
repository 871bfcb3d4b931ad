// Returns the visible content of the page: an array of lines, the number of spinners, and the links
// to features that are not supported.
() => {
  const shown = (element) => element.checkVisibility({ checkVisibilityCSS: true, checkOpacity: true });
  const text = (root, skip) => {
    const lines = [];
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT, (node) => {
      if (node.nodeType === Node.TEXT_NODE) return NodeFilter.FILTER_ACCEPT;
      if (["SCRIPT", "STYLE", "NOSCRIPT"].includes(node.tagName) || skip(node)) return NodeFilter.FILTER_REJECT;
      return NodeFilter.FILTER_ACCEPT;
    });
    for (let node = walker.currentNode; node; node = walker.nextNode()) {
      if (node.nodeType === Node.ELEMENT_NODE) {
        if (["INPUT", "TEXTAREA"].includes(node.tagName) && !["checkbox", "color", "radio"].includes(node.type) && node.value && shown(node)) {
          lines.push(node.value);
        }
        continue;
      }
      const line = node.textContent.replace(/\s+/g, " ").trim();
      if (line && shown(node.parentElement)) lines.push(line);
    }
    return lines;
  };
  // The grid has its rows in arbitrary order, and each row in up to three parts.
  const rows = (grid) => {
    const found = new Map();
    for (const row of grid.querySelectorAll(".ag-row[row-index]")) {
      const index = Number(row.getAttribute("row-index"));
      const cells = [...row.querySelectorAll(".ag-cell")].map((cell) => [cell.getBoundingClientRect().left, text(cell, () => false).join(" ")]);
      found.set(index, [...(found.get(index) ?? []), ...cells]);
    }
    return [...found].sort((a, b) => a[0] - b[0]).map(([, cells]) =>
      cells.sort((a, b) => a[0] - b[0]).map(([, line]) => line).filter((line) => line).join(" | "));
  };
  const grids = [...document.querySelectorAll(".ag-root-wrapper")].filter(shown);
  const grid_body = (element) => element.classList?.contains("ag-body") || element.classList?.contains("ag-body-viewport");
  const assistant = (element) => element.dataset?.assistantUi === "true";
  // The charts' library measures labels in this element, which is far outside of the viewport and
  // keeps the last label.
  const measuring = (element) => element.id === "recharts_measurement_span";
  const lines = text(document.body, (element) => grid_body(element) || assistant(element) || measuring(element));
  const turning = [...document.querySelectorAll("[class*=spin-spinning], [aria-busy=true]")].filter(shown).length;
  const notBuilt = /^#\/(gateway|account|admin|settings\/llm-connections|experiments\/\d+\/(judges|playground))/;
  const nowhere = [...document.querySelectorAll("a[href]")].filter(shown).map((link) => link.getAttribute("href")).filter((address) => notBuilt.test(address));
  return { lines: [...lines, ...grids.flatMap(rows)], turning: turning + lines.filter((line) => /^Loading/.test(line)).length, nowhere };
}
