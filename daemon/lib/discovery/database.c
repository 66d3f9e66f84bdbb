#include "daemon/lib/discovery/database.h"

#include <sodium.h>
#include <stdlib.h>

#include "daemon/lib/discovery/discovery.h"
#include "proto/unpack.h"

#define SIGNED_UNPACKED_MOST (2u * REPORT_BYTES_MOST)

void database_init(struct database *d, const struct host_id *own)
{
    *d = (struct database){.own = *own};
}

static void free_entry(struct host_entry *h)
{
    free(h->report);
    free(h->packed);
    free(h);
}

void database_free(struct database *d)
{
    for (uint32_t i = 0; i < d->hosts; i++)
        free_entry(d->host[i]);
    free(d->host);
    *d = (struct database){0};
}

/* Returns the index of the first host whose id is not smaller. */
static uint32_t place_of(const struct database *d, const struct host_id *host)
{
    uint32_t low = 0, high = d->hosts;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (host_id_compare(&d->host[middle]->report->host, host) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct host_entry *database_find(const struct database *d, const struct host_id *host)
{
    uint32_t at = place_of(d, host);

    return at < d->hosts && host_id_is(&d->host[at]->report->host, host) ? d->host[at] : NULL;
}

static void remove_at(struct database *d, uint32_t at)
{
    free_entry(d->host[at]);
    d->hosts--;
    memmove(&d->host[at], &d->host[at + 1], (d->hosts - at) * sizeof d->host[0]);
    d->stale = true;
}

/* Finds the host that makes room for another one: unreachable hosts first, then hosts without the cluster
 * key. DATABASE_NO_HOST: there is none. */
static uint32_t find_victim(const struct database *d, enum trust trust)
{
    uint32_t victim = DATABASE_NO_HOST;

    for (uint32_t i = 0; i < d->hosts; i++) {
        const struct host_entry *h = d->host[i];
        if (host_id_is(&h->report->host, &d->own) ||
            (h->trust == TRUST_PROVED && (h->reachable || trust != TRUST_PROVED)))
            continue;
        if (!h->reachable)
            return i;
        if (trust == TRUST_PROVED &&
            (victim == DATABASE_NO_HOST || h->distance > d->host[victim]->distance))
            victim = i;
    }
    return victim;
}

enum report_use database_judge(const struct database *d, const struct host_id *host,
                               uint64_t sequence, enum trust trust)
{
    const struct host_entry *h = database_find(d, host);

    if (h != NULL)
        return sequence > h->report->sequence ? REPORT_NEW : REPORT_OLD;
    return d->hosts < DATABASE_HOSTS_MOST || find_victim(d, trust) != DATABASE_NO_HOST
               ? REPORT_NEW
               : REPORT_REFUSED;
}

/* Makes room for one more host. Returns 0, or -1. */
static int make_room(struct database *d, enum trust trust)
{
    struct host_entry **larger;
    uint32_t victim;

    if (d->hosts >= DATABASE_HOSTS_MOST) {
        victim = find_victim(d, trust);
        if (victim == DATABASE_NO_HOST)
            return -1;
        remove_at(d, victim);
    }
    larger = realloc(d->host, (d->hosts + 1) * sizeof d->host[0]);
    if (larger == NULL)
        return -1;
    d->host = larger;
    return 0;
}

/* Finds or makes the entry of a host. Returns NULL if there is no room. */
static struct host_entry *entry_for(struct database *d, const struct report *report,
                                    enum trust trust, uint64_t now)
{
    struct host_entry *h = database_find(d, &report->host);
    uint32_t at;

    if (h != NULL)
        return h;
    h = calloc(1, sizeof *h);
    if (h == NULL || make_room(d, trust) != 0) {
        free(h);
        return NULL;
    }
    at = place_of(d, &report->host);
    memmove(&d->host[at + 1], &d->host[at], (d->hosts - at) * sizeof d->host[0]);
    d->host[at] = h;
    d->hosts++;
    h->lost_at = now;
    return h;
}

int database_store(struct database *d, struct report *report, uint8_t *packed, size_t packed_size,
                   const Discovery__Signed *signed_report, enum trust trust, uint64_t now)
{
    struct host_entry *h = entry_for(d, report, trust, now);

    if (h == NULL) {
        free(report);
        free(packed);
        return -1;
    }
    free(h->report);
    free(h->packed);
    h->report = report;
    h->packed = packed;
    h->packed_size = packed_size;
    memcpy(h->key, signed_report->key.data, PUBLIC_KEY_SIZE);
    h->has_key_id = signed_report->key_id.len == KEY_ID_SIZE;
    if (h->has_key_id)
        memcpy(h->key_id, signed_report->key_id.data, KEY_ID_SIZE);
    h->trust = trust;
    h->received_at = now;
    d->stale = true;
    return 0;
}

/* --- reachability --- */

/* Reaches the neighbours of a host, and puts them into the queue. Returns the new end of the queue. */
static uint32_t reach_neighbours(const struct database *d, struct host_entry *from,
                                 struct host_entry **queue, uint32_t end)
{
    for (unsigned i = 0; i < from->report->interfaces; i++) {
        const struct reported_interface *at = &from->report->interface[i];
        for (unsigned n = 0; n < at->heards; n++) {
            struct host_entry *to = database_find(d, &at->heard[n].host);
            const struct reported_interface *there;
            if (to == NULL || to->reachable)
                continue;
            there = report_interface(to->report, at->heard[n].interface);
            if (there == NULL || !report_hears(there, &from->report->host, at->name))
                continue;
            to->reachable = true;
            to->distance = from->distance + 1;
            to->gate = from->gate;
            (void)memcpy(to->gate_by, from->gate_by, sizeof to->gate_by);
            if (from->distance == 0) {
                to->gate = at->heard[n];
                (void)memcpy(to->gate_by, at->name, sizeof to->gate_by);
            }
            queue[end++] = to;
        }
    }
    return end;
}

/* Searches all hosts that can be reached, breadth first. Returns 0, or -1 if there is no memory. */
static int search(const struct database *d)
{
    struct host_entry *own = database_find(d, &d->own);
    struct host_entry **queue = calloc(d->hosts + 1, sizeof *queue);
    uint32_t end = 0;

    if (queue == NULL)
        return -1;
    for (uint32_t i = 0; i < d->hosts; i++)
        d->host[i]->reachable = false;
    if (own != NULL) {
        own->reachable = true;
        own->distance = 0;
        queue[end++] = own;
    }
    for (uint32_t i = 0; i < end; i++)
        end = reach_neighbours(d, queue[i], queue, end);
    free(queue);
    return 0;
}

/* Adds a report without its sequence number. */
static void add_picture(crypto_generichash_state *state, const struct host_entry *h)
{
    const struct report *r = h->report;

    (void)crypto_generichash_update(state, (const uint8_t *)r->name, strlen(r->name) + 1);
    (void)crypto_generichash_update(state, h->key_id, KEY_ID_SIZE);
    for (unsigned i = 0; i < r->interfaces; i++) {
        const struct reported_interface *at = &r->interface[i];
        const uint8_t flags[] = {at->up, at->carrier, at->ipv6, (uint8_t)at->heards};
        (void)crypto_generichash_update(state, (const uint8_t *)at->name, strlen(at->name) + 1);
        (void)crypto_generichash_update(state, flags, sizeof flags);
        for (unsigned n = 0; n < at->heards; n++) {
            (void)crypto_generichash_update(state, at->heard[n].host.bytes, HOST_ID_SIZE);
            (void)crypto_generichash_update(state, (const uint8_t *)at->heard[n].interface,
                                            strlen(at->heard[n].interface) + 1);
        }
    }
}

static uint64_t finish(crypto_generichash_state *state)
{
    uint64_t digest;

    _Static_assert(sizeof digest <= crypto_generichash_BYTES_MIN, "a part of the smallest digest");
    uint8_t bytes[crypto_generichash_BYTES_MIN];
    (void)crypto_generichash_final(state, bytes, sizeof bytes);
    memcpy(&digest, bytes, sizeof digest);
    return digest;
}

/* Computes both digests. Numbers are digested in the same order of bytes on all hosts. */
static void digest_all(struct database *d, uint64_t *picture)
{
    crypto_generichash_state reports, cables;

    (void)crypto_generichash_init(&reports, NULL, 0, crypto_generichash_BYTES_MIN);
    (void)crypto_generichash_init(&cables, NULL, 0, crypto_generichash_BYTES_MIN);
    for (uint32_t i = 0; i < d->hosts; i++) {
        const struct host_entry *h = d->host[i];
        uint8_t number[8];
        for (unsigned b = 0; b < sizeof number; b++)
            number[b] = (uint8_t)(h->report->sequence >> (8 * b));
        (void)crypto_generichash_update(&cables, h->report->host.bytes, HOST_ID_SIZE);
        add_picture(&cables, h);
        if (!h->reachable)
            continue;
        (void)crypto_generichash_update(&reports, h->report->host.bytes, HOST_ID_SIZE);
        (void)crypto_generichash_update(&reports, number, sizeof number);
    }
    d->digest = finish(&reports);
    *picture = finish(&cables);
}

bool database_refresh(struct database *d, uint64_t now)
{
    uint64_t picture;
    bool *before;

    if (!d->stale)
        return false;
    before = calloc(d->hosts + 1, sizeof *before);
    if (before == NULL)
        return false;
    for (uint32_t i = 0; i < d->hosts; i++)
        before[i] = d->host[i]->reachable;
    if (search(d) == 0) {
        d->stale = false;
        for (uint32_t i = 0; i < d->hosts; i++)
            if (before[i] && !d->host[i]->reachable)
                d->host[i]->lost_at = now;
    }
    free(before);
    digest_all(d, &picture);
    if (picture == d->picture)
        return false;
    d->picture = picture;
    d->changed_at = now;
    return true;
}

uint64_t database_expire(struct database *d, uint64_t now)
{
    uint64_t next = UINT64_MAX;

    for (uint32_t i = d->hosts; i-- > 0;) {
        const struct host_entry *h = d->host[i];
        uint64_t end = h->received_at + DISCOVERY_REPORT_LIFE;
        if (host_id_is(&h->report->host, &d->own))
            continue;
        if (!h->reachable && h->lost_at + DISCOVERY_LOST_LIFE < end)
            end = h->lost_at + DISCOVERY_LOST_LIFE;
        if (end <= now)
            remove_at(d, i);
        else if (end < next)
            next = end;
    }
    return next;
}

void database_trust_again(struct database *d, const struct secrets *secrets)
{
    for (uint32_t i = 0; i < d->hosts; i++) {
        struct host_entry *h = d->host[i];
        Discovery__Signed *s = unpack_bounded(&discovery__signed__descriptor, h->packed,
                                              h->packed_size, SIGNED_UNPACKED_MOST);
        if (s == NULL)
            continue; /* no memory: as before */
        h->trust = signing_trust(secrets, SIGNED_REPORT, s);
        unpack_free(s);
    }
    d->stale = true;
}
