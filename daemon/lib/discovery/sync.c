#include <stdlib.h>

#include "daemon/lib/discovery/internal.h"
#include "proto/borrowed.h"
#include "proto/elapsed.h"
#include "proto/unpack.h"

#define UNFRAGMENTED 1200u /* bytes that fit into one packet on every IPv6 link */

void packet_send(struct discovery *d, unsigned interface, const struct discovery_address *to,
                 Discovery__Packet *packet)
{
    uint8_t small[UNFRAGMENTED + 64], *bytes = small;
    size_t size;

    packet->version = DISCOVERY_VERSION;
    size = discovery__packet__get_packed_size(packet);
    if (size > DISCOVERY_PACKET_MOST)
        return;
    if (size > sizeof small)
        bytes = malloc(size);
    if (bytes == NULL)
        return; /* like a lost packet */
    (void)discovery__packet__pack(packet, bytes);
    d->io.send(d->io.context, interface, to, bytes, size);
    if (bytes != small)
        free(bytes);
}

/* Reports that are sent together, as many in each packet as fit without fragments. Zero-initialise. */
struct report_batch {
    unsigned interface;
    const struct discovery_address *to;
    ProtobufCBinaryData list[16];
    unsigned count;
    size_t bytes;
};

/* Sends the rest. */
static void report_batch_send(struct discovery *d, struct report_batch *b)
{
    Discovery__Packet packet = DISCOVERY__PACKET__INIT;
    Discovery__Reports reports = DISCOVERY__REPORTS__INIT;

    if (b->count == 0)
        return;
    reports.n_reports = b->count;
    reports.reports = b->list;
    packet.kind_case = DISCOVERY__PACKET__KIND_REPORTS;
    packet.reports = &reports;
    packet_send(d, b->interface, b->to, &packet);
    b->count = 0;
    b->bytes = 0;
}

/* Adds the report of a host, and sends what does not fit into the packet with it. */
static void report_batch_add(struct discovery *d, struct report_batch *b,
                             const struct host_entry *h)
{
    if (b->count == sizeof b->list / sizeof b->list[0] ||
        (b->count > 0 && b->bytes + h->packed_size > UNFRAGMENTED))
        report_batch_send(d, b);
    b->list[b->count++] = borrowed(h->packed, h->packed_size);
    b->bytes += h->packed_size + 4;
}

#define KNOWN_MOST 40u   /* hosts in one summary: about a kilobyte */
#define WANTED_MOST 60u  /* hosts in one Want */
#define ANSWERS_MOST 64u /* reports that one summary or Want brings */
#define SIGNED_UNPACKED_MOST (2u * REPORT_BYTES_MOST)

bool sync_allowed(struct discovery *d, struct own_interface *at)
{
    return allowance_take(&at->allowance, discovery_now(d), SYNC_PACKET, SYNC_ALLOWANCE);
}

bool sync_may_pass_on(struct discovery *d, struct own_interface *at)
{
    return allowance_take(&at->allowance, discovery_now(d), 2 * SYNC_PACKET, SYNC_ALLOWANCE);
}

/* --- sending --- */

/* Passes a report on to all neighbours. `from` (may be NULL) is the interface that has brought it: a single
 * neighbour there has it. */
static void pass_on(struct discovery *d, const struct host_entry *h,
                    const struct own_interface *from)
{
    for (unsigned i = 0; i < d->interfaces; i++) {
        const struct own_interface *to = &d->interface[i];
        struct report_batch batch = {.interface = to->state.index};
        if (to->neighbours == 0 || (to == from && to->neighbours == 1))
            continue;
        report_batch_add(d, &batch, h);
        report_batch_send(d, &batch);
    }
}

void sync_send_own(struct discovery *d)
{
    const struct host_entry *own = database_find(&d->database, &d->own.host);

    if (own != NULL)
        pass_on(d, own, NULL);
}

static void send_want(struct discovery *d, const struct own_interface *at,
                      const struct discovery_address *to, ProtobufCBinaryData *list, size_t count)
{
    Discovery__Packet packet = DISCOVERY__PACKET__INIT;
    Discovery__Want want = DISCOVERY__WANT__INIT;

    if (count == 0)
        return;
    want.n_hosts = count;
    want.hosts = list;
    packet.kind_case = DISCOVERY__PACKET__KIND_WANT;
    packet.want = &want;
    packet_send(d, at->state.index, to, &packet);
}

