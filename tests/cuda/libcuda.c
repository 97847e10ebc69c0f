/* A CUDA driver on the host, for tests where there is no GPU: two devices whose memory is the host's, and on which
 * everything is done at once. What is launched are functions of a library that `nvrtc.c` has made of a kernel's source.
 * It checks what a driver can check: contexts, handles, the use of memory that was freed. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SUCCESS = 0, INVALID = 1, OUT_OF_MEMORY = 2, NO_IMAGE = 209, BAD_CONTEXT = 201, BAD_HANDLE = 400, NOT_FOUND = 500,
       UNSUPPORTED = 801 };
enum { DEVICES = 2, MULTIPROCESSORS = 4 };
#define TOTAL ((size_t)1 << 30)
#define API __attribute__((visibility("default"))) int

typedef struct { char tag; int device; } Context;
typedef struct { char tag; int device; } Stream;
typedef struct { char tag; int recorded; } Event;
typedef struct { char tag; void *library; } Module;
typedef struct { char tag; void (*run)(void **, const unsigned *, const unsigned *); } Function;
typedef struct Block { uintptr_t start; size_t bytes; int pinned; struct Block *next; } Block;

static Context contexts[DEVICES] = {{'c', 0}, {'c', 1}};
static __thread Context *current;
static Block *blocks;
static size_t used;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

#define NEED_CONTEXT if (!current) return BAD_CONTEXT
#define NEED(handle, letter) if (!(handle) || *(const char *)(handle) != (letter)) return BAD_HANDLE

static int add(void **start, size_t bytes, int pinned) {
    if (pinned ? 0 : used + bytes > TOTAL) return OUT_OF_MEMORY;
    if (posix_memalign(start, 256, bytes ? bytes : 1)) return OUT_OF_MEMORY;
    memset(*start, 0xA5, bytes);
    Block *block = malloc(sizeof *block);
    pthread_mutex_lock(&lock);
    *block = (Block){(uintptr_t)*start, bytes, pinned, blocks};
    blocks = block;
    if (!pinned) used += bytes;
    pthread_mutex_unlock(&lock);
    return SUCCESS;
}

static int take(uintptr_t start, int pinned) {
    pthread_mutex_lock(&lock);
    Block **at = &blocks;
    while (*at && !((*at)->start == start && (*at)->pinned == pinned)) at = &(*at)->next;
    Block *found = *at;
    if (found) {
        *at = found->next;
        if (!pinned) used -= found->bytes;
        memset((void *)start, 0x5A, found->bytes);
    }
    pthread_mutex_unlock(&lock);
    if (!found) return INVALID;
    free((void *)start);
    free(found);
    return SUCCESS;
}

/* Whether these bytes are all in one block of a kind: 0 device memory, 1 pinned memory. */
static int within(uintptr_t start, size_t bytes, int pinned) {
    pthread_mutex_lock(&lock);
    Block *at = blocks;
    while (at && !(at->pinned == pinned && at->start <= start && start + bytes <= at->start + at->bytes)) at = at->next;
    pthread_mutex_unlock(&lock);
    return at != NULL;
}

