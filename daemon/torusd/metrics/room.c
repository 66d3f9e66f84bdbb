/* The room and the thread that looks both own a look, and the last owner frees it. */
#include "daemon/torusd/metrics/room.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/lib/base/detached_thread.h"
#include "daemon/torusd/metrics/metrics.h"

#define MILLISECOND UINT64_C(1000000)

/* At one root. */
struct look {
    pthread_mutex_t lock; /* of what follows, as far as it changes */
    unsigned owners;
    bool under_way; /* a thread looks */
    bool failed;    /* the last answer was an error */
    uint64_t
        answer; /* when the last answer that failed came, or when the look was made; uv_hrtime() */
    bool answered; /* there was one */
    uint64_t size, free;
    int (*ask)(int folder, struct statvfs *out);
    int folder;
    char path[];
};

struct room {
    struct room_setup set;
    uv_timer_t timer;
    struct look **look;
    size_t looks;
};

static void disown_look(struct look *look)
{
    unsigned left;

    (void)pthread_mutex_lock(&look->lock);
    left = --look->owners;
    (void)pthread_mutex_unlock(&look->lock);
    if (left > 0)
        return;
    (void)close(look->folder);
    (void)pthread_mutex_destroy(&look->lock);
    free(look);
}

static void *on_thread(void *argument)
{
    struct look *look = argument;
    struct statvfs s;
    const bool answers = look->ask(look->folder, &s) == 0;

    (void)pthread_mutex_lock(&look->lock);
    look->under_way = false;
    look->failed = !answers;
    if (answers) {
        look->answered = true;
        look->answer = uv_hrtime();
        look->size = (uint64_t)s.f_blocks * s.f_frsize;
        look->free = (uint64_t)s.f_bavail * s.f_frsize;
    }
    (void)pthread_mutex_unlock(&look->lock);
    disown_look(look);
    return NULL;
}

/* Without a thread, the next look tries again. */
static void begin_look(struct look *look)
{
    bool begins;

    (void)pthread_mutex_lock(&look->lock);
    begins = !look->under_way;
    look->under_way = true;
    look->owners += begins;
    (void)pthread_mutex_unlock(&look->lock);
    if (!begins || detached_thread_start(on_thread, look) == 0)
        return;
    (void)pthread_mutex_lock(&look->lock);
    look->under_way = false;
    (void)pthread_mutex_unlock(&look->lock);
    disown_look(look);
}

static void on_timer(uv_timer_t *timer)
{
    const struct room *room = timer->data;

    for (size_t i = 0; i < room->looks; i++)
        begin_look(room->look[i]);
}

static void forget_roots(struct room *room)
{
    for (size_t i = 0; i < room->looks; i++)
        disown_look(room->look[i]);
    free(room->look);
    room->look = NULL;
    room->looks = 0;
}

struct room *room_open(const struct room_setup *setup)
{
    struct room *room = calloc(1, sizeof *room);

    if (room == NULL)
        return NULL;
    room->set = *setup;
    (void)uv_timer_init(setup->loop, &room->timer);
    room->timer.data = room;
    (void)uv_timer_start(&room->timer, on_timer, setup->every_ms, setup->every_ms);
    return room;
}

/* Returns NULL without memory or descriptors. */
static struct look *make_look(const struct room *room, const struct roots *roots, size_t root)
{
    const char *path = roots->path[root];
    struct look *look = calloc(1, sizeof *look + strlen(path) + 1);
    const struct location place = {.root = root, .path = "."};

    if (look == NULL)
        return NULL;
    look->folder = fcntl(roots_folder(roots, &place), F_DUPFD_CLOEXEC, 0);
    if (look->folder < 0 || pthread_mutex_init(&look->lock, NULL) != 0) {
        if (look->folder >= 0)
            (void)close(look->folder);
        free(look);
        return NULL;
    }
    look->owners = 1;
    look->answer = uv_hrtime();
    look->ask = room->set.ask;
    (void)strcpy(look->path, path);
    return look;
}

void room_of(struct room *room, const struct roots *roots)
{
    forget_roots(room);
    room->look = calloc(roots->count + 1, sizeof(struct look *));
    for (size_t i = 0; room->look != NULL && i < roots->count; i++) {
        struct look *look = make_look(room, roots, i);
        if (look != NULL)
            room->look[room->looks++] = look;
    }
    on_timer(&room->timer);
}

bool room_tell(struct room *room, size_t index, struct room_answer *answer)
{
    struct look *look;

    if (index >= room->looks)
        return false;
    look = room->look[index];
    (void)pthread_mutex_lock(&look->lock);
    const bool late = uv_hrtime() - look->answer >= room->set.keep_ms * MILLISECOND;
    *answer = (struct room_answer){.path = look->path,
                                   .known = look->answered || look->failed || late,
                                   .answers = look->answered && !look->failed && !late,
                                   .size = look->size,
                                   .free = look->free};
    (void)pthread_mutex_unlock(&look->lock);
    return true;
}

static void on_closed(uv_handle_t *handle)
{
    struct room *room = handle->data;
    const struct room_setup set = room->set;

    forget_roots(room);
    free(room);
    set.closed(set.context);
}

void room_close(struct room *room)
{
    uv_close((uv_handle_t *)&room->timer, on_closed);
}

/* --- metrics --- */

static const struct metric answers = {"torus_data_root_answers", "", METRIC_GAUGE,
                                      "Whether the file system of a data root has answered lately"};
static const struct metric size_bytes = {"torus_data_root_size_bytes", "bytes", METRIC_GAUGE,
                                         "Size of the file system of a data root"};
static const struct metric free_bytes = {
    "torus_data_root_free_bytes", "bytes", METRIC_GAUGE,
    "Bytes of the file system of a data root that are free for users without privileges"};

/* Writes one value of each root that has it. */
static void write_values(struct exposition *x, struct room *room, const struct metric *metric)
{
    struct room_answer answer;

    exposition_metric(x, metric);
    for (size_t i = 0; room_tell(room, i, &answer); i++) {
        const struct label label = {"path", answer.path};
        if (metric == &answers && answer.known)
            exposition_value(x, &label, 1, answer.answers);
        else if (metric != &answers && answer.answers)
            exposition_value(x, &label, 1,
                             (double)(metric == &free_bytes ? answer.free : answer.size));
    }
}

void metrics_of_room(struct exposition *x, struct metrics_view *v)
{
    write_values(x, v->room, &answers);
    write_values(x, v->room, &size_bytes);
    write_values(x, v->room, &free_bytes);
}
