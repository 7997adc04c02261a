#!/bin/sh
# methods.sh [WORKLOAD...]: how far the predictions of the unprivileged methods
# lie from method root's, in per cent, for every default row. Each workload
# (gcc sort sort1 python shell) runs with one memory layout (setarch -R) and is
# recorded once by each method, and again by perf and pagemap as an unprivileged
# user ("-u"). Needs root, go, setarch, setpriv, gcc, sort and python3. Exit 1
# when a row of gcc or sort lies beyond 1 % (perf) or 3 % (pagemap).
set -eu
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- gcc sort sort1 python shell
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
chmod 755 "$dir"
go build -o "$dir/hugelab" ./cmd/hugelab
mkdir "$dir/u"
chown nobody "$dir/u"
rows="never 16k 32k 64k 128k 256k 512k 1m thp thp+64k"
functions=${FUNCTIONS:-3000} lines=${LINES_SORTED:-2000000}

scripts/gen-functions.sh "$functions" >"$dir/a.c"
awk -v n="$lines" 'BEGIN { s = 1; for (i = 0; i < n; i++) { s = (s * 7919 + 13) % 4000037; print s " line " i } }' \
	>"$dir/lines"
cat >"$dir/dicts.py" <<'END'
d = {}
for i in range(600000):
    d["key %d" % (i * 7919 % 1000003)] = [i, str(i)]
e = {v[1]: k for k, v in d.items() if v[0] % 3 == 0}
d.clear()
print(len(e))
END
cat >"$dir/execs.sh" <<'END'
i=0
while [ $i -lt 50 ]; do
	ls -l / | wc -l
	i=$((i + 1))
done
END

# words prints the command of workload $1, which writes below $2.
words() {
	case $1 in
	gcc) echo "gcc -O2 -c -o $2/a.o $dir/a.c" ;;
	sort) echo "sort -o $2/sorted -T $2 $dir/lines" ;;
	sort1) echo "sort --parallel=1 -o $2/sorted -T $2 $dir/lines" ;;
	python) echo "/usr/bin/python3 $dir/dicts.py" ;;
	shell) echo "sh $dir/execs.sh" ;;
	*) echo "methods.sh: $1: no such workload" >&2 && return 1 ;;
	esac
}

# predict prints the faults of each row of recording $1.
predict() {
	set -- "$1" $(for r in $rows; do echo "--policy $r"; done)
	"$dir/hugelab" predict --json "$@" | awk '
		/"name":/ { split($0, q, "\""); name = q[4] }
		/"faults":/ && name != "" { gsub(/[^0-9]/, ""); print name, $0; name = "" }'
}

export LC_ALL=C
status=0
printf '%-9s %-10s' workload method
for r in $rows; do printf ' %8s' "$r"; done
echo
for w; do
	for m in root root-2 perf pagemap perf-u pagemap-u; do
		out=$dir as=
		case $m in *-u) out=$dir/u as="setpriv --reuid=nobody --regid=nogroup --clear-groups env HOME=$dir/u" ;; esac
		rec=$out/$w-$m.hlr
		# shellcheck disable=SC2046,SC2086
		setarch -R $as "$dir/hugelab" record -q --method "${m%-*}" -o "$rec" -- $(words "$w" "$out")
		predict "$rec" >"$dir/$w-$m.rows"
		bar=0
		case $w$m in
		gccperf* | sort*perf*) bar=1 ;;
		gccpagemap* | sort*pagemap*) bar=3 ;;
		esac
		awk -v w="$w" -v m="$m" -v rows="$rows" -v bar="$bar" '
			NR == FNR { base[$1] = $2; next }
			{ got[$1] = $2 }
			END {
				printf "%-9s %-10s", w, m
				n = split(rows, r, " ")
				for (i = 1; i <= n; i++) {
					if (m == "root") { printf " %8d", got[r[i]]; continue }
					d = 100 * (got[r[i]] / base[r[i]] - 1)
					mark = bar && (d > bar || d < -bar) ? "!" : " "
					if (mark == "!") bad = 1
					printf " %+7.2f%s", d, mark
				}
				print ""
				exit bad
			}' "$dir/$w-root.rows" "$dir/$w-$m.rows" || status=1
	done
done
exit $status
