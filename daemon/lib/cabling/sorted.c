#include "daemon/lib/cabling/sorted.h"

#include <stdlib.h>
#include <string.h>

/* A name and its place in the original. */
struct named {
    const char *name;
    uint32_t place;
};

static int by_name(const void *a, const void *b)
{
    const struct named *x = a, *y = b;
    int order = strverscmp(x->name, y->name);

    if (order != 0)
        return order;
    return x->place < y->place ? -1 : x->place > y->place;
}

static int check_interface(const struct cabling_input *in, const struct cabling_host *h,
                           const struct cabling_interface *i, struct error *e)
{
    if (i->name == NULL || i->name[0] == '\0')
        return error_set(e, ERROR_USAGE, "host %s: an interface has no name", h->name);
    if (i->heard_count > CABLING_HEARD_MOST)
        return error_set(e, ERROR_USAGE, "host %s, %s: more than %u interfaces are heard", h->name,
                         i->name, CABLING_HEARD_MOST);
    for (uint32_t k = 0; k < i->heard_count; k++)
        if (i->heard[k].host >= in->hosts ||
            i->heard[k].interface >= in->host[i->heard[k].host].interfaces)
            return error_set(e, ERROR_USAGE,
                             "host %s, %s: an interface that does not exist is heard", h->name,
                             i->name);
    if (in->wanted != NULL && h->rank != CABLING_NONE && i->port != -1 &&
        (i->port < 0 || (unsigned)i->port >= torus_ports(in->wanted) ||
         torus_neighbour(in->wanted, h->rank, (unsigned)i->port) == TORUS_NO_NODE))
        return error_set(e, ERROR_USAGE, "host %s, %s: no such port at rank %u", h->name, i->name,
                         h->rank);
    return 0;
}

static int check_host(const struct cabling_input *in, const struct cabling_host *h, struct error *e)
{
    uint64_t ports = 0;

    if (h->name == NULL || h->name[0] == '\0')
        return error_set(e, ERROR_USAGE, "a host has no name");
    if (h->interfaces > CABLING_INTERFACES_MOST)
        return error_set(e, ERROR_USAGE, "host %s has more than %u interfaces", h->name,
                         CABLING_INTERFACES_MOST);
    if (in->wanted != NULL && h->rank != CABLING_NONE && h->rank >= in->wanted->nodes)
        return error_set(e, ERROR_USAGE, "host %s: there is no rank %u among %u nodes", h->name,
                         h->rank, in->wanted->nodes);
    for (uint32_t i = 0; i < h->interfaces; i++) {
        if (check_interface(in, h, &h->interface[i], e) != 0)
            return -1;
        if (in->wanted == NULL || h->rank == CABLING_NONE || h->interface[i].port < 0)
            continue;
        if ((ports >> h->interface[i].port & 1) != 0)
            return error_set(e, ERROR_USAGE, "host %s: two interfaces have the port of %s", h->name,
                             h->interface[i].name);
        ports |= UINT64_C(1) << h->interface[i].port;
    }
    return 0;
}

static int check_ranks(const struct cabling_input *in, struct error *e)
{
    uint32_t *host;
    int result = 0;

    if (in->wanted == NULL)
        return 0;
    if (in->wanted->nodes > CABLING_HOSTS_MOST)
        return error_set(e, ERROR_USAGE, "%u nodes are wanted, more than %u", in->wanted->nodes,
                         CABLING_HOSTS_MOST);
    host = calloc(in->wanted->nodes, sizeof *host);
    if (host == NULL)
        return error_set(e, ERROR_MEMORY, "no memory for %u ranks", in->wanted->nodes);
    for (uint32_t i = 0; i < in->hosts && result == 0; i++) {
        uint32_t rank = in->host[i].rank;
        if (rank == CABLING_NONE)
            continue;
        if (host[rank] != 0)
            result = error_set(e, ERROR_USAGE, "hosts %s and %s both have rank %u",
                               in->host[host[rank] - 1].name, in->host[i].name, rank);
        host[rank] = i + 1;
    }
    free(host);
    return result;
}

static int check(const struct cabling_input *in, struct error *e)
{
    if (in->hosts > CABLING_HOSTS_MOST)
        return error_set(e, ERROR_USAGE, "%u hosts are more than %u", in->hosts,
                         CABLING_HOSTS_MOST);
    for (uint32_t i = 0; i < in->hosts; i++)
        if (check_host(in, &in->host[i], e) != 0)
            return -1;
    return check_ranks(in, e);
}

/* The places of the copy by the places of the original. */
struct places {
    uint32_t *host;      /* by host */
    uint32_t *first;     /* by host: the number of its first interface */
    uint32_t *interface; /* by that number */
};

/* Copies the interfaces of all hosts, and then what is heard there. */
static int copy_interfaces(struct sorted *s, const struct cabling_input *in, const struct places *p,
                           struct error *e)
{
    struct cabling_interface *interface = (struct cabling_interface *)s->input.host[0].interface;
    struct cabling_end *heard = (struct cabling_end *)interface[0].heard;
    struct named named[CABLING_INTERFACES_MOST];