void sync_ask(struct discovery *d, const struct own_interface *at,
              const struct discovery_address *to, const struct host_id *host)
{
    ProtobufCBinaryData list = borrowed(host->bytes, HOST_ID_SIZE);

    send_want(d, at, to, &list, 1);
}

/* Returns the id that follows. */
static struct host_id next_id(struct host_id id)
{
    for (unsigned i = HOST_ID_SIZE; i-- > 0;)
        if (++id.bytes[i] != 0)
            break;
    return id;
}

/* Sends a summary of the reachable hosts from index `begin` on. Returns the index after the last host. */
static uint32_t send_part(struct discovery *d, const struct own_interface *at,
                          const struct neighbour *n, uint32_t begin, struct host_id *first)
{
    Discovery__Packet packet = DISCOVERY__PACKET__INIT;
    Discovery__Summary summary = DISCOVERY__SUMMARY__INIT;
    Discovery__Known known[KNOWN_MOST], *list[KNOWN_MOST];
    struct host_id last;
    uint32_t i;

    for (i = begin; i < d->database.hosts && summary.n_known < KNOWN_MOST; i++) {
        const struct host_entry *h = d->database.host[i];
        if (!h->reachable)
            continue;
        Discovery__Known *k = list[summary.n_known] = &known[summary.n_known];
        summary.n_known++;
        discovery__known__init(k);
        k->host = borrowed(h->report->host.bytes, HOST_ID_SIZE);
        k->sequence = h->report->sequence;
    }
    memset(last.bytes, 0xff, sizeof last.bytes);
    if (i < d->database.hosts)
        last = d->database.host[i - 1]->report->host;
    summary.first = borrowed(first->bytes, HOST_ID_SIZE);
    summary.last = borrowed(last.bytes, HOST_ID_SIZE);
    summary.known = list;
    packet.kind_case = DISCOVERY__PACKET__KIND_SUMMARY;
    packet.summary = &summary;
    packet_send(d, at->state.index, &n->address, &packet);
    *first = next_id(last);
    return i;
}

void sync_compare(struct discovery *d, const struct own_interface *at, struct neighbour *n)
{
    const uint64_t now = discovery_now(d);
    struct host_id first = {{0}};
    uint32_t begin = 0;

    (void)database_refresh(&d->database, now);
    if (n->digest == d->database.digest || now < n->summary_due)
        return;
    n->summary_due = now + DISCOVERY_SUMMARY_PAUSE;
    do
        begin = send_part(d, at, n, begin, &first);
    while (begin < d->database.hosts);
}

/* --- reports --- */

/* The network has a later report of this host than this process has made: one of a previous process, whose clock was
 * ahead. The next own report gets a higher number. */
static void overtake(struct discovery *d, const Discovery__Signed *s, const struct report *report)
{
    if (report->sequence <= d->own.sequence || !signing_check(SIGNED_REPORT, s, &d->own.host))
        return;
    d->own.sequence = report->sequence;
    d->report_due = 0;
}

/* Reads the content of a Signed. Returns a report, or NULL: it is old, refused or invalid. */
static struct report *examine(struct discovery *d, struct own_interface *at,
                              const Discovery__Signed *s, enum trust *trust)
{
    struct error e;
    struct report *report;
    const struct host_entry *h;

    if (s->key.len != PUBLIC_KEY_SIZE || !sync_allowed(d, at))
        return NULL;
    report = report_read(s->content.data, s->content.len, &e);
    if (report == NULL)
        return NULL;
    *trust = signing_trust(&d->secrets, SIGNED_REPORT, s);
    if (host_id_is(&report->host, &d->own.host))
        overtake(d, s, report);
    h = database_find(&d->database, &report->host);
    if (h != NULL && discovery_now(d) < h->received_at + DISCOVERY_REPORT_SPACING) {
        free(report); /* perhaps a flood; if not, the next summaries bring the report */
        return NULL;
    }
    if (!host_id_is(&report->host, &d->own.host) &&
        database_judge(&d->database, &report->host, report->sequence, *trust) == REPORT_NEW &&
        signing_check(SIGNED_REPORT, s, &report->host))
        return report;
    free(report);
    return NULL;
}

