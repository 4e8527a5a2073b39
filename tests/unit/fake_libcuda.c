/* A libcuda for tests: two GPUs in memory that really run the one kernel which the compute check loads, and note every call.
 *
 * FAKE_CUDA, words apart by blanks: CALL=CODE fails a call, CALL@GPU=CODE on one GPU only, wrong=GPU lets one compute wrongly,
 * mode=GPU:MODE, mig=GPU, hang=GPU. FAKE_CUDA_LOG names the file that calls are logged to. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int current = -1, retained[2];
static char loaded[4096];

static int value(const char *key, int gpu)
{
	char prefix[80];
	const char *faults = getenv("FAKE_CUDA"), *at;

	for (int one = 0; faults && one < 2; one++) {
		snprintf(prefix, sizeof prefix, one ? "%s@%d=" : "%s=", key, gpu);
		if ((at = strstr(faults, prefix)))
			return atoi(at + strlen(prefix));
	}
	return 0;
}
static int of(const char *key, int gpu)
{
	char prefix[40];
	const char *faults = getenv("FAKE_CUDA");

	snprintf(prefix, sizeof prefix, "%s=%d", key, gpu);
	return faults && strstr(faults, prefix);
}
static int note(const char *name, const char *format, long a, long b)
{
	FILE *log = fopen(getenv("FAKE_CUDA_LOG"), "a");

	fprintf(log, "%s ", name);
	fprintf(log, format, a, b);
	fputc('\n', log);
	fclose(log);
	return value(name, current);
}

int cuInit(unsigned flags) { return note("cuInit", "%ld", flags, 0); }
int cuDriverGetVersion(int *out) { *out = 13020; return 0; }
int cuDeviceGetCount(int *out) { *out = 2; return note("cuDeviceGetCount", "", 0, 0); }
int cuDeviceGet(int *out, int index) { *out = index; return value("cuDeviceGet", index); }
int cuDeviceGetName(char *out, int size, int gpu) { snprintf(out, size, "Fake %d", gpu); return 0; }
int cuDeviceGetPCIBusId(char *out, int size, int gpu) { snprintf(out, size, "0000:%s:00.0", gpu ? "AF" : "3B"); return 0; }
int cuDeviceGetUuid(unsigned char *out, int gpu) { memset(out, 0x10 + gpu, 16); return 0; }
int cuDeviceGetUuid_v2(unsigned char *out, int gpu) { memset(out, (of("mig", gpu) ? 0x80 : 0x10) + gpu, 16); return 0; }
int cuDeviceGetAttribute(int *out, int which, int gpu)
{
	char key[16];
	snprintf(key, sizeof key, "%d:3", gpu);
	*out = which == 75 ? 8 : which == 76 ? 9 : 0;
	for (int mode = 1; which == 20 && mode < 4; mode++) {
		snprintf(key, sizeof key, "mode=%d:%d", gpu, mode);
		if (getenv("FAKE_CUDA") && strstr(getenv("FAKE_CUDA"), key))
			*out = mode;
	}
	return 0;
}
int cuDevicePrimaryCtxRetain(void **out, int gpu)
{
	current = gpu;
	*out = &retained[gpu];
	retained[gpu]++;
	return note("cuDevicePrimaryCtxRetain", "%ld", gpu, 0);
}
int cuDevicePrimaryCtxRelease(int gpu) { retained[gpu]--; return note("cuDevicePrimaryCtxRelease", "%ld left %ld", gpu, retained[gpu]); }
int cuCtxSetCurrent(void *context) { return context == &retained[current] ? note("cuCtxSetCurrent", "%ld", current, 0) : 201; }
int cuModuleLoadData(void **out, const char *text)
{
	snprintf(loaded, sizeof loaded, "%s", text);
	*out = loaded;
	return note("cuModuleLoadData", "%ld", strstr(text, ".target sm_80") != NULL, 0);
}
int cuModuleGetFunction(void **out, void *module, const char *name)
{
	char entry[80];
	snprintf(entry, sizeof entry, ".entry %s(", name);
	*out = strstr(loaded, entry);
	return module != loaded ? 400 : *out ? note("cuModuleGetFunction", "", 0, 0) : 500;
}
int cuMemAlloc_v2(uint64_t *out, size_t size)
{
	*out = (uint64_t)calloc(1, size);
	return note("cuMemAlloc_v2", "%ld", size, 0);
}
int cuMemFree_v2(uint64_t at) { free((void *)at); return note("cuMemFree_v2", "", 0, 0); }
int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t size) { memcpy((void *)to, from, size); return note("cuMemcpyHtoD_v2", "%ld", size, 0); }
int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t size) { memcpy(to, (void *)from, size); return note("cuMemcpyDtoH_v2", "%ld", size, 0); }
int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
		   unsigned shared, void *stream, void **arguments, void **extra)
{
	uint32_t *given = *(uint32_t **)arguments[0], *found = *(uint32_t **)arguments[1], count = *(uint32_t *)arguments[2];

	if (!function || gy != 1 || gz != 1 || by != 1 || bz != 1 || shared || stream || extra)
		return 1;
	for (unsigned i = 0; i < gx * bx; i++)
		if (i < count)
			found[i] = given[i] * given[i] + i + (of("wrong", current) && i == 7);
	return note("cuLaunchKernel", "%ld %ld", gx, bx);
}
int cuCtxSynchronize(void)
{
	if (of("hang", current))
		sleep(60);
	return note("cuCtxSynchronize", "", 0, 0);
}
int cuModuleUnload(void *module) { return note("cuModuleUnload", "", module != loaded, 0); }
int cuGetErrorName(int code, const char **out) { *out = code == 802 ? "CUDA_ERROR_SYSTEM_NOT_READY" : "CUDA_ERROR_FAKE"; return 0; }
int cuGetErrorString(int code, const char **out) { *out = code == 802 ? "system not yet initialized" : "fake"; return 0; }
