#!/bin/sh
# A C compiler on one generated file of 260 long functions.
# usage: gcc.sh needs | make DIR | prepare DIR | command DIR
set -eu
case $1 in
needs) echo gcc; echo awk ;;
make)
	awk -v n=260 -v seed=7 'BEGIN {
		srand(seed)
		print "struct s { int a, b; double d; struct s *next; };"
		print "static int table[64];"
		for (i = 0; i < n; i++) {
			printf "int f%d(int x, int y, struct s *p) {\n\tint r = x * %d;\n", i, i + 3
			for (j = 0; j < 6; j++)
				printf "\tif (x > %d) r += y * %d; else { r ^= table[(x + %d) & 63]; p->d += r * %d.5; }\n",
					int(rand() * 100), int(rand() * 50), int(rand() * 64), int(rand() * 9)
			print "\tfor (int i = 0; i < x; i++) { r += i * y; if (p->next) p = p->next; }"
			print "\treturn r + p->a;\n}"
		}
	}' >"$2/input.c" ;;
prepare) rm -f "$2/output.o" ;;
command) printf '%s\n' gcc -O2 -c -o "$2/output.o" "$2/input.c" ;;
esac
