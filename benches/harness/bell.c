/* A parked thread that raises a flag when it is rung for: what waking a thread costs on this machine, under this load. */
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

struct bell {
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t rung;
    void *flag; /* the int64_t to set next; NULL while parked */
    int closed;
};

static struct bell bell = {.mutex = PTHREAD_MUTEX_INITIALIZER, .rung = PTHREAD_COND_INITIALIZER};

static void *answer_bell(void *unused) {
    pthread_mutex_lock(&bell.mutex);
    while (!bell.closed) {
        if (bell.flag != NULL) {
            __atomic_store_n((int64_t *)bell.flag, 1, __ATOMIC_RELEASE);
            bell.flag = NULL;
        } else {
            pthread_cond_wait(&bell.rung, &bell.mutex);
        }
    }
    pthread_mutex_unlock(&bell.mutex);
    return unused;
}

static void change_bell(void *flag, int closed) {
    pthread_mutex_lock(&bell.mutex);
    bell.flag = flag;
    bell.closed = closed;
    pthread_cond_signal(&bell.rung);
    pthread_mutex_unlock(&bell.mutex);
}

int32_t bench_bell_open(void *unused) {
    (void)unused;
    change_bell(NULL, 0);
    return pthread_create(&bell.thread, NULL, answer_bell, NULL);
}

int32_t bench_bell_ring(void *flag) {
    change_bell(flag, 0);
    return 0;
}

int32_t bench_bell_close(void *unused) {
    (void)unused;
    change_bell(NULL, 1);
    return pthread_join(bell.thread, NULL);
}
