/* A library with the face of a CUDA driver, over host memory and without streams: all work is done when it is issued.
   It is there so that the binding's calls (order, size and type of arguments, flags, handles) are made for real.
   -DNO_DEVICE, -DNOT_STARTING, -DOLD, -DINCOMPLETE, -DNEWER_CODE make it one of the drivers that cannot be used. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS, INVALID_VALUE, OUT_OF_MEMORY, NO_DEVICE_FOUND = 100, INVALID_CONTEXT = 201, NOT_FOUND = 500 };

#define DEVICES 2
#define POOL(device) ((void *)(uintptr_t)(0x1000 + (device)))
#define CONTEXT(device) ((void *)(uintptr_t)(0x2000 + (device)))
#define CHECK(condition)                                                            \
    do {                                                                            \
        if (!(condition)) {                                                         \
            fprintf(stderr, "%s: not so: %s\n", __func__, #condition);              \
            return INVALID_VALUE;                                                   \
        }                                                                           \
    } while (0)

struct stream { int device, priority; struct node *capture, **last; };
struct event { int timed, recorded; };
struct node { struct node *next; int kernel; void *out; const void *in; uint64_t factor; uint32_t count; };

static _Thread_local void *current;

static int here(void) { return current == CONTEXT(0) ? 0 : current == CONTEXT(1) ? 1 : -1; }

unsigned cuInit(unsigned flags) {
    CHECK(flags == 0);
#if defined(NO_DEVICE)
    return NO_DEVICE_FOUND;
#elif defined(NOT_STARTING)
    return 34;
#else
    return SUCCESS;
#endif
}

unsigned cuDriverGetVersion(int *version) {
#ifdef OLD
    *version = 11080;
#else
    *version = 12040;
#endif
    return SUCCESS;
}

unsigned cuGetErrorName(unsigned code, const char **name) {
    switch (code) {
    case INVALID_VALUE: *name = "CUDA_ERROR_INVALID_VALUE"; return SUCCESS;
    case OUT_OF_MEMORY: *name = "CUDA_ERROR_OUT_OF_MEMORY"; return SUCCESS;
    case 34: *name = "CUDA_ERROR_STUB_LIBRARY"; return SUCCESS;
    case NO_DEVICE_FOUND: *name = "CUDA_ERROR_NO_DEVICE"; return SUCCESS;
    case INVALID_CONTEXT: *name = "CUDA_ERROR_INVALID_CONTEXT"; return SUCCESS;
    case NOT_FOUND: *name = "CUDA_ERROR_NOT_FOUND"; return SUCCESS;
    default: return INVALID_VALUE;
    }
}

unsigned cuDeviceGetCount(int *count) { *count = DEVICES; return SUCCESS; }
unsigned cuDeviceGet(int *device, int ordinal) { CHECK(ordinal < DEVICES); *device = ordinal; return SUCCESS; }

unsigned cuDeviceGetName(char *name, int length, int device) {
    snprintf(name, (size_t)length, "Fake %d", device);
    return SUCCESS;
}

unsigned cuDeviceTotalMem_v2(size_t *bytes, int device) { *bytes = (size_t)(device + 1) << 30; return SUCCESS; }

unsigned cuDeviceGetAttribute(int *value, unsigned attribute, int device) {
    CHECK(device < DEVICES);
    switch (attribute) {
    case 75: *value = 9; return SUCCESS;
    case 76: *value = 0; return SUCCESS;
    case 16: *value = 132; return SUCCESS;
    case 97: *value = 232448; return SUCCESS;
    case 115: *value = 1; return SUCCESS;
    default: return INVALID_VALUE;
    }
}

unsigned cuDevicePrimaryCtxRetain(void **context, int device) { *context = CONTEXT(device); return SUCCESS; }
unsigned cuDevicePrimaryCtxRelease_v2(int device) { CHECK(device < DEVICES); return SUCCESS; }
unsigned cuCtxSetCurrent(void *context) { current = context; return SUCCESS; }
unsigned cuCtxGetCurrent(void **context) { *context = current; return SUCCESS; }

unsigned cuThreadExchangeStreamCaptureMode(unsigned *mode) {
    static _Thread_local unsigned in_force;
    CHECK(*mode == 0 || *mode == 2);
    unsigned before = in_force;
    in_force = *mode;
    *mode = before;
    return SUCCESS;
}

unsigned cuStreamIsCapturing(const struct stream *stream, unsigned *status) {
    *status = (uintptr_t)stream > 2 && stream->last;
    return SUCCESS;
}

unsigned cuCtxGetStreamPriorityRange(int *least, int *greatest) {
    if (here() < 0) return INVALID_CONTEXT;
    *least = 0;
    *greatest = -5;
    return SUCCESS;
}

unsigned cuStreamCreateWithPriority(struct stream **stream, unsigned flags, int priority) {
    if (here() < 0) return INVALID_CONTEXT;
    CHECK(flags == 1 && priority <= 0 && priority >= -5);
    *stream = calloc(1, sizeof **stream);
    (*stream)->device = here();
    (*stream)->priority = priority;
    return SUCCESS;
}

unsigned cuStreamDestroy_v2(struct stream *stream) { free(stream); return SUCCESS; }

unsigned cuStreamWaitEvent(struct stream *stream, struct event *event, unsigned flags) {
    CHECK(stream->priority <= 0 && event->recorded && flags == 0);
    return SUCCESS;
}

unsigned cuEventCreate(struct event **event, unsigned flags) {
    if (here() < 0) return INVALID_CONTEXT;
    CHECK(flags == 0 || flags == 2);
    *event = calloc(1, sizeof **event);
    (*event)->timed = flags == 0;
    return SUCCESS;
}

unsigned cuEventDestroy_v2(struct event *event) { free(event); return SUCCESS; }

unsigned cuEventRecord(struct event *event, struct stream *stream) {
    if (stream->device != here()) return INVALID_CONTEXT;
    event->recorded++;
    return SUCCESS;
}

unsigned cuEventQuery(struct event *event) {
    CHECK(event->recorded);
    /* The first look comes too early. */
    return event->recorded++ == 1 ? 600 : SUCCESS;
}

