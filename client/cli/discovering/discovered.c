#include "client/cli/discovering/discovered.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/terminal/json.h"
#include "proto/text_file.h"

#define SUFFIX 6 /* digits of the id in a name that is not unique */

static int compare_hosts(const void *a, const void *b)
{
    const struct discovered_host *x = a, *y = b;
    int order = strverscmp(x->report->name, y->report->name);

    return order != 0 ? order : host_id_compare(&x->report->host, &y->report->host);
}

/* Appends a part of the id to the name. */
static void make_unique(struct discovered_host *h)
{
    char name[REPORT_NAME_SIZE];

    (void)snprintf(name, sizeof name, "%.*s-%.*s", (int)(sizeof name - SUFFIX - 2), h->report->name,
                   SUFFIX, h->id);
    (void)strcpy(h->report->name, name);
}

int discovered_finish(struct discovered *d)
{
    bool *same = calloc(d->hosts + 1, sizeof *same);

    if (same == NULL)
        return -1;
    for (uint32_t i = 0; i < d->hosts; i++)
        (void)sodium_bin2hex(d->host[i].id, sizeof d->host[i].id, d->host[i].report->host.bytes,
                             HOST_ID_SIZE);
    for (uint32_t i = 0; i < d->hosts; i++)
        (void)strcpy(d->host[i].name, d->host[i].report->name);
    if (d->hosts > 1)
        qsort(d->host, d->hosts, sizeof d->host[0], compare_hosts);
    for (uint32_t i = 1; i < d->hosts; i++)
        if (strcmp(d->host[i].report->name, d->host[i - 1].report->name) == 0)
            same[i] = same[i - 1] = true;
    for (uint32_t i = 0; i < d->hosts; i++)
        if (same[i])
            make_unique(&d->host[i]);
    free(same);
    return 0;
}

void discovered_free(struct discovered *d)
{
    for (uint32_t i = 0; i < d->hosts; i++)
        free(d->host[i].report);
    free(d->host);
    *d = (struct discovered){0};
}

uint32_t discovered_find(const struct discovered *d, const struct host_id *host)
{
    for (uint32_t i = 0; i < d->hosts; i++)
        if (host_id_is(&d->host[i].report->host, host))
            return i;
    return UINT32_MAX;
}

uint32_t discovered_interface(const struct discovered_host *host, const char *name)
{
    const struct reported_interface *at = report_interface(host->report, name);

    return at != NULL ? (uint32_t)(at - host->report->interface) : UINT32_MAX;
}

bool discovered_is_certain(const struct discovered_host *h)
{
    return h->self || h->trust == TRUST_PROVED;
}

/* Whether the neighbour that a host hears hears the host, too. */
static bool discovered_is_mutual(const struct discovered *d, uint32_t host, uint32_t interface,
                                 const struct heard *heard)
{
    const struct report *report = d->host[host].report;
    uint32_t other = discovered_find(d, &heard->host), at;

    if (other == UINT32_MAX)
        return false;
    at = discovered_interface(&d->host[other], heard->interface);
    return at != UINT32_MAX && report_hears(&d->host[other].report->interface[at], &report->host,
                                            report->interface[interface].name);
}

static size_t count_heard(const struct discovered *d)
{
    size_t count = 0;

    for (uint32_t i = 0; i < d->hosts; i++)
        for (unsigned n = 0; n < d->host[i].report->interfaces; n++)
            count += d->host[i].report->interface[n].heards;
    return count;
}

/* Fills in the cable through which an interface hears a neighbour. Returns false if it is listed from its other
 * end, or the neighbour is not known. */
static bool cable_of(const struct discovered *d, uint32_t host, uint32_t interface,
                     const struct heard *heard, struct discovered_cable *cable)
{
    uint32_t other = discovered_find(d, &heard->host), at;

    if (other == UINT32_MAX)
        return false;
    at = discovered_interface(&d->host[other], heard->interface);
    if (at == UINT32_MAX)
        return false;
    *cable = (struct discovered_cable){other, at, host, interface,
                                       discovered_is_mutual(d, host, interface, heard)};
    return !cable->mutual || other < host || (other == host && at <= interface);
}

size_t discovered_cables(const struct discovered *d, struct discovered_cable **cables)
{
    size_t count = 0;

    *cables = calloc(count_heard(d) + 1, sizeof **cables);
    if (*cables == NULL)
        return 0;
    for (uint32_t i = 0; i < d->hosts; i++)
        for (uint32_t n = 0; n < d->host[i].report->interfaces; n++)
            for (unsigned k = 0; k < d->host[i].report->interface[n].heards; k++)
                if (cable_of(d, i, n, &d->host[i].report->interface[n].heard[k], &(*cables)[count]))
                    count++;
    return count;
}

/* --- as JSON --- */

/* --- writing --- */

