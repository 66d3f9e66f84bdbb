#include "discovery_world.h"

#include "tests/support/cmocka.h"

#define DELAY (100 * MILLISECONDS / 1000)

static uint64_t draw(struct world *w)
{
    w->random ^= w->random << 13;
    w->random ^= w->random >> 7;
    w->random ^= w->random << 17;
    return w->random;
}

/* It takes long to make keys. */
static struct {
    bool made;
    struct identity identity;
    uint8_t opening[SEALING_KEY_SIZE];
} keys[256];

const struct identity *world_identity(unsigned host)
{
    const uint8_t seed[SEED_SIZE] = {(uint8_t)host, 1};

    if (!keys[host].made)
        identity_make(&keys[host].identity, seed, keys[host].opening);
    keys[host].made = true;
    return &keys[host].identity;
}

struct host_id world_id(unsigned host)
{
    return world_identity(host)->id;
}

static struct discovery_address address_of(unsigned host, unsigned port)
{
    return (struct discovery_address){{0xfe, 0x80, [13] = (uint8_t)port, [15] = (uint8_t)host}};
}

/* --- what discovery calls --- */

static uint64_t io_now(void *context)
{
    return ((struct world_host *)context)->world->now;
}

static void io_random(void *context, void *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        ((uint8_t *)bytes)[i] = (uint8_t)(draw(((struct world_host *)context)->world) >> 24);
}

static void deliver_later(struct world *w, unsigned host, unsigned port,
                          const struct discovery_address *from, const uint8_t *bytes, size_t size)
{
    struct world_packet *p = malloc(sizeof *p + size);

    assert_non_null(p);
    *p = (struct world_packet){NULL, w->now + DELAY, host, port, *from, size};
    memcpy(p->bytes, bytes, size);
    *w->last = p;
    w->last = &p->next;
}

static void io_send(void *context, unsigned interface, const struct discovery_address *to,
                    const uint8_t *bytes, size_t size)
{
    const struct world_host *from = context;
    struct world *w = from->world;
    const unsigned port = interface - 1;
    const struct discovery_address own = address_of(from->number, port);

    w->sent++;
    w->bytes_sent += size;
    if (from->segment[port] == WORLD_NO_SEGMENT)
        return;
    for (unsigned h = 0; h < w->hosts; h++)
        for (unsigned p = 0; p < w->ports; p++) {
            const struct discovery_address there = address_of(h, p);
            if (w->host[h].segment[p] == from->segment[port] && (h != from->number || p != port) &&
                (to == NULL || memcmp(to, &there, sizeof there) == 0) &&
                (double)(draw(w) % 100000) >= w->loss * 100000)
                deliver_later(w, h, p, &own, bytes, size);
        }
}

/* As torusd-setup does it. */
static void io_apply(void *context, const uint8_t id[SETUP_ID_SIZE], const struct host_id *from,
                     const uint8_t *sealed, size_t size)
{
    struct world_host *h = context;
    const struct setup_frame frame = {id, from, &world_identity(h->number)->id, h->nonce};
    struct opener opener = {.secrets = h->secrets, .open = !h->closed};
    struct opened_setup opened;

    assert_false(h->runs || h->refuses);
    memcpy(opener.opening_key, keys[h->number].opening, SEALING_KEY_SIZE);
    (void)error_set(&h->refusal, ERROR_REFUSED, "a replay");
    h->refuses = memcmp(h->last_id, id, SETUP_ID_SIZE) == 0 ||
                 open_setup(&frame, &opener, sealed, size, &opened, &h->refusal) != 0;
    if (h->refuses)
        return;
    memcpy(h->last_id, id, SETUP_ID_SIZE);
    free(h->setup);
    h->setup = opened.bytes;
    h->setup_size = opened.size;
    memcpy(h->reply_key, opened.reply_key, REPLY_KEY_SIZE);
    h->applied = opened.apply;
    h->runs = true;
    h->runs_count++;
}

static void refuse(struct world_host *h)
{
    const struct setup_end end = {.e = h->refusal};

    if (!h->refuses || h->discovery == NULL)
        return;
    h->refuses = false;
    discovery_setup_ended(h->discovery, &end);
}

