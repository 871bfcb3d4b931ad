"""A browser without a screen, for `BROWSER`: signs in with a password, approves or cancels the login
of a client, and follows the page back to the client.

It keeps to what a browser does with these pages: cookies, redirects, forms with hidden fields, and
the header `Refresh`.
"""

import sys
from html.parser import HTMLParser
from urllib.parse import urljoin, urlsplit

import requests

_TIMEOUT_SECONDS = 120


class Form(HTMLParser):
    """The fields of the first form of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.action = ""
        self.fields: dict[str, str] = {}
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attributes}
        if tag == "form":
            self.action = values.get("action", "")
        if tag == "input" and "name" in values:
            self.fields[values["name"]] = values.get("value", "")


class ScriptedBrowser:
    """A browser in which a user signs in when a page requires it."""

    def __init__(self, user: str, password: str) -> None:
        self._session = requests.Session()
        self._user = {"username": user, "password": password}

    def open(self, url: str) -> requests.Response:
        """Opens a page, and signs in if it leads to the sign-in page."""
        response = self._session.get(url, headers={"sec-fetch-site": "none"}, timeout=_TIMEOUT_SECONDS)
        if urlsplit(response.url).path == "/signin":
            response = self.submit(response, self._user)
        return response

    def submit(self, page: requests.Response, fields: dict[str, str]) -> requests.Response:
        """Submits the form of a page."""
        form = Form(page.text)
        parts = urlsplit(page.url)
        headers = {"origin": f"{parts.scheme}://{parts.netloc}", "sec-fetch-site": "same-origin"}
        target = urljoin(page.url, form.action)
        return self._session.post(target, form.fields | fields, headers=headers, timeout=_TIMEOUT_SECONDS)

    def follow(self, page: requests.Response) -> requests.Response:
        """Follows the header `Refresh`."""
        assert page.status_code == 200, page.text
        delay, _, url = page.headers["refresh"].partition("; url=")
        assert delay == "0"
        return self._session.get(url, timeout=_TIMEOUT_SECONDS)

    def enter(self, page: requests.Response, code: str, answer: str = "approve") -> requests.Response:
        """Enters a code on the page of logins, and approves or denies the login."""
        confirmation = self.submit(page, {"user_code": code})
        assert confirmation.status_code == 200, confirmation.text
        return self.submit(confirmation, {"do": answer})


def main(user: str, password: str, answer: str, url: str) -> None:
    browser = ScriptedBrowser(user, password)
    browser.follow(browser.submit(browser.open(url), {"do": answer}))


if __name__ == "__main__":
    main(*sys.argv[1:])
