/* Decides who may see the page: by the address that serves it, the host name that a browser asks for, and the token. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include "proto/error.h"

#define TOKEN_SIZE 129u /* of the longest token, with the 0 */
#define TOKEN_LEAST 16u

struct door {
    struct sockaddr_storage address;
    socklen_t length;
    bool loopback;
    char token[TOKEN_SIZE];    /* "": none is needed */
    char cookie[32];           /* name of the cookie that has the token */
    char url[TOKEN_SIZE + 96]; /* for the user, with the token */
};

/* Reads "127.0.0.1:8080", "[::1]:8080", "localhost:8080" or "0.0.0.0:8080"; port 0 is a free one. Returns 0, or -1 with *e
 * (ERROR_USAGE). */
int door_parse(struct door *d, const char *text, struct error *e);
/* Sets the token; NULL: makes a random one. Returns 0, or -1 with *e (ERROR_USAGE). */
int door_set_token(struct door *d, const char *token, struct error *e);
/* Listens. Returns the descriptor, or -1 with *e. Sets `url` and `cookie`. */
int door_open(struct door *d, struct error *e);

/* Whether a browser that asks for this host (the header Host) may see the page. A page of somebody else whose name leads
 * here (DNS rebinding) has that name. So only "localhost", loopback addresses and, if the page is not served on loopback,
 * other addresses and the name of this machine are allowed. The port may be any, because a tunnel may have another one. */
bool door_allows_host(const struct door *d, const char *host);
/* Whether this is the token; takes equally long for all texts of the same length. False for NULL. */
bool door_is_token(const struct door *d, const char *text);
