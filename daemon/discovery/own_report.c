#include "daemon/discovery/own_report.h"

#include <stdlib.h>

/* Writes the state of an interface, and the neighbours there. */
static void fill(struct reported_interface *to, const struct own_interface *from)
{
    (void)strcpy(to->name, from->state.name);
    memcpy(to->mac, from->state.mac, MAC_SIZE);
    to->mtu = from->state.mtu;
    to->speed_mbit = from->state.speed_mbit;
    to->up = from->state.up;
    to->carrier = from->state.carrier;
    to->ipv6 = from->state.ipv6;
    (void)strcpy(to->member_of, from->state.member_of);
    to->unanswered = from->unanswered;
    to->heards = from->neighbours;
    for (unsigned n = 0; n < from->neighbours; n++)
        to->heard[n] = from->neighbour[n].from;
}

/* Returns a new report, or NULL if there is no memory. */
static struct report *make(const struct discovery *d)
{
    struct report *report = report_new(d->interfaces);

    if (report == NULL)
        return NULL;
    *report = d->own;
    report->interfaces = d->interfaces;
    for (unsigned i = 0; i < d->interfaces; i++)
        fill(&report->interface[i], &d->interface[i]);
    return report;
}

/* Returns the packed Signed with the report, or NULL if there is no memory. */
static uint8_t *sign(const struct discovery *d, const uint8_t *content, size_t content_size,
                     struct signed_parts *parts, Discovery__Signed *s, size_t *size)
{
    uint8_t *packed;

    signing_sign(&d->identity, &d->secrets, SIGNED_REPORT, content, content_size, parts, s);
    *size = discovery__signed__get_packed_size(s);
    packed = malloc(*size);
    if (packed != NULL)
        (void)discovery__signed__pack(s, packed);
    return packed;
}

void own_report_make(struct discovery *d)
{
    const uint64_t now = discovery_now(d);
    const enum trust trust = d->secrets.count > 0 ? TRUST_PROVED : TRUST_OPEN;
    Discovery__Signed s;
    struct signed_parts parts;
    struct report *report;
    uint8_t *content = NULL, *packed = NULL;
    size_t content_size, size;

    d->own.sequence++;
    d->report_due = now + DISCOVERY_REPORT_RENEWAL;
    report = make(d);
    if (report != NULL)
        content = report_pack(report, &content_size);
    if (content != NULL && content_size <= REPORT_BYTES_MOST)
        packed = sign(d, content, content_size, &parts, &s, &size);
    if (packed != NULL)
        (void)database_store(&d->database, report, packed, size, &s, trust, now);
    else
        free(report);
    free(content);
}
