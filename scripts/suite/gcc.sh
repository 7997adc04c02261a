#!/bin/sh
# A C compiler on one generated file of 3,000 functions.
# usage: gcc.sh needs | make DIR | prepare DIR | command DIR
set -eu
case $1 in
needs) echo gcc; echo awk ;;
make)
	awk -v n=3000 'BEGIN {
		seed = 12345
		for (i = 0; i < n; i++) {
			seed = (seed * 1103 + 12347) % 65536
			printf "int f%d(int a, int b) { if (a > %d) return a * %d - b; return (a ^ b) + %d; }\n",
				i, seed % 97 + 3, seed % 31 + 1, seed % 1013 + 2
		}
	}' >"$2/input.c" ;;
prepare) rm -f "$2/output.o" ;;
command) printf '%s\n' gcc -O1 -c -o "$2/output.o" "$2/input.c" ;;
esac
