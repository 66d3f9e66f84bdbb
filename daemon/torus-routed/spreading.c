#include "daemon/torus-routed/spreading.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/lib/base/grow.h"
#include "daemon/lib/base/log.h"
#include "daemon/torus-routed/kernel/kernel.h"
#include "proto/elapsed.h"

int spreading_init(struct spreading *s, uint32_t nodes)
{
    *s = (struct spreading){.nodes = nodes};
    s->spread = calloc(nodes, sizeof *s->spread);
    s->calm = calloc(nodes, sizeof *s->calm);
    s->count = calloc(nodes, sizeof *s->count);
    return s->spread != NULL && s->calm != NULL && s->count != NULL ? 0 : -1;
}

void spreading_free(struct spreading *s)
{
    free(s->spread);
    free(s->calm);
    free(s->count);
    free(s->before);
    free(s->now);
    *s = (struct spreading){0};
}

static int compare(const void *a, const void *b)
{
    const struct spreading_connection *one = a, *other = b;

    return (one->cookie > other->cookie) - (one->cookie < other->cookie);
}

struct look {
    struct spreading *spreading;
    const struct host_addresses *hosts;
};

/* Returns the node with this address, or that many nodes as there are. */
static uint32_t find(const struct host_addresses *hosts, const struct ip *to)
{
    uint32_t node = 0;

    while (node < hosts->count && !ip_equal(to, &hosts->host[node].ip[to->family == AF_INET6]))
        node++;
    return node;
}

static void on_connection(void *context, const struct ip *to, uint64_t cookie, uint64_t sent)
{
    const struct look *l = context;
    struct spreading *s = l->spreading;
    const struct spreading_connection key = {cookie, sent}, *before;
    uint32_t node;

    if (sent < SPREADING_BYTES || (node = find(l->hosts, to)) == l->hosts->count)
        return;
    if (GROW(s->now, s->nows, s->room) != 0)
        return;
    s->now[s->nows++] = key;
    before = s->befores > 0 ? bsearch(&key, s->before, s->befores, sizeof key, compare) : NULL;
    if (s->looked && elapsed(before != NULL ? before->sent : 0, sent) >= SPREADING_BYTES)
        s->count[node]++;
}

/* The next look compares with what was counted. */
static void keep(struct spreading *s)
{
    struct spreading_connection *before = s->before;
    const size_t room = s->before_room;

    if (s->nows > 1)
        qsort(s->now, s->nows, sizeof *s->now, compare);
    s->before = s->now;
    s->befores = s->nows;
    s->before_room = s->room;
    s->now = before;
    s->room = room;
    s->nows = 0;
}

/* Returns how much the cables have sent since the last look. An interface that has replaced another one counts from now
 * on. */
static uint64_t take_sent(struct spreading *s, const uint64_t sent[TORUS_MAX_PORTS])
{
    uint64_t all = 0;

    for (unsigned port = 0; port < TORUS_MAX_PORTS; port++) {
        all += elapsed(s->passed[port], sent[port]);
        s->passed[port] = sent[port];
    }
    return all;
}

static bool judge(struct spreading *s)
{
    bool changed = false;

    for (uint32_t node = 0; node < s->nodes; node++) {
        bool spread = s->spread[node];
        s->calm[node] = s->count[node] >= 2               ? 0
                        : s->calm[node] < SPREADING_LOOKS ? (uint8_t)(s->calm[node] + 1)
                                                          : s->calm[node];
        if (s->count[node] >= 2 || s->unknown)
            spread = true;
        else if (s->calm[node] >= SPREADING_LOOKS)
            spread = false;
        changed |= spread != s->spread[node];
        s->spread[node] = spread;
    }
    return changed;
}

static int list(struct spreading *s, const struct host_addresses *hosts)
{
    struct look l = {s, hosts};
    int rc = connections_list(AF_INET, on_connection, &l);

    if (rc == 0 && hosts->v6)
        rc = connections_list(AF_INET6, on_connection, &l);
    keep(s);
    return rc;
}

bool spreading_look(struct spreading *s, const struct host_addresses *hosts,
                    const uint64_t sent[TORUS_MAX_PORTS])
{
    const bool busy = sent == NULL || take_sent(s, sent) >= 2 * SPREADING_BYTES;

    memset(s->count, 0, s->nodes * sizeof *s->count);
    if (busy) {
        const bool failed = list(s, hosts) != 0;
        if (failed && !s->unknown)
            log_warning("the kernel does not say what connections send (%s): each takes any of the "
                        "shortest paths",
                        strerror(errno));
        s->unknown = failed;
    }
    s->looked = busy && !s->unknown;
    return judge(s);
}
