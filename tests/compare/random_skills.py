"""Random requests about skills, and uploads of random archives."""

import gzip
import io
import json
import tarfile
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from tests.compare.random_domain import TEXTS, Registry, some
from tests.compare.scenario import Step

_DIGESTS = ["a" * 64, "0" * 64, "0123456789abcdef" * 4]
_ALIASES = ["stable", "a_b", "stable", "beta-2", "stable", "a_b", "beta-2", "a.b", "v1", "latest", "Latest", "x" * 255, "x" * 256, "a b", "", "é", "1", "-a", "stable", "_", "a/b"]
_STATUSES = ["draft", "active", "active", "deprecated"] * 5 + ["deleted", "deleted", "ACTIVE", "none", "", None, 5]
#: The right sides of comparisons in filters.
_VALUES = ["'active'", "'draft'", "'git'", "'zip'", "'mlflow'", "'x'", "''", "5", "1", "2.5", "-1", "'%o%'", "'alpha'", "'ALPHA'", "'%É%'", "'${space}'", "'${space}-%'"]
_VALUES += ["('active', 'draft')", "('git')", "NULL", '"active"', "'a''b'", "()", "(1, 2)", "'" + _DIGESTS[0] + "'"]
_BOUNDARY = "boundary"
_MANIFEST = b"---\nname: a\ndescription: d\n---\n"


