"""Presses every button of a page, and every button of the dialogs and menus that open, and records
what happens.
"""

import json
import re
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from playwright.sync_api import Error, Page, Request, Response

from tests.browser.texts import plain

_SCRIPT = Path(__file__).with_name("sweep.js").read_text()
_IDLE_LOOKS, _BETWEEN_LOOKS_MS, _PATIENCE_SECONDS = 5, 70, 30
_CLICK_MS = 4_000
#: Maximum number of consecutive presses: a menu, an item that opens a dialog, a button of the
#: dialog.
_DEPTH = 3
#: Records what the page copies to the clipboard, instead of copying it.
RECORD_CLIPBOARD = """if (window === window.top) {
    window.copiedTexts = [];
    const clipboard = { writeText: async (text) => { window.copiedTexts.push(text) }, write: async () => { window.copiedTexts.push("(data)") }, readText: async () => "" };
    Object.defineProperty(navigator, "clipboard", { value: clipboard });
    document.execCommand = (command) => { window.copiedTexts.push(command === "copy" ? String(getSelection()) : command); return true };
}"""
#: Requests that change nothing although they are not GET requests.
_READING = re.compile(r".*/(search|search-.*|batchGetInfos|batchGetTraces|query.*|metrics.*|get-history.*|schedule/state|graphql|ui-telemetry|.*-metrics)$")


@dataclass
class Press:
    """The result of pressing one button, after those before it in the path."""

    path: list[str]
    #: Dialogs and menus that opened, and those that closed.
    opened: list[str] = field(default_factory=list)
    closed: list[str] = field(default_factory=list)
    #: Method, path and status of each request.
    requests: list[str] = field(default_factory=list)
    appeared: list[str] = field(default_factory=list)
    disappeared: list[str] = field(default_factory=list)
    #: Address of the page, if it changed, downloads, opened tabs, choosers of files, copied texts.
    others: list[str] = field(default_factory=list)
    #: Why the button could not be pressed.
    failure: str = ""
    #: The button was already in the state that it sets, such as the selected tab.
    chosen: bool = False
    #: States or icons of buttons changed, such as `aria-checked`, or lines appeared, disappeared or
    #: moved.
    toggled: bool = False

    @property
    def dead(self) -> bool:
        """Whether nothing happened."""
        happened = self.opened or self.closed or self.requests or self.appeared or self.disappeared or self.others or self.toggled
        return not happened and not self.chosen and not self.failure

    @property
    def name(self) -> str:
        return " > ".join(self.path)


