/* The two calls that programs make to ask a driver which CUDA it supports; every other thing is missing. */
#define EXPORT __attribute__((visibility("default")))
const char gpu_ready_lab_stand_in[] = "gpu-ready lab stand-in, version " VERSION;

static int number(const char *text)
{
	int value = 0;

	while (*text >= '0' && *text <= '9')
		value = value * 10 + (*text++ - '0');
	return value;
}

EXPORT int cuInit(unsigned int flags)
{
	return flags == 0 ? 0 : 1;
}

EXPORT int cuDriverGetVersion(int *version)
{
	*version = number(CUDA);
	return 0;
}
