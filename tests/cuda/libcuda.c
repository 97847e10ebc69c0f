/* A CUDA driver on the host, for tests where there is no GPU: two devices whose memory is the host's, and on which
 * everything is done at once. To events it takes as long as `fake_cuda_speed` says: nothing, unless a test does. What is launched are functions of a library that `nvrtc.c` has made of a kernel's source.
 * It checks what a driver can check: contexts, handles, flags, the use of memory that was freed; and what weft promises:
 * that memory of the host is pinned. A device that has failed answers its fault to every call, as CUDA does. */
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SUCCESS = 0, INVALID = 1, OUT_OF_MEMORY = 2, NO_IMAGE = 209, BAD_CONTEXT = 201, BAD_HANDLE = 400, NOT_FOUND = 500,
       ILLEGAL_STATE = 401, NOT_READY = 600, IN_CAPTURE = 900, SPOILED = 901, ISOLATION = 905, IMPLICIT = 906, MISALIGNED = 716,
       CAPTURED_EVENT = 907 };
enum { DEVICES = 2, MULTIPROCESSORS = 4 };
#define TOTAL ((size_t)1 << 30)
#define API __attribute__((visibility("default"))) int

typedef struct { char tag; int device; } Context;
typedef struct Graph Graph;
typedef struct { char tag; int device; Graph *capture; int64_t until; } Stream; /* nanoseconds, until when there is work */
/* One that was recorded while its stream was captured is a node of that graph, and never happens. */
typedef struct { char tag; int recorded, timed, device; int64_t time; Graph *capture; } Event;
typedef struct { char tag; void *library; } Module;
typedef struct {
    char tag;
    int (*run)(void **, const unsigned *, const unsigned *); /* answers whether an element was misaligned */
    const size_t *sizes; /* of the parameters; 0 ends them */
    unsigned of_its_own; /* bytes of static shared memory; `fake_cuda_static` says how many */
    unsigned shared;     /* bytes of dynamic shared memory that its blocks may have */
} Function;
/* Work of a graph: a launch, a copy, or a fill with words of so many bytes. */
typedef struct Node {
    char tag;
    Function *function;
    void **parameters;
    unsigned grid[3], block[3], value;
    uintptr_t to, from;
    size_t bytes, width, replays;
    struct Node **after, *next;
    size_t count;
} Node;
/* Its nodes, the newest first; while it is recorded, what the next node comes after. */
struct Graph { char tag; Node *nodes, **after; size_t count; int spoiled; };
typedef struct Block { uintptr_t start; size_t bytes; int pinned; struct Block *next; } Block;

static Context contexts[DEVICES] = {{'c', 0}, {'c', 1}};
static __thread Context *current;
static Block *blocks;
static size_t used;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* What the tests order: how long kernels and copies take, what a launch to come answers, which device fails. */
/* What calls a thread's captures forbid, 0 all that are unsafe, 2 none; a capture of another library's in mode 0: 1 goes
 * on, 2 is spoiled. */
static __thread unsigned capture_mode;
static int captured_elsewhere;
/* Where that goes on, a call that is unsafe in this thread's mode is refused, and spoils it. */
#define NEED_NO_CAPTURE if (captured_elsewhere && capture_mode != 2) { captured_elsewhere = 2; return IN_CAPTURE; }
static int64_t kernel_time;
static double bytes_per_nanosecond;
static int launches_until, launch_answer, faults[DEVICES];

#define NEED_CONTEXT if (!current) return BAD_CONTEXT; if (faults[current->device]) return faults[current->device]
/* Work goes to a stream in its own context, on memory that is the device's. */
#define NEED_STREAM                                                     \
    NEED_CONTEXT;                                                       \
    stream = MEANT(stream);                                             \
    NEED(stream, 's');                                                  \
    if (stream->device != current->device) return BAD_HANDLE
#define NEED(handle, letter) if (!(handle) || *(const char *)(handle) != (letter)) return BAD_HANDLE
/* Stand for the default stream, whose handle is 0 or 1, and for each thread's own, 2, of the current context. */
static Stream default_streams[DEVICES] = {{.tag = 's'}, {.tag = 's', .device = 1}};
static __thread Stream own_streams[DEVICES] = {{.tag = 's'}, {.tag = 's', .device = 1}};
#define MEANT(stream)                                                  \
    ((uintptr_t)(stream) < 2    ? &default_streams[current->device]     \
     : (uintptr_t)(stream) == 2 ? &own_streams[current->device]         \
                                : (stream))

