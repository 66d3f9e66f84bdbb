#include "daemon/torusd/router/ports/turned_away.h"

#include <stdio.h>
#include <string.h>

#include "daemon/lib/base/log.h"
#include "daemon/torusd/router/record/router_record.h"
#include "daemon/torusd/router/record/view.h"
#include "proto/text.h"

#define TURNED_AWAY_TIME (10 * SECONDS)
#define TURNED_AWAY_LOGGED 16u /* connections that are logged one by one in TURNED_AWAY_TIME */

/* Logs a refused connection that this node has not dialled. Because strangers may make any number of them, a
 * reason is logged when it is new, and only a few connections are logged in TURNED_AWAY_TIME. */
void turned_away_note(struct router *r, unsigned i, const char *address, const char *reason)
{
    struct port *port = &r->port[i];
    struct turned_away *t = &port->turned_away;

    if (port->link == NULL)
        (void)snprintf(port->reason, sizeof port->reason, "%s", reason);
    if (r->stopping)
        return;
    if (t->since == ROUTER_NEVER) {
        t->since = router_now(r);
        t->logged = t->others = 0;
    }
    if (t->logged < TURNED_AWAY_LOGGED && strcmp(t->last, reason) != 0) {
        char name[TORUS_PORT_NAME_SIZE];
        t->logged++;
        log_warning("port %s: a connection that is not from the neighbour was rejected: %s: %s",
                    torus_port_name(r->torus, r->rank, i, name), address, reason);
    } else {
        t->others++;
    }
    (void)snprintf(t->last, sizeof t->last, "%s", reason);
}

uint64_t turned_away_deadline(const struct port *port)
{
    const struct turned_away *t = &port->turned_away;

    return t->since == ROUTER_NEVER ? ROUTER_NEVER : t->since + TURNED_AWAY_TIME;
}

void turned_away_tell(struct router *r, unsigned i, uint64_t now)
{
    struct turned_away *t = &r->port[i].turned_away;
    char name[TORUS_PORT_NAME_SIZE];

    if (now < turned_away_deadline(&r->port[i]))
        return;
    /* A misconfigured neighbour tries again every two seconds, which is not worth a line each time. */
    if (t->others < TURNED_AWAY_LOGGED) {
        t->since = ROUTER_NEVER;
        return;
    }
    log_warning("port %s: %u more %s rejected in %d s, the last one: %s",
                torus_port_name(r->torus, r->rank, i, name), t->others,
                text_plural(t->others, "connection that is not from the neighbour was",
                            "connections that are not from the neighbour were"),
                (int)(TURNED_AWAY_TIME / SECONDS), t->last);
    /* From now on connections are only counted, until few arrive for a while. */
    t->since = now;
    t->logged = TURNED_AWAY_LOGGED;
    t->others = 0;
}
