#!/usr/bin/env bash
# Installs what cogpu needs and this machine lacks: Debian's or Ubuntu's packages, then the Python packages
# of the requirement files that are named (tests/requirements.txt if none is) into .venv. Needs no network
# where nothing is missing. Without a distribution's package the build goes on with a codec or a test less,
# and says so; without the Python packages there is nothing to compare with, and this fails.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(cmake ninja-build gcc g++ clang clang-format-14 pkg-config python3-venv python3-dev
          libdeflate-dev libisal-dev libzstd-dev liblzma-dev libjpeg-dev libwebp-dev liblerc-dev
          libopenjp2-7-dev libjxl-dev libproj-dev proj-data libpng-dev zlib1g-dev nginx curl
          gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user)
# Any flavour of libcurl will do, and Debian lets but one be installed: its curl-config tells.
command -v curl-config >/dev/null || packages+=(libcurl4-openssl-dev)

# Those of the named packages that are not installed, a line each.
missing() {
    local found
    found=$(dpkg-query -W -f='${db:Status-Status} ${Package}\n' "$@" 2>/dev/null || true)
    for package in "$@"; do
        grep -qx "installed $package" <<<"$found" || echo "$package"
    done
}

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# Debian starts the servers that it installs, unless this file says no: the tests start an nginx of their own.
apt_install() (
    policy=/usr/sbin/policy-rc.d
    if [ ! -e $policy ]; then
        trap 'as_root rm -f $policy' EXIT
        printf '#!/bin/sh\nexit 101\n' | as_root install -m 755 /dev/stdin $policy
    fi
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@" || exit
    if [[ " $* " = *" nginx "* ]] && command -v systemctl >/dev/null; then
        as_root systemctl disable --quiet nginx || true
    fi
)

install_packages() {
    local wanted known=()
    mapfile -t wanted < <(missing "$@")
    [ ${#wanted[@]} = 0 ] && return
    as_root apt-get update -q || echo "setup: the lists of packages could not be renewed" >&2
    for package in "${wanted[@]}"; do # apt installs none if it does not know one: Debian 13 has no clang-format-14
        if apt-cache show "$package" >/dev/null 2>&1; then
            known+=("$package")
        else
            echo "setup: this distribution has no package $package" >&2
        fi
    done
    [ ${#known[@]} = 0 ] && return
    echo "setup: installing ${known[*]}"
    apt_install "${known[@]}" || echo "setup: could not install all of: ${known[*]}" >&2
}

# The newest Python that the reference libraries have packages for and that can make an environment.
find_python() {
    local python
    for python in python3.13 python3.12 "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.1[32].*/bin/python3 python3; do
        if "$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$python"
            return
        fi
    done
    echo "setup: no Python of 3.11 or later that can make an environment" >&2
    return 1
}

# A stamp beside the environment holds the requirement files it was made from.
install_python() {
    local file=$1 stamp python
    stamp=.venv/installed-${file//\//-}
    if .venv/bin/python -c '' 2>/dev/null && cat tests/requirements.txt "$file" | cmp -s - "$stamp"; then
        return
    fi
    if ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
        python=$(find_python)
        echo "setup: making .venv with $("$python" --version)"
        "$python" -m venv --clear .venv
    fi
    echo "setup: installing the Python packages of $file"
    .venv/bin/python -m pip install --quiet --disable-pip-version-check -r "$file"
    cat tests/requirements.txt "$file" >"$stamp"
}

if command -v dpkg-query >/dev/null; then
    install_packages "${packages[@]}"
    # libFuzzer and the sanitizers of clang, whose package is named after its version.
    if command -v clang >/dev/null; then
        install_packages "libclang-rt-$(clang -dumpversion | cut -d. -f1)-dev"
    fi
else
    echo "setup: neither Debian nor Ubuntu; install the likes of: ${packages[*]}" >&2
fi
for file in "${@:-tests/requirements.txt}"; do
    install_python "$file"
done
