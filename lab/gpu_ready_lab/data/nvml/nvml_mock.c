/*
 * A stand-in for libnvidia-ml.so.1 that lets the real nvidia-smi (and nvidia-ml-py) run on a lab host.
 * On a host it takes the place of a real libnvidia-ml.so.VERSION after every dpkg run (data/host/after-dpkg),
 * with its configuration appended to the file itself, so that it needs no other file inside a container:
 *
 *   library_version = 535.261.03    (from the file's name)
 *   [gpu]                           (defaults for every GPU)
 *   name = Tesla P40
 *   [gpu 0]
 *   uuid = GPU-...
 *   <16 hex digits: length of the text above>GRLNVML1
 *
 * It is honest about the driver: without /dev/nvidiactl NVML is not initialised (9); when the loaded module has
 * another version, it says so (18); a GPU exists if its /dev/nvidia<minor> does. The loaded version is in
 * /proc/driver/nvidia/version, or, in a container, encoded in the (dynamic) major number of /dev/nvidia-uvm.
 *
 * NVML_MOCK_CONF names a configuration file for trying it without a host; a line there
 *   init_error = 12     fails nvmlInit with that code, and
 *   require_dev = 0     shows every GPU.
 * /etc/gpu-ready-lab/nvml-faults.conf, when there, is read last: faults (init_error, or error of one GPU).
 *
 * What nvidia-smi of 535 and 550 calls besides answers NVML_ERROR_NOT_SUPPORTED, printed as N/A (the end of this file).
 * NVML_MOCK_TRACE=1 logs calls; a name that a newer nvidia-smi misses is printed by it as "Function Not Found".
 */
#include <limits.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

/* <dlfcn.h> has it under _GNU_SOURCE only, and with that newer C libraries bind names that older hosts do not have */
typedef struct { const char *dli_fname; void *dli_fbase; const char *dli_sname; void *dli_saddr; } Dl_info;
extern int dladdr(const void *address, Dl_info *info);

typedef int ret_t;
typedef unsigned int u32;
typedef unsigned long long u64;
enum { OK = 0, UNINIT = 1, INVALID = 2, UNSUPPORTED = 3, NOTFOUND = 6, NOSPACE = 7 };

#define MAXGPU 32
#define MAXKEY 96
struct kv { char key[40]; char val[120]; };
struct gpu { struct kv kv[MAXKEY]; int n; };
static struct gpu sys, defaults, gpus[MAXGPU];
static int ngpu, loaded, inits, trace, initial;

/* ---- configuration --------------------------------------------------------------- */
static const char *lookup(const struct gpu *g, const char *key)
{
	for (int i = g->n - 1; i >= 0; i--)
		if (!strcmp(g->kv[i].key, key))
			return g->kv[i].val;
	return NULL;
}
static const char *S(const struct gpu *g, const char *key)
{
	const char *v = lookup(g, key);
	return v ? v : lookup(&defaults, key);
}
static long long N(const struct gpu *g, const char *key, long long dflt)
{
	const char *v = S(g, key);
	return v ? strtoll(v, NULL, 0) : dflt;
}
static char *trim(char *s)
{
	while (isspace((unsigned char)*s)) s++;
	for (char *e = s + strlen(s); e > s && isspace((unsigned char)e[-1]);) *--e = 0;
	return s;
}
static void read_lines(FILE *f, long end)
{
	char line[256];
	struct gpu *cur = &sys;
	while ((end < 0 || ftell(f) < end) && fgets(line, sizeof line, f)) {
		char *s = trim(line), *eq;
		char *close;
		if (!*s || *s == '#') continue;
		if (!strcmp(s, "[gpu]")) { cur = &defaults; continue; }
		if (!strncmp(s, "[gpu ", 5)) {
			unsigned long i = strtoul(s + 5, &close, 10);
			if (i >= MAXGPU) continue;
			cur = &gpus[i];
			if ((int)i >= ngpu) ngpu = i + 1;
			continue;
		}
		if (!(eq = strchr(s, '=')) || cur->n == MAXKEY) continue;
		*eq = 0;
		snprintf(cur->kv[cur->n].key, sizeof cur->kv[0].key, "%s", trim(s));
		snprintf(cur->kv[cur->n].val, sizeof cur->kv[0].val, "%s", trim(eq + 1));
		cur->n++;
	}
}
static void read_file(const char *path)
{
	FILE *f = path ? fopen(path, "r") : NULL;
	if (!f) return;
	read_lines(f, -1);
	fclose(f);
}
/* the text appended to this library's own file */
static void read_trailer(void)
{
	Dl_info self;
	char tail[25] = "";
	FILE *f;
	if (!dladdr((void *)read_trailer, &self) || !(f = fopen(self.dli_fname, "r"))) return;
	if (!fseek(f, -24, SEEK_END) && fread(tail, 1, 24, f) == 24 && !strcmp(tail + 16, "GRLNVML1")) {
		long end;
		tail[16] = 0;
		fseek(f, -24, SEEK_END);
		end = ftell(f);
		fseek(f, end - strtol(tail, NULL, 16), SEEK_SET);
		read_lines(f, end);
	}
	fclose(f);
}
static unsigned crc32_of(const char *s)
{
	unsigned crc = ~0u;
	for (; *s; s++) {
		crc ^= (unsigned char)*s;
		for (int i = 0; i < 8; i++) crc = crc & 1 ? crc >> 1 ^ 0xedb88320u : crc >> 1;
	}
	return ~crc;
}
/* Does the loaded module have another version than this library? */
static int mismatch(void)
{
	const char *mine = lookup(&sys, "library_version");
	char line[256] = "";
	FILE *f;
	struct stat st;
	if (!mine) return 0;
	if ((f = fopen("/proc/driver/nvidia/version", "r"))) {
		char *at;
		if (!fgets(line, sizeof line, f)) line[0] = 0;
		fclose(f);
		at = strstr(line, mine);
		return !at || (at[-1] != ' ') || (at[strlen(mine)] != ' ');
	}
	if (!stat("/dev/nvidia-uvm", &st) && S_ISCHR(st.st_mode))
		return major(st.st_rdev) != 384 + crc32_of(mine) % 100;
	return 0;
}
#define SETTINGS "/run/gpu-ready-lab/nvml-settings"
static void load(void)
{
	const char *path = getenv("NVML_MOCK_CONF");
	loaded = 1;
	trace = getenv("NVML_MOCK_TRACE") != NULL;
	if (path) read_file(path);
	else {
		read_trailer();
		read_file(SETTINGS);
	}
	read_file("/etc/gpu-ready-lab/nvml-faults.conf");
	if (!N(&sys, "require_dev", 1)) return;
	for (int i = 0, n = ngpu, out = ngpu = 0; i < n; i++) {  /* like the driver: only GPUs whose node we have */
		char dev[40];
		snprintf(dev, sizeof dev, "/dev/nvidia%lld", N(&gpus[i], "minor", i));
		if (access(dev, F_OK)) continue;
		if (out != i) gpus[out] = gpus[i];
		if (gpus[out].n == MAXKEY) gpus[out].n--;
		snprintf(gpus[out].kv[gpus[out].n].key, sizeof gpus[0].kv[0].key, "minor");
		snprintf(gpus[out].kv[gpus[out].n++].val, sizeof gpus[0].kv[0].val, "%s", dev + 11);
		ngpu = ++out;
	}
	initial = access("/dev/nvidiactl", F_OK) ? 9 : mismatch() ? 18 : 0;
}

