#!/bin/sh
# node building arrays. Its collector works in one thread, because how work falls
# to several is chance.
# usage: node.sh needs | make DIR | prepare DIR | command DIR
set -eu
case $1 in
needs) echo node ;;
make)
	cat >"$2/arrays.js" <<'END'
let kept = [];
for (let turn = 0; turn < 24; turn++) {
  const a = [];
  for (let i = 0; i < 60000; i++) a.push({ id: i, name: "n" + (i % 1000), at: [i, turn] });
  const f = new Float64Array(400000);
  for (let i = 0; i < f.length; i++) f[i] = i * turn;
  kept.push(a, f);
  if (kept.length > 10) kept = kept.slice(6);
}
console.log(kept.length);
END
	;;
prepare) ;;
command)
	printf '%s\n' node --single-threaded --predictable-gc-schedule --random-seed=1 --hash-seed=1 "$2/arrays.js" ;;
esac
