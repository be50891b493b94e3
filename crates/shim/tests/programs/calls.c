// Calls functions of the replacement library in unusual ways and prints their answers.

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "types.h"

static void all_kinds(void) {
    for (int round = 0; round < 2; round++) {
        struct large given = {{10, 20, 30, 40, 50}};
        printf("%.10f\n", cudaMalloc(1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19));
        printf("%g\n", cudaFree(3, 1.5, 1, 2.5, 2, 3.5, 3));
        given = cuMemAlloc_v2(given, round + 1);
        printf("%ld %ld\n", given.words[0], given.words[4]);
    }
}

static pthread_barrier_t together;

static void *in_thread(void *number) {
    pthread_barrier_wait(&together);
    if ((long)number % 2) return (void *)(long)(cuInit(1) == 8);
    return (void *)(long)(cudaFree(1, 4.0, 5) == 13);
}

static void threads(void) {
    enum { COUNT = 16 };
    pthread_t all[COUNT];
    long right = 0;
    pthread_barrier_init(&together, 0, COUNT);
    for (long index = 0; index < COUNT; index++) pthread_create(&all[index], 0, in_thread, (void *)index);
    for (int index = 0; index < COUNT; index++) {
        void *result;
        pthread_join(all[index], &result);
        right += (long)result;
    }
    printf("%ld right\n", right);
}

static void fork_first(void) {
    for (int child = 0; child < 2; child++) {
        if (fork() == 0) {
            printf("child %d\n", cuInit(child));
            fflush(stdout);
            _exit(0);
        }
        wait(0);
    }
    printf("parent %d\n", cuInit(2));
}

static void closed(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    int (*init)(unsigned) = (int (*)(unsigned))dlsym(library, "cuInit");
    printf("%d\n", init(0));
    dlclose(library);
    printf("%d\n", init(1));
}

static void registered(void) { puts("atexit"); }

static void *first_call(void *_) {
    cuInit(0);
    return 0;
}

// The first call comes from another thread than the main thread.
static void end(void) {
    pthread_t thread;
    atexit(registered);
    pthread_create(&thread, 0, first_call, 0);
    pthread_join(thread, 0);
}

__attribute__((constructor)) static void before_main(int count, char **words) {
    if (count > 1 && !strcmp(words[1], "early")) printf("early %d\n", cuInit(0));
}

int main(int count, char **words) {
    (void)dlerror();
    if (!strcmp(words[1], "kinds")) all_kinds();
    if (!strcmp(words[1], "threads")) threads();
    if (!strcmp(words[1], "fork")) fork_first();
    if (!strcmp(words[1], "closed")) closed();
    if (!strcmp(words[1], "end")) end();
    if (!strcmp(words[1], "one")) printf("%d %s\n", cuInit(0), dlerror() ? "an error is left over" : "no error");
    return 0;
}
