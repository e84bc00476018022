#!/usr/bin/env bash
# Builds library, command line and unit tests for another architecture and runs the tests with qemu-user:
#   tools/cross.sh aarch64                      all suites
#   tools/cross.sh s390x -L 'tiff|codec'        arguments after the architecture go to ctest
# Libraries come from Debian's packages of that architecture, unpacked under build-cross/: nothing is installed on
# this machine. A package that the architecture lacks costs a codec. Needs the cross compilers and qemu-user, of
# which it names the packages; docs/platforms.md has results.
set -euo pipefail
cd "$(dirname "$0")/.."

arch=${1:-}
case $arch in
aarch64) debian=arm64 ;;
s390x) debian=s390x ;;
*)
    echo "usage: tools/cross.sh aarch64|s390x [argument of ctest]..." >&2
    exit 2
    ;;
esac
shift
triplet=$arch-linux-gnu
folder=$PWD/build-cross/$arch
root=$folder/root
packages=(libc6-dev libstdc++-12-dev zlib1g-dev libdeflate-dev libisal-dev libzstd-dev liblzma-dev libjpeg-dev
          libwebp-dev liblerc-dev libopenjp2-7-dev libjxl-dev libproj-dev libpng-dev libcurl4-openssl-dev)

for program in "$triplet-gcc" "$triplet-g++" "qemu-$arch"; do
    if ! command -v "$program" >/dev/null; then
        echo "cross: $program is missing; apt-get install g++-$triplet libc6-dev-$debian-cross qemu-user" >&2
        exit 1
    fi
done

# apt with lists, packages and status of its own, for the other architecture. The machine's sources are used.
foreign_apt() {
    local command=$1
    shift
    "$command" -q -o APT::Architecture="$debian" -o APT::Architectures="$debian" -o Dir::State="$folder/apt" \
        -o Dir::State::status="$folder/apt/status" -o Dir::Cache="$folder/apt/cache" -o Debug::NoLocking=1 \
        -o APT::Sandbox::User="$(id -un)" "$@"
}

# Links to absolute paths would lead out of the root.
make_links_relative() {
    local link target
    find "$root" -type l -lname '/*' | while read -r link; do
        target=$root$(readlink "$link")
        ln -sfn "$(realpath -sm --relative-to="$(dirname "$link")" "$target")" "$link"
    done
}

make_root() {
    local package available=()
    rm -rf "$folder/apt" "$root"
    mkdir -p "$folder"/apt/{lists,cache/archives}/partial "$root"
    : >"$folder/apt/status"
    foreign_apt apt-get update
    for package in "${packages[@]}"; do
        if foreign_apt apt-cache show "$package" >/dev/null 2>&1; then
            available+=("$package")
        else
            echo "cross: no package $package for $debian"
        fi
    done
    foreign_apt apt-get install --download-only -y --no-install-recommends "${available[@]}"
    for package in "$folder"/apt/cache/archives/*.deb; do
        dpkg-deb -x "$package" "$root"
    done
    make_links_relative
    touch "$folder/root-is-complete"
}

[ -e "$folder/root-is-complete" ] || make_root
generator=()
if command -v ninja >/dev/null; then generator=(-G Ninja); fi
cmake -S . -B "$folder/build" "${generator[@]}" -DCMAKE_TOOLCHAIN_FILE=cmake/cross.cmake -DCOGPU_CROSS="$arch" \
    -DCOGPU_CROSS_ROOT="$root" -DCOGPU_CUDA=OFF
cmake --build "$folder/build" --parallel "$(nproc)"
ctest --test-dir "$folder/build" --parallel "$(nproc)" --output-on-failure "$@"
