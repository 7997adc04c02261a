#!/bin/sh
# Runs the suite and puts its tables into docs/accuracy.md, between the two
# comments there. Arguments go to "hugelab predict --suite" (--runs 3, --only sort).
# It needs root and a quiet machine, and changes huge-page settings for its time.
set -eu
cd "$(dirname "$0")/.."
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
CGO_ENABLED=0 go build -o "$out/hugelab" ./cmd/hugelab
"$out/hugelab" predict --suite --yes --markdown "$@" >"$out/tables.md"
awk -v tables="$out/tables.md" '
	/^<!-- suite end -->/ { skip = 0 }
	!skip { print }
	/^<!-- suite begin/ { skip = 1; print ""; while ((getline line <tables) > 0) print line }
' docs/accuracy.md >"$out/accuracy.md"
cp "$out/accuracy.md" docs/accuracy.md
