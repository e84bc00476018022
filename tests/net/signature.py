"""AWS Signature Version 4, as a strict store checks it: in the header, or in the query of a presigned URL.

Written from AWS's documentation, and not with AWS's own code: that is what the tests compare it with.
"""

import datetime
import hashlib
import hmac
import re
from urllib.parse import quote, unquote

ALGORITHM = "AWS4-HMAC-SHA256"
SKEW = datetime.timedelta(minutes=15)
HEADER = re.compile(r"AWS4-HMAC-SHA256 Credential=([^,\s]+),\s*SignedHeaders=([^,\s]+),\s*Signature=([0-9a-f]{64})")


class Refused(Exception):
    """With the code and the message of S3."""

    def __init__(self, code, message, status=403):
        super().__init__(code, message)
        self.code, self.message, self.status = code, message, status


class Request:
    """As it came: path and query undecoded, headers by their names in lower case."""

    def __init__(self, method, target, headers, body):
        self.method, self.headers, self.body = method, headers, body
        self.path, _, query = target.partition("?")
        self.query = [tuple(map(unquote, (pair.partition("=")[0], pair.partition("=")[2])))
                      for pair in query.split("&") if pair]

    def parameter(self, name):
        return dict(self.query).get(name)

    @property
    def signed_by(self):
        """The place of the signature: header, query, or nothing."""
        if "authorization" in self.headers:
            return "header"
        return "query" if self.parameter("X-Amz-Signature") else ""


def encode(text, safe=""):
    return quote(text, safe=safe + "-_.~")


def hmac_of(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def canonical(request, names, payload):
    """What is signed of a request."""
    query = sorted((encode(name), encode(value)) for name, value in request.query if name != "X-Amz-Signature")
    lines = [request.method, encode(unquote(request.path), "/"), "&".join(f"{name}={value}" for name, value in query)]
    lines += [f"{name}:{' '.join(request.headers.get(name, '').split())}" for name in names]
    return "\n".join([*lines, "", ";".join(names), payload])


def signature(request, names, payload, secret, stamp, scope):
    digest = hashlib.sha256(canonical(request, names, payload).encode()).hexdigest()
    key = ("AWS4" + secret).encode()
    for word in scope.split("/"):
        key = hmac_of(key, word)
    return hmac_of(key, "\n".join([ALGORITHM, stamp, scope, digest])).hex()


def parts_of(request):
    """Credential, names of signed headers, signature, time stamp, session token, hash of the body, seconds it holds."""
    headers = request.headers
    if request.signed_by == "header":
        found = HEADER.fullmatch(headers["authorization"])
        if not found:
            raise Refused("AuthorizationHeaderMalformed", "The authorization header is malformed", 400)
        return (*found.groups(), headers.get("x-amz-date", ""), headers.get("x-amz-security-token"),
                headers.get("x-amz-content-sha256", ""), SKEW.total_seconds())
    words = [request.parameter(f"X-Amz-{name}") or "" for name in ("Credential", "SignedHeaders", "Signature", "Date")]
    return (*words, request.parameter("X-Amz-Security-Token"), "UNSIGNED-PAYLOAD",
            float(request.parameter("X-Amz-Expires") or 0))


def check(request, keys, region):
    """Raises Refused unless the request is signed, for S3 in this region, by one of the keys: {id: (secret, token)}."""
    if not request.signed_by:
        raise Refused("AccessDenied", "Access Denied")
    credential, names, given, stamp, token, payload, seconds = parts_of(request)
    key, _, scope = credential.partition("/")
    names = names.split(";")
    if key not in keys:
        raise Refused("InvalidAccessKeyId", "The AWS Access Key Id you provided does not exist in our records.")
    secret, expected_token = keys[key]
    if token != expected_token:
        raise Refused("InvalidToken", "The provided token is malformed or otherwise invalid.", 400)
    if scope != f"{stamp[:8]}/{region}/s3/aws4_request":
        raise Refused("AuthorizationHeaderMalformed", f"The region is wrong; expecting '{region}'", 400)
    check_time(stamp, seconds)
    check_cover(request, names, payload)
    if not hmac.compare_digest(given, signature(request, names, payload, secret, stamp, scope)):
        raise Refused("SignatureDoesNotMatch", "The request signature we calculated does not match the signature you "
                      "provided. Check your key and signing method.")


def check_time(stamp, seconds):
    now = datetime.datetime.now(datetime.timezone.utc)
    try:
        signed = datetime.datetime.strptime(stamp, "%Y%m%dT%H%M%SZ").replace(tzinfo=datetime.timezone.utc)
    except ValueError:
        raise Refused("AccessDenied", "AWS authentication requires a valid Date or x-amz-date header") from None
    if signed > now + SKEW or now > signed + datetime.timedelta(seconds=seconds):
        raise Refused("RequestTimeTooSkewed", "The request was signed too long ago, or in the future.")


def check_cover(request, names, payload):
    """All that matters is signed: host, what is meant for S3, and the body."""
    unsigned = [name for name in request.headers if (name == "host" or name.startswith("x-amz-")) and name not in names]
    if unsigned or names != sorted(names):
        raise Refused("AccessDenied", "There were headers present in the request which were not signed")
    if not payload:
        raise Refused("InvalidRequest", "Missing required header for this request: x-amz-content-sha256", 400)
    if payload not in ("UNSIGNED-PAYLOAD", hashlib.sha256(request.body).hexdigest()):
        raise Refused("XAmzContentSHA256Mismatch", "The provided 'x-amz-content-sha256' header does not match what was "
                      "computed.", 400)