/* ---- plumbing -------------------------------------------------------------------- */
#define API __attribute__((visibility("default")))
#define LOG(...) do { if (trace) { fprintf(stderr, "nvml-mock: " __VA_ARGS__); fputc('\n', stderr); } } while (0)

static struct gpu *G(void *h)
{
	struct gpu *g = h;
	return g >= gpus && g < gpus + ngpu ? g : NULL;
}
static ret_t put(char *out, u32 len, const char *s)
{
	if (!s) return UNSUPPORTED;
	if (strlen(s) + 1 > len) return NOSPACE;
	strcpy(out, s);
	return OK;
}
/* DEV: function whose first argument is a device */
#define DEV(fn, ...) API ret_t fn(void *h, ##__VA_ARGS__)
#define NEED struct gpu *g = G(h); LOG("%s(%d)", __func__, g ? (int)(g - gpus) : -1); if (!inits) return UNINIT; if (!g) return INVALID
/* string attribute / unsigned attribute straight from the configuration */
#define STR(fn, key) DEV(fn, char *o, u32 len) { NEED; return put(o, len, S(g, key)); }
#define U32(fn, key) DEV(fn, u32 *o) { NEED; if (!S(g, key)) return UNSUPPORTED; *o = N(g, key, 0); return OK; }
#define U32D(fn, key, dflt) DEV(fn, u32 *o) { NEED; *o = N(g, key, dflt); return OK; }

/* ---- library and system ---------------------------------------------------------- */
API ret_t nvmlInitWithFlags(u32 flags)
{
	(void)flags;
	if (!loaded) load();
	ret_t e = N(&sys, "init_error", initial);
	LOG("init -> %d, %d GPUs", e, ngpu);
	if (!e) inits++;
	return e;
}
API ret_t nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
API ret_t nvmlInit(void) { return nvmlInitWithFlags(0); }
API ret_t nvmlShutdown(void) { if (!inits) return UNINIT; inits--; return OK; }
API const char *nvmlErrorString(ret_t e)
{
	static const char *t[] = { "Success", "Uninitialized", "Invalid Argument", "Not Supported",
		"Insufficient Permissions", "Already Initialized", "Not Found", "Insufficient Size",
		"Insufficient External Power", "Driver Not Loaded", "Timeout", "Interrupt Request Issue",
		"NVML Shared Library Not Found", "Function Not Found", "Corrupted infoROM",
		"GPU is lost", "GPU requires reset", "The operating system has blocked the request",
		"Driver/library version mismatch" };
	return e >= 0 && e < (int)(sizeof t / sizeof *t) ? t[e] : "Unknown Error";
}
static const char *version(void)
{
	const char *v = S(&sys, "driver_version");
	return v ? v : S(&sys, "library_version");
}
API ret_t nvmlSystemGetDriverVersion(char *o, u32 len) { return put(o, len, version()); }
API ret_t nvmlSystemGetNVMLVersion(char *o, u32 len)
{
	char b[80];
	const char *v = S(&sys, "nvml_version");
	if (!v) { snprintf(b, sizeof b, "12.%s", version() ?: "0"); v = b; }
	return put(o, len, v);
}
API ret_t nvmlSystemGetCudaDriverVersion_v2(int *o) 
{
	/* the CUDA version of each driver branch */
	static const struct { int branch, cuda; } versions[] = { { 390, 9010 }, { 470, 11040 }, { 525, 12000 }, { 535, 12020 },
		{ 545, 12030 }, { 550, 12040 }, { 560, 12060 }, { 565, 12070 }, { 570, 12080 }, { 575, 12090 }, { 580, 13000 },
		{ 590, 13010 }, { 595, 13020 } };
	int cuda = 12020, branch = version() ? atoi(version()) : 535;
	for (unsigned i = 0; i < sizeof versions / sizeof *versions; i++)
		if (versions[i].branch <= branch) cuda = versions[i].cuda;
	*o = N(&sys, "cuda_version", cuda);
	return OK;
}
API ret_t nvmlSystemGetCudaDriverVersion(int *o) { return nvmlSystemGetCudaDriverVersion_v2(o); }
API ret_t nvmlSystemGetHicVersion(u32 *n, void *p) { (void)p; *n = 0; return OK; }
API ret_t nvmlUnitGetCount(u32 *n) { *n = 0; return OK; }

