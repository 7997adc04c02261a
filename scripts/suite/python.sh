#!/bin/sh
# python3 building dictionaries and dropping them.
# usage: python.sh needs | make DIR | prepare DIR | command DIR
set -eu
case $1 in
needs) echo python3 ;;
make)
	cat >"$2/dicts.py" <<'END'
def build(n, salt):
    return {"key%d.%d" % (salt, i): [i, salt, str(i * salt)] for i in range(n)}

kept = []
for turn in range(12):
    d = build(60000, turn)
    if turn % 3 == 0:
        kept.append(d)
    if turn % 5 == 4:
        kept.pop(0)
    big = {i: float(i) for i in range(200000)}
    del big, d
print(sum(len(d) for d in kept))
END
	;;
prepare) ;;
command) # what python3 stands for may be a script that looks for the real one
	printf '%s\n' env -i PYTHONHASHSEED=0 PYTHONDONTWRITEBYTECODE=1
	# Its allocator loses a pool of 16 kB in each arena of 1 MB unless the arenas
	# begin at a multiple of 16 kB: at other addresses it does other work.
	if setarch -R true 2>/dev/null; then printf '%s\n' "$(command -v setarch)" -R; fi
	printf '%s\n' "$(python3 -c 'import sys; print(sys.executable)')" -S "$2/dicts.py" ;;
esac
