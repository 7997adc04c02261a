#!/bin/sh
# Eight threads, each with a malloc arena of its own that grows and shrinks.
# usage: arenas.sh needs | make DIR | prepare DIR | command DIR
set -eu
case $1 in
needs) echo gcc ;;
make)
	cat >"$2/arenas.c" <<'END'
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { threads = 8, slots = 6000, steps = 400000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turn = PTHREAD_COND_INITIALIZER;
static int next;
static pthread_barrier_t all;

/* Each thread takes its first memory in its turn, so that arenas lie alike in
 * every run. */
static void *work(void *arg)
{
	int me = (int)(long)arg;
	unsigned seed = 17 + me;
	void **slot;
	unsigned long sum = 0;

	pthread_mutex_lock(&lock);
	while (next != me)
		pthread_cond_wait(&turn, &lock);
	slot = calloc(slots, sizeof(*slot));
	next++;
	pthread_cond_broadcast(&turn);
	pthread_mutex_unlock(&lock);
	pthread_barrier_wait(&all);

	for (int i = 0; i < steps; i++) {
		int k = rand_r(&seed) % slots;
		size_t n = 16 + rand_r(&seed) % (i % 64 ? 2000 : 60000);

		free(slot[k]);
		slot[k] = malloc(n);
		memset(slot[k], i, n);
		sum += *(unsigned char *)slot[k];
		if (i % 40000 == 39999)
			for (int j = 0; j < slots; j += 2) {
				free(slot[j]);
				slot[j] = NULL;
			}
	}
	pthread_barrier_wait(&all);
	return (void *)sum;
}

int main(void)
{
	pthread_t t[threads];

	pthread_barrier_init(&all, NULL, threads);
	for (long i = 0; i < threads; i++)
		if (pthread_create(&t[i], NULL, work, (void *)i))
			return 1;
	for (int i = 0; i < threads; i++)
		pthread_join(t[i], NULL);
	return 0;
}
END
	gcc -O1 -pthread -o "$2/arenas" "$2/arenas.c" ;;
prepare) ;;
command) printf '%s\n' "$2/arenas" ;;
esac
