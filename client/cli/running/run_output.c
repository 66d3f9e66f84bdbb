#include "client/cli/running/run_output.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/cli/running/run_frames.h"

#define LINE_MOST (256u << 10) /* a longer line is cut into several */

/* A terminal or a pipe is opened once more: O_NONBLOCK would otherwise hold for other programs that write there. Files do
 * not block. */
void run_output_open(struct run_output *o, int fd)
{
    char path[32];
    struct stat st;
    int again = -1;

    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (fstat(fd, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISCHR(st.st_mode)))
        again = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    *o = (struct run_output){.fd = again >= 0 ? again : fd, .own = again >= 0};
}

void run_output_write(struct run_output *o)
{
    if (!o->broken && !run_stream_write(&o->waiting, o->fd))
        o->broken = true;
    if (o->broken)
        frame_stream_free(&o->waiting);
}

void run_output_close(struct run_output *o)
{
    frame_stream_free(&o->waiting);
    if (o->own)
        (void)close(o->fd);
}

static void put(struct run_output *o, const void *bytes, size_t length)
{
    size_t room;
    uint8_t *at = o->broken ? NULL : frame_stream_room(&o->waiting, length, &room);

    if (at == NULL || length == 0)
        return;
    memcpy(at, bytes, length);
    frame_stream_added(&o->waiting, length);
}

static void put_line(struct run_output *o, const char *prefix, struct run_line *line,
                     const uint8_t *bytes, size_t length)
{
    put(o, prefix, strlen(prefix));
    put(o, line->text, line->length);
    put(o, bytes, length);
    line->length = 0;
}

static void keep(struct run_line *line, const uint8_t *bytes, size_t length)
{
    char *text = realloc(line->text, line->length + length + 1);

    if (text == NULL)
        return;
    line->text = text;
    memcpy(text + line->length, bytes, length);
    line->length += length;
}

/* Returns the length of the line at the beginning, with its end; 0 if it has no end yet. A carriage return ends a line
 * if no newline follows, which only the next byte says. */
static size_t line_length(const uint8_t *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (bytes[i] == '\n')
            return i + 1;
        if (bytes[i] == '\r' && i + 1 < length && bytes[i + 1] != '\n')
            return i + 1;
    }
    return 0;
}

void run_output_add(struct run_output *o, const char *prefix, struct run_line *line,
                    const uint8_t *bytes, size_t length)
{
    size_t end;

    if (prefix == NULL) {
        put(o, bytes, length);
        return;
    }
    if (line->length > 0 && length > 0 && line->text[line->length - 1] == '\r' && bytes[0] != '\n')
        put_line(o, prefix, line, NULL, 0);
    while (length > 0 && (end = line_length(bytes, length)) > 0) {
        put_line(o, prefix, line, bytes, end);
        bytes += end;
        length -= end;
    }
    keep(line, bytes, length);
    if (line->length > LINE_MOST)
        put_line(o, prefix, line, (const uint8_t *)"\n", 1);
}

void run_output_end(struct run_output *o, const char *prefix, struct run_line *line)
{
    if (prefix != NULL && line->length > 0)
        put_line(o, prefix, line, (const uint8_t *)"\n", 1);
    free(line->text);
    *line = (struct run_line){0};
}
