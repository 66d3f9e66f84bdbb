#include "daemon/torus-routed/host_addresses.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/lib/schedule/torus.h"
#include "proto/text_file.h"

#define FILE_MOST (64u << 20)

static const struct text_kind kind = {.name = "a list of addresses", .most = FILE_MOST};

/* Whether a host can have the address, and others reach it over several hops. */
static bool is_usable(const struct ip *ip)
{
    const uint32_t v4 = ntohl(ip->v4.s_addr);

    if (ip->family == AF_INET)
        return v4 >> 24 != 0 && v4 >> 24 != 127 &&
               v4 >> 28 < 14; /* from 224.0.0.0 on: groups, reserved */
    return !IN6_IS_ADDR_UNSPECIFIED(&ip->v6) && !IN6_IS_ADDR_LOOPBACK(&ip->v6) &&
           !IN6_IS_ADDR_MULTICAST(&ip->v6) && !IN6_IS_ADDR_LINKLOCAL(&ip->v6) &&
           !IN6_IS_ADDR_V4MAPPED(&ip->v6);
}

/* Takes "10.128.0.1,fd12::1". */
static int take_addresses(struct host_entry *host, char *text, struct error *e)
{
    char *save = NULL;

    for (char *one = strtok_r(text, ",", &save); one != NULL; one = strtok_r(NULL, ",", &save)) {
        struct ip ip = {.family = strchr(one, ':') != NULL ? AF_INET6 : AF_INET};
        struct ip *place = &host->ip[ip.family == AF_INET6];
        if (inet_pton(ip.family, one, &ip.v6) != 1)
            return error_set(e, ERROR_USAGE, "\"%.60s\" is not an address", one);
        if (!is_usable(&ip))
            return error_set(e, ERROR_USAGE, "%.60s cannot be the address of a host", one);
        if (place->family != 0)
            return error_set(e, ERROR_USAGE, "two addresses of one kind");
        *place = ip;
    }
    return host->ip[0].family != 0 ? 0 : error_set(e, ERROR_USAGE, "no IPv4 address");
}

static int take_line(struct host_entry *host, char *line, struct error *e)
{
    char *save = NULL, *addresses = strtok_r(line, " \t", &save);
    const char *name = strtok_r(NULL, " \t", &save);

    if (name == NULL || strtok_r(NULL, " \t", &save) != NULL || strlen(name) >= HOST_NAME_MOST)
        return error_set(e, ERROR_USAGE, "expected addresses and a name: \"10.128.0.1 alpha\"");
    (void)strcpy(host->name, name);
    return take_addresses(host, addresses, e);
}

static int add_line(struct host_addresses *h, char *line, unsigned number, struct error *e)
{
    struct host_entry *more = h->host, host = {.name = "", .line = number};

    line[strcspn(line, "\r")] = '\0';
    if (line[strspn(line, " \t")] == '\0' || line[0] == '#')
        return 0;
    if (take_line(&host, line, e) != 0)
        return -1;
    if (h->count == TORUS_MAX_NODES)
        return error_set(e, ERROR_USAGE, "more than %u hosts", TORUS_MAX_NODES);
    if ((h->count & (h->count - 1)) == 0)
        more = reallocarray(h->host, 2 * (size_t)h->count + 2, sizeof *more);
    if (more == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for the addresses");
    h->host = more;
    h->host[h->count++] = host;
    h->v6 &= host.ip[1].family != 0;
    return 0;
}

/* --- what belongs to two hosts --- */

static int compare_ip(const struct ip *a, const struct ip *b)
{
    if (a->family != b->family || a->family == 0)
        return a->family - b->family;
    return a->family == AF_INET ? memcmp(&a->v4, &b->v4, sizeof a->v4)
                                : memcmp(&a->v6, &b->v6, sizeof a->v6);
}

static int compare_v4(const void *a, const void *b)
{
    return compare_ip(&(*(const struct host_entry *const *)a)->ip[0],
                      &(*(const struct host_entry *const *)b)->ip[0]);
}

static int compare_v6(const void *a, const void *b)
{
    return compare_ip(&(*(const struct host_entry *const *)a)->ip[1],
                      &(*(const struct host_entry *const *)b)->ip[1]);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp((*(const struct host_entry *const *)a)->name,
                  (*(const struct host_entry *const *)b)->name);
}

/* Sorts the list, and fails if two neighbours in it are the same: *number is the line of the later one. */
static int check_twice(const struct host_entry **list, uint32_t count, const char *what,
                       int (*compare)(const void *a, const void *b), unsigned *number,
                       struct error *e)
{
    qsort(list, count, sizeof *list, compare);
    for (uint32_t i = 1; i < count; i++) {
        const bool in_order = list[i - 1]->line < list[i]->line;
        const struct host_entry *first = list[in_order ? i - 1 : i],
                                *second = list[in_order ? i : i - 1];
        if (compare(&list[i - 1], &list[i]) != 0 ||
            (compare == compare_v6 && first->ip[1].family == 0))
            continue;
        *number = second->line;
        return error_set(e, ERROR_USAGE, "%.80s has the %s of %.80s (line %u)", second->name, what,
                         first->name, first->line);
    }
    return 0;
}

static int check_hosts(const struct host_addresses *h, unsigned *number, struct error *e)
{
    const struct host_entry **list = calloc(h->count + 1u, sizeof *list);
    int rc = 0;

    if (list == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for the addresses");
    for (uint32_t i = 0; i < h->count; i++)
        list[i] = &h->host[i];
    if (check_twice(list, h->count, "address", compare_v4, number, e) != 0 ||
        check_twice(list, h->count, "address", compare_v6, number, e) != 0 ||
        check_twice(list, h->count, "name", compare_names, number, e) != 0)
        rc = -1;
    free(list);
    return rc;
}

int host_addresses_read(struct host_addresses *h, const char *path, struct error *e)
{
    char *text, *rest;
    size_t length;
    unsigned number = 0;
    int rc = 0;

    *h = (struct host_addresses){.v6 = true};
    if (text_file_read(path, &kind, &text, &length, e) != 0)
        return -1;
    rest = text;
    for (char *line; rc == 0 && (line = strsep(&rest, "\n")) != NULL;) {
        number++;
        rc = add_line(h, line, number, e);
    }
    free(text);
    if (rc == 0)
        rc = check_hosts(h, &number, e);
    if (rc != 0)
        rc = error_wrap(e, "%.200s:%u", path, number);
    else if (h->count == 0)
        rc = error_set(e, ERROR_USAGE, "%.200s has no hosts", path);
    if (rc != 0)
        host_addresses_free(h);
    return rc;
}

void host_addresses_free(struct host_addresses *h)
{
    free(h->host);
    *h = (struct host_addresses){0};
}
