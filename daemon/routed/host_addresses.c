#include "daemon/routed/host_addresses.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/schedule/torus.h"
#include "proto/text_file.h"

#define FILE_MOST (64u << 20)

static const struct text_kind kind = {.name = "a list of addresses", .most = FILE_MOST};

/* Takes "10.128.0.1,fd12::1". */
static int take_addresses(struct host_entry *host, char *text, struct error *e)
{
    char *save = NULL;

    for (char *one = strtok_r(text, ",", &save); one != NULL; one = strtok_r(NULL, ",", &save)) {
        struct ip ip = {.family = strchr(one, ':') != NULL ? AF_INET6 : AF_INET};
        struct ip *place = &host->ip[ip.family == AF_INET6];
        if (inet_pton(ip.family, one, &ip.v6) != 1)
            return error_set(e, ERROR_USAGE, "\"%.60s\" is not an address", one);
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

static int add_line(struct host_addresses *h, char *line, struct error *e)
{
    struct host_entry *more = h->host, host = {.name = ""};

    line[strcspn(line, "\r")] = '\0';
    if (line[strspn(line, " \t")] == '\0' || line[0] == '#')
        return 0;
    if (take_line(&host, line, e) != 0)
        return -1;
    if (h->count == TORUS_MAX_NODES)
        return error_set(e, ERROR_USAGE, "more than %u hosts", TORUS_MAX_NODES);
    for (uint32_t i = 0; i < h->count && h->count < 4096; i++)
        if (ip_equal(&h->host[i].ip[0], &host.ip[0]))
            return error_set(e, ERROR_USAGE, "%.80s has the address of %.80s", host.name,
                             h->host[i].name);
    if ((h->count & (h->count - 1)) == 0)
        more = reallocarray(h->host, 2 * (size_t)h->count + 2, sizeof *more);
    if (more == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for the addresses");
    h->host = more;
    h->host[h->count++] = host;
    h->v6 &= host.ip[1].family != 0;
    return 0;
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
        rc = add_line(h, line, e);
    }
    free(text);
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
