#!/bin/bash
# Times the make of folio-sizes on this host with anonymous folios of each size, as
# the result folio-sizes has them: the size, and 32 kB below it. Needs root.
# Prints a line a run: round, size, real, user, system seconds, peak bytes of
# its memory cgroup (version 1).
#
#   scripts/measure-folio-sizes.sh DIRECTORY ROUNDS
#
# DIRECTORY is what make-folio-recording.sh leaves. Settings are
# changed for one run at a time, under the lock that hugelab takes too, and are
# always put back.
set -eu
cd "$1"
sys=/sys/kernel/mm/transparent_hugepage
sizes="16 32 64 128 256"
alone="env -i PATH=/usr/bin:/bin TMPDIR=/tmp"
make="make -s -j2 NO_CURL=1 NO_EXPAT=1 NO_GETTEXT=1 NO_OPENSSL=1 NO_PERL=1 NO_PYTHON=1 NO_TCLTK=1 NO_ICONV=1 \
	xdiff/lib.a commit.o object.o refs.o config.o revision.o diff.o apply.o"
group=/sys/fs/cgroup/memory/hugelab-make.$$
mkdir "$group"
exec 9> /run/hugelab.lock
declare -A old

restore() {
	for k in "${!old[@]}"; do echo "${old[$k]}" > "$sys/hugepages-${k}kB/enabled"; done
	old=()
}
trap 'restore; rmdir "$group"' EXIT
set_size() { # makes SIZE, and 32 below it, the only small sizes
	for k in $sizes; do
		old[$k]=$(sed 's/.*\[\(.*\)\].*/\1/' "$sys/hugepages-${k}kB/enabled")
		if [ "$k" = "$1" ] || { [ "$k" = 32 ] && [ "$1" -gt 32 ]; }; then
			echo always > "$sys/hugepages-${k}kB/enabled"
		else
			echo never > "$sys/hugepages-${k}kB/enabled"
		fi
	done
}
for round in $(seq "$2"); do
	for size in 4 $sizes; do
		rm -f xdiff/*.o xdiff/lib.a *.o
		flock 9
		set_size "$size"
		echo 0 > "$group/memory.max_usage_in_bytes"
		times=$(bash -c "echo \$BASHPID > $group/cgroup.procs; TIMEFORMAT='%R %U %S'
			time $alone $make 2> /dev/null" 2>&1)
		restore
		flock -u 9
		echo "$round $size $times $(cat "$group/memory.max_usage_in_bytes")"
	done
done