static json_t *heard_json(const struct discovered *d, uint32_t host, uint32_t interface)
{
    const struct reported_interface *at = &d->host[host].report->interface[interface];
    json_t *list = json_array();

    for (unsigned i = 0; i < at->heards; i++) {
        uint32_t other = discovered_find(d, &at->heard[i].host);
        char id[HOST_ID_TEXT_SIZE];
        (void)sodium_bin2hex(id, sizeof id, at->heard[i].host.bytes, HOST_ID_SIZE);
        (void)json_array_append_new(
            list, json_pack("{s:s, s:s, s:s, s:b}", "host",
                            other != UINT32_MAX ? d->host[other].report->name : id, "id", id,
                            "interface", at->heard[i].interface, "mutual",
                            discovered_is_mutual(d, host, interface, &at->heard[i])));
    }
    return list;
}

static json_t *interface_json(const struct discovered *d, uint32_t host, uint32_t interface)
{
    const struct reported_interface *at = &d->host[host].report->interface[interface];
    char mac[3 * MAC_SIZE];

    (void)snprintf(mac, sizeof mac, "%02x:%02x:%02x:%02x:%02x:%02x", at->mac[0], at->mac[1],
                   at->mac[2], at->mac[3], at->mac[4], at->mac[5]);
    return json_pack("{s:s, s:s, s:I, s:o, s:b, s:b, s:b, s:o, s:b, s:o}", "name", at->name, "mac",
                     mac, "mtu", (json_int_t)at->mtu, "speed", json_known(at->speed_mbit), "up",
                     at->up, "carrier", at->carrier, "ipv6", at->ipv6, "member_of",
                     json_text(at->member_of), "unanswered", at->unanswered, "heard",
                     heard_json(d, host, interface));
}

static const char *trust_name(enum trust trust)
{
    return trust == TRUST_PROVED ? "proved" : trust == TRUST_OTHER_KEY ? "other key" : "open";
}

static json_t *host_json(const struct discovered *d, uint32_t host)
{
    const struct discovered_host *h = &d->host[host];
    const struct report *r = h->report;
    json_t *interfaces = json_array();

    for (uint32_t i = 0; i < r->interfaces; i++)
        (void)json_array_append_new(interfaces, interface_json(d, host, i));
    return json_pack("{s:s, s:s, s:s, s:s, s:o, s:b, s:b, s:o, s:o, s:o, s:b, s:o}", "name",
                     r->name, "id", h->id, "version", r->release, "trust", trust_name(h->trust),
                     "key", json_text(h->key), "self", h->self, "reachable", h->reachable,
                     "distance", h->reachable ? json_integer(h->distance) : json_null(), "dims",
                     json_text(r->dims), "rank", r->have_rank ? json_integer(r->rank) : json_null(),
                     "accepts_setups", r->accepts_setups, "interfaces", interfaces);
}

json_t *discovered_to_json(const struct discovered *d)
{
    json_t *list = json_array();
    int result = list == NULL;

    for (uint32_t i = 0; i < d->hosts; i++)
        result |= json_array_append_new(list, host_json(d, i));
    return json_checked(list, result);
}

/* --- reading --- */

static int wrong(struct error *e, const char *what)
{
    return error_set(e, ERROR_REFUSED, "this is not the output of torusctl discover --json: %s",
                     what);
}

/* Reads the id of a host; without one, as in files that people write, the host has one that follows from its name. */
static void read_id(struct host_id *id, const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, "id"));

    if (text == NULL || !host_id_parse(id, text))
        (void)crypto_generichash(id->bytes, HOST_ID_SIZE, (const uint8_t *)name, strlen(name), NULL,
                                 0);
}

static int read_heard(struct reported_interface *to, const json_t *list, struct error *e)
{
    json_t *item;
    size_t i;

    if (json_array_size(list) > DISCOVERY_HEARD_MOST)
        return wrong(e, "an interface has too many neighbours");
    json_array_foreach(list, i, item)
    {
        const char *host = json_string_value(json_object_get(item, "host"));
        const char *interface = json_string_value(json_object_get(item, "interface"));
        if (host == NULL || interface == NULL || !interface_name_is_valid(interface))
            return wrong(e, "an element of \"heard\" has no valid \"host\" and \"interface\"");
        read_id(&to->heard[i].host, item, host);
        (void)strcpy(to->heard[i].interface, interface);
    }
    to->heards = (unsigned)json_array_size(list);
    return 0;
}

/* Reads a value that may be missing: true by default. */
static bool read_flag(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);

    return value == NULL || json_is_true(value);
}

