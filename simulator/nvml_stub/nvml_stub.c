/* A stand-in for libnvidia-ml.so.1 that answers from the file which simgpu.publish() keeps.
 *
 * Build:  cc -shared -fPIC -Wl,-soname,libnvidia-ml.so.1 -o libnvidia-ml.so.1 nvml_stub.c
 * Use:    SIMGPU_NVML_FILE=/path/to/file LD_LIBRARY_PATH=/folder/of/the/library python ...
 *
 * Functions that it lacks are missing symbols, which nvidia-ml-py reports as FunctionNotFound: a driver with partial
 * support, as in real life.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef int nvmlReturn_t;
enum { SUCCESS = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7, UNKNOWN = 999 };

typedef struct {
    char magic[8];
    uint32_t sequence, pid, device_count, padding;
    uint64_t wall_ns, busy_ns, window_ns, memory_used, memory_total, kernels;
} Published;

typedef struct { unsigned int gpu, memory; } Utilization;
typedef struct { unsigned long long total, free, used; } Memory;
typedef struct { unsigned int version; unsigned long long total, reserved, free, used; } MemoryV2;
typedef struct { unsigned int pid; unsigned long long used; unsigned int gpu_instance, compute_instance; } ProcessInfo;

static int initialised;
static int the_device;
static const uint64_t STALE_NS = 1000000000ull; /* a process that stopped publishing no longer uses the device */

static int read_once(Published *out) {
    const char *path = getenv("SIMGPU_NVML_FILE");
    FILE *file = path ? fopen(path, "rb") : NULL;
    if (!file) return 0;
    size_t got = fread(out, sizeof *out, 1, file);
    fclose(file);
    return got == 1 && memcmp(out->magic, "SIMGPU01", 8) == 0;
}

/* The writer leaves an odd sequence number while it writes: take two equal, even readings. */
static int read_published(Published *out) {
    Published again;
    for (int attempt = 0; attempt < 1000; attempt++)
        if (read_once(out) && read_once(&again) && out->sequence == again.sequence && out->sequence % 2 == 0) return 1;
    return 0;
}

static int is_fresh(const Published *published) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t now_ns = (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
    return now_ns < published->wall_ns + STALE_NS;
}

static nvmlReturn_t check(void *device, const void *out) {
    if (!initialised) return UNINITIALIZED;
    return device == &the_device && out ? SUCCESS : INVALID_ARGUMENT;
}

static nvmlReturn_t answer(char *buffer, unsigned int length, const char *text) {
    if (!buffer || strlen(text) >= length) return INSUFFICIENT_SIZE;
    strcpy(buffer, text);
    return SUCCESS;
}

nvmlReturn_t nvmlInitWithFlags(unsigned int flags) { (void)flags; initialised = 1; return SUCCESS; }
nvmlReturn_t nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
nvmlReturn_t nvmlShutdown(void) { initialised = 0; return SUCCESS; }

const char *nvmlErrorString(nvmlReturn_t result) {
    switch (result) {
    case SUCCESS: return "Success";
    case UNINITIALIZED: return "Uninitialized";
    case INVALID_ARGUMENT: return "Invalid Argument";
    case NOT_FOUND: return "Not Found";
    case INSUFFICIENT_SIZE: return "Insufficient Size";
    default: return "Unknown Error";
    }
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length) { return answer(version, length, "0.0.simgpu"); }

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count) {
    Published published;
    if (!initialised) return UNINITIALIZED;
    *count = read_published(&published) ? published.device_count : 0;
    return SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **device) {
    unsigned int count;
    nvmlReturn_t result = nvmlDeviceGetCount_v2(&count);
    if (result != SUCCESS) return result;
    if (index >= count) return INVALID_ARGUMENT;
    *device = &the_device;
    return SUCCESS;
}

nvmlReturn_t nvmlDeviceGetIndex(void *device, unsigned int *index) {
    nvmlReturn_t result = check(device, index);
    if (result == SUCCESS) *index = 0;
    return result;
}

nvmlReturn_t nvmlDeviceGetName(void *device, char *name, unsigned int length) {
    nvmlReturn_t result = check(device, name);
    return result == SUCCESS ? answer(name, length, "Simulated GPU") : result;
}

nvmlReturn_t nvmlDeviceGetUUID(void *device, char *uuid, unsigned int length) {
    nvmlReturn_t result = check(device, uuid);
    return result == SUCCESS ? answer(uuid, length, "GPU-51309000-0000-0000-0000-000000000000") : result;
}

/* As on a real device: percent of the last window in which at least one kernel ran. */
nvmlReturn_t nvmlDeviceGetUtilizationRates(void *device, Utilization *out) {
    Published published;
    nvmlReturn_t result = check(device, out);
    if (result != SUCCESS) return result;
    if (!read_published(&published)) return UNKNOWN;
    int live = is_fresh(&published) && published.window_ns > 0;
    out->gpu = live ? (unsigned int)((published.busy_ns * 100 + published.window_ns / 2) / published.window_ns) : 0;
    out->memory = out->gpu / 2;
    return SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(void *device, Memory *out) {
    Published published;
    nvmlReturn_t result = check(device, out);
    if (result != SUCCESS) return result;
    if (!read_published(&published)) return UNKNOWN;
    out->total = published.memory_total;
    out->used = is_fresh(&published) ? published.memory_used : 0;
    out->free = out->total - out->used;
    return SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(void *device, MemoryV2 *out) {
    Memory memory;
    nvmlReturn_t result = out ? nvmlDeviceGetMemoryInfo(device, &memory) : INVALID_ARGUMENT;
    if (result != SUCCESS) return result;
    out->total = memory.total;
    out->used = memory.used;
    out->free = memory.free;
    out->reserved = 0;
    return SUCCESS;
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned int *count, ProcessInfo *processes) {
    Published published;
    nvmlReturn_t result = check(device, count);
    if (result != SUCCESS) return result;
    unsigned int room = *count;
    *count = read_published(&published) && is_fresh(&published);
    if (*count > room) return INSUFFICIENT_SIZE;
    if (*count && processes) processes[0] = (ProcessInfo){published.pid, published.memory_used, ~0u, ~0u};
    return SUCCESS;
}
