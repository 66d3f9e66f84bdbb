/* A client of libtorus, connected to a fake daemon whose replies the test sets. */
#pragma once

#include <torus/torus.h>

#include "tests/unit/test_client_fake.h"

/* The fields that torus_request_init() sets, for an initializer. */
#define CLIENT_REQUEST .struct_size = sizeof(struct torus_request), .algorithm = "at2"

/* Exchanges of a generated pattern, and of files. */
extern const struct torus_request client_pattern, client_files;

/* Starts the daemon and connects a client; ends both. */
struct torus_client *client_begin(struct fake *f, void (*serve)(int fd));
void client_end(struct fake *f, struct torus_client *client);
/* CLIENT_TEST(SERVE, NAME) { ... }: a test with `client`, whose daemon does this. */
#define CLIENT_TEST(serve, name)                                                                   \
    static void name##_with(struct torus_client *client);                                          \
    TEST(name)                                                                                     \
    {                                                                                              \
        struct fake f;                                                                             \
        struct torus_client *client = client_begin(&f, serve);                                     \
        name##_with(client);                                                                       \
        client_end(&f, client);                                                                    \
    }                                                                                              \
    static void name##_with(struct torus_client *client)

/* For serve functions: takes a request, which must be there; takes all requests without a reply; carries out an
 * exchange. */
void client_expect_request(int fd);
void client_serve_silence(int fd);
void client_serve_pattern(int fd);
