#include "daemon/lib/net/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PORT_MOST 65535u
#define SPACES " \t"

/* The parts of a text such as "[fe80::1%eth0]:7411 on eth1"; not terminated. */
struct part {
    const char *at;
    size_t length;
};

struct parts {
    struct part host, zone, port, interface; /* length 0: missing */
    bool brackets;
};

static int bad_address(struct error *e, const char *text, const char *why)
{
    return error_set(e, ERROR_USAGE,
                     "\"%.80s\" is not an ADDRESS:PORT: %s (10.0.0.1:7411, [fd00::1]:7411, "
                     "[fe80::1%%eth0]:7411 or name:7411; \" on eth0\" may follow)",
                     text, why);
}

/* Parses the text after the port: nothing, or "on INTERFACE". */
static const char *split_interface(const char *rest, struct parts *p)
{
    rest += strspn(rest, SPACES);
    if (*rest == '\0')
        return NULL;
    if (strncmp(rest, "on", 2) != 0 || strchr(SPACES, rest[2]) == NULL || rest[2] == '\0')
        return "only \"on\" and an interface may follow the port";
    rest += 2;
    rest += strspn(rest, SPACES);
    p->interface = (struct part){rest, strcspn(rest, SPACES)};
    rest += p->interface.length;
    if (p->interface.length == 0 || rest[strspn(rest, SPACES)] != '\0')
        return "one interface must follow \"on\"";
    return NULL;
}

/* Divides a text into its parts. Returns NULL, or the problem. */
static const char *split_endpoint(const char *text, struct parts *p)
{
    const char *end, *colon;

    text += strspn(text, SPACES);
    p->brackets = *text == '[';
    if (p->brackets) {
        end = strchr(++text, ']');
        if (end == NULL)
            return "the ] is missing";
        colon = end + 1;
        p->host = (struct part){text, strcspn(text, "%]")};
        if (text[p->host.length] == '%') {
            p->zone.at = text + p->host.length + 1;
            p->zone.length = (size_t)(end - p->zone.at);
            if (p->zone.length == 0)
                return "no interface follows the %";
        }
    } else {
        p->host = (struct part){text, strcspn(text, ":" SPACES)};
        colon = text + p->host.length;
    }
    if (*colon != ':')
        return "the port is missing";
    p->port = (struct part){colon + 1, strcspn(colon + 1, SPACES)};
    if (!p->brackets && memchr(p->port.at, ':', p->port.length) != NULL)
        return "an IPv6 address needs brackets";
    return split_interface(p->port.at + p->port.length, p);
}

static const char *set_port(struct endpoint *endpoint, struct part port, unsigned long least)
{
    char *end;
    unsigned long number = strtoul(port.at, &end, 10);

    if (port.length == 0 || port.length > 5 || *port.at < '0' || *port.at > '9' ||
        end != port.at + port.length || number < least || number > PORT_MOST)
        return least == 0 ? "the port must be a number from 0 to 65535"
                          : "the port must be a number from 1 to 65535";
    endpoint->port = (uint16_t)number;
    return NULL;
}

static const char *set_interface(struct endpoint *endpoint, struct part name)
{
    if (name.length >= sizeof endpoint->interface || strcspn(name.at, "/:" SPACES) < name.length)
        return "the name of the interface is not valid";
    memcpy(endpoint->interface, name.at, name.length);
    endpoint->interface[name.length] = '\0';
    return NULL;
}

static const char *set_host(struct endpoint *endpoint, const struct parts *p)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST};
    struct addrinfo *found;

    if (p->host.length == 0)
        return "the address is missing";
    if (p->host.length >= sizeof endpoint->host)
        return "the name is too long";
    memcpy(endpoint->host, p->host.at, p->host.length);
    endpoint->host[p->host.length] = '\0';
    if (getaddrinfo(endpoint->host, NULL, &hints, &found) == 0) {
        memcpy(&endpoint->literal, found->ai_addr, found->ai_addrlen);
        freeaddrinfo(found);
    }
    if (p->brackets && endpoint->literal.ss_family != AF_INET6)
        return "only an IPv6 address may be in brackets";
    if (endpoint->literal.ss_family != 0)
        return NULL;
    if (endpoint->host[strspn(endpoint->host, "0123456789.")] == '\0')
        return "the IPv4 address is not valid";
    for (const unsigned char *c = (const unsigned char *)endpoint->host; *c != '\0'; c++)
        if (*c <= ' ' || *c == 0x7f || strchr("[]%/\"'@#;,=\\", *c) != NULL)
            return "a host name cannot have such characters";
    return NULL;
}

