#!/bin/sh
# Makes the recording that is built into hugelab: a compile of one C file of
# about a thousand lines, with everything that gcc starts for it.
#
#   scripts/make-example.sh [METHOD]
#
# METHOD is what hugelab record takes: root (the default), perf or pagemap.
# Build hugelab again afterwards.
set -eu

method=${1:-root}
cd "$(dirname "$0")/.."
out=$PWD/internal/predict/example/compile.hlrec
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The source is generated, so that the example needs nothing from elsewhere.
awk 'BEGIN {
	print "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>"
	for (i = 0; i < 160; i++) {
		printf "struct s%d { int a[%d]; double d; struct s%d *next; };\n", i, i % 7 + 1, i
		printf "double f%d(struct s%d *p, int n) {\n\tdouble t = 0;\n", i, i
		printf "\tfor (int i = 0; i < n; i++) {\n\t\tt += p->a[i %% %d] * p->d;\n", i % 7 + 1
		printf "\t\tif (p->next) p = p->next;\n\t}\n\treturn t;\n}\n"
	}
	print "int main(void) { return 0; }"
}' > "$work/example.c"

go build -o "$work/hugelab" ./cmd/hugelab
cd "$work"
./hugelab record --method "$method" -o "$out" -- gcc -O2 -c -o example.o example.c
ls -l "$out"
