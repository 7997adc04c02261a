// mix SEED [MASK]: 4000 random operations on 64 anonymous mappings and the
// heap, the same for the same SEED. Bit i of MASK replaces operation i by a
// memset, to find by bisection which operation a difference comes from.
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAPS = 64, PAGE = 12, HUGE = (2 << 20) - 1 };

static uint64_t state = 88172645463325252ull;
static char *map[MAPS];
static size_t size[MAPS];
static volatile char sink;

static uint64_t rnd(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static void put(char *p, size_t pages, size_t step, char what)
{
	for (size_t j = 0; j < pages; j += step)
		p[j << PAGE] = what;
}

static void get(char *p, size_t pages, size_t step)
{
	for (size_t j = 0; j < pages; j += step)
		sink = p[j << PAGE];
}

static void fresh(int k)
{
	size[k] = (rnd() % (rnd() & 7 ? 96 : 2048) + 1) << PAGE;
	if (rnd() % 5 == 0)
		size[k] = (size[k] + HUGE) & ~(size_t)HUGE;
	map[k] = mmap(NULL, size[k], PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (map[k] == MAP_FAILED)
		exit(1);
}

// share forks a child that writes, while the parent may write too.
static void share(char *q, size_t l)
{
	pid_t child = fork();
	if (child == 0) {
		put(q, l, 1, 3);
		if (rnd() % 2)
			for (int e = 0; e < MAPS; e++)
				if (map[e])
					put(map[e], size[e] >> PAGE < 40 ? size[e] >> PAGE : 40, 4, 1);
		_exit(0);
	}
	if (rnd() % 2)
		put(q, l, 1, 4);
	waitpid(child, NULL, 0);
	put(q, l, 2, 5);
}

static void heap(void)
{
	char *b = sbrk(64 << PAGE);
	if (b != (char *)-1)
		for (int j = 0; j < 64; j += 1 + (rnd() & 3))
			b[j << PAGE] = 1;
	if (rnd() % 2)
		sbrk(-(32 << PAGE));
}

static void step(unsigned long mask)
{
	int k = rnd() % MAPS;
	uint64_t op = rnd() % 24;
	if (mask >> op & 1)
		op = 23;
	if (!map[k]) {
		fresh(k);
		return;
	}
	size_t pages = size[k] >> PAGE, a = rnd() % pages, l = rnd() % (pages - a) + 1, len;
	if (l > 200)
		l = 200;
	char *q = map[k] + (a << PAGE), *t;
	len = l << PAGE;
	switch (op) {
	case 0: case 1: case 2: case 3: case 4:
		put(q, l, 1, 1);
		break;
	case 5: case 6: case 7:
		get(q, l, 1);
		break;
	case 8:
		put(q, l, 3, 1);
		break;
	case 9:
		for (size_t j = l; j > 0; j--)
			q[(j - 1) << PAGE] = 2;
		break;
	case 10:
		madvise(q, len, MADV_DONTNEED);
		break;
	case 11:
		madvise(map[k], size[k], MADV_DONTNEED);
		break;
	case 12:
		munmap(map[k], size[k]);
		map[k] = NULL;
		break;
	case 13:
		if (a && rnd() % 2) {
			munmap(q, size[k] - (a << PAGE));
			size[k] = a << PAGE;
		}
		break;
	case 14:
		mprotect(q, len, PROT_READ);
		get(q, l, 2);
		mprotect(q, len, PROT_READ | PROT_WRITE);
		put(q, l, 2, 1);
		break;
	case 15:
		len = size[k] + ((rnd() % 64) << PAGE);
		t = mremap(map[k], size[k], len, MREMAP_MAYMOVE);
		if (t != MAP_FAILED) {
			map[k] = t;
			size[k] = len;
		}
		break;
	case 16:
		if (rnd() % 8 == 0)
			share(q, l);
		break;
	case 17:
		madvise(q, len, rnd() % 2 ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
		break;
	case 18:
		t = malloc((rnd() % 64 + 1) << PAGE);
		if (t) {
			*(volatile char *)t = 1;
			if (rnd() % 2)
				free(t);
		}
		break;
	case 19:
		sbrk((rnd() % 32) << PAGE);
		break;
	case 20:
		heap();
		break;
	case 21:
		mlock(q, len);
		if (rnd() % 2)
			munlock(q, len);
		break;
	case 22:
		madvise(q, len, MADV_FREE);
		break;
	default:
		memset(q, 0, len);
	}
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	state ^= strtoul(argv[1], NULL, 0) * 2654435761u;
	unsigned long mask = argc > 2 ? strtoul(argv[2], NULL, 0) : 0;
	for (int i = 0; i < 4000; i++)
		step(mask);
	return 0;
}