static int read_interface(struct reported_interface *to, const json_t *from, struct error *e)
{
    const char *name = json_string_value(json_object_get(from, "name"));
    const char *mac = json_string_value(json_object_get(from, "mac"));
    size_t size;

    if (name == NULL || !interface_name_is_valid(name))
        return wrong(e, "an interface has no valid \"name\"");
    (void)strcpy(to->name, name);
    if (mac != NULL)
        (void)sodium_hex2bin(to->mac, MAC_SIZE, mac, strlen(mac), ":", &size, NULL);
    to->mtu = (uint32_t)json_integer_value(json_object_get(from, "mtu"));
    to->speed_mbit = (uint32_t)json_integer_value(json_object_get(from, "speed"));
    to->up = read_flag(from, "up");
    to->carrier = read_flag(from, "carrier");
    to->ipv6 = read_flag(from, "ipv6");
    to->unanswered = json_is_true(json_object_get(from, "unanswered"));
    name = json_string_value(json_object_get(from, "member_of"));
    if (name != NULL && interface_name_is_valid(name))
        (void)strcpy(to->member_of, name);
    return read_heard(to, json_object_get(from, "heard"), e);
}

/* Reads what is not necessary. */
static void read_more(struct discovered_host *h, const json_t *from)
{
    const char *trust = json_string_value(json_object_get(from, "trust"));
    const char *key = json_string_value(json_object_get(from, "key"));
    const char *version = json_string_value(json_object_get(from, "version"));
    const char *dims = json_string_value(json_object_get(from, "dims"));
    const json_t *rank = json_object_get(from, "rank");

    if (trust != NULL && strcmp(trust, "open") != 0)
        h->trust = strcmp(trust, "proved") == 0 ? TRUST_PROVED : TRUST_OTHER_KEY;
    (void)snprintf(h->key, sizeof h->key, "%s", key != NULL ? key : "");
    (void)snprintf(h->report->release, sizeof h->report->release, "%s",
                   version != NULL ? version : "");
    (void)snprintf(h->report->dims, sizeof h->report->dims, "%s", dims != NULL ? dims : "");
    h->report->have_rank = json_is_integer(rank);
    h->report->rank = (uint32_t)json_integer_value(rank);
    h->self = json_is_true(json_object_get(from, "self"));
    h->reachable = read_flag(from, "reachable");
    h->distance = (uint32_t)json_integer_value(json_object_get(from, "distance"));
    h->report->accepts_setups = json_is_true(json_object_get(from, "accepts_setups"));
}

static int read_host(struct discovered_host *h, const json_t *from, struct error *e)
{
    const char *name = json_string_value(json_object_get(from, "name"));
    const json_t *interfaces = json_object_get(from, "interfaces");
    size_t count = json_array_size(interfaces);

    if (name == NULL || !host_name_is_valid(name))
        return wrong(e, "a host has no valid \"name\"");
    if (count > DISCOVERY_INTERFACES_MOST)
        return wrong(e, "a host has too many interfaces");
    h->report = report_new((unsigned)count);
    if (h->report == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for the hosts");
    (void)strcpy(h->report->name, name);
    read_id(&h->report->host, from, name);
    read_more(h, from);
    for (size_t i = 0; i < count; i++)
        if (read_interface(&h->report->interface[i], json_array_get(interfaces, i), e) != 0)
            return error_wrap(e, "host %s", name);
    return 0;
}

static int read_hosts(struct discovered *d, const json_t *value, struct error *e)
{
    const json_t *list = json_object_get(value, "hosts");
    const char *key = json_string_value(json_object_get(value, "key"));

    if (!json_is_array(list))
        return wrong(e, "there is no array \"hosts\"");
    d->host = calloc(json_array_size(list) + 1, sizeof d->host[0]);
    if (d->host == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for the hosts");
    (void)snprintf(d->key, sizeof d->key, "%s", key != NULL ? key : "");
    for (size_t i = 0; i < json_array_size(list); i++) {
        int result = read_host(&d->host[i], json_array_get(list, i), e);
        d->hosts += d->host[i].report != NULL;
        if (result != 0)
            return -1;
    }
    return discovered_finish(d) == 0 ? 0 : error_set(e, ERROR_MEMORY, "out of memory");
}

int discovered_read(struct discovered *d, const char *path, struct error *e)
{
    static const struct text_kind kind = {.name = "discovered hosts", .most = DISCOVERED_FILE_MOST};
    json_error_t error;
    json_t *value;
    char *text;
    size_t length;
    int result;

    *d = (struct discovered){0};
    if (text_file_read(path, &kind, &text, &length, e) != 0)
        return -1;
    value = json_loadb(text, length, 0, &error);
    free(text);
    if (value == NULL)
        return error_set(e, ERROR_REFUSED, "%s:%d: this is not JSON: %s", path, error.line,
                         error.text);
    result = read_hosts(d, value, e);
    json_decref(value);
    if (result == 0)
        return 0;
    discovered_free(d);
    return error_wrap(e, "%s", path);
}