/* ---- finding devices ------------------------------------------------------------- */
API ret_t nvmlDeviceGetCount_v2(u32 *n) { if (!inits) return UNINIT; *n = ngpu; return OK; }
API ret_t nvmlDeviceGetCount(u32 *n) { return nvmlDeviceGetCount_v2(n); }
API ret_t nvmlDeviceGetHandleByIndex_v2(u32 i, void **h)
{
	if (!inits) return UNINIT;
	if ((int)i >= ngpu) return INVALID;
	ret_t e = N(&gpus[i], "error", 0);
	if (e) return e;
	*h = &gpus[i];
	return OK;
}
API ret_t nvmlDeviceGetHandleByIndex(u32 i, void **h) { return nvmlDeviceGetHandleByIndex_v2(i, h); }
static ret_t by(const char *key, const char *want, void **h)
{
	for (int i = 0; i < ngpu; i++) {
		const char *v = S(&gpus[i], key);
		if (!v || !want) continue;
		size_t lv = strlen(v), lw = strlen(want);       /* bus ids: 0000: or 00000000: domain */
		if (!strcasecmp(v, want) || (!strcmp(key, "bus_id") && lv > 7 && lw > 7 && !strcasecmp(v + lv - 7, want + lw - 7)))
			return nvmlDeviceGetHandleByIndex_v2(i, h);
	}
	return NOTFOUND;
}
API ret_t nvmlDeviceGetHandleByUUID(const char *u, void **h) { return by("uuid", u, h); }
API ret_t nvmlDeviceGetHandleBySerial(const char *s, void **h) { return by("serial", s, h); }
API ret_t nvmlDeviceGetHandleByPciBusId_v2(const char *b, void **h) { return by("bus_id", b, h); }
API ret_t nvmlDeviceGetHandleByPciBusId(const char *b, void **h) { return by("bus_id", b, h); }
API ret_t nvmlDeviceValidateInforom(void *h) { return G(h) ? OK : INVALID; }

struct pci3 { char legacy[16]; u32 domain, bus, device, id, subsys; char busid[32]; };
API ret_t nvmlDeviceGetPciInfo_v3(void *h, struct pci3 *p);
API ret_t nvmlDeviceGetTopologyCommonAncestor(void *h, void *h2, u32 *o);

/*
 * nvidia-smi looks devices up through an unpublished table of functions, by position. Word 0 is
 * the table's size. The positions are the same in 535 and 550. Positions without a function here
 * answer "not supported" for a device and OK otherwise, and write nothing.
 */
static ret_t pos_other(void *a) { LOG("table call (%p)", a); return G(a) ? UNSUPPORTED : OK; }
static ret_t pos_by_index(u32 i, void **h) { return nvmlDeviceGetHandleByIndex_v2(i, h); }
static ret_t pos_parse_busid(const char *s, u32 *dom, u32 *bus, u32 *dev)
{
	return s && sscanf(s, "%x:%x:%x", dom, bus, dev) == 3 ? OK : INVALID;
}
static ret_t pos_busid_of(u32 i, u32 *dom, u32 *bus, u32 *dev)
{
	struct pci3 p;
	void *h;
	ret_t e = nvmlDeviceGetHandleByIndex_v2(i, &h) ?: nvmlDeviceGetPciInfo_v3(h, &p);
	if (e) return e;
	*dom = p.domain; *bus = p.bus; *dev = p.device;
	return OK;
}
static ret_t pos_topology(const char *busid1, const char *busid2, u32 *o)
{
	void *x, *y;
	u32 level, nv;
	if (by("bus_id", busid1, &x) || by("bus_id", busid2, &y)) return INVALID;
	nv = N(x, "nvlink_direct", 0);
	nvmlDeviceGetTopologyCommonAncestor(x, y, &level);
	*o = nv ? 4 + nv : level / 10 - 1;                       /* 0 PIX .. 3 NODE, 4 SYS, 5 NV1 ... */
	return OK;
}
static ret_t pos_processes(void *h, u32 *n) { if (G(h) && n) *n = 0; return OK; }
static ret_t pos_host_gen(void *h, u32 *o) { if (G(h) && o) *o = N(G(h), "pcie_gen_max", 3); return OK; }
static void *table[256] = {
	[0] = (void *)sizeof table, [1 ... 255] = pos_other,
	[12] = pos_parse_busid, [23] = pos_topology, [75] = pos_busid_of, [81] = pos_by_index,
	[213 ... 215] = pos_processes, [230] = pos_host_gen,
};
API ret_t nvmlInternalGetExportTable(void **out, const void *guid) { (void)guid; *out = table; return OK; }

