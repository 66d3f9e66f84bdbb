#include "daemon/torusd/tree/entry_numbers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/torusd/tree/file_bytes.h"

#define BUFFER 4096u /* numbers */

struct entry_numbers {
    int file;
    uint64_t written; /* numbers */
    size_t used;
    uint64_t buffer[BUFFER];
};

struct entry_numbers *entry_numbers_new(int file)
{
    struct entry_numbers *n = malloc(sizeof *n);

    if (n == NULL)
        return NULL;
    n->file = file;
    n->written = 0;
    n->used = 0;
    return n;
}

void entry_numbers_free(struct entry_numbers *n)
{
    if (n == NULL)
        return;
    (void)close(n->file);
    free(n);
}

static int failed(struct error *e)
{
    return error_set(e, ERROR_IO, "a temporary file in the state folder failed: %s",
                     errno == 0 ? "it is too short" : strerror(errno));
}

int entry_numbers_finish(struct entry_numbers *n, struct error *e)
{
    if (file_write(n->file, n->buffer, n->used * sizeof *n->buffer,
                   n->written * sizeof *n->buffer) != 0)
        return failed(e);
    n->written += n->used;
    n->used = 0;
    return 0;
}

int entry_numbers_add(struct entry_numbers *n, uint64_t number, struct error *e)
{
    n->buffer[n->used++] = number;
    return n->used < BUFFER ? 0 : entry_numbers_finish(n, e);
}

int entry_numbers_get(const struct entry_numbers *n, uint64_t index, uint64_t *number,
                      struct error *e)
{
    return file_read(n->file, number, sizeof *number, index * sizeof *number) == 0 ? 0 : failed(e);
}
