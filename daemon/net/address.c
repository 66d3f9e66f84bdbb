#include "daemon/net/address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

int address_parse(const char *text, struct sockaddr_storage *address, struct error *e)
{
    char host[256];
    const char *colon = strrchr(text, ':'), *from = text;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
    size_t n;

    if (colon == NULL || colon[1] == '\0' || (size_t)(colon - text) >= sizeof host)
        return error_set(e, ERROR_USAGE, "\"%.80s\" is not an ADDRESS:PORT", text);
    n = (size_t)(colon - text);
    if (n >= 2 && text[0] == '[' && text[n - 1] == ']') {
        from++;
        n -= 2;
    }
    memcpy(host, from, n);
    host[n] = '\0';
    int result = getaddrinfo(host, colon + 1, &hints, &found);
    if (result != 0)
        return error_set(e, ERROR_USAGE, "address %.80s: %s", text, gai_strerror(result));
    memcpy(address, found->ai_addr, found->ai_addrlen);
    freeaddrinfo(found);
    return 0;
}

void address_format(const struct sockaddr *address, char *text, size_t size)
{
    char host[INET6_ADDRSTRLEN] = "?";

    if (address->sa_family == AF_INET6) {
        const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)address;
        (void)inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof host);
        (void)snprintf(text, size, "[%s]:%u", host, ntohs(in6->sin6_port));
    } else {
        const struct sockaddr_in *in = (const struct sockaddr_in *)address;
        (void)inet_ntop(AF_INET, &in->sin_addr, host, sizeof host);
        (void)snprintf(text, size, "%s:%u", host, ntohs(in->sin_port));
    }
}
