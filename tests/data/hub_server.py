"""A stand-in for a Hugging Face Hub over TLS, with a second port as its CDN, and with faults.

hub_server.py CERT KEY FAULTS   FAULTS: words with commas between; prints "PORT CDN_PORT" when it listens.
"""
import hashlib, http.server, json, socket, ssl, sys, threading, time

cert, key, faults = sys.argv[1], sys.argv[2], set(sys.argv[3].split(","))
commit = "0123456789abcdef0123456789abcdef01234567"
big = bytes((i * 7 + i // 251) % 256 for i in range(3_000_000))
contents = {"config.json": b'{"model_type": "llama"}', "model.safetensors": big, "sub/empty.txt": b"", "extra.bin": b"x" * 1000}
asked = {"count": 0, "cut": 0, "busy": 0, "signatures": 0}


def git(data):
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def listing():
    siblings = []
    for name, data in contents.items():
        entry = {"rfilename": name, "size": len(data), "blobId": git(data)}
        if len(data) > 100_000:
            entry["lfs"] = {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data), "pointerSize": 130}
        siblings.append(entry)
    if "escape" in faults:
        siblings.append({"rfilename": "../evil", "size": 1, "blobId": "0" * 40})
    if "case" in faults:
        siblings.append({"rfilename": "Config.json", "size": 1, "blobId": "0" * 40})
    return {"sha": commit, "gated": "manual" if "gated" in faults else False, "siblings": siblings,
            "cardData": {"license": "apache-2.0"}}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *words):
        pass

    def answer(self, status, body=b"", headers=()):
        self.send_response(status)
        names = [name.lower() for name, _ in headers]
        for name, value in headers:
            self.send_header(name, value)
        if "content-length" not in names:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def send_file(self, data):
        total = len(data)
        if "wrong-bytes" in faults:
            data = b"?" + data[1:]
        first, last, status = 0, total - 1, 200
        wanted = self.headers.get("Range")
        if wanted and "no-range" not in faults:
            first, last = (int(x) for x in wanted[6:].split("-"))
            last, status = min(last, total - 1), 206
        part = data[first:last + 1]
        headers = [("Accept-Ranges", "bytes"), ("Content-Length", str(len(part)))]
        if status == 206:
            # Of one file alone: which of several is refused first is the threads' choice.
            shown = total + 5 if "wrong-size" in faults and total > 100_000 else total
            headers.append(("Content-Range", "bytes %d-%d/%d" % (first, last, shown)))
        if "cut" in faults and len(part) > 300_000 and asked["cut"] < 3:
            asked["cut"] += 1
            self.send_response(status)
            for name, value in headers:
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(part[:200_000])
            self.wfile.flush()
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
            return
        if "slow" in faults:
            time.sleep(0.4)
        self.answer(status, part, headers)

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        path = self.path.split("?")[0]
        if self.server.is_cdn:
            if self.headers.get("Authorization"):
                return self.answer(400, b"a token was sent to another host")
            if "expired" in faults and asked["signatures"] < 1:
                asked["signatures"] += 1
                return self.answer(403, b"signature ended")
            return self.send_file(contents[path[1:]])
        if path.startswith("/api/models/org/name/revision/"):
            return self.answer(200, json.dumps(listing()).encode())
        if path.startswith("/api/"):
            return self.answer(404, b"{}", [("X-Error-Code", "RepoNotFound")])
        if "gated" in faults and self.headers.get("Authorization") != "Bearer good-token":
            return self.answer(403, b"", [("X-Error-Code", "GatedRepo"), ("X-Error-Message", "you are not in the authorized list")])
        if "busy" in faults and asked["busy"] < 2:
            asked["busy"] += 1
            return self.answer(429, b"", [("Retry-After", "0")])
        if path.startswith("/api-moved/"):
            name = path[len("/api-moved/"):]
            return self.answer(200, b"", [("X-Repo-Commit", commit)]) if self.command == "HEAD" else self.send_file(contents[name])
        prefix = "/org/name/resolve/%s/" % commit
        name = path[len(prefix):]
        if not path.startswith(prefix) or name not in contents:
            return self.answer(404, b"", [("X-Error-Code", "EntryNotFound")])
        shown = "f" * 40 if "other-commit" in faults else commit
        headers = [("X-Repo-Commit", shown), ("X-Linked-Size", str(len(contents[name])))]
        if len(contents[name]) > 100_000:
            headers.append(("Location", "https://localhost:%d/%s?signature=1" % (cdn.server_address[1], name)))
            return self.answer(302, b"", headers)
        if name == "extra.bin":
            return self.answer(307, b"", headers + [("Location", "/api-moved/" + name)])
        if self.command == "HEAD":
            return self.answer(200, b"", headers)
        self.send_file(contents[name])


def serve(is_cdn):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.is_cdn = is_cdn
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


cdn = serve(True)
hub = serve(False)
print(hub.server_address[1], cdn.server_address[1], flush=True)
time.sleep(600)