unsigned cuEventElapsedTime(float *milliseconds, struct event *start, struct event *end) {
    CHECK(start->timed && end->timed);
    *milliseconds = 1.5f;
    return SUCCESS;
}

#ifndef INCOMPLETE
unsigned cuMemAllocFromPoolAsync(uint64_t *address, size_t bytes, void *pool, struct stream *stream) {
    if (stream->device != here()) return INVALID_CONTEXT;
    CHECK(pool == POOL(here()));
    if (bytes > (size_t)1 << 30) return OUT_OF_MEMORY;
    *address = (uintptr_t)malloc(bytes);
    return SUCCESS;
}
#endif

unsigned cuMemFreeAsync(uint64_t address, struct stream *stream) {
    if (stream->device != here()) return INVALID_CONTEXT;
    free((void *)(uintptr_t)address);
    return SUCCESS;
}

unsigned cuMemPoolCreate(void **pool, const int *wanted) {
    if (here() < 0) return INVALID_CONTEXT;
    /* Pinned, for no other process, on a device, which; all else as usual. */
    CHECK(wanted[0] == 1 && wanted[1] == 0 && wanted[2] == 1 && (wanted[3] == 0 || wanted[3] == 1));
    for (int at = 4; at < 22; at++) CHECK(wanted[at] == 0);
    *pool = POOL(wanted[3]);
    return SUCCESS;
}

unsigned cuMemPoolDestroy(void *pool) { CHECK(pool == POOL(0) || pool == POOL(1)); return SUCCESS; }

unsigned cuMemPoolSetAttribute(void *pool, unsigned attribute, void *value) {
    CHECK((pool == POOL(0) || pool == POOL(1)) && attribute == 4);
    CHECK(*(uint64_t *)value == (pool == POOL(0) ? 1 : 2) * ((uint64_t)1 << 27)); /* an eighth */
    return SUCCESS;
}

unsigned cuMemPoolGetAttribute(void *pool, unsigned attribute, void *value) {
    CHECK((pool == POOL(0) || pool == POOL(1)) && attribute == 5);
    *(uint64_t *)value = 4096;
    return SUCCESS;
}

