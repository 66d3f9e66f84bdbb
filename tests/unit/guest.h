/* A program that talks to the daemon without libtorus, and may break every rule. */
#pragma once

#include "proto/program.h"
#include "tests/unit/programs_fixture.h"

extern struct programs_fixture guest_daemon;
extern uint32_t
    guest_version; /* version of the protocol that guests speak: PROGRAM_VERSION unless a test sets another one */

struct guest {
    int fd, descriptor[PROGRAM_FDS];
    struct program_page *page;
    struct program_message m; /* the last one */
};

#define GUEST_SAYS(text, wanted)                                                                   \
    do {                                                                                           \
        if (strstr((text), (wanted)) == NULL)                                                      \
            fail_msg("\"%s\" does not say \"%s\"", (text), (wanted));                              \
    } while (0)

#define GUEST_TEST(name) TEST_WITH(guest_begin, guest_end, name)

/* For setup and teardown: the daemon. */
int guest_begin(void **state);
int guest_end(void **state);
void guest_connect(struct guest *g);
/* A message of a program. */
struct program_message guest_message(uint32_t kind, uint32_t number, uint64_t size);
void guest_say(struct guest *g, uint32_t kind, uint32_t number, uint64_t size, const char *text);
/* The kind of the next message, with its descriptors, or 0 at the end. */
uint32_t guest_hear(struct guest *g);
/* A program that has opened this group, with its page. */
void guest_open(struct guest *g, const char *name);
void guest_close(struct guest *g);
/* Rings the doorbell. */
void guest_ring(struct guest *g);
/* Makes a call, and waits for its end. Returns its code; the text is in g->m.text. */
uint32_t guest_call(struct guest *g, const struct program_request *request);
/* A memory of that size. Returns its number. */
uint32_t guest_share(struct guest *g, uint64_t size, uint8_t **data);
/* Checks that the program is told that it breaks the rules, and is closed, and that its group fails for that reason. */
void guest_expect_refusal(struct guest *g, uint32_t code, const char *said);
/* Checks that others are served as before, and that nothing is left of programs that were closed. */
void guest_expect_service(unsigned groups);
