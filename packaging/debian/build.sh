#!/usr/bin/env bash
# Builds Debian packages of the committed tree into build-debian/: libcogpu0.2, libcogpu-dev, cogpu and python3-cogpu.
# Needs dpkg-dev, debhelper and the packages that dpkg-checkbuilddeps names.
set -euo pipefail
cd "$(dirname "$0")/../.."

version=$(sed -n 's/^project(cogpu VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
tree=build-debian/cogpu-$version
rm -rf "$tree"
mkdir -p "$tree"
git archive HEAD | tar -x -C "$tree"
cp -r "$tree/packaging/debian" "$tree/debian"
rm "$tree/debian/build.sh"
cat >"$tree/debian/changelog" <<END
cogpu ($version) unstable; urgency=medium

  * See CHANGELOG.md.

 -- cogpu developers <cogpu@localhost>  $(git log -1 --format=%cD)
END
(cd "$tree" && dpkg-buildpackage --build=binary --no-sign)
ls -l build-debian/*.deb
