#include "client/cli/survey/link_value.h"

#include "client/cli/terminal/json.h"

const char *link_security(const struct torus_link *l)
{
    if (l->state != TORUS_LINK_UP)
        return NULL;
    return l->encrypted ? "encrypted" : l->key[0] != '\0' ? "proved" : "open";
}

/* What the link has counted in the last hour; null: not known. */
static json_t *hour_value(const struct torus_link *l)
{
    json_t *hour;
    int r = 0;

    if (l->hour_ms == 0)
        return json_null();
    hour = json_object();
    r |= json_object_set_new(hour, "seconds", json_real((double)l->hour_ms / 1000));
    r |= json_object_set_new(hour, "tx_bytes", json_count(l->hour_tx_bytes));
    r |= json_object_set_new(hour, "retransmits", json_count(l->hour_retransmits));
    r |= json_object_set_new(hour, "connects", json_integer(l->hour_connects));
    if (r == 0)
        return hour;
    json_decref(hour);
    return NULL;
}

json_t *link_value(const struct torus_link *l)
{
    const bool up = l->state == TORUS_LINK_UP;
    json_t *link = json_object();
    int r = 0;

    r |= json_object_set_new(link, "port", json_string(l->name));
    r |= json_object_set_new(link, "neighbour",
                             l->neighbour != TORUS_RANK_NONE ? json_integer(l->neighbour)
                                                             : json_null());
    r |= json_object_set_new(link, "up", json_boolean(up));
    r |= json_object_set_new(link, "state", json_string(torus_link_state_name(l->state)));
    r |= json_object_set_new(link, "reason", json_string(l->reason));
    r |= json_object_set_new(link, "address", json_string(l->address));
    r |= json_object_set_new(link, "interface",
                             l->interface[0] != '\0' ? json_string(l->interface) : json_null());
    r |= json_object_set_new(link, "tx_bytes", json_count(l->tx_bytes));
    r |= json_object_set_new(link, "rx_bytes", json_count(l->rx_bytes));
    r |= json_object_set_new(link, "rtt_us", json_known(l->rtt_us));
    r |= json_object_set_new(link, "rate_bps", json_known(l->rate_bps));
    r |= json_object_set_new(link, "up_seconds",
                             up ? json_real((double)l->up_ms / 1000) : json_null());
    r |= json_object_set_new(link, "held_seconds",
                             l->state == TORUS_LINK_HELD ? json_real((double)l->held_ms / 1000)
                                                         : json_null());
    r |= json_object_set_new(link, "connects", json_integer(l->connects));
    r |= json_object_set_new(link, "security", up ? json_string(link_security(l)) : json_null());
    r |= json_object_set_new(link, "key", l->key[0] != '\0' ? json_string(l->key) : json_null());
    r |= json_object_set_new(link, "queue_bytes", json_count(l->queue_bytes));
    r |= json_object_set_new(link, "unacked_bytes", json_count(l->unacked_bytes));
    r |= json_object_set_new(link, "retransmits", json_integer(l->retransmits));
    r |= json_object_set_new(link, "mtu", json_known(l->mtu));
    r |= json_object_set_new(link, "last_hour", hour_value(l));
    if (r == 0)
        return link;
    json_decref(link);
    return NULL;
}
