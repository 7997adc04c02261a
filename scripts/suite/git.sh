#!/bin/sh
# "git gc" of a generated repository of loose objects, a fresh copy of it each
# time: many small files, and one of 1 MB in 60 versions.
# usage: git.sh needs | make DIR | prepare DIR | command DIR
set -eu
case $1 in
needs) echo git; echo awk ;;
make)
	mkdir -p "$2/home"
	export HOME="$2/home" GIT_CONFIG_NOSYSTEM=1
	git init -q --bare "$2/pristine"
	awk -v n=60 'BEGIN {
		x = 5
		for (c = 1; c <= n; c++) {
			printf "commit refs/heads/main\nmark :%d\ncommitter A <a@example.org> %d +0000\ndata 1\nx\n", c, 1700000000 + c * 60
			for (k = 0; k < 12; k++) {
				text = sprintf("file %d\nat commit %d\n", k, c)
				printf "M 100644 inline dir%d/file%d\ndata %d\n%s\n", (c * k) % 20, k + c % 30, length(text), text
			}
			# An eighth of the large file is new in each version.
			for (s = 0; s < 16; s++) {
				if (c > 1 && s % 8 != c % 8) continue
				seg[s] = ""
				for (l = 0; l < 40; l++) {
					part = ""
					for (w = 0; w < 50; w++) { x = (x * 16807) % 2147483647; part = part x " word " s "\n" }
					seg[s] = seg[s] part
				}
			}
			text = ""
			for (s = 0; s < 16; s++) text = text seg[s]
			printf "M 100644 inline large\ndata %d\n%s\n", length(text), text
		}
	}' | git -C "$2/pristine" -c fastimport.unpackLimit=1000000 fast-import --quiet ;;
prepare) rm -rf "$2/work"; cp -a "$2/pristine" "$2/work" ;;
command)
	printf '%s\n' env "HOME=$2/home" GIT_CONFIG_NOSYSTEM=1 git -C "$2/work" -c pack.threads=1 gc --quiet --prune=now ;;
esac