/* ---- identity -------------------------------------------------------------------- */
STR(nvmlDeviceGetName, "name")
STR(nvmlDeviceGetUUID, "uuid")
STR(nvmlDeviceGetSerial, "serial")
STR(nvmlDeviceGetVbiosVersion, "vbios")
STR(nvmlDeviceGetBoardPartNumber, "part_number")
STR(nvmlDeviceGetInforomImageVersion, "inforom")
STR(nvmlDeviceGetGspFirmwareVersion, "gsp_version")
DEV(nvmlDeviceGetIndex, u32 *o) { NEED; *o = g - gpus; return OK; }
DEV(nvmlDeviceGetMinorNumber, u32 *o) { NEED; *o = N(g, "minor", g - gpus); return OK; }
DEV(nvmlDeviceGetModuleId, u32 *o) { NEED; *o = g - gpus; return OK; }
DEV(nvmlDeviceGetBoardId, u32 *o) { NEED; *o = 0x100 * (g - gpus + 1); return OK; }
DEV(nvmlDeviceGetInforomVersion, int obj, char *o, u32 len)
{
	NEED;
	static const char *k[] = { "inforom_oem", "inforom_ecc", "inforom_pwr" };
	return obj < 0 || obj > 2 ? INVALID : put(o, len, S(g, k[obj]));
}
U32D(nvmlDeviceGetMultiGpuBoard, "multi_gpu_board", 0)
U32D(nvmlDeviceGetBrand, "brand", 14)                           /* 14: NVIDIA */
U32D(nvmlDeviceGetArchitecture, "architecture", 4)              /* 2 Kepler 4 Pascal 5 Volta 6 Turing 7 Ampere 8 Ada 9 Hopper */
DEV(nvmlDeviceGetCudaComputeCapability, int *maj, int *min)
{
	NEED;
	const char *v = S(g, "compute_cap");
	return v && sscanf(v, "%d.%d", maj, min) == 2 ? OK : UNSUPPORTED;
}
DEV(nvmlDeviceGetPciInfo_v3, struct pci3 *p)
{
	NEED;
	u32 dom, bus, dev, fn;
	const char *v = S(g, "bus_id");
	if (!v || sscanf(v, "%x:%x:%x.%x", &dom, &bus, &dev, &fn) != 4) return UNSUPPORTED;
	snprintf(p->legacy, sizeof p->legacy, "%04X:%02X:%02X.%X", dom & 0xffff, bus & 0xff, dev & 0x1f, fn & 7);
	snprintf(p->busid, sizeof p->busid, "%08X:%02X:%02X.%X", dom, bus & 0xff, dev & 0x1f, fn & 7);
	p->domain = dom; p->bus = bus; p->device = dev;
	p->id = N(g, "pci_id", 0x1b38) << 16 | 0x10de;
	p->subsys = N(g, "pci_subsys", 0x11d9) << 16 | 0x10de;
	return OK;
}
DEV(nvmlDeviceGetPciInfo_v2, struct pci3 *p)
{
	struct pci3 t;
	ret_t e = nvmlDeviceGetPciInfo_v3(h, &t);
	if (!e) memcpy(p, &t, 36);                               /* up to and including subsys */
	return e;
}
DEV(nvmlDeviceGetPciInfo, struct pci3 *p) { return nvmlDeviceGetPciInfo_v2(h, p); }

struct pciext { u32 version, domain, bus, device, id, subsys, base, sub; char busid[32]; };
DEV(nvmlDeviceGetPciInfoExt, struct pciext *p)
{
	struct pci3 t;
	ret_t e = nvmlDeviceGetPciInfo_v3(h, &t);
	if (e) return e;
	p->domain = t.domain; p->bus = t.bus; p->device = t.device; p->id = t.id; p->subsys = t.subsys;
	p->base = 3; p->sub = 2;
	memcpy(p->busid, t.busid, sizeof p->busid);
	return OK;
}

