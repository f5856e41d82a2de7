/* The wall clock is CLOCK_OFF seconds off, and nothing else is. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

int clock_gettime(clockid_t which, struct timespec *now) {
    int (*real)(clockid_t, struct timespec *) = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    const char *off = getenv("CLOCK_OFF");
    int result = real(which, now);
    if (off && which == CLOCK_REALTIME) now->tv_sec += atol(off);
    return result;
}
