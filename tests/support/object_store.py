"""A store of objects on this machine, with the part of S3 that pyarrow's reader uses."""

import threading
from contextlib import contextmanager
from email.utils import formatdate
from hashlib import md5
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

BUCKET = "city"


class Handler(BaseHTTPRequestHandler):
    """Answers of the store; `objects` are contents by key, `asked` the requests."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *words):
        """Nothing on the terminal."""

    def do_HEAD(self):
        self.answer(with_body=False)

    def do_GET(self):
        self.answer(with_body=True)

    def answer(self, *, with_body):
        store, key = (
            self.server,
            unquote(urlsplit(self.path).path).removeprefix(f"/{BUCKET}").lstrip("/"),
        )
        store.asked.append((self.command, key, self.headers.get("Range")))
        content = store.objects.get(key)
        if content is None:
            empty = (
                b'<?xml version="1.0"?><ListBucketResult><KeyCount>0</KeyCount></ListBucketResult>'
            )
            is_listing = self.command == "GET" and not key
            self.send(200 if is_listing else 404, empty if is_listing else b"", with_body)
            return
        low, high = 0, len(content) - 1
        if "Range" in self.headers:
            ends = self.headers["Range"].removeprefix("bytes=").split("-")
            low, high = int(ends[0]), min(int(ends[1]), high)
        headers = {
            "Last-Modified": formatdate(store.times.get(key, 1.7e9), usegmt=True),
            "ETag": f'"{md5(content, usedforsecurity=False).hexdigest()}"',
            "Accept-Ranges": "bytes",
        }
        if "Range" in self.headers:
            headers["Content-Range"] = f"bytes {low}-{high}/{len(content)}"
        self.send(
            206 if "Range" in self.headers else 200, content[low : high + 1], with_body, headers
        )

    def send(self, code, body, with_body, headers=()):
        self.send_response(code)
        for name, text in dict(headers).items():
            self.send_header(name, text)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if with_body:
            self.wfile.write(body)


@contextmanager
def object_store(objects):
    """Serve objects, contents by key; yields the server and a function from a key to an address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.objects, server.times, server.asked = dict(objects), {}, []
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()

    def address(key):
        host = f"127.0.0.1:{server.server_address[1]}"
        return f"s3://{BUCKET}/{key}?endpoint_override={host}&scheme=http&region=us-east-1"

    try:
        yield server, address
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
