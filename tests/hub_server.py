"""A hub on this machine's loopback: repos with revisions as folders, served in the shape of the hub's API.

It can answer wrongly on demand: busy, failing, cut short, with other bytes, or only to those with a token.
"""

import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

LARGE = (".safetensors", ".bin")


@dataclass
class Fault:
    """What goes wrong at the next ``times`` requests of ``method`` whose path holds ``at``.

    kind: a status code; ``cut`` (half of the bytes, then the connection closes); ``other`` (other bytes, same length).
    """

    method: str
    at: str
    kind: int | str
    times: int = 1
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class Hub:
    """Repos {name: {revision: folder}}; requests as they came: (method, path, has a token, range)."""

    repos: dict[str, dict[str, Path]] = field(default_factory=dict)
    gated: set[str] = field(default_factory=set)
    faults: list[Fault] = field(default_factory=list)
    requests: list[tuple[str, str, bool, str]] = field(default_factory=list)
    url: str = ""
    storage: str = ""

    def commit(self, repo: str, revision: str) -> str:
        """Forty hex digits a revision."""
        return hashlib.sha1(f"{repo}@{revision}".encode()).hexdigest()

    def folder(self, repo: str, revision: str) -> Path | None:
        """The folder of a revision, by its name or its commit."""
        known = self.repos.get(repo, {})
        named = {self.commit(repo, name): folder for name, folder in known.items()} | known
        return named.get(revision)

    def fault(self, method: str, path: str) -> Fault | None:
        """The fault that this request meets, used up once."""
        for fault in self.faults:
            if fault.times and fault.method == method and fault.at in path:
                fault.times -= 1
                return fault
        return None

    def asked(self, method: str, at: str) -> int:
        """How many requests of a method held ``at`` in their path."""
        return sum(m == method and at in path for m, path, _, _ in self.requests)


@contextmanager
def serving(hub: Hub) -> Iterator[Hub]:
    """Serve ``hub`` on 127.0.0.1 while the body runs, and its large files at another port, as a storage host would."""
    with _server(hub) as hub.url, _server(hub) as hub.storage:
        yield hub