void world_command_ends(struct world *w, unsigned host, uint32_t status, const char *output)
{
    struct world_host *h = &w->host[host];
    const struct setup_answer answer = {
        .status = status, .output = (const uint8_t *)output, .size = strlen(output)};

    struct setup_end end = {0};
    uint8_t *sealed = seal_result(h->reply_key, &answer, &end.size);

    assert_true(h->runs);
    assert_non_null(sealed);
    end.sealed = sealed;
    h->runs = false;
    discovery_setup_ended(h->discovery, &end);
    free(sealed);
}

/* --- hosts and cables --- */

void world_begin(struct world *w, unsigned hosts, unsigned ports, uint64_t seed)
{
    *w = (struct world){.now = SECONDS, .random = seed * 2 + 1, .hosts = hosts, .ports = ports};
    w->last = &w->first;
    for (unsigned h = 0; h < hosts; h++) {
        struct world_host *host = &w->host[h];
        *host = (struct world_host){.world = w, .number = h};
        for (unsigned p = 0; p < ports; p++) {
            host->segment[p] = WORLD_NO_SEGMENT;
            host->interface[p] =
                (struct interface_state){.index = p + 1,
                                         .mac = {2, [4] = (uint8_t)p, [5] = (uint8_t)h},
                                         .mtu = 1500,
                                         .up = true,
                                         .ipv6 = true};
            (void)snprintf(host->interface[p].name, IFNAMSIZ, "eth%u", p);
        }
    }
}

static void drop_packets(struct world_packet *p)
{
    while (p != NULL) {
        struct world_packet *next = p->next;
        free(p);
        p = next;
    }
}

void world_end(struct world *w)
{
    for (unsigned h = 0; h < w->hosts; h++) {
        if (w->host[h].discovery != NULL)
            world_stop(w, h, true);
        free(w->host[h].setup);
    }
    drop_packets(w->first);
    drop_packets(w->recorded);
}

/* Says what torusd-setup says. */
static void tell(struct world_host *h)
{
    struct secrets derived = {.count = h->secrets.count};

    for (unsigned i = 0; i < derived.count; i++)
        discovery_key_make(&derived.key[i], &h->secrets.key[i]);
    discovery_set_secrets(h->discovery, &derived);
    discovery_set_setups(h->discovery, h->secrets.count > 0 || !h->closed, h->nonce);
}

void world_start(struct world *w, unsigned host)
{
    struct world_host *h = &w->host[host];
    char name[REPORT_NAME_SIZE];
    struct discovery_setup setup = {
        .io = {io_now, io_random, io_send, h->accepts ? io_apply : NULL, h},
        .name = name,
        .release = "1.2.3",
        .identity = world_identity(host),
        .sequence = w->now / MILLISECONDS};

    (void)snprintf(name, sizeof name, "host%u", host);
    h->discovery = discovery_new(&setup);
    assert_non_null(h->discovery);
    io_random(h, h->nonce, sizeof h->nonce);
    tell(h);
    discovery_set_interfaces(h->discovery, h->interface, w->ports);
}

void world_start_all(struct world *w)
{
    for (unsigned h = 0; h < w->hosts; h++)
        world_start(w, h);
}

void world_stop(struct world *w, unsigned host, bool leaving)
{
    struct world_host *h = &w->host[host];
    uint32_t segment[WORLD_PORTS_MOST];

    memcpy(segment, h->segment, sizeof segment);
    for (unsigned p = 0; p < w->ports && !leaving; p++)
        h->segment[p] = WORLD_NO_SEGMENT; /* the last packets get lost */
    discovery_free(h->discovery);
    h->discovery = NULL;
    memcpy(h->segment, segment, sizeof segment);
}

void world_plug(struct world *w, unsigned host, unsigned port, uint32_t segment)
{
    struct world_host *h = &w->host[host];

    h->segment[port] = segment;
    h->interface[port].carrier = segment != WORLD_NO_SEGMENT;
    if (h->discovery != NULL)
        discovery_set_interfaces(h->discovery, h->interface, w->ports);
}

uint32_t world_cable(struct world *w, unsigned a, unsigned port_a, unsigned b, unsigned port_b)
{
    uint32_t segment = w->segments++;

    world_plug(w, a, port_a, segment);
    world_plug(w, b, port_b, segment);
    return segment;
}