class Sweep:
    """A sweep over one page of one server. `log` is a file that gets each press as soon as it has
    been made. `address` returns the page's address, and `fill` creates its data anew.
    """

    def __init__(self, page: Page, url: str, address: Callable[[], str], fill: Callable[[], None], log: Path, until: str):
        self._page, self._url, self._address, self._fill, self._until = page, url, address, fill, until
        self._log = log
        self._under_way: set[Request] = set()
        self._asked: list[str] = []
        self._others: list[str] = []
        self.presses: list[Press] = []

    def run(self) -> list[Press]:
        """Presses all buttons. Returns the presses in their order."""
        page = self._page
        self._log.parent.mkdir(parents=True, exist_ok=True)
        self._log.write_text("")
        listeners: dict[str, Callable] = {
            "request": self._on_request,
            "requestfinished": lambda request: self._under_way.discard(request),
            "requestfailed": lambda request: self._under_way.discard(request),
            "response": self._on_response,
            "download": lambda download: self._others.append(f"download {download.suggested_filename}"),
            "filechooser": lambda _: self._others.append("file chooser"),
            "popup": self._on_popup,
            "dialog": self._on_dialog,
        }
        for event, listener in listeners.items():
            page.on(event, listener)
        try:
            self._press_all()
        finally:
            for event, listener in listeners.items():
                page.remove_listener(event, listener)
        return self.presses

    def _press_all(self) -> None:
        first = self._open()
        waiting = [[button] for button in first["buttons"] if not button["aside"]]
        seen = {(button["layer"], button["key"], button["nth"]) for button in first["buttons"]}
        while waiting:
            path = waiting.pop(0)
            found = self._press(path)
            if found is None or len(path) == _DEPTH:
                continue
            for button in found:
                known = (button["layer"], button["key"], button["nth"])
                if known not in seen:
                    seen.add(known)
                    waiting.append([*path, button])

    def _press(self, path: list[dict]) -> list[dict] | None:
        """Presses the last button of a path, after the buttons before it. Returns the buttons that are
        visible then, unless the address has changed.
        """
        press = self._pressed(path)
        if press.failure or press.dead:
            # The page may keep a state that it does not show, such as the tab of a closed dialog.
            self._open()
            press = self._pressed(path)
        self.presses.append(press)
        state = self._current
        self._write(press)
        layers = {*press.opened, path[-1]["layer"]}
        found = [button for button in state["buttons"] if button["layer"] in layers and not button["aside"]] if self._page.url == self._opened else None
        self._restore(press)
        return found

    def _pressed(self, path: list[dict]) -> Press:
        """Presses the buttons of a path, and returns the result of the last one."""
        press = Press([_named(button) for button in path], chosen=path[-1]["chosen"])
        state = self._current
        for number, button in enumerate(path):
            last = number == len(path) - 1
            index = next((at for at, other in enumerate(state["buttons"]) if _same(other, button)), None)
            if index is None:
                press.failure = f"not found: {_named(button)}"
                break
            place = self._page.locator(f'[data-sweep="{index}"]')
            self._asked, self._others = [], []
            address = self._page.url
            try:
                if last:
                    place.hover(timeout=_CLICK_MS)
                    before = self._idle()
                    place = self._page.locator(f'[data-sweep="{self._index(before, button)}"]')
                place.click(timeout=_CLICK_MS)
            except Error as error:
                press.failure = f"cannot be pressed: {error.message.splitlines()[0]}"
                break
            state = self._idle()
            if last:
                self._record(press, before, state, address)
        self._current = state
        return press

    def _index(self, state: dict, button: dict) -> int:
        return next((at for at, other in enumerate(state["buttons"]) if _same(other, button)), -1)

    def _record(self, press: Press, before: dict, after: dict, address: str) -> None:
        press.opened = _only(after["layers"], before["layers"])
        press.closed = _only(before["layers"], after["layers"])
        press.requests = sorted(set(plain(self._asked)))
        press.appeared = _only(after["lines"], before["lines"])
        press.disappeared = _only(before["lines"], after["lines"])
        press.toggled = any(before[part] != after[part] for part in ("states", "lines"))
        copied = after["copied"][len(before["copied"]) :]
        press.others = sorted({*self._others, *(f"copied {text}" for text in copied)})
        if self._page.url != address:
            press.others.append(f"address {plain([self._page.url])[0]}")

    def _restore(self, press: Press) -> None:
        """Returns to the initial state: creates the data anew if the press has changed it, closes
        what is open, and reloads the page unless it looks as in the beginning.
        """
        if any(_changes(request) for request in press.requests):
            self._fill()
            self._open()
            return
        for _ in range(2):
            if self._page.url != self._opened:
                break
            self._page.keyboard.press("Escape")
            self._page.mouse.move(1, 1)
            state = self._idle()
            if all(state[part] == self._first[part] for part in ("lines", "states", "layers")):
                self._current = state
                return
        self._open()

    def _open(self) -> dict:
        page = self._page
        if page.url.startswith(self._url):
            page.evaluate("localStorage.clear(); sessionStorage.clear()")
        # Loads the page even if only the fragment of the address changes.
        page.goto("about:blank")
        self._under_way.clear()
        page.goto(f"{self._url}/#/{self._address()}")
        page.get_by_text(self._until).first.wait_for()
        self._first = self._current = self._idle()
        self._opened = page.url
        return self._first

    def _idle(self) -> dict:
        """Waits until no request is under way and nothing changes. Returns the state of the page."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        last, same = None, 0
        while True:
            now = self._page.evaluate("document.body.innerHTML.length + document.body.textContent")
            same = same + 1 if now == last and not self._under_way else 0
            last = now
            late = time.monotonic() > deadline
            if same >= _IDLE_LOOKS or late:
                state = _plain(self._page.evaluate(_SCRIPT))
                if not state["busy"] or late:
                    return state
            self._page.wait_for_timeout(_BETWEEN_LOOKS_MS)

    def _write(self, press: Press) -> None:
        with self._log.open("a") as file:
            file.write(json.dumps(asdict(press) | {"dead": press.dead}, ensure_ascii=False) + "\n")

    def _on_request(self, request: Request) -> None:
        if not request.url.endswith(".worker.js"):
            self._under_way.add(request)

    def _on_response(self, response: Response) -> None:
        path = response.url.removeprefix(self._url).partition("?")[0]
        if "/ajax-api/" in path or response.status >= 400:
            self._asked.append(f"{response.request.method} {path} -> {response.status}")

    def _on_popup(self, popup: Page) -> None:
        self._others.append(f"tab {plain([popup.url])[0]}")
        popup.close()

    def _on_dialog(self, dialog) -> None:
        self._others.append(f"browser's {dialog.type}: {dialog.message}")
        dialog.dismiss()


def differences(reference: list[Press], subject: list[Press]) -> list[str]:
    """Returns the differences between two sweeps. A line begins with the path of the button."""
    sides = [{press.name: asdict(press) for press in presses} for presses in (reference, subject)]
    found = [f"{name}: only on {'the reference' if name in sides[0] else 'the subject'}" for name in dict.fromkeys([*sides[0], *sides[1]]) if (name in sides[0]) != (name in sides[1])]
    for name in sides[0].keys() & sides[1].keys():
        for part, expected in sides[0][name].items():
            actual = sides[1][name][part]
            if actual == expected:
                continue
            if isinstance(expected, list):
                missing, more = _only(expected, actual), _only(actual, expected)
                found += [f"{name}: {part}: -{line}" for line in missing] + [f"{name}: {part}: +{line}" for line in more]
            else:
                found.append(f"{name}: {part}: {expected} {actual}")
    return sorted(found)


def _only(first: list[str], second: list[str]) -> list[str]:
    """Returns the entries of the first list that the second one has less often, sorted."""
    rest = list(second)
    return sorted(entry for entry in first if entry not in rest or rest.remove(entry))


def _plain(state: dict) -> dict:
    """Replaces ids and times in a state of the page with placeholders, and numbers buttons that have
    the same name.
    """
    numbers: Counter[tuple[str, str]] = Counter()
    for button in state["buttons"]:
        button["key"], button["layer"] = plain([button["key"], button["layer"]])
        numbers[button["key"], button["layer"]] += 1
        button["nth"] = numbers[button["key"], button["layer"]]
    return state | {part: plain(state[part]) for part in ("lines", "states", "layers", "copied")}


def _changes(request: str) -> bool:
    method, path = request.split(" ")[:2]
    return method != "GET" and not _READING.fullmatch(path)


def _same(button: dict, other: dict) -> bool:
    return all(button[part] == other[part] for part in ("key", "nth", "layer"))


def _named(button: dict) -> str:
    """Returns a button's role, label and internal name, its number if there are several like it, and
    the dialog or menu that it is in.
    """
    name = button["key"] + (f" #{button['nth']}" if button["nth"] > 1 else "")
    return f"{button['layer']}: {name}" if button["layer"] else name
