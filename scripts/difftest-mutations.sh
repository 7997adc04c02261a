#!/bin/sh
# Plants every fault of internal/difftest/testdata/mutations.txt in the model, one
# at a time, and prints after how many programs which field shows it. With root
# the programs run on the kernel first (500, half a minute of its settings); else,
# or with --model, the model without the fault stands for it.
set -eu
cd "$(dirname "$0")/.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT INT TERM
answers=
if [ "${1:-}" != --model ] && [ "$(id -u)" = 0 ]; then
    go build -o "$dir/hugelab" ./cmd/hugelab
    "$dir/hugelab" difftest --programs 500 --seed 1 --answers "$dir/kernel.answers"
    answers=-answers=$dir/kernel.answers
fi
status=0
go test ./internal/difftest -count=1 -v -timeout 60m -run 'TestMutations$' -args -mutations . $answers >"$dir/out" || status=$?
cat "$dir/out"
# The table of docs/accuracy.md is a kernel's.
[ -n "$answers" ] || exit $status
awk -F'\t' 'NR == FNR { if (NF == 3 && $2 ~ /^[0-9]+$/) rows = rows "| " $1 " | " $2 " | " $3 " |\n"; next }
    /<!-- mutations end/ { skip = 0 }
    !skip { print }
    /<!-- mutations begin/ {
        skip = 1
        printf "| the rule that the fault breaks | programs | what differs |\n|---|---|---|\n%s", rows
    }' "$dir/out" docs/accuracy.md >"$dir/accuracy.md"
cat "$dir/accuracy.md" >docs/accuracy.md
exit $status
