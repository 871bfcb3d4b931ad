"""Signing in without a browser: follows redirects, and fills in the provider's form."""

from urllib.parse import urlsplit

import requests

from tests.sign_on.site import Site

RENEWAL = "/ajax-api/2.0/mlflow/users/renew-session"
CURRENT = "/ajax-api/2.0/mlflow/users/current"


class Client:
    """The cookies of a person who has signed in."""

    def __init__(self, site: Site, account: str, following: str = "/"):
        self._session = requests.Session()
        form = self._session.get(f"{site.url}/signin", params={"provider": "company", "next": following}, timeout=60)
        assert form.url.startswith(site.provider.issuer), form.text
        #: The response to the request with the provider's code, before its redirect is followed.
        self.answer = self._until(site.url, self._session.post(form.url, data={"account": account}, allow_redirects=False, timeout=60))

    @property
    def cookies(self) -> dict[str, str]:
        """Returns the cookies of the server by their names."""
        return {name: value for name, value in self._session.cookies.items() if name.startswith("mlflow")}

    def headers(self, port: int | None = None) -> dict[str, str]:
        """Returns the headers of a request that a page of the server sends. With `port`, the server listens on another one now."""
        names = {name: f"mlflow_session_{port}" if port and name.startswith("mlflow_session_") else name for name in self.cookies}
        cookie = "; ".join(f"{names[name]}={value}" for name, value in self.cookies.items())
        return {"cookie": cookie, "sec-fetch-site": "same-origin"}

    def current(self, url: str) -> requests.Response:
        return requests.get(f"{url}{CURRENT}", headers=self.headers(urlsplit(url).port), timeout=60)

    def renew(self, url: str) -> requests.Response:
        return requests.post(f"{url}{RENEWAL}", headers=self.headers(urlsplit(url).port), timeout=60)

    def _until(self, url: str, answer: requests.Response) -> requests.Response:
        """Follows redirects, up to the first response of the server with this URL."""
        while not answer.url.startswith(url):
            assert answer.is_redirect, answer.text
            location = requests.compat.urljoin(answer.url, answer.headers["location"])
            answer = self._session.get(location, allow_redirects=False, timeout=60)
        return answer
