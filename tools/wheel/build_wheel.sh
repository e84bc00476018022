#!/usr/bin/env bash
# Builds dist/cogpu-VERSION-cp311-abi3-manylinux_2_28_ARCH.whl: the extension module with all libraries inside, kernels
# for all GPUs since Turing, and PROJ's database. Usage: build_wheel.sh [x86_64|aarch64]. Run build_libraries.sh before.
source "$(dirname "$0")/common.sh"

# The GPU code is compiled for each generation. Its PTX, which the driver compiles at run time, serves GPUs that have no
# code of their own: Orin (8.7), Thor (11.0) and those after 12.x. It is of 8.0, because 7.5 lacks warp reductions and
# asynchronous copies, and all GPUs of 7.5 have code of their own.
cuda_architectures='75;80;86;89;90;100;120'
cuda_ptx=80

# What the static libraries need in turn, users before what they use. zig's runtime has no __cpu_model, which
# __builtin_cpu_supports reads on x86-64: gcc's has.
archives=(jxl jxl_cms hwy lcms2 brotlidec brotlicommon proj sqlite3 curl nghttp2 ssl crypto webp sharpyuv z)
libraries=$(printf "$sysroot/usr/lib/lib%s.a " "${archives[@]}")
if [ "$architecture" = x86_64 ]; then
    libraries+="$(gcc -print-libgcc-file-name) "
    mkdir -p "$target/licenses"
    cp "/usr/share/doc/libgcc-$(gcc -dumpversion | cut -d. -f1)-dev/copyright" "$target/licenses/libgcc-copyright"
fi
libraries+='-lc++ -lpthread -ldl -lm'
cp "$(python -c 'import os, ziglang; print(os.path.dirname(ziglang.__file__))')/lib/libcxx/LICENSE.TXT" \
    "$target/licenses/libcxx-LICENSE.TXT"

definitions=(
    CMAKE_TOOLCHAIN_FILE="$root/tools/wheel/toolchain.cmake"
    COGPU_WHEEL_TARGET="$target"
    CMAKE_C_STANDARD_LIBRARIES="$libraries"
    CMAKE_CXX_STANDARD_LIBRARIES="$libraries"
    CMAKE_MODULE_LINKER_FLAGS=-Wl,--gc-sections
    Python3_INCLUDE_DIR="$(python -c 'import sysconfig; print(sysconfig.get_paths()["include"])')"
    COGPU_PROJ_DATABASE="$sysroot/usr/share/proj/proj.db"
    COGPU_LICENSES="$target/licenses"
    COGPU_CUDA="${COGPU_CUDA:-ON}" # OFF for a quick trial
    COGPU_CUDA_ARCHITECTURES="$cuda_architectures"
    COGPU_CUDA_PTX="$cuda_ptx"
    COGPU_CUDA_FLAGS=-compress-mode=size # in place of -lineinfo, which names folders of this machine
)
for codec in LIBDEFLATE ZSTD LZMA JPEG WEBP LERC OPENJPEG JXL PROJ CURL; do
    definitions+=("COGPU_WITH_$codec=ON")
done
[ "$architecture" = x86_64 ] && definitions+=(COGPU_WITH_ISAL=ON)

rm -rf "$target/wheel"
pip wheel --no-deps --no-build-isolation . --wheel-dir "$target/wheel" -C build-dir="$target/cogpu" \
    -C install.strip=true "${definitions[@]/#/-Ccmake.define.}"
built=$(python -m wheel tags --remove --platform-tag "manylinux_${glibc/./_}_$architecture" "$target"/wheel/*.whl |
    tail -1)
python tools/wheel/check_wheel.py "$target/wheel/$built" "$glibc" "$architecture"
mkdir -p dist
cp "$target/wheel/$built" dist/
echo "wheel: dist/$built, $(stat -c %s "dist/$built") bytes"