    for (uint32_t h = 0; h < in->hosts; h++) {
        const struct cabling_host *from = &in->host[s->host[h]];
        for (uint32_t i = 0; i < from->interfaces; i++)
            named[i] = (struct named){from->interface[i].name, i};
        qsort(named, from->interfaces, sizeof named[0], by_name);
        for (uint32_t i = 0; i < from->interfaces; i++) {
            if (i > 0 && strcmp(named[i].name, named[i - 1].name) == 0)
                return error_set(e, ERROR_USAGE, "host %s has two interfaces %s", from->name,
                                 named[i].name);
            s->interface[s->first[h] + i] = named[i].place;
            p->interface[p->first[s->host[h]] + named[i].place] = i;
        }
    }
    for (uint32_t h = 0; h < in->hosts; h++)
        for (uint32_t n = s->first[h]; n < s->first[h + 1]; n++) {
            interface[n] = in->host[s->host[h]].interface[s->interface[n]];
            for (uint32_t k = 0; k < interface[n].heard_count; k++) {
                struct cabling_end end = interface[n].heard[k];
                heard[k] = (struct cabling_end){p->host[end.host],
                                                p->interface[p->first[end.host] + end.interface]};
            }
            interface[n].heard = heard;
            heard += interface[n].heard_count;
        }
    return 0;
}

static int copy_hosts(struct sorted *s, const struct cabling_input *in, struct places *p,
                      struct named *named, struct error *e)
{
    struct cabling_host *host = (struct cabling_host *)s->input.host;
    struct cabling_interface *interface = (struct cabling_interface *)host[0].interface;
    uint32_t number = 0;

    for (uint32_t h = 0; h < in->hosts; h++)
        named[h] = (struct named){in->host[h].name, h};
    qsort(named, in->hosts, sizeof named[0], by_name);
    for (uint32_t h = 0; h < in->hosts; h++) {
        if (h > 0 && strcmp(named[h].name, named[h - 1].name) == 0)
            return error_set(e, ERROR_USAGE, "two hosts have the name %s", named[h].name);
        s->host[h] = named[h].place;
        p->host[named[h].place] = h;
        host[h] = in->host[named[h].place];
        host[h].interface = interface + number;
        s->first[h] = number;
        p->first[named[h].place] = number;
        number += host[h].interfaces;
        s->first[h + 1] = number;
    }
    return copy_interfaces(s, in, p, e);
}

int sorted_make(struct sorted *s, const struct cabling_input *in, struct error *e)
{
    size_t interfaces = 1, heard = 1, hosts = (size_t)in->hosts + 1;
    struct places p;
    struct named *named;
    struct cabling_host *host;
    struct cabling_interface *interface;
    int result = -1;

    *s = (struct sorted){.input = *in};
    if (check(in, e) != 0)
        return -1;
    for (uint32_t h = 0; h < in->hosts; h++) {
        interfaces += in->host[h].interfaces;
        for (uint32_t i = 0; i < in->host[h].interfaces; i++)
            heard += in->host[h].interface[i].heard_count;
    }
    p = (struct places){calloc(hosts, sizeof(uint32_t)), calloc(hosts, sizeof(uint32_t)),
                        calloc(interfaces, sizeof(uint32_t))};
    named = calloc(hosts, sizeof *named);
    s->host = calloc(hosts, sizeof *s->host);
    s->first = calloc(hosts, sizeof *s->first);
    s->interface = calloc(interfaces, sizeof *s->interface);
    s->input.host = host = calloc(hosts, sizeof *host);
    interface = calloc(interfaces, sizeof *interface);
    if (host != NULL && interface != NULL) {
        host[0].interface = interface;
        interface[0].heard = calloc(heard, sizeof *interface[0].heard);
    }
    if (p.host == NULL || p.first == NULL || p.interface == NULL || named == NULL ||
        s->host == NULL || s->first == NULL || s->interface == NULL || host == NULL ||
        interface == NULL || interface[0].heard == NULL)
        (void)error_set(e, ERROR_MEMORY, "no memory for %zu interfaces", interfaces);
    else
        result = copy_hosts(s, in, &p, named, e);
    free(p.host);
    free(p.first);
    free(p.interface);
    free(named);
    if (host == NULL)
        free(interface);
    if (result != 0)
        sorted_free(s);
    return result;
}

void sorted_free(struct sorted *s)
{
    if (s->input.host != NULL) {
        if (s->input.host[0].interface != NULL)
            free((void *)s->input.host[0].interface[0].heard);
        free((void *)s->input.host[0].interface);
    }
    free((void *)s->input.host);
    free(s->host);
    free(s->first);
    free(s->interface);
}

uint32_t sorted_original_host(const struct sorted *s, uint32_t host)
{
    return host < s->input.hosts ? s->host[host] : CABLING_NONE;
}

struct cabling_end sorted_original(const struct sorted *s, struct cabling_end end)
{
    struct cabling_end none = {CABLING_NONE, CABLING_NONE};

    if (end.host >= s->input.hosts)
        return none;
    if (end.interface >= s->input.host[end.host].interfaces)
        return (struct cabling_end){s->host[end.host], CABLING_NONE};
    return (struct cabling_end){s->host[end.host],
                                s->interface[s->first[end.host] + end.interface]};
}
