#include "daemon/torusd-discover/hosts_reply.h"

#include <stdlib.h>

#include "daemon/lib/discovery/times.h"
#include "proto/borrowed.h"
#include "proto/discovery.pb-c.h"
#include "proto/elapsed.h"
#include "proto/frame.h"

_Static_assert((int)TRUST_PROVED == (int)DISCOVERY__TRUST__PROVED &&
                   (int)TRUST_OTHER_KEY == (int)DISCOVERY__TRUST__OTHER_KEY,
               "the numbers of enum trust");

/* The messages of all hosts. */
struct host_messages {
    Discovery__Host *message;
    Discovery__Host **list;
    uint8_t **report; /* packed */
    size_t count;
};

static void free_messages(struct host_messages *m)
{
    for (size_t i = 0; i < m->count; i++)
        free(m->report[i]);
    free(m->message);
    free(m->list);
    free(m->report);
}

/* Fills the messages. Returns 0, or -1 if there is no memory. */
static int fill(struct host_messages *m, const struct database *database)
{
    m->message = calloc(database->hosts + 1, sizeof m->message[0]);
    m->list = calloc(database->hosts + 1, sizeof(Discovery__Host *));
    m->report = calloc(database->hosts + 1, sizeof m->report[0]);
    if (m->message == NULL || m->list == NULL || m->report == NULL)
        return -1;
    for (uint32_t i = 0; i < database->hosts; i++) {
        const struct host_entry *h = database->host[i];
        Discovery__Host *to = m->list[i] = &m->message[i];
        size_t size;
        discovery__host__init(to);
        m->report[i] = report_pack(h->report, &size);
        m->count++;
        if (m->report[i] == NULL)
            return -1;
        to->report = borrowed(m->report[i], size);
        to->trust = (Discovery__Trust)h->trust;
        if (h->has_key_id)
            to->key_id = borrowed(h->key_id, KEY_ID_SIZE);
        to->self = host_id_is(&h->report->host, &database->own);
        to->reachable = h->reachable;
        to->distance = h->reachable ? h->distance : 0;
    }
    return 0;
}

uint8_t *hosts_reply_pack(struct discovery *d, const char *setups, uint64_t now, size_t *size)
{
    const struct database *database = discovery_database(d);
    const struct secrets *secrets = discovery_secrets(d);
    Discovery__Reply reply = DISCOVERY__REPLY__INIT;
    Discovery__Hosts hosts = DISCOVERY__HOSTS__INIT;
    struct host_messages messages = {0};
    uint64_t quiet = elapsed(database->changed_at, now) / MILLISECONDS;
    uint8_t *frame = NULL;

    if (fill(&messages, database) == 0) {
        hosts.n_hosts = database->hosts;
        hosts.hosts = messages.list;
        hosts.digest = database->picture;
        hosts.quiet_ms = quiet < UINT32_MAX ? (uint32_t)quiet : UINT32_MAX;
        if (secrets->count > 0)
            hosts.key_id = borrowed(secrets->key[0].id, KEY_ID_SIZE);
        if (setups != NULL)
            hosts.setup_socket = borrowed_text(setups);
        reply.kind_case = DISCOVERY__REPLY__KIND_HOSTS;
        reply.hosts = &hosts;
        if (discovery__reply__get_packed_size(&reply) <= FRAME_MAX_REPLY)
            frame = frame_pack(&reply.base, size);
    }
    free_messages(&messages);
    return frame;
}