/* ---- modes ----------------------------------------------------------------------- */
U32D(nvmlDeviceGetPersistenceMode, "persistence", 0)
U32D(nvmlDeviceGetComputeMode, "compute_mode", 0)
U32D(nvmlDeviceGetDisplayMode, "display_mode", 0)
U32D(nvmlDeviceGetDisplayActive, "display_active", 0)
U32D(nvmlDeviceGetVirtualizationMode, "virt_mode", 0)
U32D(nvmlDeviceGetAccountingMode, "accounting", 0)
U32D(nvmlDeviceGetAccountingBufferSize, "accounting_buffer", 4000)
DEV(nvmlDeviceGetEccMode, u32 *cur, u32 *pend) { NEED; if (!S(g, "ecc")) return UNSUPPORTED; *cur = N(g, "ecc", 0); *pend = N(g, "ecc_pending", *cur); return OK; }
DEV(nvmlDeviceGetMigMode, u32 *cur, u32 *pend) { NEED; if (!S(g, "mig")) return UNSUPPORTED; *cur = *pend = N(g, "mig", 0); return OK; }
DEV(nvmlDeviceGetGspFirmwareMode, u32 *en, u32 *dflt) { NEED; *en = *dflt = S(g, "gsp_version") != NULL; return OK; }
/* settings are appended to a file that a reboot forgets, so the next process sees them */
static ret_t keep(struct gpu *g, const char *key, u32 val)
{
	const char *path = getenv("NVML_MOCK_CONF");
	FILE *f = fopen(path ? path : SETTINGS, "a");
	if (!f) return 4;                                        /* insufficient permissions */
	fprintf(f, "[gpu %lld]\n%s = %u\n", N(g, "minor", g - gpus), key, val);
	fclose(f);
	if (g->n == MAXKEY) return OK;
	snprintf(g->kv[g->n].key, sizeof g->kv[0].key, "%s", key);
	snprintf(g->kv[g->n++].val, sizeof g->kv[0].val, "%u", val);
	return OK;
}
#define SET(fn, key) DEV(fn, u32 v) { NEED; return keep(g, key, v); }
/* the persistence daemon, where it runs, has the mode of each GPU: it opens or closes the node */
DEV(nvmlDeviceSetPersistenceMode, u32 v)
{
	NEED;
	ret_t e = keep(g, "persistence", v);
	FILE *f = e ? NULL : fopen("/run/nvidia-persistenced/nvidia-persistenced.pid", "r");
	int pid = 0;
	if (f) {
		if (fscanf(f, "%d", &pid) == 1 && pid > 1) kill(pid, SIGUSR1);
		fclose(f);
	}
	return e;
}
SET(nvmlDeviceSetComputeMode, "compute_mode")
SET(nvmlDeviceSetPowerManagementLimit, "power_limit_mw")
struct power { u32 version; unsigned char scope; u32 mw; };
DEV(nvmlDeviceSetPowerManagementLimit_v2, struct power *p) { NEED; return p->scope ? UNSUPPORTED : keep(g, "power_limit_mw", p->mw); }
SET(nvmlDeviceSetEccMode, "ecc_pending")
DEV(nvmlDeviceSetMigMode, u32 v, ret_t *st) { NEED; *st = OK; return S(g, "mig") ? keep(g, "mig", v) : UNSUPPORTED; }

/* ---- memory, power, clocks, links ------------------------------------------------ */
#define MIB(k, d) ((u64)N(g, k, d) << 20)
DEV(nvmlDeviceGetMemoryInfo, u64 *m) { NEED; m[0] = MIB("memory_mib", 24576); m[2] = MIB("memory_used_mib", 0); m[1] = m[0] - m[2]; return OK; }
struct mem2 { u32 version; u64 total, reserved, free, used; };
DEV(nvmlDeviceGetMemoryInfo_v2, struct mem2 *m)
{
	NEED;
	m->total = MIB("memory_mib", 24576); m->reserved = MIB("memory_reserved_mib", 256);
	m->used = MIB("memory_used_mib", 0); m->free = m->total - m->reserved - m->used;
	return OK;
}
DEV(nvmlDeviceGetBAR1MemoryInfo, u64 *m) { NEED; m[0] = MIB("bar1_mib", 32768); m[2] = MIB("bar1_used_mib", 2); m[1] = m[0] - m[2]; return OK; }
DEV(nvmlDeviceGetUtilizationRates, u32 *u) { NEED; u[0] = N(g, "util_gpu", 0); u[1] = N(g, "util_mem", 0); return OK; }
DEV(nvmlDeviceGetEncoderUtilization, u32 *u, u32 *us) { NEED; *u = 0; *us = 16000; return OK; }
DEV(nvmlDeviceGetDecoderUtilization, u32 *u, u32 *us) { NEED; *u = 0; *us = 16000; return OK; }
DEV(nvmlDeviceGetTemperature, int sensor, u32 *t) { NEED; (void)sensor; *t = N(g, "temp", 30); return OK; }
DEV(nvmlDeviceGetTemperatureThreshold, int type, u32 *t)
{
	NEED;
	static const char *k[] = { "temp_shutdown", "temp_slowdown", "temp_mem_max", "temp_gpu_max" };
	if (type < 0 || type > 3 || !S(g, k[type])) return UNSUPPORTED;
	*t = N(g, k[type], 0);
	return OK;
}
U32D(nvmlDeviceGetPerformanceState, "pstate", 8)
U32D(nvmlDeviceGetPowerState, "pstate", 8)
U32(nvmlDeviceGetFanSpeed, "fan")
DEV(nvmlDeviceGetFanSpeed_v2, u32 i, u32 *o) { (void)i; return nvmlDeviceGetFanSpeed(h, o); }
U32D(nvmlDeviceGetPowerManagementMode, "power_mgmt", 1)
U32D(nvmlDeviceGetPowerUsage, "power_mw", 10000)
U32D(nvmlDeviceGetPowerManagementLimit, "power_limit_mw", 250000)
U32D(nvmlDeviceGetPowerManagementDefaultLimit, "power_limit_mw", 250000)
U32D(nvmlDeviceGetEnforcedPowerLimit, "power_limit_mw", 250000)
DEV(nvmlDeviceGetPowerManagementLimitConstraints, u32 *lo, u32 *hi) { NEED; *lo = N(g, "power_min_mw", 125000); *hi = N(g, "power_max_mw", N(g, "power_limit_mw", 250000)); return OK; }
static ret_t clk(struct gpu *g, int type, const char *sfx, u32 *o)
{
	static const char *k[] = { "graphics", "sm", "mem", "video" };
	char b[40];
	if (type < 0 || type > 3) return INVALID;
	snprintf(b, sizeof b, "clock_%s%s", k[type], sfx);
	if (!S(g, b)) return UNSUPPORTED;
	*o = N(g, b, 0);
	return OK;
}
DEV(nvmlDeviceGetClockInfo, int t, u32 *o) { NEED; return clk(g, t, "", o); }
DEV(nvmlDeviceGetMaxClockInfo, int t, u32 *o) { NEED; return clk(g, t, "_max", o); }
DEV(nvmlDeviceGetApplicationsClock, int t, u32 *o) { NEED; return clk(g, t, "_app", o); }
DEV(nvmlDeviceGetDefaultApplicationsClock, int t, u32 *o) { NEED; return clk(g, t, "_app", o); }
DEV(nvmlDeviceGetCurrentClocksThrottleReasons, u64 *o) { NEED; *o = N(g, "throttle", 1); return OK; }
DEV(nvmlDeviceGetCurrentClocksEventReasons, u64 *o) { return nvmlDeviceGetCurrentClocksThrottleReasons(h, o); }
DEV(nvmlDeviceGetSupportedClocksThrottleReasons, u64 *o) { NEED; *o = 0x1ff; return OK; }
DEV(nvmlDeviceGetSupportedClocksEventReasons, u64 *o) { NEED; *o = 0x1ff; return OK; }
U32D(nvmlDeviceGetMaxPcieLinkGeneration, "pcie_gen_max", 3)
U32D(nvmlDeviceGetGpuMaxPcieLinkGeneration, "pcie_gen_max", 3)
U32D(nvmlDeviceGetMaxPcieLinkWidth, "pcie_width_max", 16)
U32D(nvmlDeviceGetCurrPcieLinkGeneration, "pcie_gen", 3)
U32D(nvmlDeviceGetCurrPcieLinkWidth, "pcie_width", 16)
U32D(nvmlDeviceGetPcieReplayCounter, "pcie_replays", 0)
DEV(nvmlDeviceGetPcieThroughput, int c, u32 *o) { NEED; (void)c; *o = 0; return OK; }

