"""A server on this machine that speaks the Hub's interface for one repository.

Commits are kept in memory: each is all files as of then. What goes wrong can be chosen.
"""

import base64
import hashlib
import json
import re
from http.server import ThreadingHTTPServer
from typing import Any

import pytest
from huggingface_hub import constants

from tests.training.answering import Answering

TOKEN = "hf_of-the-test"


class HubRepository(ThreadingHTTPServer):
    """As models to be written and read, and as a data set to be read.

    `fail` is how many of the next requests of a kind (`commit`, `upload`, `file`) get an error.
    """

    daemon_threads = True

    def __init__(self, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.commits: dict[str, dict[str, bytes]] = {}
        self.messages: list[str] = []
        self.stored: dict[str, bytes] = {}
        self.fail: dict[str, int] = {}
        self.uploads = 0
        self.ranges: list[str] = []
        self.cut = 0  # of the next files asked for, that many break off in the middle
        self.without_ranges = False

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    @property
    def newest(self) -> dict[str, bytes]:
        return list(self.commits.values())[-1] if self.commits else {}


def use_hub(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    """Let the Hub's library look for it at this address."""
    template = address + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(constants, "ENDPOINT", address)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)


class _Handler(Answering):
    protocol_version = "HTTP/1.1"
    server: HubRepository

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path == "/api/validate-yaml":
            return self._answer({"errors": [], "warnings": []})
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            return self._answer({"error": "Invalid credentials"}, 401)
        if self.path == "/api/repos/create":
            return self._answer({"url": f"{self.server.address}/someone/model"})
        if "/preupload/" in self.path:
            files = [
                {
                    "path": file["path"],
                    "uploadMode": "lfs" if file["path"].endswith(".safetensors") else "regular",
                    "shouldIgnore": False,
                }
                for file in json.loads(content)["files"]
            ]
            return self._answer({"files": files})
        if self.path.endswith("/info/lfs/objects/batch"):
            return self._answer(self._offer_upload(json.loads(content)))
        if "/commit/" in self.path:
            return self._commit(content)
        return self._answer({"error": "not found"}, 404)

    def do_PUT(self) -> None:
        content = self.rfile.read(int(self.headers["Content-Length"]))
        if self._fails("upload"):
            return self._answer({"error": "broken"}, 400)
        self.server.uploads += 1
        oid = self.path.rpartition("/")[2]
        assert hashlib.sha256(content).hexdigest() == oid
        self.server.stored[oid] = content
        return self._answer({})

    def do_GET(self) -> None:
        path, newest = self.path.partition("?")[0], self.server.newest
        if path.startswith("/api/datasets/someone/"):
            files = [
                {"type": "file", "path": name, "size": len(content), "oid": name}
                for name, content in newest.items()
            ]
            revision = next(reversed(self.server.commits))
            about = {"id": "someone/pictures", "sha": revision, "siblings": []}
            return self._answer(files if "/tree/" in path else about)
        found = re.fullmatch(r"(?:/datasets)?/someone/\w+/resolve/([^/]+)/(.+)", path)
        files_then = self.server.commits.get(found[1], newest) if found else {}
        if not found or found[2] not in files_then:
            return self._answer({"error": "not found"}, 404)
        if self._fails("file"):
            return self._answer({"error": "broken"}, 503)
        return self._send_file(files_then[found[2]], found[1])

    do_HEAD = do_GET

    def _send_file(self, content: bytes, revision: str) -> None:
        asked = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        start = 0
        if asked and not self.server.without_ranges:
            self.server.ranges.append(asked[0])
            start = int(asked[1])
        if start >= len(content):
            self._answer({}, 416)
            return
        rest = content[start:]
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(rest)))
        self.send_header("ETag", f'"{hashlib.sha256(content).hexdigest()}"')
        self.send_header("X-Repo-Commit", revision)
        self.end_headers()
        if self.command == "HEAD":
            return
        if self.server.cut > 0:
            self.server.cut -= 1
            rest = rest[: len(rest) // 2]
            self.close_connection = True
        self.wfile.write(rest)

    def _offer_upload(self, request: dict[str, Any]) -> dict[str, Any]:
        objects = []
        for wanted in request["objects"]:
            answer = {"oid": wanted["oid"], "size": wanted["size"]}
            if wanted["oid"] not in self.server.stored:
                href = f"{self.server.address}/upload/{wanted['oid']}"
                answer["actions"] = {"upload": {"href": href}}
            objects.append(answer)
        return {"transfer": "basic", "objects": objects}

    def _commit(self, content: bytes) -> None:
        if self._fails("commit"):
            return self._answer({"error": "broken"}, 400)
        files = dict(self.server.newest)
        for line in content.splitlines():
            part = json.loads(line)
            value = part["value"]
            match part["key"]:
                case "header":
                    self.server.messages.append(value["summary"])
                case "file":
                    files[value["path"]] = base64.b64decode(value["content"])
                case "lfsFile":
                    files[value["path"]] = self.server.stored[value["oid"]]
        oid = hashlib.sha1(content).hexdigest()
        self.server.commits[oid] = files
        address = f"{self.server.address}/someone/model/commit/{oid}"
        return self._answer({"commitUrl": address, "commitOid": oid})

    def _fails(self, kind: str) -> bool:
        left = self.server.fail.get(kind, 0)
        self.server.fail[kind] = max(0, left - 1)
        return left > 0

    def _answer(self, value: Any, status: int = 200) -> None:
        self.answer(json.dumps(value).encode(), status, Content_Type="application/json")
