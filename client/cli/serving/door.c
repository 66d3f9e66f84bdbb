#include "client/cli/serving/door.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#define TOKEN_BYTES 16u /* of a random token */
#define BACKLOG 64

static bool is_loopback(const struct sockaddr_storage *a)
{
    if (a->ss_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)a)->sin_addr.s_addr) >> 24 == 127;
    return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)a)->sin6_addr);
}

static bool is_any(const struct sockaddr_storage *a)
{
    if (a->ss_family == AF_INET)
        return ((const struct sockaddr_in *)a)->sin_addr.s_addr == htonl(INADDR_ANY);
    return IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)a)->sin6_addr);
}

/* Splits "HOST:PORT" or "[HOST]:PORT"; the port may be missing, and is then "". Returns whether that is possible. */
static bool split(const char *text, char host[NI_MAXHOST], char port[8])
{
    const bool bracket = text[0] == '[';
    const char *begin = text + bracket, *end = bracket ? strchr(begin, ']') : strrchr(text, ':');

    if (end == NULL && !bracket)
        end = text + strlen(text);
    if (end == NULL || end == begin || end - begin >= NI_MAXHOST)
        return false;
    (void)snprintf(host, NI_MAXHOST, "%.*s", (int)(end - begin), begin);
    end += bracket;
    if (*end == '\0') {
        port[0] = '\0';
        return true;
    }
    const size_t digits = strspn(end + 1, "0123456789");
    if (*end != ':' || digits == 0 || digits > 5 || end[1 + digits] != '\0')
        return false;
    (void)snprintf(port, 8, "%s", end + 1);
    return strchr(host, ':') == NULL || bracket;
}

int door_parse(struct door *d, const char *text, struct error *e)
{
    const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
                                   .ai_socktype = SOCK_STREAM};
    char host[NI_MAXHOST], port[8];
    struct addrinfo *found = NULL;

    *d = (struct door){.length = 0};
    if (!split(text, host, port) || port[0] == '\0' || atoi(port) > 65535 ||
        getaddrinfo(strcmp(host, "localhost") == 0 ? "127.0.0.1" : host, port, &hints, &found) != 0)
        return error_set(e, ERROR_USAGE,
                         "--address: '%.100s' is not an address with a port, such as "
                         "127.0.0.1:8080 or [::1]:8080",
                         text);
    memcpy(&d->address, found->ai_addr, found->ai_addrlen);
    d->length = found->ai_addrlen;
    d->loopback = is_loopback(&d->address);
    freeaddrinfo(found);
    return 0;
}

int door_set_token(struct door *d, const char *token, struct error *e)
{
    unsigned char random[TOKEN_BYTES];

    if (token == NULL) {
        if (sodium_init() < 0)
            return error_set(e, ERROR_IO, "cannot get random numbers for a token");
        randombytes_buf(random, sizeof random);
        (void)sodium_bin2hex(d->token, sizeof d->token, random, sizeof random);
        return 0;
    }
    const size_t length = strspn(token, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                        "0123456789_-");
    if (token[length] != '\0' || length < TOKEN_LEAST || length >= TOKEN_SIZE)
        return error_set(e, ERROR_USAGE,
                         "--token: use %u to %u letters, digits, '_' and '-', which nobody can "
                         "guess",
                         TOKEN_LEAST, TOKEN_SIZE - 1);
    (void)strcpy(d->token, token);
    return 0;
}

/* Sets what depends on the port. */
static int describe(struct door *d, int fd, struct error *e)
{
    char host[INET6_ADDRSTRLEN], port[8];

    if (getsockname(fd, (struct sockaddr *)&d->address, &d->length) != 0 ||
        getnameinfo((struct sockaddr *)&d->address, d->length, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        return error_set(e, ERROR_IO, "the address of the page is not known: %s", strerror(errno));
    if (is_any(&d->address) && gethostname(host, sizeof host) != 0)
        (void)snprintf(host, sizeof host, "localhost");
    host[sizeof host - 1] = '\0';
    (void)snprintf(d->cookie, sizeof d->cookie, "torus-%s", port);
    const bool bracket = strchr(host, ':') != NULL;
    (void)snprintf(d->url, sizeof d->url, "http://%s%s%s:%s/%s%s", bracket ? "[" : "", host,
                   bracket ? "]" : "", port, d->token[0] != '\0' ? "?token=" : "", d->token);
    return 0;
}

int door_open(struct door *d, struct error *e)
{
    const int one = 1;
    int fd = socket(d->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return error_set(e, ERROR_IO, "no socket for the page: %s", strerror(errno));
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(fd, (struct sockaddr *)&d->address, d->length) != 0 || listen(fd, BACKLOG) != 0)
        (void)error_set(e, ERROR_IO, "cannot listen at this address: %s%s", strerror(errno),
                        errno == EADDRINUSE ? "; choose another port with --address" : "");
    else if (describe(d, fd, e) == 0)
        return fd;
    (void)close(fd);
    return -1;
}

static bool parse_address(const char *host, struct sockaddr_storage *a)
{
    *a = (struct sockaddr_storage){.ss_family = AF_INET};
    if (inet_pton(AF_INET, host, &((struct sockaddr_in *)a)->sin_addr) == 1)
        return true;
    a->ss_family = AF_INET6;
    return inet_pton(AF_INET6, host, &((struct sockaddr_in6 *)a)->sin6_addr) == 1;
}

bool door_allows_host(const struct door *d, const char *text)
{
    char host[NI_MAXHOST], port[8];
    struct sockaddr_storage address;
    struct utsname name;

    if (text == NULL || !split(text, host, port))
        return false;
    if (parse_address(host, &address))
        return is_loopback(&address) || !d->loopback;
    if (strcasecmp(host, "localhost") == 0)
        return true; /* a browser leads this name to its own machine: a tunnel, or this one */
    return !d->loopback && uname(&name) == 0 && strcasecmp(host, name.nodename) == 0;
}

bool door_is_token(const struct door *d, const char *text)
{
    const size_t length = strlen(d->token);

    return text != NULL && length > 0 && strlen(text) == length &&
           sodium_memcmp(text, d->token, length) == 0;
}
