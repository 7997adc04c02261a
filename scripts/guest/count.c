// count COMMAND [ARGUMENT...]: runs COMMAND without layout randomisation and
// prints on standard error how many page faults it and its children took from
// its exec on, as perf's software event counts them.
//
// khugepaged looks once as soon as a first process asks for huge pages, and
// then sleeps for scan_sleep_millisecs. This process asks before COMMAND starts
// and waits for that look, so that COMMAND runs while khugepaged sleeps.
#define _GNU_SOURCE
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	size_t n = 8 << 20;
	char *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return 1;
	memset(p, 1, n);
	sleep(1);

	int go[2];
	if (pipe(go))
		return 1;
	pid_t child = fork();
	if (child == 0) {
		char b;
		close(go[1]);
		if (read(go[0], &b, 1) != 1)
			_exit(127);
		close(go[0]);
		personality(ADDR_NO_RANDOMIZE);
		execvp(argv[1], argv + 1);
		_exit(127);
	}
	struct perf_event_attr a;
	memset(&a, 0, sizeof a);
	a.type = PERF_TYPE_SOFTWARE;
	a.size = sizeof a;
	a.config = PERF_COUNT_SW_PAGE_FAULTS;
	a.disabled = a.enable_on_exec = a.inherit = 1;
	int fd = syscall(SYS_perf_event_open, &a, child, -1, -1, 0);
	if (fd < 0) {
		perror("count: perf_event_open");
		return 1;
	}
	int status = 1;
	unsigned long long faults = 0;
	if (write(go[1], "x", 1) != 1 || waitpid(child, &status, 0) < 0 ||
	    read(fd, &faults, sizeof faults) != sizeof faults || status != 0)
		return 1;
	fprintf(stderr, "%llu\n", faults);
	return 0;
}
