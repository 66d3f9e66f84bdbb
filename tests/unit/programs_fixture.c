#include "tests/unit/programs_fixture.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PLACES 512 /* for groups */

#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            perror(#condition);                                                                    \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

static void before_sleep(uv_prepare_t *prepare)
{
    standin_run(&((struct programs_fixture *)prepare->data)->groups);
}

static void on_order(uv_async_t *async)
{
    struct programs_fixture *f = async->data;

    if (f->doing == NULL)
        return;
    f->doing(f, f->argument);
    f->doing = NULL;
    MUST(sem_post(&f->done) == 0);
}

static void *serve(void *context)
{
    struct programs_fixture *f = context;

    MUST(uv_run(&f->loop, UV_RUN_DEFAULT) == 0);
    return NULL;
}

void programs_start(struct programs_fixture *f, const char *dims, uint32_t rank)
{
    struct error e;

    memset(f, 0, sizeof *f);
    MUST(torus_parse(&f->groups.torus, dims, &e) == 0);
    f->groups.rank = rank;
    f->shares = shares_new();
    MUST(f->shares != NULL);
    (void)strcpy(f->folder, "/tmp/torus-XXXXXX");
    MUST(mkdtemp(f->folder) != NULL);
    (void)snprintf(f->control, sizeof f->control, "%s/sock", f->folder);
    (void)snprintf(f->path, sizeof f->path, "%s.programs", f->control);
    MUST(uv_loop_init(&f->loop) == 0 && sem_init(&f->done, 0, 0) == 0);
    static const struct access_rules everybody;
    const struct programs_setup setup = {&f->loop, f->control, &f->groups, &everybody, f->shares};
    f->programs = programs_open(&setup, &e);
    if (f->programs == NULL) {
        (void)fprintf(stderr, "%s\n", e.text);
        abort();
    }
    /* torusd raises its limit of open files before it computes the number of places from it. */
    shares_set_capacity(f->shares, SHARE_PROGRAMS, PLACES);
    MUST(uv_prepare_init(&f->loop, &f->before_sleep) == 0);
    MUST(uv_async_init(&f->loop, &f->order, on_order) == 0);
    f->before_sleep.data = f->order.data = f;
    MUST(uv_prepare_start(&f->before_sleep, before_sleep) == 0);
    MUST(pthread_create(&f->thread, NULL, serve, f) == 0);
}

void programs_do(struct programs_fixture *f, void (*doing)(struct programs_fixture *, void *),
                 void *argument)
{
    f->argument = argument;
    f->doing = doing;
    MUST(uv_async_send(&f->order) == 0);
    while (sem_wait(&f->done) != 0)
        ;
}

static void end(struct programs_fixture *f, void *argument)
{
    programs_close(f->programs);
    uv_close((uv_handle_t *)&f->before_sleep, NULL);
    uv_close((uv_handle_t *)&f->order, NULL);
}

void programs_stop(struct programs_fixture *f)
{
    programs_do(f, end, NULL);
    MUST(pthread_join(f->thread, NULL) == 0);
    MUST(uv_loop_close(&f->loop) == 0);
    MUST(f->groups.groups == 0);
    for (enum share share = 0; share < SHARES; share++)
        MUST(shares_total(f->shares, share) == 0);
    shares_free(f->shares);
    MUST(access(f->path, F_OK) != 0);
    MUST(rmdir(f->folder) == 0);
    (void)sem_destroy(&f->done);
}

static void count(struct programs_fixture *f, void *argument)
{
    *(unsigned *)argument = f->groups.groups;
}

void programs_await_groups(struct programs_fixture *f, unsigned groups)
{
    unsigned open;

    do {
        programs_do(f, count, &open);
        (void)sched_yield();
    } while (open != groups);
}

static void hold(struct programs_fixture *f, void *argument)
{
    f->groups.holds = *(bool *)argument;
}

void programs_hold(struct programs_fixture *f, bool holds)
{
    programs_do(f, hold, &holds);
}

static void hold_messages(struct programs_fixture *f, void *argument)
{
    f->groups.holds_messages = *(bool *)argument;
}

void programs_hold_messages(struct programs_fixture *f, bool holds)
{
    programs_do(f, hold_messages, &holds);
}

unsigned programs_descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    unsigned open = 0;

    MUST(folder != NULL);
    while (readdir(folder) != NULL)
        open++;
    (void)closedir(folder);
    return open;
}
