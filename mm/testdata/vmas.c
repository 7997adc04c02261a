/*
 * vmas.c makes the fixtures vmas-*.txt: it does random system calls on its own
 * address space and writes down each with the kernel's answer, and now and
 * then the whole map. vmas_kernel_test.go replays them on the model.
 *
 *	cc -O2 -static -no-pie -o vmas vmas.c && ./vmas SEED STEPS >vmas-SEED.txt
 *
 * Lines: D (a map follows, one VMA a line, ended by E), mmap, munmap, mprotect,
 * mremap, madvise, mlock2, munlock, brk and touch with their arguments in hex, then "=" and the
 * result or the negative errno. After fork all goes on in the child, while the
 * parent waits.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static char out[32 << 20];
static size_t used;
static unsigned long seed;
static struct { unsigned long a, n; } maps[4096];
static int nmaps;
static unsigned long vvar; /* calls keep below it: the kernel's own maps have rules of their own */

static void say(const char *f, ...)
{
	va_list ap;
	va_start(ap, f);
	used += vsnprintf(out + used, sizeof(out) - used, f, ap);
	va_end(ap);
}

static unsigned long rnd(unsigned long n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (seed >> 11) % n;
}

static void dump(void)
{
	static char buf[4 << 20];
	size_t n = 0;
	ssize_t r;
	int fd = open("/proc/self/maps", O_RDONLY);
	while ((r = read(fd, buf + n, sizeof(buf) - 1 - n)) > 0)
		n += r;
	close(fd);
	buf[n] = 0;
	say("D\n");
	for (char *l = strtok(buf, "\n"); l; l = strtok(NULL, "\n")) {
		unsigned long a, b;
		char perm[8], name[256] = "-";
		unsigned long off, ino;
		char dev[16];
		sscanf(l, "%lx-%lx %7s %lx %15s %lu %255s", &a, &b, perm, &off, dev, &ino, name);
		if (a >> 47)
			continue;
		say("%lx %lx %s %s\n", a, b, perm, ino ? "file" : name);
		if (!vvar && !strcmp(name, "[vvar]"))
			vvar = a;
	}
	say("E\n");
}

static long call(long nr, long a, long b, long c, long d, long e)
{
	long r = syscall(nr, a, b, c, d, e, 0);
	return r == -1 ? -errno : r;
}

static const unsigned long sizes[] = { 1, 2, 3, 16, 16, 32, 64, 256, 512, 513, 768, 1024, 1536, 2048 };
static const int advice[] = { 14, 15, 10, 11, 18, 19, 16, 17, 4, 8 };

static void step(void)
{
	int i = nmaps ? rnd(nmaps) : -1;
	unsigned long a = 0, n = 0, off;
	long r;
	if (i >= 0) {
		off = rnd(maps[i].n);
		n = 1 + rnd(maps[i].n - off + 4);
		if (rnd(3) == 0) {
			off = 0;
			n = maps[i].n;
		}
		a = maps[i].a + off * 4096;
		if (a + n * 4096 > vvar)
			n = a < vvar ? (vvar - a) / 4096 : 0;
	}
	if (n == 0)
		i = -1;
	unsigned long what = rnd(22);
	if (i < 0 || (what < 6 && nmaps < 4000)) {
		unsigned long len = sizes[rnd(14)] * 4096, hint = 0;
		int prot = (rnd(4) ? 3 : rnd(4)), flags = MAP_PRIVATE | MAP_ANONYMOUS;
		if (rnd(8) == 0)
			flags |= MAP_STACK;
		if (rnd(8) == 0)
			flags |= MAP_NORESERVE;
		if (i >= 0 && rnd(6) == 0)
			hint = a + n * 4096;
		if (i >= 0 && rnd(6) == 0 && hint == 0) {
			flags |= MAP_FIXED;
			hint = a;
			len = n * 4096;
		}
		r = syscall(SYS_mmap, hint, len, prot, flags, -1, 0);
		if (r == -1)
			r = -errno;
		say("mmap %lx %lx %x %x = %ld\n", hint, len, prot, flags, r);
		if (r > 0) {
			maps[nmaps].a = r;
			maps[nmaps++].n = len / 4096;
		}
	} else if (what < 9) {
		r = call(SYS_munmap, a, n * 4096, 0, 0, 0);
		say("munmap %lx %lx = %ld\n", a, n * 4096, r);
		if (r == 0 && n >= maps[i].n)
			maps[i] = maps[--nmaps];
	} else if (what < 11) {
		int prot = rnd(2) ? 3 : rnd(4);
		r = call(SYS_mprotect, a, n * 4096, prot, 0, 0);
		say("mprotect %lx %lx %x = %ld\n", a, n * 4096, prot, r);
	} else if (what < 13) {
		unsigned long want = rnd(2) ? n : 1 + rnd(2 * n), flags = rnd(4) ? 1 : 0, to = 0;
		if (rnd(6) == 0 && flags) {
			flags |= 4;
			want = n;
		} else if (rnd(5) == 0 && flags) {
			int j = rnd(nmaps);
			flags |= 2;
			to = maps[j].a;
		}
		r = call(SYS_mremap, a, n * 4096, want * 4096, flags, to);
		say("mremap %lx %lx %lx %lx %lx = %ld\n", a, n * 4096, want * 4096, flags, to, r);
		if (r > 0 && r != (long)a && nmaps < 4000) {
			maps[nmaps].a = r;
			maps[nmaps++].n = want;
		}
	} else if (what < 15) {
		int adv = advice[rnd(10)];
		r = call(SYS_madvise, a, n * 4096, adv, 0, 0);
		say("madvise %lx %lx %x = %ld\n", a, n * 4096, adv, r);
	} else if (what == 15) {
		static unsigned long start;
		if (!start)
			start = call(SYS_brk, 0, 0, 0, 0, 0);
		unsigned long to = start + rnd(600) * 4096;
		r = call(SYS_brk, to, 0, 0, 0, 0);
		say("brk %lx = %ld\n", to, r);
	} else if (what == 16) {
		if (rnd(2)) {
			r = call(SYS_mlock2, a, n * 4096, 1, 0, 0);
			say("mlock2 %lx %lx = %ld\n", a, n * 4096, r);
		} else {
			r = call(SYS_munlock, a, n * 4096, 0, 0, 0);
			say("munlock %lx %lx = %ld\n", a, n * 4096, r);
		}
	} else if (what == 17 && rnd(8) == 0) {
		int pid = fork();
		if (pid > 0) {
			waitpid(pid, NULL, 0);
			_exit(0);
		}
		say("fork = 0\n");
	} else {
		/* A write through the kernel fails where a store would kill us. */
		static int zero = -1;
		if (zero < 0)
			zero = open("/dev/zero", O_RDONLY);
		r = call(SYS_read, zero, a, 1, 0, 0);
		say("touch %lx = %ld\n", a, r);
	}
}

int main(int argc, char **argv)
{
	int steps = atoi(argv[2]);
	seed = strtoul(argv[1], 0, 10) * 0x9e3779b97f4a7c15ul + 1;
	memset(out, 1, 1 << 20);
	open("/dev/zero", O_RDONLY);
	dump();
	used = 0;
	dump();
	for (int i = 1; i <= steps; i++) {
		step();
		if (i % 20 == 0)
			dump();
	}
	for (size_t done = 0; done < used;) {
		ssize_t r = write(1, out + done, used - done);
		if (r <= 0)
			return 1;
		done += r;
	}
	return 0;
}
