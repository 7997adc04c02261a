#!/bin/sh
# A server with a table in memory that forks a child for each group of requests;
# a child changes some of its copy, answers and ends.
# usage: server.sh needs | make DIR | prepare DIR | command DIR
set -eu
case $1 in
needs) echo gcc ;;
make)
	cat >"$2/server.c" <<'END'
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { rows = 8192, row = 8192, children = 40, requests = 400 };

static char *table[rows];

/* serve answers requests until there are none. */
static int serve(int fd, unsigned seed)
{
	int k;

	while (read(fd, &k, sizeof(k)) == sizeof(k)) {
		size_t n = 1000 + rand_r(&seed) % 20000;
		char *answer = malloc(n);

		memset(answer, k, n);
		table[k][rand_r(&seed) % row] ^= 1;
		memcpy(answer, table[k], n < row ? n : row);
		k += answer[n - 1];
		if (k % 3)
			free(answer);
		if (write(fd, &k, sizeof(k)) != sizeof(k))
			return 1;
	}
	return 0;
}

int main(void)
{
	unsigned seed = 23;
	int bad = 0;

	for (int i = 0; i < rows; i++) {
		table[i] = malloc(row);
		memset(table[i], i, row);
	}
	for (int c = 0; c < children; c++) {
		int fd[2], k, status;
		pid_t pid;

		if (socketpair(AF_UNIX, SOCK_STREAM, 0, fd))
			return 1;
		pid = fork();
		if (pid < 0)
			return 1;
		if (pid == 0) {
			close(fd[0]);
			_exit(serve(fd[1], 100 + c));
		}
		close(fd[1]);
		for (int i = 0; i < requests; i++) {
			k = rand_r(&seed) % rows;
			if (write(fd[0], &k, sizeof(k)) != sizeof(k) || read(fd[0], &k, sizeof(k)) != sizeof(k))
				return 1;
		}
		close(fd[0]);
		waitpid(pid, &status, 0);
		bad |= status;
		for (int i = 0; i < 200; i++)
			table[rand_r(&seed) % rows][0] ^= 1;
	}
	return bad != 0;
}
END
	gcc -O1 -o "$2/server" "$2/server.c" ;;
prepare) ;;
command) printf '%s\n' "$2/server" ;;
esac
