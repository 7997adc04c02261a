#!/bin/sh
# Makes the recording that the result folio-sizes replays: a `make -j2` of Lua
# 5.4 (MIT licence), whose source comes from Debian and is not kept. Needs root,
# gcc, make, setarch, apt-get and go, on a Linux machine.
#
# Addresses are not randomised and the environment is empty, so that the same
# compiler always does the same. The times that make took, run by itself, stand
# in the file beside the recording.
set -eu
cd "$(dirname "$0")/.."
root=$PWD
out=$root/internal/repro/recording
version=5.4.4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go build -o "$work/hugelab" ./cmd/hugelab

# The source, by the package manager, from the sources of the Debian in use.
mkdir -p "$work/lists/partial" "$work/src"
sed 's/^Types: deb$/Types: deb-src/' /etc/apt/sources.list.d/debian.sources > "$work/debian.sources"
apt() {
	apt-get -q -o Dir::Etc::sourcelist="$work/debian.sources" -o Dir::Etc::sourceparts=/dev/null \
		-o Dir::State::lists="$work/lists" "$@"
}
apt update
(cd "$work/src" && apt source --download-only lua5.4)
tar -C "$work" -xzf "$work/src/lua5.4_$version.orig.tar.gz"
cd "$work/lua-$version/src"

clean="env -i PATH=/usr/bin:/bin TMPDIR=/tmp setarch -R"
$clean make -s generic # warms the page cache
for i in 1 2 3; do
	make -s clean
	/usr/bin/env bash -c "TIMEFORMAT='%R %U %S'; time $clean make -s -j2 generic" 2>> "$work/times"
done
cat "$work/times"
make -s clean
local=$(uname -r | sed 's/^[0-9.]*//') # nothing of this machine but its kernel's version
$clean "$work/hugelab" record --quiet --method root -o "$work/raw.hlr" -- make -s -j2 generic
"$work/hugelab" recording copy --strip "$work/lua-$version/" --strip "$local" "$work/raw.hlr" "$work/make.hlr"
"$work/hugelab" recording info "$work/make.hlr"
mkdir -p "$out"
cp "$work/make.hlr" "$out/make.hlr"
ls -l "$out"