/* Stores the report in a packed Signed, if it is new. Returns its host's entry, or NULL. */
static struct host_entry *take_report(struct discovery *d, struct own_interface *at,
                                      const ProtobufCBinaryData *packed)
{
    Discovery__Signed *s = unpack_bounded(&discovery__signed__descriptor, packed->data, packed->len,
                                          SIGNED_UNPACKED_MOST);
    struct host_entry *stored = NULL;
    struct report *report;
    enum trust trust;

    if (s == NULL)
        return NULL;
    report = examine(d, at, s, &trust);
    if (report != NULL) {
        const struct host_id host = report->host;
        uint8_t *copy = malloc(packed->len);
        if (copy == NULL) {
            free(report);
        } else {
            memcpy(copy, packed->data, packed->len);
            if (database_store(&d->database, report, copy, packed->len, s, trust,
                               discovery_now(d)) == 0)
                stored = database_find(&d->database, &host);
        }
    }
    unpack_free(s);
    return stored;
}

void sync_take_reports(struct discovery *d, struct own_interface *at,
                       const Discovery__Reports *reports)
{
    struct host_id taken[ANSWERS_MOST];
    unsigned count = 0;

    (void)database_refresh(&d->database, discovery_now(d));
    for (size_t i = 0; i < reports->n_reports && count < ANSWERS_MOST; i++) {
        const struct host_entry *h = take_report(d, at, &reports->reports[i]);
        if (h != NULL)
            taken[count++] = h->report->host;
    }
    if (count == 0)
        return;
    d->expiry_due = 0;
    (void)database_refresh(&d->database, discovery_now(d));
    for (unsigned i = 0; i < count; i++) {
        const struct host_entry *h = database_find(&d->database, &taken[i]);
        if (h != NULL && h->reachable)
            pass_on(d, h, at);
    }
}

/* --- questions --- */

/* Returns the number of the host's report that the sender has, or 0 if it has no report of the host. */
static uint64_t number_in(const Discovery__Summary *summary, const struct host_id *host)
{
    for (size_t i = 0; i < summary->n_known; i++)
        if (memcmp(summary->known[i]->host.data, host->bytes, HOST_ID_SIZE) == 0)
            return summary->known[i]->sequence;
    return 0;
}

static bool summary_is_valid(const Discovery__Summary *summary)
{
    if (summary->n_known > KNOWN_MOST || summary->first.len != HOST_ID_SIZE ||
        summary->last.len != HOST_ID_SIZE)
        return false;
    for (size_t i = 0; i < summary->n_known; i++)
        if (summary->known[i]->host.len != HOST_ID_SIZE)
            return false;
    return true;
}

void sync_take_summary(struct discovery *d, struct own_interface *at,
                       const struct discovery_address *from, const Discovery__Summary *summary)
{
    ProtobufCBinaryData wanted[KNOWN_MOST];
    struct report_batch batch = {.interface = at->state.index, .to = from};
    struct host_id first, last, host;
    unsigned answers = 0;
    size_t wants = 0;

    if (!summary_is_valid(summary) || !sync_allowed(d, at))
        return;
    (void)database_refresh(&d->database, discovery_now(d));
    (void)host_id_read(&first, summary->first.data, summary->first.len);
    (void)host_id_read(&last, summary->last.data, summary->last.len);
    for (size_t i = 0; i < summary->n_known; i++) {
        const Discovery__Known *k = summary->known[i];
        const struct host_entry *h;
        (void)host_id_read(&host, k->host.data, k->host.len);
        h = database_find(&d->database, &host);
        if (h == NULL || h->report->sequence < k->sequence)
            wanted[wants++] = k->host;
    }
    send_want(d, at, from, wanted, wants);
    for (uint32_t i = 0; i < d->database.hosts && answers < ANSWERS_MOST; i++) {
        const struct host_entry *h = d->database.host[i];
        if (h->reachable && host_id_compare(&h->report->host, &first) >= 0 &&
            host_id_compare(&h->report->host, &last) <= 0 &&
            h->report->sequence > number_in(summary, &h->report->host)) {
            report_batch_add(d, &batch, h);
            answers++;
        }
    }
    report_batch_send(d, &batch);
}

void sync_take_want(struct discovery *d, struct own_interface *at,
                    const struct discovery_address *from, const Discovery__Want *want)
{
    struct report_batch batch = {.interface = at->state.index, .to = from};
    struct host_id host;

    if (want->n_hosts > WANTED_MOST || !sync_allowed(d, at))
        return;
    for (size_t i = 0; i < want->n_hosts; i++) {
        const struct host_entry *h = host_id_read(&host, want->hosts[i].data, want->hosts[i].len)
                                         ? database_find(&d->database, &host)
                                         : NULL;
        if (h == NULL)
            continue;
        report_batch_add(d, &batch, h);
        if (host_id_is(&host, &d->own.host))
            at->hello_due = 0; /* the sender has heard a hello that it could not check */
    }
    report_batch_send(d, &batch);
}
