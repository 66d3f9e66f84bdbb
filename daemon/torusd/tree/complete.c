/* The marker is a line "torus-copy 1 INTO DELETE AS_IT_COMES" (each 0 or 1), then patterns, each with a 0 byte behind it,
 * and then ".". */
#include "daemon/torusd/tree/complete.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/torusd/tree/file_bytes.h"

#define NEXT "complete.new"
#define FORMAT "torus-copy 1 %d %d %d\n"
#define LINE_MOST 64u

static int write_synced(const struct staging *s, const char *bytes, size_t length)
{
    int file = openat(s->folder, NEXT, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0)
        return -errno;
    int result = file_write(file, bytes, length, 0) == 0 && fsync(file) == 0 ? 0 : -errno;
    (void)close(file);
    if (result == 0 &&
        (renameat(s->folder, NEXT, s->folder, COMPLETE_NAME) != 0 || fsync(s->folder) != 0))
        result = -errno;
    return result;
}

int complete_write(const struct staging *s, const struct complete *c, struct error *e)
{
    size_t length = LINE_MOST + 1;

    for (uint32_t i = 0; i < c->patterns; i++)
        length += strlen(c->pattern[i]) + 1;
    char *bytes = length <= COMPLETE_MOST ? malloc(length) : NULL;
    if (bytes == NULL)
        return staging_failed(s, "recorded", ENOMEM, e);
    int used = snprintf(bytes, LINE_MOST, FORMAT, c->into, c->delete, c->as_it_comes);
    char *at = bytes + used;
    for (uint32_t i = 0; i < c->patterns; i++)
        at = stpcpy(at, c->pattern[i]) + 1;
    *at++ = '.';
    int result = write_synced(s, bytes, (size_t)(at - bytes));
    free(bytes);
    return result == 0 ? 0 : staging_failed(s, "recorded", -result, e);
}

/* Takes the patterns from a marker. Returns 1; 0: it is damaged; -ENOMEM. */
static int take_patterns(struct complete *c, const char *at, const char *end)
{
    uint32_t count = 0;

    if (at >= end || end[-1] != '.' || (end - at > 1 && end[-2] != '\0'))
        return 0;
    end--;
    for (const char *p = at; p < end; p++)
        count += *p == '\0';
    c->pattern = calloc(count + 1, sizeof *c->pattern);
    if (c->pattern == NULL)
        return -ENOMEM;
    for (; at < end; at += strlen(at) + 1) {
        c->pattern[c->patterns] = strdup(at);
        if (c->pattern[c->patterns++] == NULL)
            return -ENOMEM;
    }
    return 1;
}

static int take(struct complete *c, const char *bytes, size_t length)
{
    int into, delete, as_it_comes, used = 0;
    const char *line = memchr(bytes, '\n', length);

    if (line == NULL || memchr(bytes, '\0', (size_t)(line - bytes)) != NULL)
        return 0;
    if (sscanf(bytes, "torus-copy 1 %d %d %d%n", &into, &delete, &as_it_comes, &used) != 3 ||
        bytes + used != line)
        return 0;
    *c = (struct complete){
        .into = into != 0, .delete = delete != 0, .as_it_comes = as_it_comes != 0};
    return take_patterns(c, line + 1, bytes + length);
}

int complete_read(const struct staging *s, struct complete *c, struct error *e)
{
    int file = openat(s->folder, COMPLETE_NAME, O_RDONLY | O_NOFOLLOW | O_CLOEXEC), result = 0;

    *c = (struct complete){0};
    if (file < 0)
        return errno == ENOENT ? 0 : staging_failed(s, "read", errno, e);
    char *bytes = malloc(COMPLETE_MOST + 1);
    ssize_t length = bytes == NULL ? -1 : read(file, bytes, COMPLETE_MOST);
    int error = errno;
    if (length > 0) {
        bytes[length] = '\0';
        result = take(c, bytes, (size_t)length);
    }
    free(bytes);
    (void)close(file);
    if (result != 1)
        complete_free(c);
    if (length < 0 || result < 0)
        return staging_failed(s, "read", result < 0 ? -result : error, e);
    return result;
}

int complete_withdraw(const struct staging *s, struct error *e)
{
    if (unlinkat(s->folder, COMPLETE_NAME, 0) != 0 && errno != ENOENT)
        return staging_failed(s, "removed", errno, e);
    return 0;
}

void complete_free(struct complete *c)
{
    for (uint32_t i = 0; i < c->patterns; i++)
        free(c->pattern[i]);
    free(c->pattern);
    *c = (struct complete){0};
}
