/* Descriptors of locks, which a forked child must close: it shares them with
   its parent, and would keep the store locked after the parent has died. */
void watch_forks(void);
void lock_descriptor(int fd, int held);