class Skills(Registry):
    domain = "skills"

    #: Names after the prefix that `${space}` stands for.
    _NAMES = ["one", "two", "three"]
    _BAD = ["One", "-one", "a--b", "a_b", "x" * 70, "é", "a b", "a.b", ""]

    def operations(self) -> dict[Any, int]:
        return {
            self._create: 5, self._get: 4, self._update: 5, self._delete: 1, self._register: 20, self._upload: 10, self._get_version: 4,
            self._update_version: 8, self._delete_version: 3, self._versions: 7, self._set_alias: 6, self._alias: 4, self._delete_alias: 2,
            self._set_tag: 5, self._delete_tag: 3, self._register_many: 5, self._search: 12, self._elsewhere: 1,
        }

    def end(self) -> Iterator[Step]:
        for organization in ("", "@${space}/", "@${space}.io/"):
            for name in [*self._NAMES, "x"]:
                yield Step("delete at the end", "DELETE", f"/api/3.0/mlflow/skills/{organization}${{space}}-{name}")
        yield self.find("the end", {"filter_string": "name LIKE '${space}-%'"})

    def _name(self) -> str:
        return "${space}-" + self.random.choice(self._NAMES * 5 + self._BAD)

    def _organization(self) -> str:
        return self.random.choice([""] * 6 + ["${space}"] * 4 + ["${space}.io", "A", "a..b", "-a", "é", "x" * 65, " "])

    def _path(self) -> str:
        """Returns the address of a skill, which exists more often than one of a random name."""
        if self.maybe(0.05):
            return f"/@{quote(self._organization().replace('${space}', 'acme'))}/{quote(self._name().replace('${space}', 'acme'))}"
        organization = self.random.choice([""] * 7 + ["@${space}/"] * 4 + ["@${space}.io/", "%40${space}/"])
        return f"/{organization}${{space}}-{self.random.choice(self._NAMES * 3 + ['none'])}"

    def _create(self) -> Step:
        body = {"name": self._name()} | some({"organization": self._organization()}, self.random, 0.6)
        return self.send("POST", "", body | some(self.texts(), self.random, 0.4))

    def _get(self) -> Step:
        return self.get(self._path(), {})

    def _update(self) -> Step:
        return self.send("PATCH", self._path(), some(self.texts(), self.random, 0.6), 0.2)

    def _delete(self) -> Step:
        return self.without_body("DELETE", self._path())

    def _source(self) -> dict[str, Any]:
        sources = ["https://example.com/a.git", "https://example.com/b.git/", "git@example.com:a/b.git", "ssh://git@example.com/a.git", "git://example.com/a"]
        sources += ["https://github.com/a/b", "https://GITHUB.com/a/b/", "https://github.com/a/b/tree/main/c", "https://gitlab.com/a/b", "git+https://example.com/a"]
        sources += ["https://example.com/s.zip", "https://example.com/s.ZIP?download=1", "https://example.com/s.zip#x", "http://example.com/s.zip", "https://example.com:99999/s.zip"]
        sources += ["oci://ghcr.io/a/b:v1", "ghcr.io/a/b:v1", "OCI://ghcr.io/a/b", "ghcr.io/a/b@sha256:" + "a" * 64, "oci://ghcr.io/a/b@sha256:" + "A" * 64, "localhost:5000/a"]
        sources += ["/etc", "file:///etc", "C:\\x", "./x", "~/x", "", " ", "mlflow-artifacts:/x", "runs:/a/b", "s3://b/x.zip", "https://u:p@example.com/a.git", "x", "é", "\\\\h\\x"]
        fields = {
            "ref": self.random.choice(["main", "v1.0", "", "a b", "-x", "refs/heads/x", "HEAD~1", "a..b", "x.lock", "é", "@", "a" * 40, "x" * 256]),
            "subpath": self.random.choice(["a", "a/b", "/a", "../a", "a/../b", "a//b", ".", "", " a ", "a\\b", "é", "con", "a.", "x" * 300, "./a", "a/", "%2e"]),
            "source_type": self.random.choice(["git", "git", "oci", "zip", "mlflow", "GIT", "", "x"]),
        }
        if self.maybe(0.4):
            return {"source": self.random.choice(sources[:6])}
        return {"source": self.random.choice(sources)} | some(fields, self.random, 0.25)

    def _metadata(self) -> dict[str, Any]:
        fields = {"digest": self.random.choice(_DIGESTS * 4 + ["A" * 64, "x", ""]), "status": self.random.choice(["draft", "active", self.random.choice(_STATUSES)])}
        return some(fields, self.random, 0.3)

    def _register(self) -> Step:
        path = self._path()
        body = self._source() | self._metadata() | some({"name": self._name(), "organization": self._organization()}, self.random, 0.06)
        return self.send("POST", f"{path}/versions", body, 0.15)

    def _register_many(self) -> Step:
        name = self.random.choice(["${space}-one", "${space}-two", "${space}-x"])
        skills = []
        source = self.random.choice(["https://example.com/a.git", "https://example.com/b.git"])
        for place in range(self.random.choice([0, 1, 1, 2, 3])):
            skill = {"name": name if self.maybe(0.1) else f"${{space}}-{[*self._NAMES, 'x'][place]}", "source": source, "subpath": f"s{place}", "digest": self.random.choice(_DIGESTS)}
            skills.append(skill | some({"ref": "main", "status": "draft", "source": "https://example.com/s.zip"}, self.random, 0.08))
        body = {"skills": skills} | some({"organization": self._organization()}, self.random, 0.4)
        return self.send("POST", "/bulk-register", body, 0.25)

    def _upload(self) -> Step:
        body, kind = self._form()
        # Each byte is a letter of this encoding.
        return Step("upload", "POST", self.address(f"{self._path()}/versions"), body=body.decode("latin-1"), encoding="latin-1", headers={"Content-Type": kind})

    def _form(self) -> tuple[bytes, str]:
        metadata = json.dumps(self.spoiled_at_times(some({"status": self.random.choice(["draft", "active", "deprecated"])}, self.random, 0.3), 0.15)).encode()
        parts = [("metadata", metadata, ""), ("content", self._archive(), '; filename="content.tar.gz"')]
        match self.random.randrange(24):
            case 0:
                parts.pop(self.random.randrange(2))
            case 1:
                parts.append(self.random.choice(parts))
            case 2:
                parts.append(("other", b"x", ""))
            case 3:
                parts = [(name, content, "") for name, content, _ in parts]
            case 4:
                parts.reverse()
        body = b"".join(f'--{_BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"{more}\r\n\r\n'.encode() + content + b"\r\n" for name, content, more in parts)
        body += f"--{_BOUNDARY}--\r\n".encode()
        if self.maybe(0.06):
            body = body[: self.random.randrange(len(body))]
        kind = f"multipart/form-data; boundary={_BOUNDARY}"
        return body, self.random.choice(["multipart/form-data", "application/octet-stream", f"{kind}x"]) if self.maybe(0.05) else kind

    def _archive(self) -> bytes:
        """Returns an archive of up to six files, some of which no archive may contain."""
        if self.maybe(0.12):
            return self._damaged()
        entries = [("SKILL.md", _MANIFEST, {})] if self.maybe(0.95) else []
        names = ["a.txt", "b/c.txt", "b/d/e", "ä/ß.txt", "日本", "a b", ".hidden", "b.c/d", "x" * 120, "d/" * 40 + "e", "./f", "empty", "g//h", "UP.TXT"]
        for name in self.random.sample(names, self.random.randrange(5)):
            entries.append((name, self.random.randbytes(self.random.choice([0, 1, 511, 512, 513, 5000])), {}))
        if self.maybe(0.2):
            bad = [
                ("../x", b"x", {}), ("/x", b"x", {}), ("b/../x", b"x", {}), ("skill.md", b"x", {}), ("SKILL.md", b"x", {}), ("con", b"x", {}), ("a.", b"x", {}), ("a:b", b"x", {}),
                ("a%20b", b"x", {}), ("a?b", b"x", {}), ("a#b", b"x", {}), ("a\\b", b"x", {}), ("a\tb", b"x", {}), ("a\u0308", b"", {"type": tarfile.SYMTYPE, "linkname": "SKILL.md"}),
                ("l", b"", {"type": tarfile.LNKTYPE, "linkname": "SKILL.md"}), ("p", b"", {"type": tarfile.FIFOTYPE}), ("SKILL.md/x", b"x", {}), ("y" * 256, b"x", {}), ("", b"x", {}),
            ]
            entries.insert(self.random.randint(0, len(entries)), self.random.choice(bad))
        return gzip.compress(self._tar(entries), 1, mtime=0)

    def _tar(self, entries: list[tuple[str, bytes, dict[str, Any]]]) -> bytes:
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w", format=self.random.choice([tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])) as archive:
            for name, content, fields in entries:
                info = tarfile.TarInfo(name)
                info.size = len(content)
                for field, value in fields.items():
                    setattr(info, field, value)
                archive.addfile(info, io.BytesIO(content))
        return packed.getvalue()

    def _damaged(self) -> bytes:
        """Returns an archive of one file with a changed byte, or without its end."""
        tar = bytearray(self._tar([("SKILL.md", _MANIFEST, {})]))
        if self.maybe(0.5):
            tar[self.random.randrange(512)] ^= 1 << self.random.randrange(8)
            return gzip.compress(bytes(tar), mtime=0)
        whole = bytearray(gzip.compress(bytes(tar), mtime=0))
        if self.maybe(0.5):
            return bytes(whole[: self.random.randrange(len(whole))])
        # Not in the header of gzip, whose time nobody reads.
        whole[self.random.randrange(10, len(whole))] ^= 1 << self.random.randrange(8)
        return bytes(whole)

    def _version(self) -> str:
        return self.random.choice(["1", "1", "2", "3"] * 10 + ["01", "0", "-1", "99", "x", "1.0", "2147483648", "1e1", "٣", " 1", "+1", "1_0", "true"])

    def _version_path(self) -> str:
        return f"{self._path()}/versions/{quote(self._version())}"

    def _get_version(self) -> Step:
        return self.get(self._version_path(), {})

    def _update_version(self) -> Step:
        return self.send("PATCH", self._version_path(), some({"status": self.random.choice(_STATUSES)}, self.random, 0.9), 0.1)

    def _delete_version(self) -> Step:
        return self.without_body("DELETE", self._version_path())

    def _number(self) -> Any:
        return self.random.choice([1, 1, 2, 3] * 8 + ["1", "2", "01", 1.0, 1.5, 0, -1, 99, True, "x", None, 2**31, " 1 ", "1.0"])

    def _set_alias(self) -> Step:
        return self.send("POST", f"{self._path()}/aliases", {"alias": self.random.choice(_ALIASES), "version": self._number()}, 0.15)

    def _alias(self) -> Step:
        return self.get(f"{self._path()}/aliases/{quote(self.random.choice(_ALIASES), safe='')}", {})

    def _delete_alias(self) -> Step:
        return self.without_body("DELETE", f"{self._path()}/aliases/{quote(self.random.choice(_ALIASES), safe='')}")

    def _key(self) -> str:
        return self.random.choice(["k", "k", "k", "team/a", "k", "team/a", "a b", "é", "tags", "x/tags/y", ".", "#", "k" * 250, "k" * 251, "", "a.b", "a:b", "k!", "/k", "../k"])

    def _tagged(self) -> str:
        return self._path() if self.maybe(0.6) else self._version_path()

    def _set_tag(self) -> Step:
        return self.send("POST", f"{self._tagged()}/tags", {"key": self._key(), "value": self.random.choice([*TEXTS, "", "v" * 5000, "v" * 5001])}, 0.15)

    def _delete_tag(self) -> Step:
        return self.without_body("DELETE", f"{self._tagged()}/tags/{quote(self._key())}")

    def _versions(self) -> Step:
        keys = ["version", "status", "source_type", "digest", "created_at", "last_updated_at", "name", "tags.k", "organization", "none"]
        query = {"filter_string": self.filter(keys, _VALUES, None), "order_by": self.order(keys[:6])}
        return self.get(f"{self._path()}/versions", query | self.pages(), follow_pages=True)

    def _search(self) -> Step:
        keys = ["name", "organization", "status", "source_type", "description", "search_text", "created_at", "last_updated_at", "tags.k", "tags.`team/a`", "tag.k", "none"]
        query = {"filter_string": self.filter(keys, _VALUES, "name LIKE '${space}-%'"), "order_by": self.order(keys[:8])}
        identities = ["${space}-one", "@${space}/${space}-two", "none", "@x", "", "One", "@${space}/${space}-one", "a/b"]
        query |= some({"include_skill_identities": self.random.sample(identities, self.random.choice([1, 2]))}, self.random, 0.15)
        return self.find("search", query | self.pages())

    def _elsewhere(self) -> Step:
        """Returns a request to an address or with a method that the domain does not have."""
        method, below = self.random.choice([
            ("POST", ""), ("PUT", ""), ("POST", "/versions/1"), ("PUT", "/tags"), ("DELETE", "/versions"), ("GET", "/tags"), ("PATCH", "/versions"),
            ("GET", "/aliases"), ("GET", "/versions/1/tags"), ("POST", "/aliases/stable"), ("GET", "/tags/k"), ("GET", "/a/b/c"),
        ])
        if method == "GET":
            return self.get(f"{self._path()}{below}", {})
        return Step(f"{method} {below}", method, self.address(f"{self._path()}{below}"), json={}, has_json=True)