/* ---- errors, processes ----------------------------------------------------------- */
DEV(nvmlDeviceGetTotalEccErrors, int type, int counter, u64 *o)
{
	NEED;
	(void)counter;
	if (!N(g, "ecc", 0)) return UNSUPPORTED;
	*o = N(g, type ? "ecc_uncorrected" : "ecc_corrected", 0);
	return OK;
}
DEV(nvmlDeviceGetMemoryErrorCounter, int type, int counter, int loc, u64 *o)
{
	(void)loc;
	return nvmlDeviceGetTotalEccErrors(h, type, counter, o);
}
DEV(nvmlDeviceGetRetiredPages, int cause, u32 *n, u64 *a) { NEED; (void)cause; (void)a; *n = 0; return OK; }
DEV(nvmlDeviceGetRetiredPages_v2, int cause, u32 *n, u64 *a, u64 *t) { NEED; (void)cause; (void)a; (void)t; *n = 0; return OK; }
DEV(nvmlDeviceGetRetiredPagesPendingStatus, u32 *o) { NEED; *o = 0; return OK; }
#define PROCS(fn) DEV(fn, u32 *n, void *p) { NEED; (void)p; *n = 0; return OK; }
/* processes = PID:MIB:PERCENT PID:MIB:PERCENT ... : what each uses of this GPU; a process that has ended is left out */
struct use { u32 pid, percent; u64 bytes; };
static u32 uses(struct gpu *g, struct use *out)
{
	const char *at = S(g, "processes");
	u32 n = 0, pid, mib, percent;
	char path[40];
	int length;
	for (; at && n < 16 && sscanf(at, " %u:%u:%u%n", &pid, &mib, &percent, &length) == 3; at += length) {
		snprintf(path, sizeof path, "/proc/%u", pid);
		if (access(path, F_OK)) continue;
		out[n++] = (struct use){ pid, percent, (u64)mib << 20 };
	}
	return n;
}
/* records of 16 bytes in the first version, of 24 since: nvmlProcessInfo_v1_t and _v2_t of nvml.h */
static ret_t processes(struct gpu *g, u32 *n, char *p, size_t size)
{
	struct use found[16];
	u32 count = uses(g, found), space = *n;
	*n = count;
	if (count > space) return NOSPACE;
	for (u32 i = 0; i < count; i++) {
		memset(p + i * size, 0xff, size);
		memcpy(p + i * size, &found[i].pid, 4);
		memcpy(p + i * size + 8, &found[i].bytes, 8);
	}
	return OK;
}
#define COMPUTE(fn, size) DEV(fn, u32 *n, char *p) { NEED; return processes(g, n, p, size); }
COMPUTE(nvmlDeviceGetComputeRunningProcesses, 16)
COMPUTE(nvmlDeviceGetComputeRunningProcesses_v2, 24)
COMPUTE(nvmlDeviceGetComputeRunningProcesses_v3, 24)
struct busy { u32 pid; u64 time; u32 sm, mem, enc, dec; };
DEV(nvmlDeviceGetProcessUtilization, struct busy *p, u32 *n, u64 since)
{
	NEED;
	struct use found[16];
	u32 count = uses(g, found), space = *n, used = 0;
	u64 now = (u64)time(NULL) * 1000000;
	for (u32 i = 0; i < count; i++)
		if (found[i].percent && now > since) found[used++] = found[i];
	*n = used;
	if (!used) return NOTFOUND;
	if (!p || used > space) return NOSPACE;
	for (u32 i = 0; i < used; i++) p[i] = (struct busy){ found[i].pid, now, found[i].percent, 0, 0, 0 };
	return OK;
}
/* what cAdvisor makes its duty cycle of; the first call asks how many there are */
struct sample { u64 time; union { double d; u32 u; u64 q; } value; };
DEV(nvmlDeviceGetSamples, int type, u64 since, int *value_type, u32 *n, struct sample *s)
{
	NEED;
	(void)since;
	if (type != 1) return UNSUPPORTED;
	*value_type = 1;
	if (!s) { *n = 10; return OK; }
	for (u32 i = 0; i < *n; i++) { s[i].time = (u64)time(NULL) * 1000000; s[i].value.u = N(g, "util_gpu", 0); }
	return OK;
}
DEV(nvmlDeviceGetRemappedRows, u32 *corrected, u32 *uncorrected, u32 *pending, u32 *failed)
{
	NEED;
	if (!S(g, "remapped_uncorrected")) return UNSUPPORTED;
	*corrected = N(g, "remapped_corrected", 0); *uncorrected = N(g, "remapped_uncorrected", 0);
	*pending = N(g, "remap_pending", 0); *failed = N(g, "remap_failed", 0);
	return OK;
}
PROCS(nvmlDeviceGetGraphicsRunningProcesses)
PROCS(nvmlDeviceGetGraphicsRunningProcesses_v2)
PROCS(nvmlDeviceGetGraphicsRunningProcesses_v3)
PROCS(nvmlDeviceGetMPSComputeRunningProcesses_v3)
PROCS(nvmlDeviceGetAccountingPids)
DEV(nvmlDeviceGetEncoderStats, u32 *n, u32 *fps, u32 *lat) { NEED; *n = *fps = *lat = 0; return OK; }

