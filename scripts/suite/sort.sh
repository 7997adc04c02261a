#!/bin/sh
# sort of 2 million lines in memory.
# usage: sort.sh needs | make DIR | prepare DIR | command DIR
set -eu
case $1 in
needs) echo sort; echo awk ;;
make)
	awk -v n=2000000 -v seed=3 'BEGIN {
		x = seed
		for (i = 0; i < n; i++) { x = (x * 16807) % 2147483647; printf "%d line %d\n", x, i }
	}' >"$2/lines" ;;
prepare) ;;
command) printf '%s\n' env LC_ALL=C sort -S 1G --parallel=1 -o /dev/null "$2/lines" ;;
esac
