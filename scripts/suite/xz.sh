#!/bin/sh
# xz of a generated file of 4 MB.
# usage: xz.sh needs | make DIR | prepare DIR | command DIR
set -eu
case $1 in
needs) echo xz; echo awk ;;
make)
	awk -v n=90000 -v seed=9 'BEGIN {
		x = seed
		for (i = 0; i < n; i++) { x = (x * 16807) % 2147483647; printf "%d: some words and %d more of them %d\n", i, x % 1000, x % 77 }
	}' >"$2/text" ;;
prepare) ;;
command) printf '%s\n' xz -T1 -6 -k -c "$2/text" ;;
esac
