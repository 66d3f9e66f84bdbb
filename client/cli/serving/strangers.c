#include "client/cli/serving/strangers.h"

#include <string.h>
#include <sys/socket.h>

static void remove_at(struct strangers *s, unsigned at)
{
    s->count--;
    memmove(&s->list[at], &s->list[at + 1], (s->count - at) * sizeof s->list[0]);
}

/* Libmicrohttpd then closes the connection. */
static void end_oldest(struct strangers *s)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(s->list[0].connection, MHD_CONNECTION_INFO_CONNECTION_FD);

    if (info != NULL)
        (void)shutdown(info->connect_fd, SHUT_RDWR);
    remove_at(s, 0);
}

void strangers_come(struct strangers *s, struct MHD_Connection *connection, int64_t now_ms)
{
    if (s->count == STRANGERS_MOST)
        end_oldest(s);
    s->list[s->count++] = (struct stranger){connection, now_ms};
}

void strangers_forget(struct strangers *s, const struct MHD_Connection *connection)
{
    for (unsigned i = 0; i < s->count; i++)
        if (s->list[i].connection == connection) {
            remove_at(s, i);
            return;
        }
}

int64_t strangers_expire(struct strangers *s, int64_t now_ms)
{
    while (s->count > 0 && s->list[0].since_ms + STRANGER_MS <= now_ms)
        end_oldest(s);
    return s->count > 0 ? s->list[0].since_ms + STRANGER_MS - now_ms : -1;
}