unsigned cuMemPoolTrimTo(void *pool, size_t bytes) { CHECK(pool != NULL && bytes == 0); return SUCCESS; }

unsigned cuMemPoolSetAccess(void *pool, const int *access, size_t count) {
    /* On a device, which device, to read and write. */
    CHECK(pool == POOL(0) && count == 1 && access[0] == 1 && access[1] == 1 && access[2] == 3);
    return SUCCESS;
}

unsigned cuDeviceCanAccessPeer(int *can, int device, int peer) { *can = device == 1 && peer == 0; return SUCCESS; }
unsigned cuMemGetInfo_v2(size_t *empty, size_t *total) { *empty = 1 << 20; *total = 1 << 30; return SUCCESS; }

/* Pinned memory carries a mark in front. */
static const char mark[16] = "pinned by weft!";

unsigned cuMemHostAlloc(void **start, size_t bytes, unsigned flags) {
    CHECK(flags == 1);
    char *block = aligned_alloc(4096, 4096 + bytes);
    memcpy(block + 4096 - sizeof mark, mark, sizeof mark);
    *start = block + 4096;
    return SUCCESS;
}

unsigned cuMemFreeHost(void *start) { free((char *)start - 4096); return SUCCESS; }

unsigned cuPointerGetAttribute(void *value, unsigned attribute, uint64_t address) {
    CHECK(attribute == 2);
    const char *start = (const char *)(uintptr_t)address;
    if (address % 4096 || memcmp(start - sizeof mark, mark, sizeof mark)) return INVALID_VALUE;
    *(uint32_t *)value = 1;
    return SUCCESS;
}

static unsigned copy(void *to, const void *from, size_t bytes, struct stream *stream) {
    if (stream->device != here()) return INVALID_CONTEXT;
    memmove(to, from, bytes);
    return SUCCESS;
}

unsigned cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, struct stream *stream) {
    return copy((void *)(uintptr_t)to, from, bytes, stream);
}

unsigned cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, struct stream *stream) {
    return copy(to, (void *)(uintptr_t)from, bytes, stream);
}

unsigned cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, struct stream *stream) {
    return copy((void *)(uintptr_t)to, (void *)(uintptr_t)from, bytes, stream);
}

unsigned cuMemcpyPeerAsync(uint64_t to, void *target, uint64_t from, void *source, size_t bytes, struct stream *stream) {
    CHECK(target == CONTEXT(1) && source == CONTEXT(0));
    return copy((void *)(uintptr_t)to, (void *)(uintptr_t)from, bytes, stream);
}

unsigned cuMemsetD8Async(uint64_t to, unsigned char value, size_t count, struct stream *stream) {
    if (stream->device != here()) return INVALID_CONTEXT;
    memset((void *)(uintptr_t)to, value, count);
    return SUCCESS;
}

unsigned cuMemsetD16Async(uint64_t to, unsigned short value, size_t count, struct stream *stream) {
    if (stream->device != here()) return INVALID_CONTEXT;
    for (size_t at = 0; at < count; at++) ((uint16_t *)(uintptr_t)to)[at] = value;
    return SUCCESS;
}

unsigned cuMemsetD32Async(uint64_t to, unsigned value, size_t count, struct stream *stream) {
    if (stream->device != here()) return INVALID_CONTEXT;
    for (size_t at = 0; at < count; at++) ((uint32_t *)(uintptr_t)to)[at] = value;
    return SUCCESS;
}

unsigned cuModuleLoadData(void **module, const char *image) {
    if (here() < 0) return INVALID_CONTEXT;
    /* PTX ends with a zero byte. */
    if (strcmp(image, "ptx")) return INVALID_VALUE;
    *module = strdup(image);
    return SUCCESS;
}

unsigned cuModuleUnload(void *module) { free(module); return SUCCESS; }

unsigned cuModuleGetFunction(uintptr_t *function, void *module, const char *name) {
    CHECK(module != NULL);
    if (strcmp(name, "scale")) return NOT_FOUND;
    *function = 77;
    return SUCCESS;
}

