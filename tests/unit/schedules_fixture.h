/* Schedules in files, and the messages about them between a node and its neighbours. */
#pragma once

#include "exchange_fixture.h"
#include "proto/sha256.h"

#define SCHEDULE_FILE_MOST 100000u

/* Ports of node 1 to nodes 0 and 2. */
enum { SCHEDULES_PARENT = 1, SCHEDULES_CHILD = 0 };

struct schedule_file {
    char text[SCHEDULE_FILE_MOST];
    uint32_t length;
    char digest[SHA256_TEXT_SIZE];
};

/* The routes of "direct" on a torus, followed by so many spaces. */
struct schedule_file schedule_file_for(const char *dims, uint32_t spaces);
/* Sets the name of a file from the digest of its present text. */
void schedule_file_name(struct schedule_file *f);

/* Opens node `rank` of a torus of 3m. */
void schedules_open(struct exchange_fixture *n, uint32_t rank);
/* The parent prepares an exchange with this schedule; node 2 hears of it. */
void schedules_say_prepare(struct exchange_fixture *n, const struct schedule_file *f);
/* The parent prepares another exchange with it. */
void schedules_say_prepare_again(struct exchange_fixture *n, const struct schedule_file *f);
/* The child asks for the part that begins at `begin`. Returns whether its link is still up. */
bool schedules_say_query(struct exchange_fixture *n, const char *digest, uint32_t offset);
/* The parent sends `length` bytes of a file of `total` bytes. Returns whether its link is still up. */
bool schedules_say_part(struct exchange_fixture *n, const struct schedule_file *f, uint32_t total,
                        uint32_t offset, size_t length);

/* These fail the test unless the next message is this one. The node asks its parent for the part from `begin` on; */
void schedules_hear_query(struct exchange_fixture *n, const struct schedule_file *f,
                          uint32_t offset);
/* gives its child `length` bytes from there on, of a file of `total` bytes; */
void schedules_hear_part(struct exchange_fixture *n, const struct schedule_file *f, uint32_t total,
                         uint32_t offset, size_t length);
/* and objects at its parent, with this code and a reason that contains this part (NULL: any reason). */
void schedules_hear_objection(struct exchange_fixture *n, enum error_code code, const char *part);
