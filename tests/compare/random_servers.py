"""Random requests about MCP servers."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from tests.compare.random_domain import TEXTS, Registry, some
from tests.compare.scenario import Step

_VERSIONS = ["1.0.0", "1.0.0-rc.1", "1.0.0-rc.2", "1.0.0-rc.10", "1.0.0-RC.1", "1.0.0-alpha", "1.0.0-alpha.beta", "1.0.0-0", "1.0.0+a", "1.0.0+b"]
_VERSIONS += ["1.0.0-rc.1+x", "0.0.0", "0.9.10", "0.10.0", "2.0.0", "10.0.0", "1.0.0--", "1.0.0-a-b", "1.0.0+001", "2147483647.0.0", "3.0.0-x.7.z.92"]
_ODD_VERSIONS = ["1.0", "v1.0.0", "01.0.0", "1.0.0-01", "1.0.0-", "1.0.0+", "1.0.0-é", "", " 1.0.0", "1.0.0 ", "1.0.0-rc..1", "2147483648.0.0", "latest"]
_ODD_VERSIONS += ["1.0.0.0", "1.0.0-rc/1", "١.0.0", "-1.0.0", "1.0.0-" + "x" * 251, "99999999999999999999.0.0", "9.9.9", "1.0.0+a+b"]
_ALIASES = ["stable", "team/a", "a b", "é", "Latest", "latest", "LATEST", "a.b", "versions", "#", "100%", " ", "v1", "stable "]
_STATUSES = ["draft", "active", "deprecated", "active", "draft"] * 4 + ["deleted", "deleted", "ACTIVE", "none", "", None, 5]
#: The right sides of comparisons in filters.
_VALUES = ["'active'", "'draft'", "'deprecated'", "'1.0.0'", "'1.0.0-rc.2'", "'1.0.0+z'", "'x'", "''", "5", "'%o%'", "'true'", "'false'"]
_VALUES += ["'${space}/one'", "'${space}/%'", "('active', 'draft')", "('${space}/one')", "'sse'", "'streamable-http'", "1.5", "NULL", "'é'", '"active"', "'a''b'", "('a' 'b')", "()"]
_TRANSPORTS = ["streamable-http", "sse"] * 6 + ["stdio", "SSE", "", None, 5]


class Servers(Registry):
    domain = "mcp-servers"
    slots = {"endpoint": "ae-" + "0" * 32}

    #: The names of servers without the namespace, which `${space}` stands for.
    _NAMES = ["one", "Two", "three.x", "f_o-ur"]

    def operations(self) -> dict[Any, int]:
        return {
            self._create: 4, self._get: 4, self._update: 5, self._delete: 1, self._create_version: 20, self._get_version: 4,
            self._update_version: 9, self._delete_version: 2, self._versions: 6, self._set_alias: 6, self._alias: 4, self._delete_alias: 2,
            self._set_tag: 5, self._delete_tag: 3, self._create_endpoint: 6, self._endpoint: 3, self._update_endpoint: 5,
            self._delete_endpoint: 2, self._endpoints: 6, self._search: 10, self._elsewhere: 1,
        }

    def end(self) -> Iterator[Step]:
        for name in [*self._NAMES, *self._OTHERS]:
            yield Step("delete at the end", "DELETE", f"/api/3.0/mlflow/mcp-servers/${{space}}/{quote(name)}")
        yield self.find("the end", {"filter_string": "name LIKE '${space}/%'"})

    _OTHERS = ["a..b", "x" * 150, "ver_sions"]
    _BAD = ["versions", "tags", "-one", "one-", "a/b", "", "é", "a b"]

    def _name(self) -> str:
        usual = [f"${{space}}/{name}" for name in self._NAMES] * 4
        return self.random.choice([*usual, *(f"${{space}}/{name}" for name in self._OTHERS + self._BAD), "one", "/one", "${space}", "com_x/one", "-a/one", "é/one", ""])

    def _path(self) -> str:
        """Returns the address of a server, which exists more often than one of a random name."""
        if self.maybe(0.06):
            # MLflow reads longer paths as names, too.
            names = ["-one", "one-", "é", "a b", "x" * 150, "a..b", "ver_sions"]
            return f"/${{space}}/{quote(self.random.choice(names))}"
        separator = "%2F" if self.maybe(0.1) else "/"
        return f"/${{space}}{separator}{self.random.choice(self._NAMES * 3 + ['none'])}"

    def _quoted(self, text: str) -> str:
        return quote(text, safe="/" if self.maybe(0.5) else "")

    def _version(self) -> str:
        return self.random.choice(_ODD_VERSIONS if self.maybe(0.08) else _VERSIONS[:4] if self.maybe(0.7) else _VERSIONS)

    def _create(self) -> Step:
        return self.send("POST", "", {"name": self._name()} | some(self.texts(), self.random, 0.4))

    def _get(self) -> Step:
        return self.get(self._path(), {})

    def _update(self) -> Step:
        fields = self.texts() | {"display_name": self.random.choice([*TEXTS, None, ""])}
        return self.send("PATCH", self._path(), some(fields, self.random, 0.5), 0.2)

    def _delete(self) -> Step:
        return self.without_body("DELETE", self._path())

    def _server_json(self, name: str) -> dict[str, Any]:
        package = {"registryType": "npm", "identifier": "i", "transport": self.random.choice([{"type": "stdio"}, None, 5])}
        package |= some({"version": "1", "registryBaseUrl": "https://r", "environmentVariables": [{"name": "E", "isSecret": self.random.choice([True, "true", "x", 1, 2])}]}, self.random)
        remote = some({"type": self.random.choice(["sse", "x", None]), "url": "https://h", "headers": [1], "variables": {}}, self.random)
        fields = {
            "title": self.random.choice([*TEXTS, None]), "icons": self.icons(), "packages": [package], "remotes": [remote],
            "repository": {"url": "u", "source": "s"} | some({"id": "i", "subfolder": None, "more": 1.5}, self.random),
            "websiteUrl": self.random.choice(["w", None, ""]), "_meta": self.random.choice([{"x": 1.5}, {}, None, {"n": 2**64}]),
            "meta": self.random.choice([{}, {"x": 1}, 5]), "$schema": "https://s", "other": self.random.choice([None, [], {"a": None}, 0.1, -0.0, 1e22, "é"]),
            "description": self.random.choice([*TEXTS, None]),
        }
        return {"name": name, "version": self._version()} | some(fields, self.random, 0.2)

    def _tools(self) -> Any:
        fields = {
            "title": "t", "description": self.text(), "inputSchema": self.random.choice([{}, {"type": "object"}, [], None]), "outputSchema": {"a": [1, 2.0]},
            "annotations": {"readOnlyHint": True}, "icons": self.icons(), "execution": self.random.choice([{}, None, 5]), "unknown": 1,
        }
        tools = [{"name": self.text()} | some(fields, self.random, 0.3) for _ in range(2)]
        return self.random.choice([None, [], [{"name": "t"}], [{"name": "u"}], tools, {} if self.maybe(0.3) else tools[:1]])

    def _options(self) -> Any:
        hidden = self.random.choice([True, False, "yes", "no", "1", 0, 2, None, "on", "F", 1.0, []])
        odd = self.random.choice([[], {"o": 5}, {"o": {"hidden": hidden}}])
        return self.random.choice([None, {}, {"o": {"hidden": True}}, {"o": {}, self.text(): {"hidden": True, "x": 1}}, odd])

    def _create_version(self) -> Step:
        path = self._path()
        name = path[1:].replace("%2F", "/") if self.maybe(0.95) else self._name()
        document = self._server_json(name)
        if self.maybe(0.1):
            document = {"server": document, "_meta": {}} | some({"name": "x", "version": "1.0.0"}, self.random, 0.1)
        fields = {"status": self.random.choice(_STATUSES), "source": self.random.choice([*TEXTS, None]), "tools": self._tools(), "connect_options": self._options()}
        return self.send("POST", f"{path}/versions", {"server_json": document} | some(fields, self.random, 0.3), 0.2)

    def _version_path(self) -> str:
        return f"{self._path()}/versions/{self._quoted(self._version())}"

    def _get_version(self) -> Step:
        return self.get(self._version_path(), {})

    def _update_version(self) -> Step:
        fields = {"status": self.random.choice(_STATUSES), "tools": self._tools(), "connect_options": self._options()}
        return self.send("PATCH", self._version_path(), some(fields, self.random, 0.6), 0.15)

    def _delete_version(self) -> Step:
        return self.without_body("DELETE", self._version_path())

    def _alias_name(self) -> str:
        return self.random.choice(_ALIASES if self.maybe(0.5) else _ALIASES[:3])

    def _set_alias(self) -> Step:
        return self.send("POST", f"{self._path()}/aliases", {"alias": self._alias_name(), "version": self._version()}, 0.15)

    def _alias(self) -> Step:
        return self.get(f"{self._path()}/aliases/{self._quoted(self._alias_name())}", {})

    def _delete_alias(self) -> Step:
        return self.without_body("DELETE", f"{self._path()}/aliases/{self._quoted(self._alias_name())}")

    def _tagged(self) -> str:
        return self._path() if self.maybe(0.6) else self._version_path()

    def _key(self) -> str:
        return self.random.choice(["k", "k", "team/a", "a b", "é", "tags", ".", "#", "k" * 250, "", "%2F", "?"])

    def _set_tag(self) -> Step:
        return self.send("POST", f"{self._tagged()}/tags", {"key": self._key(), "value": self.random.choice([*TEXTS, ""])}, 0.15)

    def _delete_tag(self) -> Step:
        return self.without_body("DELETE", f"{self._tagged()}/tags/{self._quoted(self._key())}")

    def _target(self) -> dict[str, Any]:
        both = {"server_version": self._version(), "server_alias": self._alias_name()}
        return self.random.choice([{"server_version": both["server_version"]}, {"server_alias": both["server_alias"]}, {"server_alias": "latest"}, both, {}])

    def _url(self) -> Any:
        return self.random.choice(["https://a/mcp", "http://10.0.0.1", "u", " https://b ", "https://é/", "x" * 500] * 3 + ["", " ", None])

    def _create_endpoint(self) -> Step:
        body = {"url": self._url()} | self._target() | some({"transport_type": self.random.choice(_TRANSPORTS)}, self.random, 0.3)
        return self.send("POST", f"{self._path()}/endpoints", body, 0.15, capture={self.slot("endpoint"): "id"})

    def _endpoint_path(self) -> str:
        identity = self.random.choice([f"${{{self.slot('endpoint')}}}"] * 8 + ["none", "ae-1", "%20"])
        return f"{self._path()}/endpoints/{identity}"

    def _endpoint(self) -> Step:
        return self.get(self._endpoint_path(), {})

    def _update_endpoint(self) -> Step:
        nulls = some({"server_version": None, "server_alias": None}, self.random, 0.2)
        fields = self._target() | nulls | {"url": self._url(), "transport_type": self.random.choice(_TRANSPORTS)}
        return self.send("PATCH", self._endpoint_path(), some(fields, self.random, 0.5), 0.1)

    def _delete_endpoint(self) -> Step:
        return self.without_body("DELETE", self._endpoint_path())

    def _versions(self) -> Step:
        keys = ["version", "status", "created_at", "last_updated_at", "name", "tags.k", "none"]
        query = {"filter_string": self.filter(keys, _VALUES, None), "order_by": self.order(keys[:5])}
        return self.get(f"{self._path()}/versions", query | self.pages(), follow_pages=True)

    def _endpoints(self) -> Step:
        # Creation determines the order, because ids are random.
        keys = ["server_name", "status", "transport_type", "created_at", "url", "tags.k"]
        query = {"filter_string": self.filter(keys, _VALUES, None), "order_by": self.random.choice(["created_at", "created_at DESC", ["server_name", "created_at"], "url", "status"])}
        query |= some({"server_version": self._version(), "server_alias": self._alias_name()}, self.random, 0.2)
        path = self._path()
        if self.maybe(0.3):
            path, query = "", query | {"filter_string": self.filter(keys, _VALUES, "server_name IN ('${space}/one', '${space}/Two')")}
        return self.get(f"{path}/endpoints", query | self.pages(), follow_pages=True)

    def _search(self) -> Step:
        keys = ["name", "status", "display_name", "has_access_endpoints", "created_at", "last_updated_at", "tags.k", "tags.`team/a`", "tag.k", "none"]
        query = {"filter_string": self.filter(keys, _VALUES, "name LIKE '${space}/%'"), "order_by": self.order(keys[:6])}
        return self.find("search", query | self.pages())

    def _elsewhere(self) -> Step:
        """Returns a request to an address or with a method that the domain does not have."""
        method, below = self.random.choice([
            ("POST", ""), ("PUT", ""), ("POST", "/versions/1.0.0"), ("PUT", "/tags"), ("DELETE", "/versions"), ("GET", "/tags"), ("PATCH", "/versions"),
            ("GET", "/aliases"), ("DELETE", "/endpoints"), ("GET", "/versions/1.0.0/tags"), ("POST", "/aliases/stable"), ("GET", "/tags/k"),
        ])
        if method == "GET":
            return self.get(f"{self._path()}{below}", {})
        return Step(f"{method} {below}", method, self.address(f"{self._path()}{below}"), json={}, has_json=True)
