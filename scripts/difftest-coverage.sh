#!/bin/sh
# Which statements of package mm the programs of difftest reach, and nothing else
# does: builds hugelab with counters in mm, runs generated programs, and prints
# the functions with the least. Usage: difftest-coverage.sh [PROGRAMS [SEED]]
#
# Figures: programs as the kernel is asked (rules of 6.18, memory enough; with root
# a few are run on it, too), and with those for the model alone (--vary: any
# version's rules, memory that runs out, time that passes), whose only judge is the
# model's own check.
set -eu
programs=${1:-600} seed=${2:-1}
cd "$(dirname "$0")/.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT INT TERM
go build -cover -coverpkg=./mm/...,./cmd/hugelab -o "$dir/hugelab" ./cmd/hugelab

run() { # NAME FLAGS...: runs programs, adds their counters to $dir/NAME
    name=$1
    shift
    mkdir -p "$dir/$name"
    GOCOVERDIR=$dir/$name "$dir/hugelab" difftest --programs "$programs" --seed "$seed" "$@" >/dev/null
}

show() { # TITLE DIRS: statements reached
    go tool covdata textfmt -i="$2" -o "$dir/all.txt"
    grep -v '/cmd/hugelab/' "$dir/all.txt" >"$dir/mm.txt"
    go tool cover -func="$dir/mm.txt" >"$dir/functions.txt"
    printf '%s: %s of the statements of mm\n' "$1" "$(awk '/^total:/ { print $NF }' "$dir/functions.txt")"
}

run kernel --model --kernel 6.18
# Settings and mappings are read only where there is a kernel to ask.
[ "$(id -u)" != 0 ] || programs=40 run kernel --time 20s
show "programs for the kernel" "$dir/kernel"
run vary --model --vary
show "with programs for the model alone" "$dir/kernel,$dir/vary"
echo
echo "statements that no program reached, by file:"
awk -F'[ :]' 'NR > 1 { n[$1] += $3; if ($4 > 0) hit[$1] += $3 }
    END { for (f in n) if (n[f] > hit[f]) printf "%5d of %5d  %s\n", n[f] - hit[f], n[f], f }' "$dir/mm.txt" | sort -rn
echo
echo "functions that no program reached:"
awk '$NF == "0.0%" { printf "  %s %s\n", $1, $2 }' "$dir/functions.txt"