void world_torus(struct world *w, unsigned rows, unsigned columns)
{
    for (unsigned r = 0; r < rows; r++)
        for (unsigned c = 0; c < columns; c++) {
            (void)world_cable(w, r * columns + c, 0, (r + 1) % rows * columns + c, 1);
            (void)world_cable(w, r * columns + c, 2, r * columns + (c + 1) % columns, 3);
        }
}

void world_set_key(struct world *w, unsigned host, unsigned number)
{
    uint8_t bytes[KEY_SIZE] = {(uint8_t)number};
    struct world_host *h = &w->host[host];

    h->secrets = (struct secrets){.count = number > 0};
    key_set(&h->secrets.key[0], bytes);
    if (h->discovery != NULL)
        tell(h);
}

/* --- time --- */

static void deliver_first(struct world *w)
{
    struct world_packet *p = w->first;
    struct world_host *h = &w->host[p->host];

    w->first = p->next;
    if (w->first == NULL)
        w->last = &w->first;
    if (h->discovery != NULL && !h->deaf)
        discovery_receive(h->discovery, p->interface + 1, &p->from, p->bytes, p->size);
    if (!w->record) {
        free(p);
        return;
    }
    p->next = w->recorded;
    w->recorded = p;
}

void world_replay(struct world *w, unsigned host)
{
    for (const struct world_packet *p = w->recorded; p != NULL; p = p->next)
        if (p->host == host)
            discovery_receive(w->host[host].discovery, p->interface + 1, &p->from, p->bytes,
                              p->size);
}

/* Does what is due next, if it is due until `end`. Returns false if nothing is. */
static bool step(struct world *w, uint64_t end)
{
    uint64_t at = w->first != NULL ? w->first->at : UINT64_MAX;
    unsigned next = w->hosts;

    for (unsigned h = 0; h < w->hosts; h++) {
        refuse(&w->host[h]);
        uint64_t due =
            w->host[h].discovery != NULL ? discovery_deadline(w->host[h].discovery) : UINT64_MAX;
        if (due < at) {
            at = due;
            next = h;
        }
    }
    if (at > end) {
        w->now = end;
        return false;
    }
    w->now = at > w->now ? at : w->now;
    if (next < w->hosts)
        discovery_tick(w->host[next].discovery);
    else
        deliver_first(w);
    return true;
}

void world_run(struct world *w, uint64_t nanoseconds)
{
    const uint64_t end = w->now + nanoseconds;

    while (step(w, end))
        continue;
}

bool world_run_until(struct world *w, bool (*done)(struct world *w), uint64_t nanoseconds)
{
    const uint64_t end = w->now + nanoseconds;

    while (w->now < end && !done(w))
        world_run(w, 250 * MILLISECONDS);
    return done(w);
}

/* --- what is known --- */

const struct host_entry *world_entry(struct world *w, unsigned at, unsigned of)
{
    const struct host_id id = world_id(of);

    return database_find(discovery_database(w->host[at].discovery), &id);
}

/* Whether a report names exactly the neighbours of a port. */
static bool port_is_known(const struct world *w, unsigned host, unsigned port,
                          const struct report *report)
{
    const struct reported_interface *at =
        report_interface(report, w->host[host].interface[port].name);
    unsigned expected = 0;

    if (at == NULL)
        return false;
    for (unsigned h = 0; h < w->hosts; h++)
        for (unsigned p = 0; p < w->ports; p++) {
            const struct host_id id = world_id(h);
            if (w->host[h].discovery == NULL || (h == host && p == port) ||
                w->host[host].segment[port] == WORLD_NO_SEGMENT ||
                w->host[h].segment[p] != w->host[host].segment[port])
                continue;
            expected++;
            if (!report_hears(at, &id, w->host[h].interface[p].name))
                return false;
        }
    return at->heards == expected;
}

bool world_is_known(struct world *w)
{
    for (unsigned at = 0; at < w->hosts; at++) {
        unsigned running = 0;
        if (w->host[at].discovery == NULL)
            continue;
        for (unsigned of = 0; of < w->hosts; of++) {
            const struct host_entry *h = world_entry(w, at, of);
            if (w->host[of].discovery == NULL)
                continue;
            running++;
            if (h == NULL || !h->reachable)
                return false;
            for (unsigned p = 0; p < w->ports; p++)
                if (!port_is_known(w, of, p, h->report))
                    return false;
        }
        if (discovery_database(w->host[at].discovery)->hosts != running)
            return false;
    }
    return true;
}
