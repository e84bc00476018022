#!/usr/bin/env bash
# Installs the wheel into bare roots of Debian 12 and 13, which have Python and no other package, and runs smoke.py and
# the tests of the Python package there. Needs root, debootstrap and openssl. Usage: test_in_chroot.sh [SUITE...]
source "$(dirname "$0")/common.sh" x86_64

suites=("$@")
[ $# = 0 ] && suites=(bookworm trixie)
wheel=$(ls -t dist/cogpu-*-manylinux_*_x86_64.whl | head -1)
[ "$(id -u)" = 0 ] || fail "chroot needs root"

make_root() {
    local suite=$1 folder=$2
    [ -e "$folder.done" ] && return
    rm -rf "$folder"
    mkdir -p "$folder"
    debootstrap --variant=minbase --include=python3 "$suite" "$folder" "${DEBIAN_MIRROR:-$(debian_mirror)}" \
        >"$folder.log" 2>&1 || fail "debootstrap of $suite failed: $folder.log has it all"
    touch "$folder.done"
}

# The roots have no pip: packages are installed from outside, for the root's Python. NumPy's own tags need 2_27.
install_into() {
    local folder=$1 site=$2 python
    shift 2
    python=$(chroot "$folder" python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    rm -rf "${folder:?}/$site"
    "$venv/bin/pip" install --quiet --target "$folder/$site" --python-version "$python" --only-binary=:all: \
        --platform manylinux_2_28_x86_64 --platform manylinux_2_27_x86_64 --platform manylinux2014_x86_64 "$@"
}

# In namespaces of its own: mounts end with the command, and no network but the loopback can be reached.
run_inside() {
    local folder=$1
    shift
    # shellcheck disable=SC2016 # the inner shell expands
    unshare --mount --net --pid --fork bash -c '
        set -e
        root=$1 && shift
        ip link set lo up
        mount -t proc proc "$root/proc"
        mkdir -p "$root/dev/shm"
        mount -t tmpfs tmpfs "$root/dev/shm"
        exec env -i HOME=/root LANG=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"
    ' bash "$folder" chroot "$folder" "${@}"
}

smoke() {
    local suite=$1 folder=$2 start
    rm -rf "$folder/smoke"
    mkdir -p "$folder/smoke"
    cp tools/wheel/smoke.py "$folder/smoke/"
    openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost \
        -keyout "$folder/smoke/server.key" -out "$folder/smoke/server.pem" 2>/dev/null
    start=$(date +%s.%N)
    install_into "$folder" site "$wheel"
    run_inside "$folder" env PYTHONPATH=/site python3 -B /smoke/smoke.py first-pixels
    echo "wheel: $suite: pip install to first pixels in $(echo "$(date +%s.%N) - $start" | bc) s"
    run_inside "$folder" env PYTHONPATH=/site python3 /smoke/smoke.py
}

# The tests run in a copy of the repository, with their own packages after the wheel.
package_tests() {
    local suite=$1 folder=$2
    [ -e "$folder/packages/pytest" ] || install_into "$folder" packages -r tests/requirements.txt
    rm -rf "$folder/repository"
    mkdir -p "$folder/repository"
    git ls-files -z | xargs -0 cp --parents -t "$folder/repository"
    run_inside "$folder" env PYTHONPATH=/site:/packages COGPU_PACKAGE=installed COGPU_TIME_FACTOR=5 \
        python3 -m pytest -q -rfEs --tb=short -p no:cacheprovider -n 2 /repository/tests/package
}

for suite in "${suites[@]}"; do
    folder=$work/roots/$suite
    make_root "$suite" "$folder"
    smoke "$suite" "$folder"
    package_tests "$suite" "$folder"
done
