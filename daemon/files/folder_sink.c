/* An output folder with a file from each source, named by its rank. It is filled beside its final
 * place, under a temporary name that tells the exchange and the node, and renamed once:
 *
 *     FILLING --finish--> SYNCING --all on disk, entry in the journal--> FINISHED --commit-->
 * PLACED
 *
 * The temporary folder is locked (flock) while its daemon lives, so that leftovers of a crash can
 * be told from another exchange that is writing to the same target. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/files/digests.h"
#include "daemon/files/folders.h"
#include "daemon/files/journal.h"

enum sink_state { FILLING, SYNCING, FINISHED, PLACED };

struct folder_sink {
    struct sink base;
    struct folders *folders;
    struct block_events events;
    enum sink_state state;
    char id[128];
    struct journal_entry entry; /* the two names */
    int folder_fd;
    unsigned created; /* folders above the target */
    bool journaled;
    uint32_t rank, nodes;
    int *file; /* descriptors by origin; -1: not made yet */
    struct digests digests;
    uint64_t pending; /* bytes */
    unsigned operations;
    bool failed, closing, keep;
    uv_work_t sync;
    struct error sync_error;
};

struct write_operation {
    uv_fs_t request;
    struct folder_sink *owner;
    struct extent piece;
    uint64_t offset;
    uint32_t origin;
};

void folder_remove_output(const char *path)
{
    char name[PATH_MAX + 300];
    DIR *dir = opendir(path);
    struct dirent *entry;

    if (dir == NULL)
        return;
    while ((entry = readdir(dir)) != NULL) {
        (void)snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            (void)unlink(name);
    }
    (void)closedir(dir);
    if (rmdir(path) != 0)
        log_warning("%s could not be removed: %s", path, strerror(errno));
}

