#!/usr/bin/env bash
# Of the package cogpu; see meta.yaml.
set -euo pipefail
"$PYTHON" -m pip install . --no-deps --no-build-isolation -vv
