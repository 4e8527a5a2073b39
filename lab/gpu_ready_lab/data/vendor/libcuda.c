/*
 * A stub of libcuda.so.1: nothing computes in the lab, so it answers as NVIDIA's own stub library does, with
 * CUDA_ERROR_STUB_LIBRARY (34). Before that it checks what the real library checks first, and fails as that would:
 * without /dev/nvidiactl there is no device (100), beside a module of another version there is a mismatch (803).
 * /etc/gpu-ready-lab/cuda-faults.conf, if it exists, sets another result of cuInit: `cuInit = 802`.
 *
 * VERSION is the driver's; where the host writes it into a library of Debian's package it ends with blanks.
 */
#define EXPORT __attribute__((visibility("default")))
#ifndef CUDA
#define CUDA "0"
#endif
const char gpu_ready_lab_stub[] = "gpu-ready lab stand-in, version " VERSION;
/* Read from memory at each call: a compiler that knows the text would compare with its own copy. */
static const volatile char own[] = VERSION;

typedef struct FILE FILE;
extern FILE *fopen(const char *path, const char *mode);
extern char *fgets(char *line, int size, FILE *file);
extern int fclose(FILE *file);
extern int access(const char *path, int mode);

enum { NO_DEVICE = 100, STUB = 34, MISMATCH = 803 };

static int number(const char *text)
{
	int value = 0;

	while (*text && (*text < '0' || *text > '9'))
		text++;
	while (*text >= '0' && *text <= '9')
		value = value * 10 + (*text++ - '0');
	return value;
}

static int line_of(const char *path, char *line, int size)
{
	FILE *file = fopen(path, "r");
	int there = file && fgets(line, size, file);

	if (file)
		fclose(file);
	return there;
}

/* Whether a line has our version as a word. */
static int names_us(const char *line)
{
	for (; *line; line++) {
		const char *a = line;
		const volatile char *b = own;

		while (*b && *b != ' ' && *a == *b)
			a++, b++;
		if ((!*b || *b == ' ') && (*a == ' ' || *a == '\n'))
			return 1;
	}
	return 0;
}

EXPORT int cuInit(unsigned int flags)
{
	char line[256];

	if (flags)
		return 1;
	if (line_of("/etc/gpu-ready-lab/cuda-faults.conf", line, sizeof line))
		return number(line);
	if (access("/dev/nvidiactl", 0))
		return NO_DEVICE;
	if (line_of("/proc/driver/nvidia/version", line, sizeof line) && !names_us(line))
		return MISMATCH;
	return STUB;
}

EXPORT int cuDriverGetVersion(int *version)
{
	*version = number(CUDA);
	return *version ? 0 : STUB;
}

EXPORT int cuDeviceGetCount(int *count)
{
	*count = 0;
	return STUB;
}

static const struct { int code; const char *name, *text; } errors[] = {
	{ 3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error" },
	{ STUB, "CUDA_ERROR_STUB_LIBRARY", "CUDA driver is a stub library" },
	{ 46, "CUDA_ERROR_DEVICE_UNAVAILABLE", "CUDA-capable device(s) is/are busy or unavailable" },
	{ NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected" },
	{ 802, "CUDA_ERROR_SYSTEM_NOT_READY", "system not yet initialized" },
	{ MISMATCH, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "system has unsupported display driver / cuda driver combination" },
	{ 999, "CUDA_ERROR_UNKNOWN", "unknown error" },
};

EXPORT int cuGetErrorName(int code, const char **name)
{
	for (unsigned int i = 0; i < sizeof errors / sizeof *errors; i++)
		if (errors[i].code == code)
			return *name = errors[i].name, 0;
	return *name = 0, 1;
}

EXPORT int cuGetErrorString(int code, const char **text)
{
	for (unsigned int i = 0; i < sizeof errors / sizeof *errors; i++)
		if (errors[i].code == code)
			return *text = errors[i].text, 0;
	return *text = 0, 1;
}
