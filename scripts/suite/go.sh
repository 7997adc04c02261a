#!/bin/sh
# "go build" of a module of 20 packages that import one another, with an empty
# build cache; one compiler at a time, as which ones run side by side is chance.
# usage: go.sh needs | make DIR | prepare DIR | command DIR
set -eu
case $1 in
needs) echo go; echo awk ;;
make)
	mkdir -p "$2/home"
	printf 'module example.org/suite\n\ngo 1.21\n' >"$2/go.mod"
	awk -v dir="$2" -v n=20 -v seed=11 'BEGIN {
		srand(seed)
		for (i = 0; i < n; i++) {
			d = sprintf("%s/p%02d", dir, i)
			system("mkdir -p " d)
			f = d "/p.go"
			printf "package p%02d\n\n", i >f
			if (i > 1) {
				a = int(rand() * i); b = (a + 1) % i
				printf "import (\n\t\"example.org/suite/p%02d\"\n\t\"example.org/suite/p%02d\"\n)\n\n", a, b >f
				printf "var used = p%02d.F0(1, nil) + p%02d.F1(2, nil)\n\n", a, b >f
			}
			printf "type T struct {\n\tA, B int\n\tM map[string]int\n\tNext *T\n}\n\n" >f
			for (k = 0; k < 45; k++) {
				printf "func F%d(x int, t *T) int {\n\tr := x * %d\n", k, k + 3 >f
				for (j = 0; j < 5; j++)
					printf "\tif x > %d {\n\t\tr += len(t.M) * %d\n\t} else if t != nil {\n\t\tt.M[\"k%d\"] += r\n\t\tr ^= t.A\n\t}\n",
						int(rand() * 100), int(rand() * 50), int(rand() * 64) >f
				printf "\tfor i := range []int{x, r} {\n\t\tr += i\n\t}\n\treturn r\n}\n\n" >f
			}
			close(f)
		}
	}'
	# The go command starts a process of its own for telemetry now and then.
	HOME=$2/home XDG_CONFIG_HOME=$2/home GOTOOLCHAIN=local go telemetry off 2>/dev/null || true ;;
prepare) rm -rf "$2/cache" "$2/tmp"; mkdir -p "$2/cache" "$2/tmp" ;;
command)
	root=$(go env GOROOT)
	printf '%s\n' env -i "PATH=$PATH" "HOME=$2/home" "XDG_CONFIG_HOME=$2/home" "GOCACHE=$2/cache" "GOTMPDIR=$2/tmp" \
		"GOPATH=$2/home/go" GOTOOLCHAIN=local GOPROXY=off GOFLAGS=-mod=mod GOENV=off GOWORK=off CGO_ENABLED=0 GOMAXPROCS=1 \
		"$root/bin/go" build -C "$2" -p 1 -buildvcs=false ./... ;;
esac
