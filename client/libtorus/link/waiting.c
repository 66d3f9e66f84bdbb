#include "client/libtorus/link/waiting.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/libtorus/common/clock.h"
#include "client/libtorus/common/fail.h"
#include "proto/notices.h"
#include "proto/text.h"

#define CHANGE_MS 1000 /* interval between lines while the list of nodes changes */

void waiting_begin(struct waiting *w, const char *group)
{
    *w = (struct waiting){.wanted = notices_wanted(), .group = group, .began_ms = clock_ms()};
}

void waiting_update(struct waiting *w, uint32_t count, const char *list)
{
    w->changed |= count != w->count || strcmp(list, w->list) != 0;
    w->count = count;
    copy_text(w->list, sizeof w->list, list);
}

static int64_t due_ms(const struct waiting *w)
{
    if (w->printed_ms == 0)
        return w->began_ms + NOTICE_FIRST_MS;
    return w->printed_ms + (w->changed ? CHANGE_MS : NOTICE_AGAIN_MS);
}

int waiting_pause(const struct waiting *w)
{
    int64_t left = due_ms(w) - clock_ms();

    if (!w->wanted)
        return -1;
    return left > 0 ? (int)left : 0;
}

/* dprintf() writes the line with one write(), so that lines of several programs on a terminal do not mix. */
void waiting_print(struct waiting *w)
{
    int64_t now = clock_ms();
    char name[80],
        whom[sizeof w->list + 32] = "other nodes ('torusctl status' at node 0 shows which)";

    if (!w->wanted || now < due_ms(w))
        return;
    if (w->count > 0)
        (void)snprintf(whom, sizeof whom, "%s %s to open it",
                       text_plural(w->count, "node", "nodes"), w->list);
    (void)dprintf(STDERR_FILENO, "libtorus: group \"%s\": waiting for %s, %" PRId64 " s so far\n",
                  text_printable(name, sizeof name, w->group), whom, (now - w->began_ms) / 1000);
    w->printed_ms = now;
    w->changed = false;
}