static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

/* Work that takes so long, behind what is on the stream. */
static void occupy(Stream *stream, int64_t nanoseconds) {
    int64_t start = now();
    stream->until = (stream->until > start ? stream->until : start) + nanoseconds;
}

static void move(Stream *stream, size_t bytes) {
    occupy(stream, bytes_per_nanosecond > 0 ? (int64_t)(bytes / bytes_per_nanosecond) : 0);
}

static unsigned static_shared;
static int cooperative_launches;
API fake_cuda_static(unsigned bytes) { static_shared = bytes; return SUCCESS; }
API fake_cuda_cooperative(void) { return cooperative_launches; }
API fake_cuda_speed(long long kernel, double bytes) { kernel_time = kernel; bytes_per_nanosecond = bytes; return SUCCESS; }
/* Modules are loaded when a test lets them be, and otherwise after some seconds, in vain. */
static int holds_loads, loads_held, loads_released, loads_in_vain;
API fake_cuda_hold_loads(int holds) { holds_loads = holds; return SUCCESS; }
API fake_cuda_release_loads(void) {
    __atomic_store_n(&loads_released, __atomic_load_n(&loads_held, __ATOMIC_ACQUIRE), __ATOMIC_RELEASE);
    return loads_released;
}
API fake_cuda_loads_in_vain(void) { return loads_in_vain; }
static void wait_for_release(void) {
    if (!holds_loads) return;
    int mine = __atomic_add_fetch(&loads_held, 1, __ATOMIC_ACQ_REL);
    time_t end = time(0) + 5;
    while (__atomic_load_n(&loads_released, __ATOMIC_ACQUIRE) < mine) {
        if (time(0) > end) { __atomic_add_fetch(&loads_in_vain, 1, __ATOMIC_RELAXED); return; }
        sched_yield();
    }
}
/* Another library begins a capture in mode 0, on a stream that waits for the default stream; or ends it: answers whether
 * it is spoiled. */
API fake_cuda_capture_elsewhere(int begins) {
    int before = captured_elsewhere;
    captured_elsewhere = begins;
    return before == 2;
}
/* Does to a capture what a call does that waits: nothing more is recorded, and no graph comes of it. */
API fake_cuda_spoil(Stream *stream) {
    if (!stream->capture) return ILLEGAL_STATE;
    stream->capture->spoiled = 1;
    return IN_CAPTURE;
}
/* The launch after so many more answers this code; a fault does not: the device fails right behind that launch. */
API fake_cuda_order(int launches, int code) { launches_until = launches + 1; launch_answer = code; return SUCCESS; }

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

/* A misaligned element is a fault of the device. */
static void run(const Node *node, int device) {
    if (node->function) {
        if (node->function->run(node->parameters, node->grid, node->block)) faults[device] = MISALIGNED;
    } else if (node->from) {
        memmove((void *)node->to, (void *)node->from, node->bytes);
    } else {
        for (size_t at = 0; at < node->bytes; at += node->width) memcpy((char *)node->to + at, &node->value, node->width);
    }
}

static void depend(Graph *graph, Node *const *nodes, size_t count) {
    free(graph->after);
    graph->after = malloc((count + 1) * sizeof *nodes);
    memcpy(graph->after, nodes, count * sizeof *nodes);
    graph->count = count;
}

