#include "client/cli/discovering/discovered.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

bool discovered_is_mutual(const struct discovered *d, uint32_t host, uint32_t interface,
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

/* Fills in the cable by which an interface hears a neighbour. Returns false if it is listed from its other
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
