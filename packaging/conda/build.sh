#!/usr/bin/env bash
# Of the package libcogpu; see meta.yaml.
set -euo pipefail
# shellcheck disable=SC2086 # words of conda-build
cmake -S . -B build-conda -G Ninja $CMAKE_ARGS -DCMAKE_BUILD_TYPE=Release -DCOGPU_TESTS=OFF
cmake --build build-conda
cmake --install build-conda --prefix "$PREFIX"
