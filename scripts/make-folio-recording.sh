#!/bin/sh
# Makes the recording that the result folio-sizes replays: `make -j2` of a
# library and seven files of git (GPL 2), whose source comes from Debian and is not kept.
# Needs root, gcc, make, strace, setarch, apt-get and go, on a Linux machine
# with the memory controller of cgroup 1.
#
#   scripts/make-folio-recording.sh [SOURCE]   SOURCE: also leave the source there
#
# Addresses are not randomised and the environment is empty, so that the same
# compiler always does the same. What the same make took by itself, and which
# system calls it made, is printed last: it stands in recording/make.yaml.
set -eu
cd "$(dirname "$0")/.."
root=$PWD
out=$root/internal/repro/recording
version=2.39.5
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
(cd "$work/src" && apt source --download-only git)
tar -C "$work" -xJf "$work/src/git_$version.orig.tar.xz"
cd "$work/git-$version"

alone="env -i PATH=/usr/bin:/bin TMPDIR=/tmp"
make="make -s -j2 NO_CURL=1 NO_EXPAT=1 NO_GETTEXT=1 NO_OPENSSL=1 NO_PERL=1 NO_PYTHON=1 NO_TCLTK=1 NO_ICONV=1 \
	xdiff/lib.a commit.o object.o refs.o config.o revision.o diff.o apply.o"
clean() { rm -f xdiff/*.o xdiff/lib.a *.o; }
$alone $make # warms the page cache, and makes what only the first run makes
[ $# -eq 0 ] || cp -r . "$1"

clean
local=$(uname -r | sed 's/^[0-9.]*//') # nothing of this machine but its kernel's version
$alone setarch -R "$work/hugelab" record --quiet --method root -o "$work/raw.hlr" -- $make
"$work/hugelab" recording copy --strip "$work/git-$version/" --strip "$local" "$work/raw.hlr" "$work/make.hlr"
"$work/hugelab" recording info "$work/make.hlr"
mkdir -p "$out"
cp "$work/make.hlr" "$out/make.hlr"
ls -l "$out"

clean
strace -f -c -o "$work/calls" $alone $make
cat "$work/calls"
group=/sys/fs/cgroup/memory/hugelab-make.$$
mkdir "$group"
for i in 1 2 3; do
	clean
	echo 0 > "$group/memory.max_usage_in_bytes"
	bash -c "echo \$BASHPID > $group/cgroup.procs; TIMEFORMAT='real %R user %U system %S'; time $alone $make" || true
	echo "peak $(cat "$group/memory.max_usage_in_bytes")"
done
rmdir "$group"
