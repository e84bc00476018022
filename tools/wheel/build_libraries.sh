#!/usr/bin/env bash
# Builds the libraries of the wheel, static, from Debian's source packages into build-wheel/ARCH/sysroot/usr, and
# collects their licences in build-wheel/ARCH/licenses.
# Usage: build_libraries.sh [x86_64|aarch64]. A library is built again only if its recipe below changes.
source "$(dirname "$0")/common.sh"

sources=$work/sources
licenses=$target/licenses
jobs=${JOBS:-$(nproc)}

require_programs() {
    local absent=()
    for program in cmake gcc make nasm ninja patch perl python3 sqlite3 tclsh; do
        command -v "$program" >/dev/null || absent+=("$program")
    done
    [ ${#absent[@]} = 0 ] || fail "these programs are missing: ${absent[*]}; try: apt install nasm patch perl sqlite3 tcl"
    [ "${COGPU_CUDA:-ON}" = OFF ] || command -v nvcc >/dev/null ||
        fail "nvcc is missing: install CUDA's toolkit, or set COGPU_CUDA=OFF for a wheel without GPU code"
}

# ---- compiler ----------------------------------------------------------------------------------

# CMake and configure want programs of one word. The prefix map keeps paths of this machine out of __FILE__.
make_compiler() {
    local zig
    zig=$(python -c 'import os, ziglang; print(os.path.dirname(ziglang.__file__))')/zig
    mkdir -p "$target/bin"
    for tool in cc c++; do
        printf '#!/bin/sh\nexec %s %s -target %s-linux-gnu.%s -ffile-prefix-map=%s=. -g0 "$@"\n' \
            "$zig" "$tool" "$architecture" "$glibc" "$root" >"$target/bin/$tool"
    done
    for tool in ar ranlib; do
        printf '#!/bin/sh\nexec %s %s "$@"\n' "$zig" "$tool" >"$target/bin/$tool"
    done
    chmod +x "$target"/bin/*
}

# ---- sources -----------------------------------------------------------------------------------

# apt with an index of source packages in build-wheel/apt: that of the machine stays as it is.
private_apt() {
    apt-get -qq -o Dir::Etc::sourcelist="$work/apt/sources.list" -o Dir::Etc::sourceparts=- \
        -o Dir::State::lists="$work/apt/lists" -o Dir::Cache="$work/apt/cache" -o APT::Sandbox::User=root "$@"
}

make_index() {
    [ -e "$work/apt/done" ] && return
    local mirror=${DEBIAN_MIRROR:-$(debian_mirror)}
    mkdir -p "$work/apt/lists/partial" "$work/apt/cache/archives/partial" "$sources"
    for suite in bookworm trixie forky; do
        echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main"
    done >"$work/apt/sources.list"
    private_apt update
    touch "$work/apt/done"
}

# Downloads PACKAGE/SUITE, unpacks the original archive and applies Debian's patches: security fixes are among them.
# Mirrors may lack files of Debian's part (.dsc, .debian.tar): the original archive alone will do. apt compares each
# file with the signed index.
unpack() {
    local package=$1 folder=$2 files original debian patch
    files=$(cd / && private_apt source --print-uris "$package" 2>/dev/null | awk '{ print $2 }')
    original=$(grep -m 1 -E '\.orig\.tar\.[a-z0-9]+$' <<<"$files") || fail "no source package $package"
    debian=$(grep -m 1 -E '\.debian\.tar\.' <<<"$files") || true
    (cd "$sources" && private_apt source --download-only "$package" >"$folder.fetch.log" 2>&1) || true
    [ -e "$sources/$original" ] || fail "$package: $original could not be downloaded; see $folder.fetch.log"
    rm -rf "$folder"
    mkdir -p "$folder"
    tar -xf "$sources/$original" -C "$folder" --strip-components=1
    [ -n "$debian" ] && [ -e "$sources/$debian" ] || return 0
    tar -xf "$sources/$debian" -C "$folder"
    [ -e "$folder/debian/patches/series" ] || return 0
    while read -r patch _; do
        case $patch in '' | '#'*) continue ;; esac
        patch -d "$folder" -p1 -s -N <"$folder/debian/patches/$patch"
    done <"$folder/debian/patches/series"
}

# ---- recipes -----------------------------------------------------------------------------------

# Each runs in the folder of its source. Everything is configured for /usr and installed below $sysroot, so that no
# path of this machine is compiled in.
configure_with_cmake() {
    local folder=$1
    shift
    cmake -S "$folder" -B "$folder/build-static" -G Ninja -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=OFF \
        -DCMAKE_TOOLCHAIN_FILE="$root/tools/wheel/toolchain.cmake" -DCOGPU_WHEEL_TARGET="$target" \
        -DCMAKE_INSTALL_PREFIX=/usr -DCMAKE_INSTALL_LIBDIR=lib -DBUILD_TESTING=OFF "$@"
}

with_cmake() {
    configure_with_cmake "$@"
    cmake --build "$1/build-static" --parallel "$jobs"
    DESTDIR=$sysroot cmake --install "$1/build-static"
}

build_zlib() {
    CHOST='' CC=$target/bin/cc AR=$target/bin/ar RANLIB=$target/bin/ranlib CFLAGS='-O3 -fPIC' \
        ./configure --static --prefix=/usr
    make -j "$jobs" libz.a
    make install DESTDIR="$sysroot"
}

build_libdeflate() {
    with_cmake . -DLIBDEFLATE_BUILD_SHARED_LIB=OFF -DLIBDEFLATE_BUILD_GZIP=OFF
}

# igzip alone is used; the linker leaves out the rest. Its makefile wants nasm for x86-64.
build_isal() {
    make -f Makefile.unx lib -j "$jobs" CC="$target/bin/cc" AR="$target/bin/ar" AS=nasm arch= \
        host_cpu="$architecture" CFLAGS_='-fPIC'
    install -D -m 644 bin/isa-l.a "$sysroot/usr/lib/libisal.a"
    install -D -m 644 -t "$sysroot/usr/include/isa-l" include/*.h
}

build_zstd() {
    with_cmake build/cmake -DZSTD_BUILD_PROGRAMS=OFF -DZSTD_BUILD_SHARED=OFF -DZSTD_LEGACY_SUPPORT=OFF
}

build_lzma() {
    with_cmake . -DXZ_TOOL_XZ=OFF -DXZ_TOOL_XZDEC=OFF -DXZ_TOOL_LZMADEC=OFF -DXZ_TOOL_LZMAINFO=OFF \
        -DXZ_TOOL_SCRIPTS=OFF -DXZ_DOC=OFF -DXZ_NLS=OFF
}

build_jpeg() {
    with_cmake . -DENABLE_SHARED=OFF -DWITH_TURBOJPEG=OFF -DWITH_TOOLS=OFF -DWITH_TESTS=OFF -DREQUIRE_SIMD=ON \
        -DCMAKE_ASM_NASM_COMPILER=nasm
}

build_webp() {
    with_cmake . -DWEBP_BUILD_{ANIM_UTILS,CWEBP,DWEBP,GIF2WEBP,IMG2WEBP,VWEBP,WEBPINFO,LIBWEBPMUX,WEBPMUX,EXTRAS}=OFF
}

build_lerc() {
    with_cmake .
}

build_openjpeg() {
    with_cmake . -DBUILD_CODEC=OFF -DBUILD_DOC=OFF
}

build_brotli() {
    with_cmake . -DBROTLI_DISABLE_TESTS=ON
}

build_highway() {
    with_cmake . -DHWY_ENABLE_{TESTS,EXAMPLES,CONTRIB}=OFF
}

build_lcms() {
    ./configure --host="$architecture-linux-gnu" --prefix=/usr --libdir=/usr/lib --disable-shared --with-pic \
        --without-jpeg --without-tiff --without-zlib CC="$target/bin/cc" AR="$target/bin/ar" \
        RANLIB="$target/bin/ranlib" CFLAGS=-O2
    make -j "$jobs" -C src install DESTDIR="$sysroot"
    make -C include install DESTDIR="$sysroot"
}

# The decoder alone.
build_jxl() {
    configure_with_cmake . -DJPEGXL_ENABLE_{TOOLS,DEVTOOLS,EXAMPLES,BENCHMARK,DOXYGEN,MANPAGES,JNI,SJPEG,OPENEXR,SKCMS}=OFF \
        -DJPEGXL_ENABLE_{PLUGINS,VIEWERS,FUZZERS,JPEGLI,TRANSCODE_JPEG}=OFF -DJPEGXL_BUNDLE_LIBPNG=OFF \
        -DJPEGXL_FORCE_SYSTEM_{BROTLI,HWY,LCMS2}=ON
    cmake --build build-static --parallel "$jobs" --target jxl_dec jxl_cms
    install -D -m 644 -t "$sysroot/usr/include/jxl" build-static/lib/include/jxl/*.h
    install -m 644 build-static/lib/libjxl_dec.a "$sysroot/usr/lib/libjxl.a"
    install -m 644 build-static/lib/libjxl_cms.a "$sysroot/usr/lib/libjxl_cms.a"
}

# Debian's source is not the amalgamation: the host's compiler makes it.
build_sqlite() {
    CC=gcc ./configure --disable-shared
    make sqlite3.c
    "$target/bin/cc" -O2 -fPIC -DSQLITE_OMIT_LOAD_EXTENSION -DSQLITE_THREADSAFE=1 -c sqlite3.c -o sqlite3.o
    "$target/bin/ar" rcs libsqlite3.a sqlite3.o
    install -D -m 644 libsqlite3.a "$sysroot/usr/lib/libsqlite3.a"
    install -D -m 644 -t "$sysroot/usr/include" sqlite3.h
}

# It keeps the name of its compiler in the library: one without a folder of this machine.
build_openssl() {
    export PATH=$target/bin:$PATH
    CC=cc AR=ar RANLIB=ranlib ./Configure "linux-$architecture" no-shared no-tests \
        no-apps no-docs no-engine no-legacy no-dso no-module no-comp --prefix=/usr --libdir=lib --openssldir=/etc/ssl
    make -j "$jobs" build_libs
    make install_dev DESTDIR="$sysroot"
}

build_nghttp2() {
    with_cmake . -DENABLE_LIB_ONLY=ON -DBUILD_STATIC_LIBS=ON -DENABLE_DOC=OFF
}

# Without a bundle of certificates: src/io/http/certificates.c finds the system's at run time.
build_curl() {
    with_cmake . -DBUILD_CURL_EXE=OFF -DBUILD_STATIC_LIBS=ON -DBUILD_LIBCURL_DOCS=OFF -DBUILD_MISC_DOCS=OFF \
        -DENABLE_CURL_MANUAL=OFF -DCURL_USE_OPENSSL=ON -DHTTP_ONLY=ON -DUSE_NGHTTP2=ON -DCURL_CA_BUNDLE=none \
        -DCURL_CA_PATH=none -DCURL_USE_LIBSSH2=OFF -DCURL_USE_LIBPSL=OFF -DUSE_LIBIDN2=OFF -DCURL_BROTLI=OFF \
        -DCURL_ZSTD=OFF -DCURL_DISABLE_LDAP=ON
}

# For CRS definitions alone: no grids, hence neither libtiff nor curl.
build_proj() {
    with_cmake . -DBUILD_APPS=OFF -DENABLE_TIFF=OFF -DENABLE_CURL=OFF -DEXE_SQLITE3="$(command -v sqlite3)"
}

# ---- the whole ---------------------------------------------------------------------------------

# library NAME PACKAGE/SUITE LICENCE...: the licence files are the source's own.
library() {
    local name=$1 package=$2 folder=$target/$1 stamp=$target/stamps/$1 recipe status
    shift 2
    recipe=$(declare -f "build_$name" && echo "$package $*" && cat "$root/tools/wheel/toolchain.cmake")
    [ "$(cat "$stamp" 2>/dev/null)" = "$recipe" ] && return
    echo "wheel: $name ($package)"
    unpack "$package" "$folder"
    set +e # a list with || would ignore what fails within the recipe
    (set -e && cd "$folder" && "build_$name") >"$folder.log" 2>&1
    status=$?
    set -e
    [ $status = 0 ] || { tail -30 "$folder.log" >&2 && fail "$name could not be built: $folder.log has it all"; }
    for license in "$@"; do
        install -D -m 644 "$folder/$license" "$licenses/$name-$(basename "$license")"
    done
    echo "$recipe" >"$stamp"
}

require_programs
mkdir -p "$target/stamps"
make_venv
make_compiler
make_index
library zlib zlib/trixie LICENSE
library libdeflate libdeflate/trixie COPYING
[ "$architecture" = x86_64 ] && library isal libisal/trixie LICENSE
library zstd libzstd/trixie LICENSE
library lzma xz-utils/trixie COPYING COPYING.0BSD
library jpeg libjpeg-turbo/forky LICENSE.md README.ijg # 3.x, for JPEG with 12 bits
library webp libwebp/trixie COPYING PATENTS
library lerc lerc/trixie LICENSE NOTICE
library openjpeg openjpeg2/trixie LICENSE
library brotli brotli/trixie LICENSE
library highway highway/trixie LICENSE-BSD3
library lcms lcms2/trixie LICENSE
library jxl jpeg-xl/trixie LICENSE PATENTS
library sqlite sqlite3/trixie LICENSE.md
library openssl openssl/trixie LICENSE.txt
library nghttp2 nghttp2/trixie COPYING
library curl curl/trixie COPYING
library proj proj/bookworm COPYING
echo "wheel: libraries are in ${sysroot#"$root"/}/usr"
