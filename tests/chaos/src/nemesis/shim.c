/* Preloaded into a program: moves its wall clock, makes its fsync slow, and its disk full, as the file that SHIM names says at
   that moment. The file has five numbers of 64 bits: milliseconds that the wall clock is ahead; microseconds that an fsync takes
   longer; how many times an fsync was slow; whether files take nothing (1: what is written at a place, 2: what is appended,
   too); how many times something was not taken.
   Where SHIM_TRAPS is set, the program is one that calls the kernel past the C library, and has its clock left alone: what it does to
   its disk is trapped by the kernel, and a thread of this library answers.
   By system calls, because the C library asks for the time before it can look up names. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { AHEAD_MS, SLOW_MICROS, SLOWED, FULL, REFUSED, NUMBERS };

static volatile int64_t *numbers(void) {
    static volatile int64_t *mapped;
    if (mapped) return mapped;
    const char *path = getenv("SHIM");
    int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0) return NULL;
    void *memory = mmap(NULL, NUMBERS * sizeof(int64_t), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (memory == MAP_FAILED) return NULL;
    return mapped = memory;
}

static int64_t ahead_ms(void) {
    volatile int64_t *all = numbers();
    return all ? all[AHEAD_MS] : 0;
}

int clock_gettime(clockid_t which, struct timespec *now) {
    int result = (int)syscall(SYS_clock_gettime, which, now);
    if (result == 0 && (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE)) {
        int64_t nanos = (int64_t)now->tv_sec * 1000000000 + now->tv_nsec + ahead_ms() * 1000000;
        now->tv_sec = nanos / 1000000000;
        now->tv_nsec = nanos % 1000000000;
    }
    return result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec exact;
    int result = clock_gettime(CLOCK_REALTIME, &exact);
    (void)zone;
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return result;
}

time_t time(time_t *seconds) {
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    if (seconds) *seconds = exact.tv_sec;
    return exact.tv_sec;
}

static int late(long call, int file) {
    volatile int64_t *all = numbers();
    int result = (int)syscall(call, file);
    if (all && all[SLOW_MICROS] > 0) {
        usleep((useconds_t)all[SLOW_MICROS]);
        __sync_fetch_and_add(&all[SLOWED], 1);
    }
    return result;
}

int fsync(int file) { return late(SYS_fsync, file); }
int fdatasync(int file) { return late(SYS_fdatasync, file); }

/* Pipes, sockets and the log take what is written to them. */
static int is_full(int file, int64_t from) {
    volatile int64_t *all = numbers();
    struct stat about;
    if (!all || all[FULL] < from || file <= 2 || fstat(file, &about) || !S_ISREG(about.st_mode)) return 0;
    __sync_fetch_and_add(&all[REFUSED], 1);
    errno = ENOSPC;
    return 1;
}

ssize_t pwrite64(int file, const void *bytes, size_t count, off64_t at) {
    return is_full(file, 1) ? -1 : syscall(SYS_pwrite64, file, bytes, count, at);
}

ssize_t pwrite(int file, const void *bytes, size_t count, off_t at) { return pwrite64(file, bytes, count, at); }

ssize_t write(int file, const void *bytes, size_t count) {
    return is_full(file, 2) ? -1 : syscall(SYS_write, file, bytes, count);
}

/* One call after the other, as a disk does it. */
static void *answer(void *listener) {
    int traps = (int)(intptr_t)listener;
    volatile int64_t *all = numbers();
    for (;;) {
        struct seccomp_notif call = {0};
        if (ioctl(traps, SECCOMP_IOCTL_NOTIF_RECV, &call)) continue;
        struct seccomp_notif_resp told = {.id = call.id, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};
        if (all && call.data.nr == SYS_pwrite64 && all[FULL] > 0) {
            told.flags = 0;
            told.error = -ENOSPC;
            __sync_fetch_and_add(&all[REFUSED], 1);
        } else if (all && call.data.nr != SYS_pwrite64 && all[SLOW_MICROS] > 0) {
            usleep((useconds_t)all[SLOW_MICROS]);
            __sync_fetch_and_add(&all[SLOWED], 1);
        }
        ioctl(traps, SECCOMP_IOCTL_NOTIF_SEND, &told);
    }
    return NULL;
}

/* Before the program has threads of its own. Where the kernel does not trap calls, the faults have no effect, which the run tells. */
__attribute__((constructor)) static void trap(void) {
    if (!getenv("SHIM_TRAPS")) return;
    struct sock_filter of_the_disk[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fsync, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fdatasync, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pwrite64, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
    };
    struct sock_fprog filter = {sizeof of_the_disk / sizeof *of_the_disk, of_the_disk};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    long traps = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &filter);
    if (traps < 0) return;
    /* The signals of the program are for its own threads. */
    sigset_t every, before;
    pthread_t thread;
    sigfillset(&every);
    pthread_sigmask(SIG_BLOCK, &every, &before);
    if (pthread_create(&thread, NULL, answer, (void *)(intptr_t)traps)) _exit(1);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}
