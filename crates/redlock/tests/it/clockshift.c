/* Shifts the wall clock of the program into which it is preloaded, while it runs: by the nanoseconds in a file.
 *
 * Raw system calls, because redis-server's allocator asks for the time before the C library is ready. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t *shift;

__attribute__((constructor)) static void open_shift(void) {
    const char *path = getenv("CLOCKSHIFT_FILE");
    int file = path ? open(path, O_RDONLY) : -1;
    if (file < 0) return;
    void *page = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
    if (page != MAP_FAILED) shift = page;
    close(file);
}

static void wall_clock(struct timespec *now) {
    syscall(SYS_clock_gettime, CLOCK_REALTIME, now);
    int64_t by = shift ? *shift : 0;
    int64_t nanos = now->tv_nsec + by % 1000000000;
    now->tv_sec += by / 1000000000;
    if (nanos >= 1000000000) { nanos -= 1000000000; now->tv_sec++; }
    if (nanos < 0) { nanos += 1000000000; now->tv_sec--; }
    now->tv_nsec = nanos;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    if (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE) return syscall(SYS_clock_gettime, clock, now);
    wall_clock(now);
    return 0;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    (void)zone;
    struct timespec exact;
    wall_clock(&exact);
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *out) {
    struct timespec now;
    wall_clock(&now);
    if (out) *out = now.tv_sec;
    return now.tv_sec;
}
