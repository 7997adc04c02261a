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
go test ./internal/difftest -count=1 -v -timeout 60m -run 'TestMutations$' -args -mutations . $answers
