#include "daemon/lib/host/past.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/lib/host/interface_list.h"

enum { RX_PACKETS, TX_PACKETS, RX_ERRORS, TX_ERRORS, RX_DROPPED, TX_DROPPED, COUNTERS };

_Static_assert((unsigned)COUNTERS <= LAST_HOUR_VALUES, "all counters are kept");

struct past *past_new(void)
{
    struct past *p = calloc(1, sizeof *p);

    if (p != NULL && pthread_mutex_init(&p->lock, NULL) != 0) {
        free(p);
        return NULL;
    }
    return p;
}

void past_free(struct past *p)
{
    if (p == NULL)
        return;
    (void)pthread_mutex_destroy(&p->lock);
    free(p);
}

static uint64_t now_ns(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_BOOTTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Returns the entry of an interface. If another interface had this name before, the entry is cleared first. Returns NULL if all
 * entries are in use. */
static struct past_interface *find(struct past *p, const char *name, int index)
{
    struct past_interface *found = NULL;

    for (unsigned i = 0; found == NULL && i < p->count; i++)
        if (strcmp(p->interface[i].name, name) == 0)
            found = &p->interface[i];
    if (found == NULL && p->count < PAST_INTERFACES)
        found = &p->interface[p->count++];
    if (found == NULL || (found->index == index && found->name[0] != '\0'))
        return found;
    *found = (struct past_interface){.index = index};
    (void)snprintf(found->name, sizeof found->name, "%s", name);
    return found;
}

static uint64_t note(struct past *p, const char *name, int index, const struct rtnl_link_stats64 *s,
                     uint64_t risen[LAST_HOUR_VALUES])
{
    const uint64_t value[LAST_HOUR_VALUES] = {
        [RX_PACKETS] = s->rx_packets, [TX_PACKETS] = s->tx_packets, [RX_ERRORS] = s->rx_errors,
        [TX_ERRORS] = s->tx_errors,   [RX_DROPPED] = s->rx_dropped, [TX_DROPPED] = s->tx_dropped};
    const uint64_t now = now_ns();
    uint64_t time = 0;

    (void)pthread_mutex_lock(&p->lock);
    struct past_interface *interface = find(p, name, index);
    if (interface != NULL) {
        last_hour_note(&interface->hour, now, value);
        time = last_hour_risen(&interface->hour, now, value, risen);
    }
    (void)pthread_mutex_unlock(&p->lock);
    return time;
}

static void note_interface(const struct interface *i, void *context)
{
    uint64_t risen[LAST_HOUR_VALUES];

    if (i->has_stats)
        (void)note(context, i->name, i->index, &i->stats, risen);
}

void past_note(struct past *p)
{
    (void)interfaces_list(note_interface, p);
}

void past_add(struct past *p, struct facts *f, const char *name, int index,
              const struct rtnl_link_stats64 *stats)
{
    static const char *const keys[COUNTERS] = {"rx_packets", "tx_packets", "rx_errors",
                                               "tx_errors",  "rx_dropped", "tx_dropped"};
    uint64_t risen[LAST_HOUR_VALUES];
    const uint64_t time = note(p, name, index, stats, risen);
    char fact[64];

    if (time == 0)
        return;
    (void)snprintf(fact, sizeof fact, "interface.%s.hour_ms", name);
    facts_add(f, fact, "%" PRIu64, time / 1000000 + 1);
    for (unsigned i = 0; i < COUNTERS; i++) {
        (void)snprintf(fact, sizeof fact, "interface.%s.hour_%s", name, keys[i]);
        facts_add(f, fact, "%" PRIu64, risen[i]);
    }
}