API ret_t nvmlEventSetCreate(void **set) { *set = &sys; return OK; }
API ret_t nvmlEventSetFree(void *set) { (void)set; return OK; }
API ret_t nvmlEventSetWait_v2(void *set, void *data, u32 ms) { (void)set; (void)data; (void)ms; return 10; }
DEV(nvmlDeviceGetSupportedEventTypes, u64 *o) { NEED; *o = 0x1f; return OK; }
DEV(nvmlDeviceRegisterEvents, u64 types, void *set) { NEED; (void)types; (void)set; return OK; }

/* nvlinks_down: a mask of links that are inactive */
static u32 link_is_active(struct gpu *g, u32 link) { return !(N(g, "nvlinks_down", 0) >> link & 1); }

/* field values: answer the few nvidia-smi asks for, mark the rest unsupported */
struct field { u32 id, scope; long long ts, lat; int type; ret_t ret; union { u32 ui; u64 ull; double d; } v; };
/* counters of the first link by field; nvml.h of API 13: 161-163 are not supported from Blackwell on, 208-215 are of NVLink 5 */
static void link_errors(struct gpu *g, struct field *f)
{
	static const struct { u32 id; int fifth; const char *key; } counters[] = { { 161, 0, "nvlink_replay" },
		{ 162, 0, "nvlink_recovery" }, { 163, 0, "nvlink_crc" }, { 208, 1, "nvlink_receive" },
		{ 211, 1, "nvlink_integrity" }, { 215, 1, "nvlink_recovery" } };
	for (unsigned i = 0; i < sizeof counters / sizeof *counters; i++) {
		if (f->id != counters[i].id || (N(g, "nvlink_version", 0) >= 5) != counters[i].fifth) continue;
		if ((long long)f->scope >= N(g, "nvlinks", 0)) continue;
		f->type = 3;
		f->v.ull = f->scope ? 0 : N(g, counters[i].key, 0);
		f->ret = OK;
	}
}
DEV(nvmlDeviceGetFieldValues, int n, struct field *f)
{
	NEED;
	for (int i = 0; i < n; i++) {
		LOG("  field %u scope %u", f[i].id, f[i].scope);
		f[i].ts = time(NULL) * 1000000LL; f[i].lat = 0; f[i].ret = UNSUPPORTED; f[i].type = 1; f[i].v.ull = 0;
		if (f[i].id == 91) { f[i].v.ui = N(g, "nvlinks", 0); f[i].ret = OK; }        /* NVLink count */
		if (f[i].id >= 164 && f[i].id <= 166) {                                      /* NVLink speed, state, version */
			static const char *k[] = { "nvlink_mbps", NULL, "nvlink_version" };
			f[i].v.ui = f[i].id == 165 ? link_is_active(g, f[i].scope) : N(g, k[f[i].id - 164], 0);
			f[i].ret = (long long)f[i].scope < N(g, "nvlinks", 0) ? OK : UNSUPPORTED;
		}
		link_errors(g, &f[i]);
		if (f[i].id == 230 && S(g, "recovery_action")) { f[i].v.ui = N(g, "recovery_action", 0); f[i].ret = OK; }
		if (f[i].id == 147) { f[i].v.ui = N(g, "nvswitch_links", 0); f[i].ret = OK; }
		if (f[i].id >= 187 && f[i].id <= 192 && f[i].id != 191) {                    /* power limits */
			long long lim = N(g, "power_limit_mw", 250000);
			f[i].v.ui = f[i].id == 187 ? N(g, "power_min_mw", 125000) : f[i].id == 188 ? N(g, "power_max_mw", 250000) : lim;
			f[i].ret = OK;
		}
		if (f[i].id == 185 || f[i].id == 186) {                                      /* average / instant power */
			f[i].v.ui = N(g, "power_mw", 10000); f[i].ret = OK;
		}
	}
	return OK;
}