unsigned cuFuncGetAttribute(int *value, unsigned attribute, uintptr_t function) {
    CHECK(function == 77 && (attribute == 4 || attribute == 8)); /* registers, dynamic shared memory */
    *value = attribute == 4 ? 40 : 32768;
    return SUCCESS;
}

unsigned cuFuncSetAttribute(uintptr_t function, unsigned attribute, int value) {
    CHECK(function == 77 && attribute == 8 && value == 100000);
    return SUCCESS;
}

static void run(const struct node *node) {
    for (uint32_t at = 0; at < node->count; at++) ((uint64_t *)node->out)[at] = ((const uint64_t *)node->in)[at] * node->factor;
}

unsigned cuLaunchKernel(uintptr_t function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                        unsigned shared, struct stream *stream, void **parameters, void **extra) {
    if (stream->device != here()) return INVALID_CONTEXT;
#ifdef NEWER_CODE
    return 54321;
#endif
    CHECK(function == 77 && gx == 1 && gy == 2 && gz == 3 && bx == 4 && by == 5 && bz == 6 && extra == NULL);
    CHECK(shared == 0 || shared == 32768 || shared == 100000);
    struct node node = {NULL, 0, *(void **)parameters[0], *(void **)parameters[1], *(uint64_t *)parameters[2],
                        *(uint32_t *)parameters[3]};
    if (!stream->last) {
        run(&node);
        return SUCCESS;
    }
    *stream->last = malloc(sizeof node);
    **stream->last = node;
    stream->last = &(*stream->last)->next;
    return SUCCESS;
}

unsigned cuLaunchCooperativeKernel(uintptr_t function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                                   unsigned bz, unsigned shared, struct stream *stream, void **parameters) {
    CHECK(shared == 0);
    *(uint64_t *)parameters[2] += 1; /* so that it is seen which one was called */
    return cuLaunchKernel(function, gx, gy, gz, bx, by, bz, shared, stream, parameters, NULL);
}

/* The nodes of a capture that say what they come after; the first comes after none. */
static int edges;

#ifndef OLD_GRAPHS
unsigned cuStreamGetCaptureInfo_v2(struct stream *stream, unsigned *status, uint64_t *id, void **graph,
                                   struct node ***nodes, size_t *count) {
    static struct node *latest;
    CHECK(stream->device == here() && stream->last && !id && !graph);
    *status = 1;
    latest = stream->capture;
    while (latest && latest->next) latest = latest->next;
    *nodes = &latest;
    *count = latest != NULL;
    return SUCCESS;
}

unsigned cuStreamUpdateCaptureDependencies(struct stream *stream, struct node **nodes, size_t count, unsigned flags) {
    CHECK(stream->device == here() && stream->last && flags == 1 && count <= 1);
    CHECK(count == 0 || *nodes == stream->capture);
    edges += 1;
    return SUCCESS;
}
#endif

unsigned cuStreamBeginCapture_v2(struct stream *stream, unsigned mode) {
    CHECK(mode == 2 && !stream->last);
    stream->capture = NULL;
    stream->last = &stream->capture;
    return SUCCESS;
}

unsigned cuStreamEndCapture(struct stream *stream, struct node ***graph) {
    CHECK(stream->last);
    stream->last = NULL;
    CHECK(edges == 0 || edges == 2);
    *graph = malloc(sizeof **graph);
    **graph = stream->capture;
    return SUCCESS;
}

unsigned cuGraphInstantiateWithFlags(struct node ***executable, struct node **graph, unsigned long long flags) {
    CHECK(flags == 0);
    *executable = malloc(sizeof **executable);
    **executable = *graph;
    return SUCCESS;
}

unsigned cuGraphLaunch(struct node **executable, struct stream *stream) {
    if (stream->device != here()) return INVALID_CONTEXT;
    for (struct node *node = *executable; node; node = node->next) run(node);
    return SUCCESS;
}

unsigned cuGraphDestroy(struct node **graph) {
    for (struct node *node = *graph, *next; node; node = next) {
        next = node->next;
        free(node);
    }
    free(graph);
    return SUCCESS;
}

unsigned cuGraphExecDestroy(struct node **executable) { free(executable); return SUCCESS; }