API cuInit(unsigned flags) { return flags ? INVALID : SUCCESS; }
API cuDriverGetVersion(int *version) { *version = 12000; return SUCCESS; }
API cuDeviceGetCount(int *count) {
    const char *devices = getenv("FAKE_CUDA_DEVICES");
    *count = devices ? atoi(devices) : DEVICES;
    return SUCCESS;
}
API cuDeviceGet(int *device, int ordinal) { *device = ordinal; return ordinal < DEVICES ? SUCCESS : 101; }
API cuDeviceGetName(char *name, int length, int device) { snprintf(name, length, "Fake %d", device); return SUCCESS; }
API cuDeviceGetAttribute(int *value, int attribute, int device) {
    (void)device;
    switch (attribute) {
    case 75: *value = 9; return SUCCESS;                /* major */
    case 76: *value = 0; return SUCCESS;                /* minor */
    case 16: *value = MULTIPROCESSORS; return SUCCESS;
    case 97: *value = 99 << 10; return SUCCESS;         /* shared memory of a block, opted in */
    default: *value = 1; return SUCCESS;
    }
}
API cuDeviceTotalMem_v2(size_t *bytes, int device) { (void)device; *bytes = TOTAL; return SUCCESS; }
API cuDevicePrimaryCtxRetain(Context **context, int device) { *context = &contexts[device]; return SUCCESS; }
API cuDevicePrimaryCtxRelease_v2(int device) { (void)device; return SUCCESS; }
API cuCtxSetCurrent(Context *context) { current = context; return SUCCESS; }
API cuCtxGetCurrent(Context **context) { *context = current; return SUCCESS; }
API cuCtxGetStreamPriorityRange(int *least, int *greatest) { *least = 0; *greatest = -5; return SUCCESS; }
API cuStreamCreateWithPriority(Stream **stream, unsigned flags, int priority) {
    (void)flags, (void)priority;
    NEED_CONTEXT;
    *stream = malloc(sizeof **stream);
    **stream = (Stream){'s', current->device};
    return SUCCESS;
}
API cuStreamDestroy_v2(Stream *stream) { NEED(stream, 's'); stream->tag = 0; free(stream); return SUCCESS; }
API cuStreamWaitEvent(Stream *stream, Event *event, unsigned flags) {
    (void)flags;
    NEED(stream, 's');
    NEED(event, 'e');
    return event->recorded ? SUCCESS : INVALID;
}
API cuEventCreate(Event **event, unsigned flags) {
    (void)flags;
    NEED_CONTEXT;
    *event = malloc(sizeof **event);
    **event = (Event){'e', 0};
    return SUCCESS;
}
API cuEventDestroy_v2(Event *event) { NEED(event, 'e'); event->tag = 0; free(event); return SUCCESS; }
API cuEventRecord(Event *event, Stream *stream) {
    NEED(event, 'e');
    NEED(stream, 's');
    event->recorded = 1;
    return SUCCESS;
}
API cuEventQuery(Event *event) { NEED(event, 'e'); return SUCCESS; }
API cuEventElapsedTime(float *milliseconds, Event *start, Event *end) {
    NEED(start, 'e');
    NEED(end, 'e');
    *milliseconds = 0;
    return SUCCESS;
}
API cuMemAllocAsync(uintptr_t *address, size_t bytes, Stream *stream) {
    NEED_CONTEXT;
    NEED(stream, 's');
    return add((void **)address, bytes, 0);
}
API cuMemFreeAsync(uintptr_t address, Stream *stream) { NEED(stream, 's'); return take(address, 0); }
API cuDeviceGetDefaultMemPool(int **pool, int device) {
    static int pools[DEVICES];
    *pool = &pools[device];
    return SUCCESS;
}
API cuMemPoolSetAttribute(void *pool, int attribute, void *value) { (void)pool, (void)attribute, (void)value; return 0; }
API cuMemPoolGetAttribute(void *pool, int attribute, void *value) {
    (void)pool, (void)attribute;
    *(uint64_t *)value = used;
    return SUCCESS;
}
API cuMemPoolTrimTo(void *pool, size_t bytes) { (void)pool, (void)bytes; return SUCCESS; }
API cuMemPoolSetAccess(void *pool, const void *access, size_t count) { (void)pool, (void)access, (void)count; return 0; }
API cuDeviceCanAccessPeer(int *can, int device, int peer) { *can = device != peer; return SUCCESS; }
API cuMemGetInfo_v2(size_t *free_, size_t *total) { *free_ = TOTAL - used; *total = TOTAL; return SUCCESS; }
API cuMemHostAlloc(void **start, size_t bytes, unsigned flags) { (void)flags; NEED_CONTEXT; return add(start, bytes, 1); }
API cuMemFreeHost(void *start) { return take((uintptr_t)start, 1); }
API cuPointerGetAttribute(void *value, int attribute, uintptr_t address) {
    (void)attribute;
    if (!within(address, 1, 1)) return INVALID;
    *(unsigned *)value = 1; /* the host's */
    return SUCCESS;
}
API cuMemcpyHtoDAsync_v2(uintptr_t to, const void *from, size_t bytes, Stream *stream) {
    NEED(stream, 's');
    if (!within(to, bytes, 0)) return INVALID;
    memcpy((void *)to, from, bytes);
    return SUCCESS;
}
API cuMemcpyDtoHAsync_v2(void *to, uintptr_t from, size_t bytes, Stream *stream) {
    NEED(stream, 's');
    if (!within(from, bytes, 0)) return INVALID;
    memcpy(to, (void *)from, bytes);
    return SUCCESS;
}
API cuMemcpyDtoDAsync_v2(uintptr_t to, uintptr_t from, size_t bytes, Stream *stream) {
    NEED(stream, 's');
    if (!within(to, bytes, 0) || !within(from, bytes, 0)) return INVALID;
    memmove((void *)to, (void *)from, bytes);
    return SUCCESS;
}
API cuMemcpyPeerAsync(uintptr_t to, Context *target, uintptr_t from, Context *source, size_t bytes, Stream *stream) {
    NEED(target, 'c');
    NEED(source, 'c');
    return cuMemcpyDtoDAsync_v2(to, from, bytes, stream);
}
API cuMemsetD8Async(uintptr_t to, unsigned char value, size_t count, Stream *stream) {
    NEED(stream, 's');
    if (!within(to, count, 0)) return INVALID;
    memset((void *)to, value, count);
    return SUCCESS;
}
API cuMemsetD16Async(uintptr_t to, unsigned short value, size_t count, Stream *stream) {
    NEED(stream, 's');
    if (!within(to, count * 2, 0)) return INVALID;
    for (size_t i = 0; i < count; ++i) ((unsigned short *)to)[i] = value;
    return SUCCESS;
}
API cuMemsetD32Async(uintptr_t to, unsigned value, size_t count, Stream *stream) {
    NEED(stream, 's');
    if (!within(to, count * 4, 0)) return INVALID;
    for (size_t i = 0; i < count; ++i) ((unsigned *)to)[i] = value;
    return SUCCESS;
}
/* An image is the path of a library. */
API cuModuleLoadData(Module **module, const void *image) {
    NEED_CONTEXT;
    void *library = dlopen(image, RTLD_NOW | RTLD_LOCAL);
    if (!library) return NO_IMAGE;
    *module = malloc(sizeof **module);
    **module = (Module){'m', library};
    return SUCCESS;
}
API cuModuleUnload(Module *module) { NEED(module, 'm'); module->tag = 0; return SUCCESS; }
API cuModuleGetFunction(Function **function, Module *module, const char *name) {
    NEED(module, 'm');
    char wanted[512];
    snprintf(wanted, sizeof wanted, "%s__run", name);
    void *found = dlsym(module->library, wanted);
    if (!found) return NOT_FOUND;
    *function = malloc(sizeof **function);
    (*function)->tag = 'f';
    memcpy(&(*function)->run, &found, sizeof found);
    return SUCCESS;
}
API cuFuncSetAttribute(Function *function, int attribute, int value) {
    (void)attribute, (void)value;
    NEED(function, 'f');
    return SUCCESS;
}
API cuLaunchKernel(Function *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, Stream *stream, void **parameters, void **extra) {
    (void)shared;
    NEED_CONTEXT;
    NEED(function, 'f');
    NEED(stream, 's');
    if (extra || bx * by * bz > 1024) return INVALID;
    function->run(parameters, (unsigned[]){gx, gy, gz}, (unsigned[]){bx, by, bz});
    return SUCCESS;
}
API cuStreamBeginCapture_v2(Stream *stream, int mode) { (void)stream, (void)mode; return UNSUPPORTED; }
API cuStreamEndCapture(Stream *stream, void **graph) { (void)stream, (void)graph; return UNSUPPORTED; }
API cuGraphInstantiateWithFlags(void **ready, void *graph, unsigned long long flags) {
    (void)ready, (void)graph, (void)flags;
    return UNSUPPORTED;
}
API cuGraphLaunch(void *graph, Stream *stream) { (void)graph, (void)stream; return UNSUPPORTED; }
API cuGraphDestroy(void *graph) { (void)graph; return UNSUPPORTED; }
API cuGraphExecDestroy(void *graph) { (void)graph; return UNSUPPORTED; }
API cuGetErrorName(int code, const char **name) {
    switch (code) {
    case INVALID: *name = "CUDA_ERROR_INVALID_VALUE"; return SUCCESS;
    case OUT_OF_MEMORY: *name = "CUDA_ERROR_OUT_OF_MEMORY"; return SUCCESS;
    case BAD_CONTEXT: *name = "CUDA_ERROR_INVALID_CONTEXT"; return SUCCESS;
    case BAD_HANDLE: *name = "CUDA_ERROR_INVALID_HANDLE"; return SUCCESS;
    case NO_IMAGE: *name = "CUDA_ERROR_NO_BINARY_FOR_GPU"; return SUCCESS;
    case NOT_FOUND: *name = "CUDA_ERROR_NOT_FOUND"; return SUCCESS;
    case UNSUPPORTED: *name = "CUDA_ERROR_NOT_SUPPORTED"; return SUCCESS;
    default: return INVALID;
    }
}
