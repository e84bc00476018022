"""An S3 of moto's that checks signatures: `s3_server.py LOG` prints its port, and logs each request as a line of JSON.

moto keeps objects and uploads in memory, and by itself believes everyone.
"""

import io
import json
import re
import sys
import threading

from moto.backends import get_backend
from moto.core import DEFAULT_ACCOUNT_ID
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

import signature
from s3_names import KEYS, OPEN, REGION

ERROR = '<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{}</Code><Message>{}</Message></Error>'


class Handler(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"

    def log(self, *words):
        """Our own log is enough."""


def headers_of(environ):
    headers = {name[5:].replace("_", "-").lower(): value for name, value in environ.items() if name.startswith("HTTP_")}
    for name in ("CONTENT_TYPE", "CONTENT_LENGTH"):
        if environ.get(name):
            headers[name.replace("_", "-").lower()] = environ[name]
    return headers


def bucket_of(request):
    """In the host's name, as in BUCKET.localhost, or in the path."""
    name, _, rest = request.headers["host"].partition(".")
    return name if rest.startswith("localhost") else request.path.split("/")[1]


def is_open(request):
    return request.method in ("GET", "HEAD") and not request.signed_by and bucket_of(request) == OPEN


def check_upload(request):
    """moto takes parts in any order, and stumbles over an upload that it does not know."""
    upload = request.parameter("uploadId")
    if request.method not in ("POST", "PUT") or upload is None:
        return
    numbers = [int(number) for number in re.findall(rb"<PartNumber>(\d+)</PartNumber>", request.body)]
    if request.method == "POST" and numbers != sorted(set(numbers)):
        raise signature.Refused("InvalidPartOrder", "The parts must be in ascending order.", 400)
    buckets = get_backend("s3")[DEFAULT_ACCOUNT_ID]["aws"].buckets.values()
    if not any(upload in bucket.multiparts for bucket in buckets):
        raise signature.Refused("NoSuchUpload", "The specified upload does not exist.", 404)


class Checked:
    """A WSGI application before moto's: what is not rightly signed does not get there."""

    def __init__(self, application, log):
        self.application, self.log = application, log
        self.lock = threading.Lock()  # moto's dictionaries change under its own loops otherwise

    def __call__(self, environ, start_response):
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        environ["wsgi.input"] = io.BytesIO(body)
        request = signature.Request(environ["REQUEST_METHOD"], environ["RAW_URI"], headers_of(environ), body)

        def answer(status, headers, *rest, refused=""):
            self.write(request, status, refused)
            return start_response(status, headers, *rest)

        try:
            if not is_open(request):
                signature.check(request, KEYS, REGION)
            with self.lock:
                if not is_open(request):
                    check_upload(request)
                return list(self.application(environ, answer))
        except signature.Refused as error:
            text = ERROR.format(error.code, error.message).encode()
            answer(f"{error.status} Refused", [("Content-Type", "application/xml"), ("Content-Length", str(len(text)))],
                   refused=error.code)
            return [] if request.method == "HEAD" else [text]

    def write(self, request, status, refused):
        """Before the response: a client that has it finds its line."""
        line = {"method": request.method, "path": request.path, "query": dict(request.query),
                "range": request.headers.get("range", ""), "if_match": request.headers.get("if-match", ""),
                "signed_by": request.signed_by, "body": len(request.body), "status": int(status.split()[0]),
                "refused": refused}
        self.log.write(json.dumps(line) + "\n")
        self.log.flush()


def main(path):
    with open(path, "a") as log:
        application = Checked(DomainDispatcherApplication(create_backend_app), log)
        server = make_server("127.0.0.1", 0, application, threaded=True, request_handler=Handler)
        print(server.server_port, flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main(sys.argv[1])
