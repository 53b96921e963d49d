"""A local server that speaks as much of the Hugging Face hub as reading one data set takes."""

import contextlib
import hashlib
import http.server
import json
import threading

COMMIT = "4" * 40
NAME = "Owner/Bench"


class Hub(http.server.BaseHTTPRequestHandler):
    """Serves `server.files`, the data set's files by path, at one commit."""

    def do_GET(self):
        self._answer(with_body=True)

    def do_HEAD(self):
        self._answer(with_body=False)

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        paths = [path for path in asked.get("paths", []) if path in self.server.files]
        self._send(json.dumps([self._node(path) for path in paths]).encode())

    def _answer(self, *, with_body):
        self.server.seen.append(self.path)
        path, _, _ = self.path.partition("?")
        about = f"/api/datasets/{NAME}"
        if path in (about, f"{about}/revision/main", f"{about}/revision/{COMMIT}"):
            siblings = [{"rfilename": name} for name in self.server.files]
            record = {"id": NAME, "sha": COMMIT, "private": False, "gated": False,
                      "disabled": False, "siblings": siblings, "tags": []}  # fmt: skip
            self._send(json.dumps(record).encode(), with_body=with_body)
        elif path.startswith(f"{about}/tree/{COMMIT}"):
            below = path.removeprefix(f"{about}/tree/{COMMIT}").strip("/")
            nodes = [self._node(f) for f in self.server.files if f.startswith(below)]
            self._send(json.dumps(nodes).encode(), with_body=with_body)
        elif path.startswith(f"/datasets/{NAME}/resolve/{COMMIT}/"):
            name = path.removeprefix(f"/datasets/{NAME}/resolve/{COMMIT}/")
            if name in self.server.files:
                tag = hashlib.sha1(self.server.files[name]).hexdigest()  # noqa: S324  as git does
                headers = {"ETag": f'"{tag}"', "X-Repo-Commit": COMMIT}
                self._send(self.server.files[name], with_body=with_body, **headers)
            else:
                self._send(b"", status=404, with_body=with_body,
                           **{"X-Error-Code": "EntryNotFound"})  # fmt: skip
        else:
            self._send(b"", status=404, with_body=with_body)

    def _node(self, path):
        return {"type": "file", "path": path, "size": len(self.server.files[path]), "oid": "0" * 40}

    def _send(self, body, *, status=200, with_body=True, **headers):
        self.send_response(status)
        for key, value in {"content-length": str(len(body)), **headers}.items():
            self.send_header(key, value)
        self.end_headers()
        if with_body:
            self.wfile.write(body)

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def serve(files):
    """Yield a server whose `address` is the hub's."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    server.files, server.seen = files, []
    server.address = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
