/* Groups of libtorus: a program, and a daemon with stand-in groups, which return to a member what it sends. */
#pragma once

#include <torus/group.h>

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/programs_fixture.h"

#define CLIENT_GROUP_MEMBERS 6u

extern struct programs_fixture client_group_daemon;
extern struct torus_error client_group_error; /* of the last call */

/* The daemon is started before each test, and stopped after it. */
int client_group_begin(void **state);
int client_group_end(void **state);
#define CLIENT_GROUP_TEST(name) TEST_WITH(client_group_begin, client_group_end, name)

/* Opens a group; NULL: with the default options. The second function fails the test unless it succeeds. */
int client_group_open_named(const char *name, uint32_t timeout_ms, struct torus_group **g);
struct torus_group *client_group_open(void);

#define OK(call)                                                                                   \
    do {                                                                                           \
        if ((call) != 0)                                                                           \
            fail_msg("%s: %s", #call, client_group_error.text);                                    \
    } while (0)

/* Fails the test unless the call has failed with this code and a text that contains `said`. */
#define FAILS(wanted, said, call)                                                                  \
    do {                                                                                           \
        client_group_error = (struct torus_error){0};                                              \
        assert_int_equal((call), -1);                                                              \
        assert_int_equal(client_group_error.code, (wanted));                                       \
        if (strstr(client_group_error.text, (said)) == NULL)                                       \
            fail_msg("\"%s\" does not say \"%s\"", client_group_error.text, (said));               \
    } while (0)

/* Fills bytes with contents that depend on the seed, and checks for them. */
void client_group_fill(void *at, size_t bytes, unsigned seed);
void client_group_expect(const void *at, size_t bytes, unsigned seed);

/* For programs_do(): all groups fail, with this text. */
void client_group_fail_all(struct programs_fixture *f, void *text);

/* Whether the descriptor becomes readable in time. */
bool client_group_is_readable(int fd, int milliseconds);
