"""What the S3 of the tests and its clients both know."""

REGION = "eu-central-1"
OPEN = "open-bucket"  # may be read without a signature
CLOSED = "closed-bucket"
KEYS = {  # name: (secret, token); secrets have characters that do not like to be in URLs
    "TESTKEY": ("test/secret+of=a&key", None),
    "TESTTEMPORARY": ("another/secret+", "token/of+a=session"),
}
