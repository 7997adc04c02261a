#!/bin/sh
# guest-check.sh KERNEL-IMAGE...: holds the model against each kernel, booted in
# QEMU with the static hugelab. In the guest, random memory programs and real
# ones (busybox's sort, awk and gzip) are recorded, predicted for several
# policies, and run for real under each. It prints a table of predicted and
# measured page faults, and exits 1 when a row of method root lies beyond 0.5 %,
# of perf beyond 1 %, of pagemap beyond 3 %, or when a guest did not finish.
# Needs qemu-system-x86_64, a static busybox, cpio, gcc and go, not root. Without
# KVM a kernel takes some minutes. DIR=... keeps each guest's console there.
set -eu
[ $# -gt 0 ] || { sed -n '2,9s/^# //p' "$0" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
keep=${DIR:-$dir}
mkdir -p "$dir/root/bin" "$dir/root/proc" "$dir/root/sys" "$dir/root/dev" "$dir/root/tmp" "$keep"

(cd "$here/.." && CGO_ENABLED=0 go build -ldflags=-s -o "$dir/root/bin/hugelab" ./cmd/hugelab)
for p in count mix; do
	gcc -O1 -static -o "$dir/root/bin/$p" "$here/guest/$p.c"
done
cp "$(command -v busybox)" "$dir/root/bin/busybox"
cp "$here/guest/init" "$dir/root/init"
chmod 755 "$dir/root/init"
(cd "$dir/root" && find . | cpio -o -H newc --quiet) >"$dir/initramfs"

# One CPU: emulated ones crash when the kernel patches its code for perf.
status=0
for kernel; do
	log=$keep/$(basename "$kernel").log
	timeout "${TIMEOUT:-1500}" qemu-system-x86_64 -M q35 -accel kvm -accel tcg -cpu max -m 3G -smp 1 \
		-nodefaults -no-reboot -display none -serial stdio -kernel "$kernel" -initrd "$dir/initramfs" \
		-append "console=ttyS0 quiet loglevel=4 panic=-1" </dev/null >"$log" 2>&1 || true
	awk '
		{ sub(/\r$/, "") }
		/^GUEST / {
			print
			printf "%-8s %-8s %-6s %9s %9s %8s\n", "workload", "method", "policy", "predicted", "measured", "off"
		}
		/^ROW / {
			bar = $3 == "root" ? 0.5 : $3 == "perf" ? 1 : 3
			if (NF != 6 || $6 == 0) { print "no result: " $0; bad++; next }
			off = 100 * ($5 / $6 - 1)
			mark = off > bar || off < -bar ? " *" : ""
			if (mark) bad++
			printf "%-8s %-8s %-6s %9d %9d %+7.2f%%%s\n", $2, $3, $4, $5, $6, off, mark
			n++
		}
		/^DONE/ { done = 1 }
		END {
			printf "%d rows, %d beyond the bar\n", n, bad
			if (!done) print "the guest did not finish; the end of its console:"
			exit bad > 0 || !done
		}' "$log" || {
		status=1
		grep -q '^DONE' "$log" || tail -n 20 "$log"
	}
done
exit $status
