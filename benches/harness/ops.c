/* Native ops for weft's push_native and for ctypes: compiled by the harness when it runs. */
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

int32_t bench_no_op(void *data) {
    (void)data;
    return 0;
}

/* Store the time, in nanoseconds of the clock behind time.perf_counter_ns, at `data`. */
int32_t bench_stamp(void *data) {
    struct timespec now;
    if (clock_gettime(CLOCK_MONOTONIC, &now) != 0) return 1;
    __atomic_store_n((int64_t *)data, now.tv_sec * INT64_C(1000000000) + now.tv_nsec, __ATOMIC_RELEASE);
    return 0;
}

/* A parked thread that stamps when it is rung for: what waking a thread costs on this machine, under this load. */
struct bell {
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t rung;
    void *slot; /* where to stamp next; NULL while parked */
    int closed;
};

static struct bell bell = {.mutex = PTHREAD_MUTEX_INITIALIZER, .rung = PTHREAD_COND_INITIALIZER};

static void *answer_bell(void *unused) {
    pthread_mutex_lock(&bell.mutex);
    while (!bell.closed) {
        if (bell.slot != NULL) {
            (void)bench_stamp(bell.slot);
            bell.slot = NULL;
        } else {
            pthread_cond_wait(&bell.rung, &bell.mutex);
        }
    }
    pthread_mutex_unlock(&bell.mutex);
    return unused;
}

static void change_bell(void *slot, int closed) {
    pthread_mutex_lock(&bell.mutex);
    bell.slot = slot;
    bell.closed = closed;
    pthread_cond_signal(&bell.rung);
    pthread_mutex_unlock(&bell.mutex);
}

int32_t bench_bell_open(void *unused) {
    (void)unused;
    change_bell(NULL, 0);
    return pthread_create(&bell.thread, NULL, answer_bell, NULL);
}

int32_t bench_bell_ring(void *slot) {
    change_bell(slot, 0);
    return 0;
}

int32_t bench_bell_close(void *unused) {
    (void)unused;
    change_bell(NULL, 1);
    return pthread_join(bell.thread, NULL);
}
