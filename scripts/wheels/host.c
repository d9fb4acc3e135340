/*
 * Loads the client of cabi/testdata, and with it the library, into a process
 * that has threads already, as an interpreter does: those threads call it at
 * once, others are made afterwards, and many come and go while the client runs.
 *
 *     host CLIENT FOLDER       CLIENT is the client as a shared library
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef _WIN32
#include <windows.h>
static void *open_library(const char *path) { return (void *)LoadLibraryA(path); }
static void *find(void *library, const char *name) { return (void *)GetProcAddress((HMODULE)library, name); }
static const char *why(void) {
    static char text[32];
    snprintf(text, sizeof text, "error %lu", GetLastError());
    return text;
}
#else
#include <dlfcn.h>
static void *open_library(const char *path) { return dlopen(path, RTLD_NOW | RTLD_LOCAL); }
static void *find(void *library, const char *name) { return dlsym(library, name); }
static const char *why(void) { return dlerror(); }
#endif

/* The client is written for a main thread's stack; musl gives others 128 KiB. */
enum { CLIENT_STACK = 8 << 20 };

enum { EARLY = 4, LATE = 4, CALLS = 2000, SHORT_LIVED = 300 };

typedef int client_main(int argc, char **argv);
typedef int32_t client_probe(void);

static client_main *run_client;
static client_probe *probe;
static char **arguments;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int loaded;

static void fail(const char *what, const char *text) {
    fprintf(stderr, "host: %s: %s\n", what, text);
    exit(1);
}

static void *call_often(void *unused) {
    pthread_mutex_lock(&lock);
    while (!loaded) pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < CALLS; i++)
        if (probe() != 0) fail("probe", "failed");
    return unused;
}

static void *call_once(void *unused) {
    if (probe() != 0) fail("probe of a short-lived thread", "failed");
    return unused;
}

static void *run(void *unused) {
    pthread_mutex_lock(&lock);
    while (!loaded) pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    if (run_client(2, arguments) != 0) fail("client", "failed");
    return unused;
}

static void start(pthread_t *thread, void *(*what)(void *), size_t stack) {
    pthread_attr_t how;
    pthread_attr_init(&how);
    if (stack > 0 && pthread_attr_setstacksize(&how, stack) != 0) fail("pthread_attr_setstacksize", "failed");
    if (pthread_create(thread, &how, what, NULL) != 0) fail("pthread_create", "failed");
}

int main(int argc, char **argv) {
    pthread_t early[EARLY], late[LATE], client;
    if (argc != 3) fail("usage", "host CLIENT FOLDER");
    arguments = argv + 1;
    for (int i = 0; i < EARLY; i++) start(&early[i], call_often, 0);
    start(&client, run, CLIENT_STACK);
    void *library = open_library(argv[1]);
    if (library == NULL) fail(argv[1], why());
    run_client = (client_main *)find(library, "client_main");
    probe = (client_probe *)find(library, "client_probe");
    if (run_client == NULL || probe == NULL) fail(argv[1], "lacks client_main or client_probe");
    pthread_mutex_lock(&lock);
    loaded = 1;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < LATE; i++) start(&late[i], call_often, 0);
    for (int i = 0; i < SHORT_LIVED; i++) {
        pthread_t passing;
        start(&passing, call_once, 0);
        pthread_join(passing, NULL);
    }
    for (int i = 0; i < EARLY; i++) pthread_join(early[i], NULL);
    for (int i = 0; i < LATE; i++) pthread_join(late[i], NULL);
    pthread_join(client, NULL);
    printf("ok %d threads from before, %d from after, %d that passed by\n", EARLY + 1, LATE, SHORT_LIVED);
    return 0;
}
