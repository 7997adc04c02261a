#!/bin/sh
# Makes the recording that is built into hugelab: a gcc compile of a generated
# C file, with everything that gcc starts for it. Needs root, gcc, setarch and
# go, on a Linux machine of any kind.
#
#   scripts/make-example.sh            record it anew
#   scripts/make-example.sh --recode   write the one there in today's format
#
# Addresses are not randomised and the environment is empty, so that the same
# gcc always does the same. Build hugelab again afterwards, and rewrite what
# the documents show of it: REWRITE=1 go test ./cmd/hugelab -run TestDocs
set -eu
cd "$(dirname "$0")/.."
root=$PWD
out=$root/internal/predict/example/compile.hlr
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go build -o "$work/hugelab" ./cmd/hugelab

if [ "${1:-}" = --recode ]; then
	"$work/hugelab" recording copy "$out" "$work/compile.hlr"
else
	mkdir "$work/src"
	scripts/gen-functions.sh 3000 > "$work/src/functions.c"
	cd "$work/src"
	local=$(uname -r | sed 's/^[0-9.]*//') # nothing of this machine but its kernel's version
	env -i PATH=/usr/bin:/bin TMPDIR=/tmp setarch -R "$work/hugelab" record --quiet --method root \
		-o "$work/raw.hlr" -- gcc -O2 -c functions.c
	"$work/hugelab" recording copy --strip "$work/src/" --strip "$local" "$work/raw.hlr" "$work/compile.hlr"
fi
"$work/hugelab" recording info "$work/compile.hlr"
cp "$work/compile.hlr" "$out"
ls -l "$out"
