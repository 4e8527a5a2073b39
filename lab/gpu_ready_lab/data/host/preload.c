/*
 * Entry point of the simulated kernel. Named in a lab host's /etc/ld.so.preload, it answers the few system calls
 * that a container cannot have of its own: which kernel runs, loading and unloading modules, the kernel's
 * log. The real modprobe, rmmod, dkms, dmesg and Python's os.uname() then see the pretended kernel;
 * statically linked programs and Go programs (docker) see the real one.
 *
 * The answers come from /usr/lib/gpu-ready-lab/kernel, whose exit status is the errno.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

/* <fcntl.h> and <sys/stat.h> stay out: they turn the names overridden below into others */
#define AT_FDCWD (-100)
#define O_RDONLY 0
#define O_ACCMODE 03
#define O_RDWR 02
#define O_CLOEXEC 02000000
#ifndef RTLD_NEXT
#define RTLD_NEXT ((void *)-1L)
#endif
int open(const char *path, int flags, ...);

#define KERNEL "/usr/lib/gpu-ready-lab/kernel"
#define RELEASE "/etc/gpu-ready-lab/kernel-release"
#define LOG "/run/gpu-ready-lab/kmsg"
#define API __attribute__((visibility("default")))

extern char **environ;

/* the real system call: `syscall` itself is one of the names overridden here */
static long raw(long nr, long a, long b, long c, long d, long e, long f)
{
	long ret;
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	__asm__ volatile("syscall" : "=a"(ret) : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return ret;
}

static long result(long ret)
{
	if (ret < 0 && ret > -4096) {
		errno = (int)-ret;
		return -1;
	}
	return ret;
}

static long file(const char *path, char *out, size_t size)
{
	long n, fd = raw(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0, 0, 0);
	if (fd < 0)
		return -1;
	n = raw(SYS_read, fd, (long)out, (long)size, 0, 0, 0);
	raw(SYS_close, fd, 0, 0, 0, 0, 0);
	return n;
}

API int uname(struct utsname *u)
{
	char text[sizeof u->release];
	long n;
	if (result(raw(SYS_uname, (long)u, 0, 0, 0, 0, 0)))
		return -1;
	n = file(RELEASE, text, sizeof text - 1);
	if (n > 0) {
		text[n] = 0;
		text[strcspn(text, "\n")] = 0;
		memcpy(u->release, text, strlen(text) + 1);
		snprintf(u->version, sizeof u->version, "#1 SMP PREEMPT_DYNAMIC Debian (gpu-ready lab)");
	}
	return 0;
}

/* ask the simulated kernel; 0 or -1 with errno, like the system call */
static long ask(const char *verb, const char *what, const char *more)
{
	char *argv[] = { (char *)KERNEL, (char *)verb, (char *)what, (char *)(more ? more : ""), NULL };
	int status = 0;
	pid_t child = fork();
	if (child < 0)
		return -1;
	if (!child) {
		int null = open("/dev/null", O_RDWR);
		dup2(null, 0);
		dup2(null, 1);
		execve(KERNEL, argv, environ);
		_exit(ENOSYS);
	}
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	if (!WIFEXITED(status)) {
		errno = EFAULT;
		return -1;
	}
	errno = WEXITSTATUS(status);
	return errno ? -1 : 0;
}

static long load_fd(int fd, const char *parameters)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)getpid(), fd);
	return ask("load", path, parameters);
}

API int finit_module(int fd, const char *parameters, int flags)
{
	(void)flags;
	return (int)load_fd(fd, parameters);
}

API int init_module(const void *image, unsigned long size, const char *parameters)
{
	long ret;
	int saved, fd = (int)result(raw(SYS_memfd_create, (long)"module", 0, 0, 0, 0, 0));
	if (fd < 0)
		return -1;
	for (unsigned long at = 0; at < size;) {
		long n = result(raw(SYS_write, fd, (long)image + (long)at, (long)(size - at), 0, 0, 0));
		if (n <= 0) {
			close(fd);
			return -1;
		}
		at += (unsigned long)n;
	}
	ret = load_fd(fd, parameters);
	saved = errno;
	close(fd);
	errno = saved;
	return (int)ret;
}

API int delete_module(const char *name, unsigned int flags)
{
	(void)flags;
	return (int)ask("unload", name, "");
}