/* ---- topology and NVLink --------------------------------------------------------- */
DEV(nvmlDeviceGetNvLinkState, u32 link, u32 *on)
{
	NEED;
	if ((long long)link >= N(g, "nvlinks", 0)) return N(g, "nvlinks", 0) ? INVALID : UNSUPPORTED;
	*on = link_is_active(g, link);
	return OK;
}
/*
 * nvmlGpuFabricInfo_v2_t and _v3_t of nvml.h: Hopper and newer (architecture 9). Without NVSwitches the state is
 * "not supported"; with them "completed" while a fabric manager runs, else "not started".
 */
struct fabric { u32 version; unsigned char cluster[16]; ret_t status; u32 clique; unsigned char state; u32 mask; unsigned char summary; };
DEV(nvmlDeviceGetGpuFabricInfoV, struct fabric *f)
{
	NEED;
	u32 version = f->version >> 24, size = f->version & 0xffffff;
	if (N(g, "architecture", 0) < 9) return UNSUPPORTED;
	if (!(version == 2 && size == 36) && !(version == 3 && size == sizeof *f)) return 25;  /* version mismatch */
	memset(f->cluster, 0, size - sizeof f->version);
	if (!N(g, "nvswitch_links", 0)) return OK;
	f->state = N(g, "fabric_state", access("/run/nvidia-fabricmanager/nv-fabricmanager.pid", F_OK) ? 1 : 3);
	f->status = N(g, "fabric_status", 0);
	f->mask = N(g, "fabric_mask", 0x11aa);                   /* no problem, configuration correct, partition assigned */
	if (version == 3) f->summary = f->mask == 0x11aa ? 1 : 2;
	return OK;
}
DEV(nvmlDeviceGetNvLinkVersion, u32 link, u32 *v) { NEED; if ((long long)link >= N(g, "nvlinks", 0)) return INVALID; *v = N(g, "nvlink_version", 2); return OK; }
DEV(nvmlDeviceGetCpuAffinity, u32 n, u64 *set) { NEED; memset(set, 0, n * sizeof *set); set[0] = N(g, "cpu_mask", 3); return OK; }
DEV(nvmlDeviceGetTopologyCommonAncestor, void *h2, u32 *o)
{
	NEED;
	struct gpu *b = G(h2);
	if (!b) return INVALID;
	*o = b == g ? 0 : N(g, "numa", 0) == N(b, "numa", 0) ? 40 : 50;  /* NODE, SYS */
	return OK;
}
DEV(nvmlDeviceGetP2PStatus, void *h2, int idx, int *o) { NEED; (void)idx; (void)h2; *o = 0; return OK; }

/* ---- not supported --------------------------------------------------------------- */
#define NONE(fn) DEV(fn) { NEED; return UNSUPPORTED; }
NONE(nvmlDeviceGetAutoBoostedClocksEnabled)
NONE(nvmlDeviceGetBridgeChipInfo)
NONE(nvmlDeviceGetC2cModeInfoV)
NONE(nvmlDeviceGetClock)
NONE(nvmlDeviceGetConfComputeProtectedMemoryUsage)
NONE(nvmlDeviceGetDriverModel)
NONE(nvmlDeviceGetFBCStats)
NONE(nvmlDeviceGetGpuFabricInfo)
NONE(nvmlDeviceGetGpuOperationMode)
NONE(nvmlDeviceGetGridLicensableFeatures_v4)
NONE(nvmlDeviceGetHostVgpuMode)
NONE(nvmlDeviceGetJpgUtilization)
NONE(nvmlDeviceGetLastBBXFlushTime)
NONE(nvmlDeviceGetMaxMigDeviceCount)
NONE(nvmlDeviceGetMemoryAffinity)
NONE(nvmlDeviceGetNumaNodeId)
NONE(nvmlDeviceGetNvLinkRemotePciInfo_v2)
NONE(nvmlDeviceGetOfaUtilization)
NONE(nvmlDeviceGetSupportedMemoryClocks)
NONE(nvmlDeviceGetVgpuHeterogeneousMode)
NONE(nvmlDeviceIsMigDeviceHandle)
NONE(nvmlDeviceResetApplicationsClocks)
NONE(nvmlDeviceResetGpuLockedClocks)
NONE(nvmlDeviceSetGpuLockedClocks)
