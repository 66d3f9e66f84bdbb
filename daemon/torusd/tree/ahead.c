#include "daemon/torusd/tree/ahead.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define LOADED_MOST (256 * 1024) /* bytes of a file; behind them the kernel reads ahead by itself */

struct ahead {
    const struct sources *sources;
    struct manifest_cursor *cursor;
    uint64_t next; /* where the file begins that is opened next */
    bool known;    /* whether the cursor is there */
    struct {
        uint64_t index;
        int file;
    } open[AHEAD_FILES]; /* a ring */
    unsigned first, count;
};

struct ahead *ahead_new(const struct manifest *manifest, const struct sources *sources)
{
    struct ahead *a = calloc(1, sizeof *a);

    if (a == NULL)
        return NULL;
    a->sources = sources;
    a->cursor = manifest_cursor_new(manifest);
    if (a->cursor != NULL)
        return a;
    free(a);
    return NULL;
}

void ahead_free(struct ahead *a)
{
    if (a == NULL)
        return;
    ahead_close(a);
    manifest_cursor_free(a->cursor);
    free(a);
}

void ahead_close(struct ahead *a)
{
    for (; a->count > 0; a->count--) {
        (void)close(a->open[a->first].file);
        a->first = (a->first + 1) % AHEAD_FILES;
    }
    a->known = false;
}

static int open_next(struct ahead *a, struct error *e)
{
    struct entry entry;
    int result;

    do
        result = manifest_next(a->cursor, &entry, e);
    while (result == 1 && entry.bytes == 0);
    if (result <= 0)
        return result < 0 ? -1
                          : error_set(e, ERROR_PROTOCOL, "the stream of the tree is too short");
    int file = source_open_file(a->sources, &entry, e);
    a->next = entry.begin + entry.bytes;
    if (file < 0)
        return file == CHANGING_LEFT_OUT ? 0 : -1;
    (void)posix_fadvise(file, 0, LOADED_MOST, POSIX_FADV_WILLNEED);
    unsigned at = (a->first + a->count++) % AHEAD_FILES;
    a->open[at].index = entry.index;
    a->open[at].file = file;
    return 0;
}

int ahead_open(struct ahead *a, uint64_t offset, uint64_t limit, struct error *e)
{
    int result = 0;

    if (offset >= limit)
        return 0;
    if (a->count == 0 && (!a->known || a->next != offset)) {
        result = manifest_seek_stream(a->cursor, offset, e);
        a->next = offset;
        a->known = result == 0;
    }
    while (result == 0 && a->count < AHEAD_FILES && a->next < limit)
        result = open_next(a, e);
    return result;
}

int ahead_take(struct ahead *a, uint64_t index)
{
    if (a->count == 0 || a->open[a->first].index != index)
        return -1;
    int file = a->open[a->first].file;
    a->first = (a->first + 1) % AHEAD_FILES;
    a->count--;
    return file;
}
