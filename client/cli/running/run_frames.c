#include "client/cli/running/run_frames.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/number.h"

#define HEAD 3u /* the kind, and the number of a process */

/* --- frames --- */

int run_frame_put(struct frame_stream *s, enum run_kind kind, unsigned process, const void *bytes,
                  size_t length)
{
    size_t room;
    uint8_t *at = frame_stream_room(s, FRAME_PREFIX_SIZE + HEAD + length, &room);

    if (at == NULL)
        return -1;
    frame_prefix_write(at, (uint32_t)(HEAD + length), 0);
    at += FRAME_PREFIX_SIZE;
    at[0] = (uint8_t)kind;
    at[1] = (uint8_t)(process >> 8);
    at[2] = (uint8_t)process;
    if (length > 0)
        memcpy(at + HEAD, bytes, length);
    frame_stream_added(s, FRAME_PREFIX_SIZE + HEAD + length);
    return 0;
}

int run_frame_next(struct frame_stream *s, struct run_frame *f, struct error *e)
{
    const uint8_t *head;
    size_t length;
    int rc = frame_stream_next(s, RUN_ORDER_MOST, &head, &length, e);

    if (rc <= 0)
        return rc;
    if (length < HEAD)
        return error_set(e, ERROR_PROTOCOL, "a message without a kind");
    *f = (struct run_frame){.kind = (enum run_kind)head[0],
                            .process = (unsigned)head[1] << 8 | head[2],
                            .bytes = head + HEAD,
                            .length = length - HEAD};
    return 1;
}

uint32_t run_frame_number(const struct run_frame *f)
{
    const uint8_t *b = f->bytes;

    return f->length != 4
               ? 0
               : (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

int run_frame_put_number(struct frame_stream *s, enum run_kind kind, unsigned process,
                         uint32_t number)
{
    const uint8_t bytes[] = {(uint8_t)(number >> 24), (uint8_t)(number >> 16),
                             (uint8_t)(number >> 8), (uint8_t)number};

    return run_frame_put(s, kind, process, bytes, sizeof bytes);
}

int run_stream_read(struct frame_stream *s, int fd)
{
    size_t room;
    uint8_t *at = frame_stream_room(s, RUN_PIECE, &room);
    ssize_t n = at != NULL ? read(fd, at, room) : 0;

    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? -1 : 0;
    frame_stream_added(s, (size_t)n);
    return n > 0;
}

bool run_stream_write(struct frame_stream *s, int fd)
{
    while (frame_stream_is_sending(s)) {
        ssize_t n = write(fd, s->data + s->taken, run_stream_waiting(s));
        if (n >= 0)
            s->taken += (size_t)n;
        else if (errno != EINTR)
            return errno == EAGAIN;
    }
    return true;
}

/* --- orders: texts, each with a '\0' at its end --- */

#define NUMBERS 7u

int run_order_put(struct frame_stream *s, const struct run_order *o, struct error *e)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    int rc = -1;

    (void)error_set(e, ERROR_MEMORY, "out of memory for the order");
    if (out == NULL)
        return -1;
    (void)fprintf(out, "%u%c%u%c%u%c%u%c%u%c%u%c%u%c", o->first_rank, 0, o->ranks, 0, o->grace_ms,
                  0, o->silence_ms, 0, (unsigned)o->input, 0, o->variables, 0, o->arguments, 0);
    (void)fwrite(o->folder, 1, strlen(o->folder) + 1, out);
    for (uint32_t i = 0; i < o->variables; i++)
        (void)fwrite(o->variable[i], 1, strlen(o->variable[i]) + 1, out);
    for (uint32_t i = 0; i < o->arguments; i++)
        (void)fwrite(o->argument[i], 1, strlen(o->argument[i]) + 1, out);
    if (fclose(out) == 0) {
        if (size + HEAD > RUN_ORDER_MOST)
            (void)error_set(e, ERROR_USAGE, "the arguments and variables have more than %u MiB",
                            RUN_ORDER_MOST >> 20);
        else
            rc = run_frame_put(s, RUN_ORDER, 0, text, size);
    }
    free(text);
    return rc;
}

struct texts {
    const char *at, *end;
};

/* Returns the next text, or NULL if there is none. */
static const char *next_text(struct texts *t)
{
    const char *text = t->at;
    const char *zero = t->at < t->end ? memchr(t->at, '\0', (size_t)(t->end - t->at)) : NULL;

    if (zero == NULL)
        return NULL;
    t->at = zero + 1;
    return text;
}

/* Reads a list of texts. NULL: they are missing, or memory is short. */
static const char **read_list(struct texts *t, uint32_t count)
{
    const char **list = NULL;

    if (count <= (size_t)(t->end - t->at)) /* each text has a byte at least */
        list = calloc((size_t)count + 1, sizeof *list);
    for (uint32_t i = 0; list != NULL && i < count; i++) {
        list[i] = next_text(t);
        if (list[i] == NULL) {
            free(list);
            list = NULL;
        }
    }
    return list;
}

int run_order_read(struct run_order *o, const uint8_t *bytes, size_t length, struct error *e)
{
    struct texts t = {(const char *)bytes, (const char *)bytes + length};
    uint32_t number[NUMBERS];
    const char *text;

    *o = (struct run_order){0};
    for (unsigned i = 0; i < NUMBERS; i++)
        if ((text = next_text(&t)) == NULL || number_parse(text, INT32_MAX, &number[i], e) != 0)
            return error_set(e, ERROR_PROTOCOL, "an order without its numbers");
    o->first_rank = number[0];
    o->ranks = number[1];
    o->grace_ms = number[2];
    o->silence_ms = number[3];
    o->input = number[4] != 0;
    o->variables = number[5];
    o->arguments = number[6];
    o->folder = next_text(&t);
    if (o->folder != NULL)
        o->variable = read_list(&t, o->variables);
    if (o->variable != NULL)
        o->argument = read_list(&t, o->arguments);
    if (o->argument != NULL && t.at == t.end && o->arguments > 0 && o->silence_ms > 0 &&
        o->ranks > 0 && o->ranks <= RUN_RANKS_MOST)
        return 0;
    run_order_free(o);
    return error_set(e, ERROR_PROTOCOL, "an order that is not whole");
}

void run_order_free(struct run_order *o)
{
    free(o->variable);
    free(o->argument);
    o->variable = o->argument = NULL;
}
