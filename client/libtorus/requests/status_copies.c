#include "client/libtorus/requests/status_copies.h"

#include <stdlib.h>

#include "client/libtorus/common/fail.h"
#include "proto/text.h"

static const char *const phases[] = {"calling", "reading", "comparing", "moving", "placing"};

static const char *clean(char *text)
{
    text_clean(text);
    return text;
}

int status_copies_fill(struct status_copies *c, const Control__Status *status,
                       struct torus_error *e)
{
    const size_t count = status->n_copy;

    c->copy = calloc(count > 0 ? count : 1, sizeof *c->copy);
    c->list = calloc(count > 0 ? count : 1, sizeof *c->list);
    if (c->copy == NULL || c->list == NULL)
        return fail_memory(e);
    for (size_t i = 0; i < count; i++) {
        const Control__Status__Copy *from = status->copy[i];
        c->copy[i] = (struct torus_copy_info){
            .id = clean(from->id),
            .asked = from->asker,
            .phase = from->phase < sizeof phases / sizeof *phases ? phases[from->phase] : "unknown",
            .files = from->files,
            .bytes = from->bytes,
            .bytes_of = from->bytes_of,
            .waits_for = clean(from->waits_for),
            .target = clean(from->target),
        };
        c->list[i] = &c->copy[i];
    }
    return 0;
}

void status_copies_free(struct status_copies *c)
{
    free(c->copy);
    free((void *)c->list);
    *c = (struct status_copies){0};
}