static const char *set_zone(struct endpoint *endpoint, const struct parts *p)
{
    const bool link_local = address_is_link_local((struct sockaddr *)&endpoint->literal);
    const char *wrong = NULL;

    if (p->zone.length > 0 && !link_local)
        return "only a link-local address (fe80::) has a zone; write \" on eth0\" behind the port";
    if (p->zone.length > 0)
        wrong = set_interface(endpoint, p->zone);
    if (wrong == NULL && p->zone.length > 0 && p->interface.length > 0 &&
        (strlen(endpoint->interface) != p->interface.length ||
         memcmp(endpoint->interface, p->interface.at, p->interface.length) != 0))
        return "it names two interfaces";
    if (wrong == NULL && p->interface.length > 0) {
        wrong = set_interface(endpoint, p->interface);
        endpoint->bound = true;
    }
    if (wrong == NULL && link_local && endpoint->interface[0] == '\0')
        return "a link-local address needs its interface, as in [fe80::1%eth0]:7411";
    return wrong;
}

/* Returns NULL, or the problem. */
static const char *parse(const char *text, struct endpoint *endpoint, unsigned long least_port)
{
    struct parts p = {0};
    const char *wrong = split_endpoint(text, &p);

    *endpoint = (struct endpoint){0};
    if (wrong == NULL)
        wrong = set_port(endpoint, p.port, least_port);
    if (wrong == NULL)
        wrong = set_host(endpoint, &p);
    if (wrong == NULL)
        wrong = set_zone(endpoint, &p);
    if (wrong != NULL)
        *endpoint = (struct endpoint){0};
    return wrong;
}

int endpoint_parse(const char *text, struct endpoint *endpoint, struct error *e)
{
    const char *wrong = parse(text, endpoint, 1);

    return wrong == NULL ? 0 : bad_address(e, text, wrong);
}

int endpoint_parse_own(const char *text, struct endpoint *endpoint, struct error *e)
{
    const char *wrong = parse(text, endpoint, 0);

    if (wrong == NULL && endpoint->literal.ss_family == 0)
        wrong = "host names are not possible";
    if (wrong == NULL)
        return 0;
    *endpoint = (struct endpoint){0};
    return error_set(e, ERROR_USAGE,
                     "\"%.80s\" is not an ADDRESS:PORT to listen on: %s (127.0.0.1:9101, "
                     "[::1]:9101; port 0 is any free port)",
                     text, wrong);
}

void endpoint_format(const struct endpoint *endpoint, char *text, size_t size)
{
    const bool v6 = endpoint->literal.ss_family == AF_INET6;
    const bool zone = endpoint->interface[0] != '\0' && !endpoint->bound;

    (void)snprintf(text, size, "%s%s%s%s%s:%u%s%s", v6 ? "[" : "", endpoint->host, zone ? "%" : "",
                   zone ? endpoint->interface : "", v6 ? "]" : "", endpoint->port,
                   endpoint->bound ? " on " : "", endpoint->bound ? endpoint->interface : "");
}

void endpoint_complete(const struct endpoint *endpoint, unsigned index,
                       struct sockaddr_storage *address)
{
    struct sockaddr_in *in = (struct sockaddr_in *)address;
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)address;

    if (address->ss_family == AF_INET) {
        in->sin_port = htons(endpoint->port);
    } else if (address->ss_family == AF_INET6) {
        in6->sin6_port = htons(endpoint->port);
        if (index != 0 && address_is_link_local((struct sockaddr *)address))
            in6->sin6_scope_id = index;
    }
}

unsigned interface_index(const char *name)
{
    char *end, known[IF_NAMESIZE];
    unsigned index = if_nametoindex(name);

    if (index != 0 || *name < '0' || *name > '9')
        return index;
    unsigned long number = strtoul(name, &end, 10);
    index = *end == '\0' && number <= INT32_MAX ? (unsigned)number : 0;
    return index != 0 && if_indextoname(index, known) != NULL ? index : 0;
}

bool address_is_link_local(const struct sockaddr *address)
{
    return address->sa_family == AF_INET6 &&
           IN6_IS_ADDR_LINKLOCAL(&((const struct sockaddr_in6 *)address)->sin6_addr);
}

socklen_t address_length(const struct sockaddr *address)
{
    return address->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                          : sizeof(struct sockaddr_in);
}

void address_format(const struct sockaddr *address, char *text, size_t size)
{
    char host[INET6_ADDRSTRLEN] = "?", zone[IF_NAMESIZE + 1] = "";

    if (address->sa_family == AF_INET6) {
        const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)address;
        (void)inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof host);
        if (in6->sin6_scope_id != 0 && if_indextoname(in6->sin6_scope_id, zone + 1) != NULL)
            zone[0] = '%';
        else if (in6->sin6_scope_id != 0) /* the interface no longer exists */
            (void)snprintf(zone, sizeof zone, "%%%u", in6->sin6_scope_id);
        (void)snprintf(text, size, "[%s%s]:%u", host, zone, ntohs(in6->sin6_port));
    } else {
        const struct sockaddr_in *in = (const struct sockaddr_in *)address;
        (void)inet_ntop(AF_INET, &in->sin_addr, host, sizeof host);
        (void)snprintf(text, size, "%s:%u", host, ntohs(in->sin_port));
    }
}