/* Does what is to be done on a stream, or records it. */
static int work(Stream *stream, Node node) {
    if (stream->capture && stream->capture->spoiled) return SPOILED;
    if (!stream->capture) {
        if (node.function) occupy(stream, kernel_time);
        else move(stream, node.from ? node.bytes : 0);
        run(&node, stream->device);
        return SUCCESS;
    }
    Graph *graph = stream->capture;
    Node *kept = malloc(sizeof *kept);
    *kept = node;
    kept->tag = 'n';
    if (node.function) {
        size_t count = 0;
        while (node.function->sizes[count]) ++count;
        kept->parameters = malloc((count + 1) * sizeof *kept->parameters);
        for (size_t at = 0; at < count; ++at) {
            kept->parameters[at] = malloc(node.function->sizes[at]);
            memcpy(kept->parameters[at], node.parameters[at], node.function->sizes[at]);
        }
    }
    kept->after = graph->after;
    kept->count = graph->count;
    kept->next = graph->nodes;
    graph->after = NULL;
    graph->nodes = kept;
    depend(graph, &kept, 1);
    return SUCCESS;
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
API cuThreadExchangeStreamCaptureMode(unsigned *mode) {
    if (*mode > 2) return INVALID;
    unsigned before = capture_mode;
    capture_mode = *mode;
    *mode = before;
    return SUCCESS;
}
API cuStreamIsCapturing(Stream *stream, unsigned *status) {
    NEED_CONTEXT;
    if ((uintptr_t)stream < 2 && captured_elsewhere) return IMPLICIT;
    stream = MEANT(stream);
    NEED(stream, 's');
    *status = stream->capture ? 1 + stream->capture->spoiled : 0;
    return SUCCESS;
}
API cuCtxGetStreamPriorityRange(int *least, int *greatest) { *least = 0; *greatest = -5; return SUCCESS; }
API cuStreamCreateWithPriority(Stream **stream, unsigned flags, int priority) {
    NEED_CONTEXT;
    if (flags != 1 || priority > 0 || priority < -5) return INVALID;
    *stream = malloc(sizeof **stream);
    **stream = (Stream){'s', current->device, NULL, 0};
    return SUCCESS;
}
API cuStreamDestroy_v2(Stream *stream) { NEED_CONTEXT; NEED(stream, 's'); stream->tag = 0; free(stream); return SUCCESS; }
API cuStreamWaitEvent(Stream *stream, Event *event, unsigned flags) {
    NEED_CONTEXT;
    stream = MEANT(stream);
    NEED(stream, 's');
    NEED(event, 'e');
    if (flags) return INVALID;
    if (stream->capture && stream->capture != event->capture) { stream->capture->spoiled = 1; return ISOLATION; }
    if (event->capture) { stream->capture = event->capture; return SUCCESS; }
    if (!event->recorded) return INVALID;
    if (stream->until < event->time) stream->until = event->time;
    return SUCCESS;
}
API cuEventCreate(Event **event, unsigned flags) {
    NEED_CONTEXT;
    if (flags & ~2u) return INVALID;
    *event = malloc(sizeof **event);
    **event = (Event){'e', 0, !flags, current->device, 0, NULL};
    return SUCCESS;
}
API cuEventDestroy_v2(Event *event) { NEED_CONTEXT; NEED(event, 'e'); event->tag = 0; free(event); return SUCCESS; }
API cuEventRecord(Event *event, Stream *stream) {
    NEED_CONTEXT;
    if ((uintptr_t)stream < 2 && captured_elsewhere) { captured_elsewhere = 2; return IMPLICIT; }
    stream = MEANT(stream);
    NEED(event, 'e');
    NEED(stream, 's');
    if (faults[stream->device]) return faults[stream->device];
    if (event->device != stream->device) return BAD_HANDLE;
    *event = (Event){'e', 1, event->timed, stream->device, stream->until > now() ? stream->until : now(), stream->capture};
    return SUCCESS;
}
API cuEventQuery(Event *event) {
    NEED_CONTEXT;
    NEED_NO_CAPTURE;
    NEED(event, 'e');
    if (faults[event->device]) return faults[event->device];
    if (event->capture) return CAPTURED_EVENT;
    return event->time > now() ? NOT_READY : SUCCESS;
}
API cuEventElapsedTime(float *milliseconds, Event *start, Event *end) {
    NEED_CONTEXT;
    NEED(start, 'e');
    NEED(end, 'e');
    if (start->device != end->device || !start->timed || !end->timed || !start->recorded || !end->recorded) return BAD_HANDLE;
    if (start->time > now() || end->time > now()) return NOT_READY;
    *milliseconds = (end->time - start->time) / 1e6;
    return SUCCESS;
}
static int pools[DEVICES];
API cuMemAllocFromPoolAsync(uintptr_t *address, size_t bytes, int *pool, Stream *stream) {
    NEED_STREAM;
    NEED_NO_CAPTURE;
    if (!bytes || pool != &pools[stream->device]) return INVALID;
    if (stream->capture) { stream->capture->spoiled = 1; return IN_CAPTURE; } /* it would be the graph's */
    return add((void **)address, bytes, 0);
}
API cuMemAlloc_v2(uintptr_t *address, size_t bytes) { NEED_CONTEXT; NEED_NO_CAPTURE; return bytes ? add((void **)address, bytes, 0) : INVALID; }
API cuStreamSynchronize(Stream *stream) { NEED_CONTEXT; NEED(stream, 's'); return stream->capture ? IN_CAPTURE : SUCCESS; }
API cuMemFreeAsync(uintptr_t address, Stream *stream) {
    NEED_STREAM;
    if (stream->capture) { stream->capture->spoiled = 1; return IN_CAPTURE; }
    return take(address, 0);
}
/* Pinned, for no other process, on a device, which. */
API cuMemPoolCreate(int **pool, const int *wanted) {
    NEED_CONTEXT;
    NEED_NO_CAPTURE;
    if (wanted[0] != 1 || wanted[1] || wanted[2] != 1 || wanted[3] < 0 || wanted[3] >= DEVICES) return INVALID;
    *pool = &pools[wanted[3]];
    return SUCCESS;
}
API cuMemPoolDestroy(int *pool) { NEED_CONTEXT; (void)pool; return SUCCESS; }
/* 4 is the release threshold, 5 what the pool has reserved: 64-bit numbers. */
API cuMemPoolSetAttribute(void *pool, int attribute, void *value) {
    (void)pool;
    return attribute == 4 && *(uint64_t *)value < TOTAL ? SUCCESS : INVALID; /* others want memory, too */
}
API cuMemPoolGetAttribute(void *pool, int attribute, void *value) {
    (void)pool;
    if (attribute != 5) return INVALID;
    *(uint64_t *)value = used;
    return SUCCESS;
}
API cuMemPoolTrimTo(void *pool, size_t bytes) { (void)pool, (void)bytes; NEED_NO_CAPTURE; return SUCCESS; }
API cuMemPoolSetAccess(void *pool, const void *access, size_t count) { (void)pool, (void)access, (void)count; return 0; }
API cuDeviceCanAccessPeer(int *can, int device, int peer) { *can = device != peer; return SUCCESS; }
API cuMemGetInfo_v2(size_t *free_, size_t *total) { NEED_CONTEXT; *free_ = TOTAL - used; *total = TOTAL; return SUCCESS; }
API cuMemHostAlloc(void **start, size_t bytes, unsigned flags) {
    NEED_CONTEXT;
    NEED_NO_CAPTURE;
    return bytes && flags == 1 ? add(start, bytes, 1) : INVALID; /* 1: for all contexts */
}
API cuMemFreeHost(void *start) { NEED_CONTEXT; NEED_NO_CAPTURE; return take((uintptr_t)start, 1); }
API cuPointerGetAttribute(void *value, int attribute, uintptr_t address) {
    NEED_CONTEXT;
    if (attribute != 2) return INVALID; /* the kind of memory */
    if (!within(address, 1, 1)) return INVALID;
    *(unsigned *)value = 1; /* the host's */
    return SUCCESS;
}
API cuMemcpyHtoDAsync_v2(uintptr_t to, const void *from, size_t bytes, Stream *stream) {
    NEED_STREAM;
    if (stream->capture) return IN_CAPTURE;
    if (!within(to, bytes, 0) || !within((uintptr_t)from, bytes, 1)) return INVALID;
    memcpy((void *)to, from, bytes);
    move(stream, bytes);
    return SUCCESS;
}
API cuMemcpyDtoHAsync_v2(void *to, uintptr_t from, size_t bytes, Stream *stream) {
    NEED_STREAM;
    if (stream->capture) return IN_CAPTURE;
    if (!within(from, bytes, 0) || !within((uintptr_t)to, bytes, 1)) return INVALID;
    memcpy(to, (void *)from, bytes);
    move(stream, bytes);
    return SUCCESS;
}
API cuMemcpyDtoDAsync_v2(uintptr_t to, uintptr_t from, size_t bytes, Stream *stream) {
    NEED_STREAM;
    if (!within(to, bytes, 0) || !within(from, bytes, 0)) return INVALID;
    return work(stream, (Node){.to = to, .from = from, .bytes = bytes});
}
API cuMemcpyPeerAsync(uintptr_t to, Context *target, uintptr_t from, Context *source, size_t bytes, Stream *stream) {
    NEED(target, 'c');
    NEED(source, 'c');
    return cuMemcpyDtoDAsync_v2(to, from, bytes, stream);
}
API cuMemsetD8Async(uintptr_t to, unsigned char value, size_t count, Stream *stream) {
    NEED_STREAM;
    if (!within(to, count, 0)) return INVALID;
    return work(stream, (Node){.to = to, .value = value, .bytes = count, .width = 1});
}
API cuMemsetD16Async(uintptr_t to, unsigned short value, size_t count, Stream *stream) {
    NEED_STREAM;
    if (to % 2 || !within(to, count * 2, 0)) return INVALID;
    return work(stream, (Node){.to = to, .value = value, .bytes = count * 2, .width = 2});
}
API cuMemsetD32Async(uintptr_t to, unsigned value, size_t count, Stream *stream) {
    NEED_STREAM;
    if (to % 4 || !within(to, count * 4, 0)) return INVALID;
    return work(stream, (Node){.to = to, .value = value, .bytes = count * 4, .width = 4});
}
/* An image is the path of a library. */
API cuModuleLoadData(Module **module, const void *image) {
    NEED_CONTEXT;
    NEED_NO_CAPTURE;
    wait_for_release();
    void *library = dlopen(image, RTLD_NOW | RTLD_LOCAL);
    if (!library) return NO_IMAGE;
    *module = malloc(sizeof **module);
    **module = (Module){'m', library};
    return SUCCESS;
}
API cuModuleUnload(Module *module) { NEED_NO_CAPTURE; NEED(module, 'm'); module->tag = 0; return SUCCESS; }
API cuModuleGetFunction(Function **function, Module *module, const char *name) {
    NEED(module, 'm');
    char wanted[512];
    snprintf(wanted, sizeof wanted, "%s__run", name);
    void *found = dlsym(module->library, wanted);
    if (!found) return NOT_FOUND;
    *function = malloc(sizeof **function);
    (*function)->tag = 'f';
    (*function)->of_its_own = static_shared;
    (*function)->shared = (48 << 10) - static_shared;
    memcpy(&(*function)->run, &found, sizeof found);
    snprintf(wanted, sizeof wanted, "%s__sizes", name);
    const size_t *(*sizes)(void);
    found = dlsym(module->library, wanted);
    memcpy(&sizes, &found, sizeof found);
    (*function)->sizes = sizes();
    return SUCCESS;
}
/* 1 is static shared memory, 4 registers, 8 dynamic shared memory. */
API cuFuncGetAttribute(int *value, int attribute, Function *function) {
    NEED_CONTEXT;
    NEED(function, 'f');
    *value = attribute == 1 ? (int)function->of_its_own : attribute == 8 ? (int)function->shared : 32;
    return attribute == 1 || attribute == 4 || attribute == 8 ? SUCCESS : INVALID;
}
API cuFuncSetAttribute(Function *function, int attribute, int value) {
    NEED_CONTEXT;
    NEED(function, 'f');
    if (attribute != 8 || value < 0 || (unsigned)value + function->of_its_own > 99 << 10) return INVALID;
    function->shared = (unsigned)value;
    return SUCCESS;
}
API cuLaunchKernel(Function *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, Stream *stream, void **parameters, void **extra) {
    NEED_STREAM;
    NEED(function, 'f');
    if (extra || !gx || gx > INT32_MAX || !gy || gy > UINT16_MAX || !gz || gz > UINT16_MAX) return INVALID;
    if (!bx || !by || !bz || bz > 64 || (uint64_t)bx * by * bz > 1024 || shared > function->shared) return INVALID;
    if (!stream->capture && launches_until > 0 && --launches_until == 0) {
        if (launch_answer < 700) return launch_answer;
        faults[stream->device] = launch_answer;
        return SUCCESS;
    }
    return work(stream, (Node){.function = function, .parameters = parameters, .grid = {gx, gy, gz}, .block = {bx, by, bz}});
}
API cuLaunchCooperativeKernel(Function *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                              unsigned shared, Stream *stream, void **parameters) {
    NEED_CONTEXT;
    NEED(function, 'f');
    cooperative_launches += 1;
    return cuLaunchKernel(function, gx, gy, gz, bx, by, bz, shared, stream, parameters, NULL);
}
API cuStreamBeginCapture_v2(Stream *stream, int mode) {
    NEED_STREAM;
    if (mode == 1) return INVALID;
    if (mode == 0) captured_elsewhere = 1; /* other threads' calls are refused */
    if (stream->capture) return ILLEGAL_STATE;
    stream->capture = calloc(1, sizeof *stream->capture);
    stream->capture->tag = 'g';
    return SUCCESS;
}
API cuStreamGetCaptureInfo_v2(Stream *stream, unsigned *status, uint64_t *id, Graph **graph, Node *const **nodes,
                              size_t *count) {
    (void)id, (void)graph;
    NEED_STREAM;
    *status = stream->capture ? 1 + stream->capture->spoiled : 0;
    if (*status == 2) return SUCCESS; /* the rest is told of a capture alone that goes on */
    *nodes = stream->capture ? stream->capture->after : NULL;
    *count = stream->capture ? stream->capture->count : 0;
    return SUCCESS;
}
API cuStreamUpdateCaptureDependencies(Stream *stream, Node **nodes, size_t count, unsigned flags) {
    NEED_STREAM;
    if (!stream->capture || stream->capture->spoiled) return ILLEGAL_STATE;
    if (flags != 1) return INVALID;
    for (size_t at = 0; at < count; ++at) NEED(nodes[at], 'n');
    depend(stream->capture, nodes, count);
    return SUCCESS;
}
API cuStreamEndCapture(Stream *stream, Graph **graph) {
    NEED_STREAM;
    if (!stream->capture) return ILLEGAL_STATE;
    Graph *made = stream->capture;
    stream->capture = NULL;
    made->spoiled |= captured_elsewhere == 2;
    captured_elsewhere = 0;
    *graph = made->spoiled ? NULL : made;
    return made->spoiled ? SPOILED : SUCCESS;
}
API cuGraphInstantiateWithFlags(Graph **ready, Graph *graph, unsigned long long flags) {
    NEED_CONTEXT;
    NEED(graph, 'g');
    if (flags) return INVALID;
    *ready = malloc(sizeof **ready);
    **ready = (Graph){'x', graph->nodes, NULL, 0, 0};
    return SUCCESS;
}
/* Newer nodes first, but for what they come after: an edge that is missing shows. */
static void replay(Node *node, size_t replays, int device) {
    if (node->replays == replays) return;
    node->replays = replays;
    for (size_t at = 0; at < node->count; ++at) replay(node->after[at], replays, device);
    run(node, device);
}
API cuGraphLaunch(Graph *ready, Stream *stream) {
    NEED_STREAM;
    NEED(ready, 'x');
    if (getenv("FAKE_GRAPHS_FAIL")) return OUT_OF_MEMORY;
    if (stream->capture || stream->device != current->device) return INVALID;
    ready->count += 1;
    for (Node *node = ready->nodes; node; node = node->next) {
        if (node->function) occupy(stream, kernel_time);
        replay(node, ready->count, stream->device);
    }
    return SUCCESS;
}
API cuGraphDestroy(Graph *graph) {
    NEED(graph, 'g');
    for (Node *node = graph->nodes, *next; node; node = next) {
        next = node->next;
        if (node->function) {
            for (size_t at = 0; node->function->sizes[at]; ++at) free(node->parameters[at]);
            free(node->parameters);
        }
        free(node->after);
        node->tag = 0;
        free(node);
    }
    free(graph->after);
    graph->tag = 0;
    free(graph);
    return SUCCESS;
}
API cuGraphExecDestroy(Graph *ready) { NEED(ready, 'x'); ready->tag = 0; free(ready); return SUCCESS; }
API cuGetErrorName(int code, const char **name) {
    switch (code) {
    case INVALID: *name = "CUDA_ERROR_INVALID_VALUE"; return SUCCESS;
    case OUT_OF_MEMORY: *name = "CUDA_ERROR_OUT_OF_MEMORY"; return SUCCESS;
    case BAD_CONTEXT: *name = "CUDA_ERROR_INVALID_CONTEXT"; return SUCCESS;
    case BAD_HANDLE: *name = "CUDA_ERROR_INVALID_HANDLE"; return SUCCESS;
    case NO_IMAGE: *name = "CUDA_ERROR_NO_BINARY_FOR_GPU"; return SUCCESS;
    case NOT_FOUND: *name = "CUDA_ERROR_NOT_FOUND"; return SUCCESS;
    case ILLEGAL_STATE: *name = "CUDA_ERROR_ILLEGAL_STATE"; return SUCCESS;
    case 700: *name = "CUDA_ERROR_ILLEGAL_ADDRESS"; return SUCCESS;
    case MISALIGNED: *name = "CUDA_ERROR_MISALIGNED_ADDRESS"; return SUCCESS;
    case SPOILED: *name = "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"; return SUCCESS;
    case IN_CAPTURE: *name = "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"; return SUCCESS;
    default: return INVALID;
    }
}
