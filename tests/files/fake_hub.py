"""A Hugging Face Hub on this machine, with the requests that kseq makes."""

import base64
import contextlib
import hashlib
import json
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class FakeHub:
    """Repositories in memory.

    Attributes:
        repositories: dict, "owner/name" -> dict, path -> bytes.
        url: str, for HF_ENDPOINT.
        requests: list of str, what was asked for.
    """

    def __init__(self):
        self.repositories = {}
        self.requests = []
        self.private = {}
        hub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                hub.answer(self)

            do_HEAD = do_POST = do_GET  # noqa: N815 (of the base class)

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    @contextlib.contextmanager
    def running(self):
        thread = threading.Thread(target=self._server.serve_forever)
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()
            thread.join()

    def sha(self, name):
        content = repr(sorted(self.repositories[name].items())).encode()
        return hashlib.sha1(content).hexdigest()

    def answer(self, request):
        path = urllib.parse.unquote(request.path.partition("?")[0])
        size = int(request.headers.get("Content-Length") or 0)
        body = request.rfile.read(size)
        self.requests.append(f"{request.command} {path}")
        parts = path.strip("/").split("/")
        status, headers, content = self._found(request, parts, body)
        if not isinstance(content, bytes):
            content = json.dumps(content).encode()
            headers["Content-Type"] = "application/json"
        request.send_response(status)
        for key, value in headers.items():
            request.send_header(key, value)
        request.send_header("Content-Length", str(len(content)))
        request.end_headers()
        if request.command != "HEAD":
            request.wfile.write(content)

    def _found(self, request, parts, body):
        if parts[:3] == ["api", "repos", "create"]:
            given = json.loads(body)
            owner = given.get("organization") or "me"
            name = f"{owner}/{given['name']}"
            self.repositories.setdefault(name, {})
            self.private[name] = given.get("private")
            return 200, {}, {"url": f"{self.url}/{name}", "id": name}
        if parts == ["api", "validate-yaml"]:
            return 200, {}, {"errors": [], "warnings": []}
        is_api = parts[:2] == ["api", "models"]
        name = "/".join(parts[2:4] if is_api else parts[:2])
        if name not in self.repositories:
            return 404, {"X-Error-Code": "RepoNotFound"}, {"error": "none"}
        files = self.repositories[name]
        if is_api:
            return self._api(name, files, parts[4:], body)
        # Between them is a revision, which may have slashes.
        asked = "/".join(parts[3:])
        known = [path for path in files if asked.endswith(f"/{path}")]
        file = files.get(max(known, key=len, default=""))
        if file is None:
            return 404, {"X-Error-Code": "EntryNotFound"}, {"error": "none"}
        tag = f'"{hashlib.sha1(file).hexdigest()}"'
        return 200, {"X-Repo-Commit": self.sha(name), "ETag": tag}, file

    def _api(self, name, files, parts, body):
        kind = parts[0] if parts else "revision"
        if kind == "revision":
            siblings = [{"rfilename": path} for path in sorted(files)]
            found = {"id": name, "sha": self.sha(name), "siblings": siblings}
            return 200, {}, {**found, "modelId": name, "private": False}
        if kind == "tree":
            rows = [
                {
                    "type": "file",
                    "path": path,
                    "size": len(content),
                    "oid": hashlib.sha1(content).hexdigest(),
                }
                for path, content in sorted(files.items())
            ]
            return 200, {}, rows
        if kind == "preupload":
            given = json.loads(body)["files"]
            rows = [
                {
                    "path": each["path"],
                    "uploadMode": "regular",
                    "shouldIgnore": False,
                    "oid": None,
                }
                for each in given
            ]
            return 200, {}, {"files": rows}
        assert kind == "commit", parts
        for line in body.decode().splitlines():
            given = json.loads(line)
            if given["key"] == "file":
                value = given["value"]
                files[value["path"]] = base64.b64decode(value["content"])
            if given["key"] == "deletedFile":
                del files[given["value"]["path"]]
        sha = self.sha(name)
        url = f"{self.url}/{name}/commit/{sha}"
        return 200, {}, {"success": True, "commitOid": sha, "commitUrl": url}
