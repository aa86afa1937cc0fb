"""A small Hugging Face hub and ModelScope in one process, with faults on demand.

Two servers on two ports: the hub itself, and the "storage" that large files are redirected to, as
the real hub does. Both record every request.
"""

import hashlib
import json
import re
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit


def git_oid(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@dataclass
class Repo:
    files: dict[str, bytes]
    lfs: set[str] = field(default_factory=set)  # files in the storage, with a SHA-256 for etag
    commit: str = "0123456789abcdef0123456789abcdef01234567"
    revisions: set[str] = field(default_factory=lambda: {"main", "master"})
    gated: bool = False
    token: str | None = None  # needed to see it at all
    listing: list[str] | None = None  # instead of the names of the files

    def etag(self, name: str) -> str:
        content = self.files[name]
        return sha256(content) if name in self.lfs else git_oid(content)


@dataclass
class Request:
    server: str  # "hub" or "storage"
    method: str
    path: str
    headers: dict[str, str]  # lower-case names


@dataclass
class Faults:
    """Keyed by file name; lists are used up from the front, one entry a GET of the body."""

    cut_after: dict[str, list[int]] = field(default_factory=dict)  # bytes of body, then hang up
    status: dict[str, list[int]] = field(default_factory=dict)  # answered instead, HEAD too
    api_status: list[int] = field(default_factory=list)
    corrupt: dict[str, int] = field(default_factory=dict)  # so many times the bytes are wrong
    ignore_range: bool = False
    gate: dict[str, threading.Event] = field(default_factory=dict)  # awaited after half of the body
    stall_after: dict[str, list[int]] = field(default_factory=dict)  # bytes, then silence
    linked_size: dict[str, int] = field(default_factory=dict)  # X-Linked-Size instead of the truth
    redirect_to: dict[str, str] = field(default_factory=dict)  # Location of the file


class Hub:
    def __init__(self):
        self.repos: dict[str, Repo] = {}
        self.renamed: dict[str, str] = {}
        self.requests: list[Request] = []
        self.faults = Faults()
        self.stalled = threading.Event()  # set at the end, to let stalled answers go
        self._servers = []
        self.url = self._start("hub", HubHandler)
        self.storage_url = self._start("storage", StorageHandler)

    def _start(self, name, handler_class):
        handler = type(handler_class.__name__, (handler_class,), {"hub": self, "server_name": name})
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        self._servers.append(server)
        # Another name for the storage: cookies and tokens are bound to hosts.
        host = "127.0.0.1" if name == "hub" else "localhost"
        return f"http://{host}:{server.server_address[1]}"

    def close(self):
        self.stalled.set()
        for server in self._servers:
            server.shutdown()
            server.server_close()

    def bodies(self, name: str) -> list[Request]:
        """The requests for the bytes of a file."""
        return [
            r
            for r in self.requests
            if r.method == "GET" and unquote(r.path).endswith(name) and "/api/models/" not in r.path
        ]

    def sent_bodies(self) -> list[Request]:
        return [r for r in self.requests if r.method == "GET" and ("/resolve/" in r.path or r.server == "storage")]


class Handler(BaseHTTPRequestHandler):
    hub: Hub
    server_name: str
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def do_HEAD(self):
        self.handle_request()

    def do_GET(self):
        self.handle_request()

    def handle_request(self):
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.hub.requests.append(Request(self.server_name, self.command, self.path, headers))
        try:
            self.answer(urlsplit(self.path))
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def send(self, status, body=b"", headers=None):
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def send_json(self, value, status=200, headers=None):
        self.send(status, json.dumps(value).encode(), {"Content-Type": "application/json", **(headers or {})})

    def fault_status(self, name):
        statuses = self.hub.faults.status.get(name)
        if not statuses:
            return False
        self.send(statuses.pop(0), b"broken")
        return True

    def send_file(self, name, content, etag):
        """The bytes, or the range that is asked for, with whatever fault is due."""
        faults = self.hub.faults
        whole = content
        if faults.corrupt.get(name, 0) > 0 and self.command == "GET":
            faults.corrupt[name] -= 1
            content = bytes([content[0] ^ 1]) + content[1:]
        headers = {"ETag": f'"{etag}"', "Accept-Ranges": "bytes"}
        status, start = 200, 0
        asked = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        fresh = self.headers.get("If-Range", f'"{etag}"') == f'"{etag}"'
        if asked and fresh and not faults.ignore_range:
            start = int(asked[1])
            if start >= len(whole):
                self.send(416, b"", {"Content-Range": f"bytes */{len(whole)}"})
                return
            status = 206
            headers["Content-Range"] = f"bytes {start}-{len(whole) - 1}/{len(whole)}"
        body = content[start:]
        if self.command == "HEAD":
            self.send_response(status)
            for header, value in headers.items():
                self.send_header(header, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            return
        self.send_response(status)
        for header, value in headers.items():
            self.send_header(header, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if faults.cut_after.get(name):
            self.wfile.write(body[: faults.cut_after[name].pop(0)])
            self.wfile.flush()
            self.close_connection = True
        elif faults.stall_after.get(name):
            self.wfile.write(body[: faults.stall_after[name].pop(0)])
            self.wfile.flush()
            self.hub.stalled.wait(30)
            self.close_connection = True
        elif name in faults.gate:
            self.wfile.write(body[: len(body) // 2])
            self.wfile.flush()
            faults.gate[name].wait(60)
            self.wfile.write(body[len(body) // 2 :])
        else:
            self.wfile.write(body)


class StorageHandler(Handler):
    """Signed addresses: /REPO-ID/FILE?signature=…; an Authorization header is refused, as S3 does."""

    def answer(self, url):
        if "authorization" in {name.lower() for name in self.headers}:
            self.send(400, b"only one auth mechanism allowed")
            return
        _, org, name, file = unquote(url.path).split("/", 3)
        repo = self.hub.repos[f"{org}/{name}"]
        if not self.fault_status(file):
            self.send_file(file, repo.files[file], "storage-" + repo.etag(file)[:16])


class HubHandler(Handler):
    def answer(self, url):
        path = url.path
        if path.startswith("/api/v1/models/"):
            self.answer_model_scope(url)
        elif path.startswith("/api/models/"):
            self.answer_api(url)
        else:
            self.answer_file(url)

    def find_repo(self, repo_id):
        repo = self.hub.repos.get(repo_id)
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        if repo and repo.token and token != repo.token:
            repo = None
        if not repo:
            error = {"X-Error-Code": "RepoNotFound", "X-Error-Message": "Repository not found"}
            self.send_json({"error": "Repository not found"}, 404 if token else 401, error)
        return repo

    def answer_api(self, url):
        if self.hub.faults.api_status:
            self.send(self.hub.faults.api_status.pop(0), b"broken")
            return
        match = re.fullmatch(r"/api/models/([^/]+/[^/]+)(/revision/([^/]+)|/tree/([^/]+))?/?", url.path)
        repo_id = match[1]
        if repo_id in self.hub.renamed:
            self.send(307, b"", {"Location": self.path.replace(repo_id, self.hub.renamed[repo_id])})
            return
        repo = self.find_repo(repo_id)
        if not repo:
            return
        revision = unquote(match[3] or match[4] or "main")
        if revision not in repo.revisions | {repo.commit}:
            error = {"X-Error-Code": "RevisionNotFound", "X-Error-Message": f"Invalid rev id: {revision}"}
            self.send_json({"error": "Invalid rev id"}, 404, error)
        elif match[4]:
            self.send_json([self.tree_entry(repo, name) for name in repo.files])
        else:
            names = repo.listing if repo.listing is not None else list(repo.files)
            self.send_json(
                {"id": repo_id, "modelId": repo_id, "sha": repo.commit, "siblings": [{"rfilename": n} for n in names]}
            )

    def tree_entry(self, repo, name):
        content = repo.files[name]
        entry = {"type": "file", "path": name, "size": len(content), "oid": git_oid(content)}
        if name in repo.lfs:
            entry["lfs"] = {"oid": sha256(content), "size": len(content), "pointerSize": 130}
        return entry

    def answer_file(self, url):
        match = re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", url.path)
        if not match:
            self.send(404)
            return
        repo_id, revision, name = match[1], unquote(match[2]), unquote(match[3])
        if repo_id in self.hub.renamed:
            self.send(307, b"", {"Location": self.path.replace(repo_id, self.hub.renamed[repo_id])})
            return
        if self.fault_status(name):
            return
        repo = self.find_repo(repo_id)
        if not repo:
            return
        commit = {"X-Repo-Commit": repo.commit}
        if repo.gated and not self.headers.get("Authorization"):
            error = {"X-Error-Code": "GatedRepo", "X-Error-Message": "Access to this model is restricted."}
            self.send(401, b"", error)
        elif revision not in repo.revisions | {repo.commit}:
            self.send(404, b"", {"X-Error-Code": "RevisionNotFound"})
        elif name not in repo.files:
            self.send(404, b"", {"X-Error-Code": "EntryNotFound", **commit})
        elif name in repo.lfs:
            where = f"{self.hub.storage_url}/{repo_id}/{name}?signature=secret"
            size = self.hub.faults.linked_size.get(name, len(repo.files[name]))
            headers = {
                "Location": self.hub.faults.redirect_to.get(name, where),
                "X-Linked-Etag": f'"{repo.etag(name)}"',
                "X-Linked-Size": str(size),
                **commit,
            }
            self.send(302, b"", headers)
        else:
            self.extra = commit
            self.send_file(name, repo.files[name], repo.etag(name))

    def send_response(self, status, message=None):
        super().send_response(status, message)
        for header, value in getattr(self, "extra", {}).items():
            self.send_header(header, value)
        self.extra = {}

    def answer_model_scope(self, url):
        query = {key: values[0] for key, values in parse_qs(url.query).items()}
        match = re.fullmatch(r"/api/v1/models/([^/]+/[^/]+)/repo(/files)?", url.path)
        repo = self.hub.repos.get(match[1]) if match else None
        if not repo or query.get("Revision") not in repo.revisions:
            self.send_json({"Code": 10010205001, "Message": "model not found", "Success": False}, 404)
        elif match[2]:
            names = repo.listing if repo.listing is not None else list(repo.files)
            files = [{"Path": "sub", "Name": "sub", "Type": "tree", "Size": 0}]
            for name in names:
                content = repo.files.get(name, b"")
                files.append(
                    {"Path": name, "Name": name, "Type": "blob", "Size": len(content), "Sha256": sha256(content)}
                )
            self.send_json({"Code": 200, "Success": True, "Data": {"Files": files}})
        elif self.fault_status(query["FilePath"]):
            pass
        elif query["FilePath"] in repo.lfs:
            where = f"{self.hub.storage_url}/{match[1]}/{query['FilePath']}?signature=secret"
            self.send(302, b"", {"Location": where})
        else:
            name = query["FilePath"]
            self.send_file(name, repo.files[name], sha256(repo.files[name]))