@contextmanager
def _server(hub: Hub) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"hub": hub}))
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    hub: Hub
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        """Nothing: tests read ``Hub.requests``."""

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def _answer(self) -> None:
        url = urlsplit(self.path)
        path, query = unquote(url.path), parse_qs(url.query)
        # A dataset is a repo like a model's, under a name of its own in every path.
        path = path.replace("/api/datasets/", "/api/models/", 1).removeprefix("/datasets")
        token = "authorization" in self.headers
        self.hub.requests.append((self.command, path, token, self.headers.get("Range", "")))
        fault = self.hub.fault(self.command, path)
        if fault is not None and isinstance(fault.kind, int):
            self._send(fault.kind, b"{}", fault.headers)
        elif any(f"/{repo}/" in path and not path.startswith("/lfs/") for repo in self.hub.gated) and not token:
            self._send(401, b"{}", {"X-Error-Code": "GatedRepo"})
        elif path == "/api/models":
            self._models(query)
        elif match := re.fullmatch(r"/api/models/([^/]+/[^/]+)/refs", path):
            self._refs(match[1])
        elif match := re.fullmatch(r"/api/models/([^/]+/[^/]+)/tree/([^/]+)/?(.*)", path):
            self._tree(match[1], match[2], match[3], every="recursive" in query)
        elif match := re.fullmatch(r"/api/models/([^/]+/[^/]+)/revision/([^/]+)", path):
            self._info(match[1], match[2])
        elif match := re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path):
            self._resolve(match[1], match[2], match[3], fault)
        elif match := re.fullmatch(r"/lfs/([^/]+/[^/]+)/([^/]+)/(.+)", path):
            folder = self.hub.folder(match[1], match[2])
            assert folder is not None
            self._bytes((folder / match[3]).read_bytes(), {}, fault)
        else:
            self._send(404, b"{}", {"X-Error-Code": "RepoNotFound"})

    def _models(self, query: dict[str, list[str]]) -> None:
        start = f"{query['author'][0]}/"
        found = [name for name in self.hub.repos if name.startswith(start) and query["search"][0] in name]
        self._json([{"id": name, "_id": name, "private": False, "tags": []} for name in found])

    def _refs(self, repo: str) -> None:
        if repo not in self.hub.repos:
            self._send(404, b"{}", {"X-Error-Code": "RepoNotFound"})
            return
        branches = [
            {"name": name, "ref": f"refs/heads/{name}", "targetCommit": self.hub.commit(repo, name)}
            for name in reversed(self.hub.repos[repo])
        ]
        self._json({"branches": branches, "converts": [], "tags": []})

    def _tree(self, repo: str, revision: str, subfolder: str, *, every: bool) -> None:
        folder = self.hub.folder(repo, revision)
        if folder is None or not (folder / subfolder).is_dir():
            self._send(404, b"{}", {"X-Error-Code": "EntryNotFound"})
            return
        found = (folder / subfolder).rglob("*") if every else (folder / subfolder).iterdir()
        self._json([_listed(path, folder) for path in sorted(found)])

    def _info(self, repo: str, revision: str) -> None:
        folder = self.hub.folder(repo, revision)
        if folder is None:
            self._send(404, b"{}", {"X-Error-Code": "RevisionNotFound"})
            return
        files = [{"rfilename": path.relative_to(folder).as_posix()} for path in sorted(folder.rglob("*"))]
        commit = revision if revision not in self.hub.repos[repo] else self.hub.commit(repo, revision)
        known = {"id": repo, "_id": repo, "private": False, "disabled": False, "tags": []}
        self._json(known | {"sha": commit, "siblings": files})

    def _resolve(self, repo: str, revision: str, name: str, fault: Fault | None) -> None:
        folder = self.hub.folder(repo, revision)
        if folder is None or not (folder / name).is_file():
            self._send(404, b"{}", {"X-Error-Code": "EntryNotFound"})
            return
        content = (folder / name).read_bytes()
        headers = {"X-Repo-Commit": revision, "ETag": f'"{hashlib.sha1(content).hexdigest()}"'}
        if not name.endswith(LARGE):
            self._bytes(content, headers, fault)
            return
        headers |= {
            "X-Linked-Etag": f'"{hashlib.sha256(content).hexdigest()}"',
            "X-Linked-Size": str(len(content)),
            "Location": f"{self.hub.storage}/lfs/{repo}/{revision}/{name}",
        }
        self._send(302, b"", headers)

    def _bytes(self, content: bytes, headers: dict[str, str], fault: Fault | None) -> None:
        """Bytes, from where a range asks; a fault changes or cuts them."""
        if fault is not None and fault.kind == "other":
            content = bytes(len(content))
        start = int(self.headers.get("Range", "bytes=0-").removeprefix("bytes=").partition("-")[0])
        rest = content[start:]
        if start:
            headers = headers | {"Content-Range": f"bytes {start}-{len(content) - 1}/{len(content)}"}
        cut = fault is not None and fault.kind == "cut"
        self._send(206 if start else 200, rest[: len(rest) // 2] if cut else rest, headers, length=len(rest))
        self.close_connection = self.close_connection or cut

    def _json(self, content: Any) -> None:
        self._send(200, json.dumps(content).encode(), {"Content-Type": "application/json"})

    def _send(self, status: int, content: bytes, headers: dict[str, str], length: int | None = None) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content) if length is None else length))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)


def _listed(path: Path, root: Path) -> dict[str, Any]:
    name = path.relative_to(root).as_posix()
    if path.is_dir():
        return {"type": "directory", "oid": "0" * 40, "size": 0, "path": name}
    content = path.read_bytes()
    entry: dict[str, Any] = {
        "type": "file",
        "oid": hashlib.sha1(content).hexdigest(),
        "size": len(content),
        "path": name,
    }
    if name.endswith(LARGE):
        entry["lfs"] = {"oid": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 134}
    return entry
