//go:build unix

#include "fork.h"

#include <pthread.h>
#include <unistd.h>

/* A child that keeps more locks than these keeps the rest of them. */
enum { MOST = 4096 };

static volatile int held_fds[MOST];
static volatile int used;

static void in_child(void) {
    for (int i = 0; i < used; i++)
        close(held_fds[i]);
    used = 0;
}

void watch_forks(void) { pthread_atfork(0, 0, in_child); }

/* Called with one lock held, in the parent. A fork in between sees the table
   with a descriptor missing or doubled; both are harmless. */
void lock_descriptor(int fd, int held) {
    for (int i = 0; i < used; i++)
        if (held_fds[i] == fd) {
            if (!held) {
                held_fds[i] = held_fds[used - 1];
                used--;
            }
            return;
        }
    if (held && used < MOST) {
        held_fds[used] = fd;
        used++;
    }
}
