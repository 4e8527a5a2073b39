/*
 * A clock that is wrong on one lab host: all of them share the machine's, which must not be set. Programs that ask the
 * C library for the time of day get it moved by the seconds in /etc/gpu-ready-lab/clock-offset; time that is measured
 * (CLOCK_MONOTONIC) is not changed.
 */
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long offset;

__attribute__((constructor)) static void read_offset(void)
{
	FILE *f = fopen("/etc/gpu-ready-lab/clock-offset", "re");
	if (!f) return;
	if (fscanf(f, "%ld", &offset) != 1) offset = 0;
	fclose(f);
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
	int rc = syscall(SYS_clock_gettime, clock, now);
	if (rc == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += offset;
	return rc;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
	int rc = syscall(SYS_gettimeofday, now, zone);
	if (rc == 0 && now) now->tv_sec += offset;
	return rc;
}

time_t time(time_t *where)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	if (where) *where = now.tv_sec;
	return now.tv_sec;
}