API long syscall(long nr, ...)
{
	long a, b, c, d, e, f;
	va_list ap;
	va_start(ap, nr);
	a = va_arg(ap, long);
	b = va_arg(ap, long);
	c = va_arg(ap, long);
	d = va_arg(ap, long);
	e = va_arg(ap, long);
	f = va_arg(ap, long);
	va_end(ap);
	if (nr == SYS_finit_module)
		return finit_module((int)a, (const char *)b, (int)c);
	if (nr == SYS_init_module)
		return init_module((const void *)a, (unsigned long)b, (const char *)c);
	if (nr == SYS_delete_module)
		return delete_module((const char *)a, (unsigned int)b);
	if (nr == SYS_uname)
		return uname((struct utsname *)a);
	return result(raw(nr, a, b, c, d, e, f));
}

/* dmesg: the pretended kernel's messages, not those of the machine that runs the lab */
API int klogctl(int type, char *out, int size)
{
	static char text[1 << 18];
	long n = file(LOG, text, sizeof text);
	if (n < 0)
		n = 0;
	if (type == 10)
		return (int)sizeof text;
	if (type < 2 || type > 4)
		return 0;
	if (n > size)
		n = size;
	memcpy(out, text, (size_t)n);
	return (int)n;
}

/*
 * /proc/modules, which a kernel without modules does not have: the path leads to the simulated kernel's file.
 * (Everything else in /proc and /sys is mounted; a mount needs something to be mounted on.)
 */
static const char *really(const char *path)
{
	return path && path[0] == '/' && path[1] == 'p' && !strcmp(path, "/proc/modules") ? "/run/gpu-ready-lab/proc-modules" : path;
}

/*
 * /dev/kmsg, opened for reading: one record for each read, up to what the log has now. (Opened for writing it stays
 * absent, as in most containers: systemd would log to it.) A reader that follows the log opens it again at its end.
 */
static int opens_log(const char *path, int flags)
{
	return path && path[0] == '/' && path[1] == 'd' && !strcmp(path, "/dev/kmsg") && (flags & O_ACCMODE) == O_RDONLY;
}

static int open_log(int flags)
{
	static char text[1 << 18];
	char record[1 << 12], *line, *end;
	int pair[2], kind = SOCK_SEQPACKET | (flags & (SOCK_CLOEXEC | SOCK_NONBLOCK));
	long number = 0, n = file(LOG, text, sizeof text - 1);
	if (n < 0) {
		errno = ENOENT;
		return -1;
	}
	if (socketpair(AF_UNIX, kind, 0, pair))
		return -1;
	text[n] = 0;
	for (line = text; (end = strchr(line, '\n')); line = end + 1, number++) {
		long priority, seconds, micro;
		int at = 0;
		*end = 0;
		if (sscanf(line, "<%ld>[ %ld.%ld] %n", &priority, &seconds, &micro, &at) < 3 || !at)
			continue;
		n = snprintf(record, sizeof record, "%ld,%ld,%ld,-;%s\n", priority, number, seconds * 1000000 + micro, line + at);
		if (send(pair[1], record, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
			break;
	}
	close(pair[1]);
	return pair[0];
}

static void *next(const char *name, void **kept)
{
	if (!*kept)
		*kept = dlsym(RTLD_NEXT, name);
	return *kept;
}

#define MODE int mode; va_list ap; va_start(ap, flags); mode = va_arg(ap, int); va_end(ap)
#define OPENAT(name)                                                                      \
	API int name(int dir, const char *path, int flags, ...)                           \
	{                                                                                 \
		static void *kept;                                                        \
		MODE;                                                                     \
		if (opens_log(path, flags))                                               \
			return open_log(flags);                                           \
		return ((int (*)(int, const char *, int, int))next(#name, &kept))(dir, really(path), flags, mode); \
	}
#define OPEN(name, at) API int name(const char *path, int flags, ...) { MODE; return at(AT_FDCWD, path, flags, mode); }
#define FOPEN(name)                                                                       \
	API FILE *name(const char *path, const char *mode)                                \
	{                                                                                 \
		static void *kept;                                                        \
		return ((FILE * (*)(const char *, const char *)) next(#name, &kept))(really(path), mode); \
	}
OPENAT(openat)
OPENAT(openat64)
OPEN(open, openat)
OPEN(open64, openat64)
FOPEN(fopen)
FOPEN(fopen64)
