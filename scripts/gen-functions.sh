#!/bin/sh
# gen-functions.sh N: a C file of N functions on standard output, the same for
# the same N: the workload of overhead.sh.
exec awk -v n="${1:?usage: gen-functions.sh N}" 'BEGIN {
	seed = 12345
	for (i = 0; i < n; i++) {
		seed = (seed * 1103 + 12347) % 65536
		printf "int f%d(int a, int b) { if (a > %d) return a * %d - b; return (a ^ b) + %d; }\n",
			i, seed % 97 + 3, seed % 31 + 1, seed % 1013 + 2
	}
}'