static int sync_parent(const char *path)
{
    char parent[PATH_MAX];

    (void)snprintf(parent, sizeof parent, "%s", path);
    *strrchr(parent, '/') = '\0';
    int fd = open(parent[0] != '\0' ? parent : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int result = fd < 0 ? -1 : fsync(fd);
    if (fd >= 0)
        (void)close(fd);
    return result;
}

int folder_publish(const char *temporary, const char *final, struct error *e)
{
    /* Replaces an empty folder of that name, and nothing else. */
    if (rename(temporary, final) != 0)
        return error_set(e, ERROR_IO, "%s could not be renamed to %s: %s", temporary, final,
                         strerror(errno));
    if (sync_parent(final) != 0)
        return error_set(e, ERROR_IO, "%s: %s", final, strerror(errno));
    return 0;
}

static void destroy(struct folder_sink *s)
{
    for (uint32_t i = 0; s->file != NULL && i < s->nodes; i++)
        if (s->file[i] >= 0)
            (void)close(s->file[i]);
    digests_free(&s->digests);
    if (s->folder_fd >= 0) {
        if (s->state != PLACED && !s->keep)
            folder_remove_output(s->entry.temporary);
        (void)close(s->folder_fd);
    }
    if (s->state != PLACED && !s->keep)
        roots_remove_created(s->entry.final, s->created);
    if (s->journaled && !s->keep)
        journal_remove(s->folders->state_folder, s->id);
    free(s->file);
    free(s);
}

static void sink_close(struct sink *base, bool keep)
{
    struct folder_sink *s = (struct folder_sink *)base;

    s->closing = true;
    s->keep = (keep || s->keep) && s->state != PLACED;
    if (s->operations == 0)
        destroy(s);
}

/* One operation less. Returns false if that was the last one before the sink goes. */
static bool operation_over(struct folder_sink *s)
{
    s->operations--;
    if (!s->closing)
        return true;
    if (s->operations == 0)
        destroy(s);
    return false;
}

static void fail(struct folder_sink *s, const struct error *e)
{
    if (s->failed)
        return;
    s->failed = true;
    s->events.failed(s->events.context, e);
}

static void on_written(uv_fs_t *request);

static int start_write(struct folder_sink *s, struct write_operation *w)
{
    uv_buf_t buffer = uv_buf_init((char *)(uintptr_t)w->piece.data, w->piece.length);

    w->request.data = w;
    int result = uv_fs_write(s->folders->loop, &w->request, s->file[w->origin], &buffer, 1,
                             (int64_t)w->offset, on_written);
    if (result == 0)
        s->operations++;
    return result;
}

static void on_written(uv_fs_t *request)
{
    struct write_operation *w = request->data;
    struct folder_sink *s = w->owner;
    ssize_t result = request->result;
    uint32_t origin = w->origin;

    uv_fs_req_cleanup(request);
    if (result > 0 && (uint32_t)result < w->piece.length && !s->closing) {
        s->pending -= (uint64_t)result;
        w->piece.data += result;
        w->piece.length -= (uint32_t)result;
        w->offset += (uint64_t)result;
        result = start_write(s, w);
        if (result == 0) {
            s->operations--;
            return;
        }
    }
    s->pending -= w->piece.length;
    slab_unref(w->piece.slab);
    free(w);
    if (!operation_over(s))
        return;
    if (result <= 0) {
        struct error e;
        (void)error_set(&e, ERROR_IO, "writing %s/%u: %s", s->entry.final, origin,
                        result < 0 ? uv_strerror((int)result) : "nothing was written");
        fail(s, &e);
    } else if (s->pending == 0) {
        s->events.wake(s->events.context);
    }
}

static int make_file(struct folder_sink *s, uint32_t origin, struct error *e)
{
    char name[16];

    if (s->file[origin] >= 0)
        return 0;
    (void)snprintf(name, sizeof name, "%u", origin);
    s->file[origin] =
        openat(s->folder_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (s->file[origin] < 0)
        return error_set(e, ERROR_IO, "%s/%s: %s", s->entry.temporary, name, strerror(errno));
    return 0;
}

static int sink_write(struct sink *base, uint32_t origin, uint64_t offset,
                      const struct extent *piece, struct error *e)
{
    struct folder_sink *s = (struct folder_sink *)base;
    struct write_operation *w;

    if (make_file(s, origin, e) != 0)
        return -1;
    if (piece->length == 0)
        return 0;
    if (digests_update(&s->digests, origin, offset, piece->data, piece->length) != 0)
        return error_set(e, ERROR_IO, "digest");
    w = calloc(1, sizeof *w);
    if (w == NULL)
        return error_set(e, ERROR_MEMORY, "no memory to write files");
    w->owner = s;
    w->origin = origin;
    w->offset = offset;
    w->piece = *piece;
    int result = start_write(s, w);
    if (result != 0) {
        free(w);
        return error_set(e, ERROR_IO, "writing %s/%u: %s", s->entry.final, origin,
                         uv_strerror(result));
    }
    (void)slab_ref(piece->slab);
    s->pending += piece->length;
    return 0;
}

static uint64_t sink_pending(struct sink *base)
{
    return ((struct folder_sink *)base)->pending;
}

/* In the thread pool: everything to the disk, the journal's entry last. */
static void sync_all(uv_work_t *work)
{
    struct folder_sink *s = work->data;

    for (uint32_t i = 0; i < s->nodes; i++) {
        if (!digests_has(&s->digests, i))
            continue;
        if (make_file(s, i, &s->sync_error) != 0)
            return;
        if (fsync(s->file[i]) != 0) {
            (void)error_set(&s->sync_error, ERROR_IO, "%s/%u: %s", s->entry.final, i,
                            strerror(errno));
            return;
        }
        (void)close(s->file[i]);
        s->file[i] = -1;
    }
    if (fsync(s->folder_fd) != 0 || sync_parent(s->entry.temporary) != 0) {
        (void)error_set(&s->sync_error, ERROR_IO, "%s: %s", s->entry.temporary, strerror(errno));
        return;
    }
    s->entry.finished = true;
    (void)journal_write(s->folders->state_folder, s->id, &s->entry, &s->sync_error);
}

static void on_synced(uv_work_t *work, int status)
{
    struct folder_sink *s = work->data;

    (void)status;
    if (!operation_over(s))
        return;
    if (s->sync_error.code != ERROR_NONE) {
        fail(s, &s->sync_error);
        return;
    }
    s->state = FINISHED;
    s->events.wake(s->events.context);
}

static bool sink_finish(struct sink *base)
{
    struct folder_sink *s = (struct folder_sink *)base;

    if (s->state == FILLING && s->pending == 0 && !s->failed) {
        s->state = SYNCING;
        s->sync.data = s;
        s->operations++;
        (void)uv_queue_work(s->folders->loop, &s->sync, sync_all, on_synced); /* 0: it has a cb */
    }
    return s->state == FINISHED;
}

static uint64_t sink_digest(struct sink *base)
{
    return digests_sum(&((struct folder_sink *)base)->digests);
}

static int sink_commit(struct sink *base, struct error *e)
{
    struct folder_sink *s = (struct folder_sink *)base;

    if (folder_publish(s->entry.temporary, s->entry.final, e) != 0) {
        s->keep = true; /* all is there: let somebody put it in place by hand */
        return -1;
    }
    s->state = PLACED;
    return 0;
}

/* The target must be absent, or an empty folder. */
static int check_target(const char *path, struct error *e)
{
    struct stat st;
    struct dirent *entry;
    bool empty = true;

    if (lstat(path, &st) != 0)
        return errno == ENOENT ? 0 : error_set(e, ERROR_IO, "%s: %s", path, strerror(errno));
    if (!S_ISDIR(st.st_mode))
        return error_set(e, ERROR_REFUSED, "target %s exists and is not a folder", path);
    DIR *dir = opendir(path);
    if (dir == NULL)
        return error_set(e, ERROR_IO, "%s: %s", path, strerror(errno));
    while (empty && (entry = readdir(dir)) != NULL)
        empty = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
    (void)closedir(dir);
    if (!empty)
        return error_set(e, ERROR_REFUSED, "target folder %s exists and is not empty", path);
    return 0;
}

static bool is_locked(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool locked = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;

    if (fd >= 0)
        (void)close(fd);
    return locked;
}

/* After our own temporary folder has been made and locked: does anybody else write to the target?
 * Of two nodes at the same time, one at least sees the other. */
static int check_rivals(const struct folder_sink *s, const char *parent, const char *stem,
                        const char *own, struct error *e)
{
    struct dirent *entry;
    char path[PATH_MAX + 300];
    char id[sizeof s->id + 1];
    int result = 0;
    DIR *dir = opendir(parent);

    (void)snprintf(id, sizeof id, "%s-", s->id);
    if (dir == NULL)
        return error_set(e, ERROR_IO, "%s: %s", parent, strerror(errno));
    while (result == 0 && (entry = readdir(dir)) != NULL) {
        if (strncmp(entry->d_name, stem, strlen(stem)) != 0 || strcmp(entry->d_name, own) == 0)
            continue;
        (void)snprintf(path, sizeof path, "%s/%s", parent, entry->d_name);
        if (strncmp(entry->d_name + strlen(stem), id, strlen(id)) == 0)
            result = error_set(e, ERROR_REFUSED,
                               "target %s is another node's target too: put %%r (the node's rank) "
                               "into its path",
                               s->entry.final);
        else if (is_locked(path))
            result = error_set(e, ERROR_REFUSED, "another exchange is writing to target %s",
                               s->entry.final);
    }
    (void)closedir(dir);
    return result;
}

static int make_temporary(struct folder_sink *s, struct error *e)
{
    char parent[PATH_MAX], stem[NAME_MAX + 32], own[NAME_MAX + 192];
    char *name;

    (void)snprintf(parent, sizeof parent, "%s", s->entry.final);
    name = strrchr(parent, '/');
    *name++ = '\0';
    int n = snprintf(stem, sizeof stem, ".%s.torusd-", name);
    if (n < 0 || (size_t)n >= sizeof stem)
        return error_set(e, ERROR_USAGE, "name too long: %.60s...", name);
    (void)snprintf(own, sizeof own, "%s%s-%u", stem, s->id, s->rank);
    n = snprintf(s->entry.temporary, sizeof s->entry.temporary, "%s/%s", parent, own);
    if (n < 0 || (size_t)n >= sizeof s->entry.temporary)
        return error_set(e, ERROR_USAGE, "path too long: %.60s...", s->entry.final);
    if (journal_write(s->folders->state_folder, s->id, &s->entry, e) != 0)
        return error_wrap(e, "state folder");
    s->journaled = true;
    if (mkdir(s->entry.temporary, 0777) != 0)
        return error_set(e, ERROR_IO, "target %s cannot be written: %s", s->entry.final,
                         strerror(errno));
    s->folder_fd = open(s->entry.temporary, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (s->folder_fd < 0) {
        (void)error_set(e, ERROR_IO, "%s: %s", s->entry.temporary, strerror(errno));
        (void)rmdir(s->entry.temporary);
        return -1;
    }
    if (flock(s->folder_fd, LOCK_EX | LOCK_NB) != 0)
        return error_set(e, ERROR_IO, "%s cannot be locked: %s", s->entry.temporary,
                         strerror(errno));
    return check_rivals(s, parent[0] != '\0' ? parent : "/", stem, own, e);
}

struct sink *folder_sink(struct folders *folders, const struct folder_request *request,
                         const struct block_events *events, struct error *e)
{
    static const struct sink_ops ops = {sink_write,  sink_pending, sink_finish,
                                        sink_digest, sink_commit,  sink_close};
    char path[PATH_MAX];
    struct folder_sink *s = calloc(1, sizeof *s);

    if (s == NULL) {
        (void)error_set(e, ERROR_MEMORY, "no memory for a folder");
        return NULL;
    }
    s->base.ops = &ops;
    s->folders = folders;
    s->events = *events;
    s->folder_fd = -1;
    s->rank = request->rank;
    s->nodes = request->nodes;
    (void)snprintf(s->id, sizeof s->id, "%s", request->id);
    bool room = digests_init(&s->digests, request, false) == 0;
    s->file = calloc(s->nodes, sizeof *s->file);
    for (uint32_t i = 0; s->file != NULL && i < s->nodes; i++)
        s->file[i] = -1;
    if (!room || s->file == NULL) {
        (void)error_set(e, ERROR_MEMORY, "no memory for a folder");
        goto fail;
    }
    if (path_expand(request->to, request->rank, path, e) != 0 ||
        roots_resolve_target(folders->roots, path, s->entry.final, &s->created, e) != 0 ||
        check_target(s->entry.final, e) != 0 || make_temporary(s, e) != 0)
        goto fail;
    return &s->base;
fail:
    destroy(s);
    return NULL;
}
