#!/bin/sh
# "git gc" of a generated repository, a fresh copy of it each time.
# usage: git.sh needs | make DIR | prepare DIR | command DIR
set -eu
case $1 in
needs) echo git; echo awk ;;
make)
	mkdir -p "$2/home"
	export HOME="$2/home" GIT_CONFIG_NOSYSTEM=1
	git init -q --bare "$2/pristine"
	awk -v n=400 -v seed=5 'BEGIN {
		srand(seed)
		for (c = 1; c <= n; c++) {
			printf "commit refs/heads/main\nmark :%d\ncommitter A <a@example.org> %d +0000\ndata 1\nx\n", c, 1700000000 + c * 60
			for (k = 0; k < 12; k++) {
				text = ""
				for (l = 0; l < 120; l++) text = text sprintf("line %d of %d is %d\n", l, k, l % 7 == c % 7 ? c : int(rand() * 4))
				printf "M 100644 inline dir%d/file%d\ndata %d\n%s\n", (c * k) % 20, k + c % 30, length(text), text
			}
		}
	}' | git -C "$2/pristine" -c fastimport.unpackLimit=1000000 fast-import --quiet ;;
prepare) rm -rf "$2/work"; cp -a "$2/pristine" "$2/work" ;;
command)
	printf '%s\n' env "HOME=$2/home" GIT_CONFIG_NOSYSTEM=1 git -C "$2/work" -c pack.threads=1 \
		-c pack.writeBitmapHashCache=false gc --quiet --prune=now ;;
esac
