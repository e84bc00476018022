"""nginx, as tests of remote reads need it: it says what it was asked, and a path says how it behaves.

  /files/NAME           ranges, ETag, keep-alive
  /whole/NAME           Range is ignored
  /packed/NAME          gzip for those who accept it
  /slow/NAME?rate=N     N bytes a second
  /late/PORT/NAME       when the server at that port of this machine has answered
  /locked/NAME          401 without USER's name and password
  /status/CODE?after=S  an error, with Retry-After if `after` says when
  /page/NAME            an error page in HTML that claims to be 200
  /moved/WHERE/NAME     a redirect, one of REDIRECTS or REDIRECT_CODES
  /BUCKET/KEY           what S3 says, where it stands before one; the host's name is the one that was asked

All of it over HTTP/1.1 and, with a test authority's certificate, over HTTP/2; `https1` has TLS without that. One
process without privileges, in a folder of its own, on ports that the kernel chose.
"""

import contextlib
import http.client
import itertools
import os
import pathlib
import shutil
import subprocess
import time

import certificates
from process import Log, held_port, start, stop

PROGRAM = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
USER = ("someone", "open-sesame")
TLS = ("https", "https1", "expired", "misnamed", "untrusted")  # servers, by their certificates
STATUSES = (400, 401, 403, 404, 408, 410, 412, 416, 429, 500, 502, 503, 504)
REDIRECT_CODES = (301, 302, 303, 307, 308)
REDIRECTS = {
    "relative": "../../files/$1",
    "rooted": "/files/$1",
    "http": "http://127.0.0.1:{http}/files/$1",
    "https": "https://localhost:{https}/files/$1",
    "host": "http://localhost:{http}/files/$1",
    "locked": "http://localhost:{http}/locked/$1",
    "circle": "/moved/circle-back/$1",
    "circle-back": "/moved/circle/$1",
    "metadata": "http://169.254.169.254/latest/meta-data/",
    "private": "http://10.0.0.1/$1",
    "disk": "file:///etc/hostname",
    "chain1": "/files/$1",
    **{f"chain{length}": f"/moved/chain{length - 1}/$1" for length in range(2, 21)},
}

# Of an answer's body, `bytes` counts what was sent; `connection` is a number, the same for all requests of one.
FIELDS = {"method": "$request_method", "path": "$request_uri", "host": "$http_host", "range": "$http_range",
          "if_match": "$http_if_match", "authorization": "$http_authorization", "agent": "$http_user_agent",
          "accept_encoding": "$http_accept_encoding", "protocol": "$server_protocol", "scheme": "$scheme"}
NUMBERS = {"status": "$status", "bytes": "$body_bytes_sent", "connection": "$connection"}

MAIN = """
daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 512; }}
http {{
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    log_format asked escape=json '{{{fields}}}';
    access_log {folder}/asked.log asked;
    default_type application/octet-stream;
    types {{ image/tiff tif; text/html html; }}
    absolute_redirect off;
    keepalive_requests 100000;
    sendfile on;
    server {{ listen 127.0.0.1:{http} reuseport; include {folder}/locations.conf; }}
    {servers}
}}
"""
SECURE = """
    server {{
        listen 127.0.0.1:{port} reuseport ssl {more};
        ssl_certificate {folder}/{name}.pem;
        ssl_certificate_key {folder}/{name}.key;
        include {folder}/locations.conf;
    }}"""
LOCATIONS = """
location /files/ {{ alias {files}/; }}
location /whole/ {{ alias {files}/; max_ranges 0; }}
location /packed/ {{ alias {files}/; gzip on; gzip_types *; gzip_min_length 0; }}
location /slow/ {{ alias {files}/; limit_rate $arg_rate; }}
location ~ ^/late/([0-9]+)/(.*)$ {{ set $port $1; alias {files}/$2; auth_request /wait; }}
location = /wait {{ internal; proxy_pass http://127.0.0.1:$port/; }}
location /locked/ {{ alias {files}/; auth_basic test; auth_basic_user_file {folder}/users; }}
location /page/ {{ types {{ }} default_type text/html; return 200 "<html><body>Sign in first</body></html>\\n"; }}
location /mark/ {{ return 204; }}
"""
STORE = """location / {{
    proxy_pass http://127.0.0.1:{port};
    proxy_http_version 1.1;
    proxy_set_header Host $http_host;
    client_max_body_size 0;
}}
"""
STATUS = """location = /status/{code} {{
    default_type text/html;
    add_header Retry-After $arg_after always;
    return {code} "<html><body>{code}</body></html>\\n";
}}
"""
REDIRECT = """location ~ ^/moved/{where}/(.*)$ {{ return {code} "{to}"; }}
"""


def configure(folder, files, ports, store):
    fields = ",".join([f'"{name}":"{value}"' for name, value in FIELDS.items()] +
                      [f'"{name}":{value}' for name, value in NUMBERS.items()])
    servers = "".join(SECURE.format(folder=folder, name=name, port=ports[name],
                                    more="" if name == "https1" else "http2") for name in TLS)
    locations = LOCATIONS.format(folder=folder, files=files)
    locations += STORE.format(port=store) if store else ""
    locations += "".join(STATUS.format(code=code) for code in STATUSES)
    locations += "".join(REDIRECT.format(where=code, code=code, to="/files/$1") for code in REDIRECT_CODES)
    locations += "".join(REDIRECT.format(where=where, code=302, to=to.format(**ports))
                         for where, to in REDIRECTS.items())
    (folder / "users").write_text("%s:{PLAIN}%s\n" % USER)
    (folder / "locations.conf").write_text(locations)
    (folder / "nginx.conf").write_text(MAIN.format(folder=folder, fields=fields, servers=servers, **ports))


class Nginx:
    """`files` is the folder that it serves, `store` the port of an S3 that it stands before; `http` and the names of
    TLS are where to ask; `ca` is the certificate that makes `https` and `https1` trusted."""

    def __init__(self, folder, files, store=None):
        self.files, self.ca = pathlib.Path(files), folder / "ca.pem"
        certificates.make(folder)
        self.held = {name: held_port() for name in ("http", *TLS)}
        self.ports = {name: held.getsockname()[1] for name, held in self.held.items()}
        self.http = f"http://127.0.0.1:{self.ports['http']}"
        for name in TLS:
            setattr(self, name, f"https://localhost:{self.ports[name]}")
        configure(folder, self.files, self.ports, store)
        self.log, self.marks = Log(folder / "asked.log"), itertools.count()
        with open(folder / "output.log", "wb") as output:
            self.process = start([PROGRAM, "-p", folder, "-c", folder / "nginx.conf"], stdin=subprocess.DEVNULL,
                                 stdout=output, stderr=subprocess.STDOUT)
        self.wait(folder)

    def wait(self, folder, seconds=20):
        """Until it answers."""
        end = time.monotonic() + seconds
        while self.process.poll() is None and time.monotonic() < end:
            with contextlib.suppress(ConnectionRefusedError):
                self.requests()
                return
            time.sleep(0.005)
        self.close()
        raise RuntimeError(f"nginx does not answer: {(folder / 'output.log').read_text()[-2000:]}")

    def requests(self):
        """What was asked since the last call. A mark of our own is logged after all answers that clients have."""
        path = f"/mark/{next(self.marks)}"
        connection = http.client.HTTPConnection("127.0.0.1", self.ports["http"], timeout=10)
        connection.request("GET", path)
        connection.getresponse().read()
        connection.close()
        return self.log.take_before(lambda line: line.path == path)

    def close(self):
        stop(self.process)
        for held in self.held.values():
            held.close()
