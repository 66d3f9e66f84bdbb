/* Surveys that were never asked for: tori whose counters, links and runs a test chooses. A program that uses this is
 * linked with --wrap=torus_survey_free. */
#pragma once

#include "client/cli/top/model.h"

#define FAKE_RUNS 4u

struct fake_survey;

/* Every node answers, all links are up and have sent and received nothing. Node 0 was asked. Hosts are "h0", "h1" ...
 * Daemons have been up for this time. */
struct all_nodes fake_survey_make(const char *dims, uint64_t uptime_ms);
/* The same, with links of 8 Mbit/s, a million bytes a second, and that many bytes on each direction of each link. */
struct all_nodes fake_survey_full(const char *dims, uint64_t uptime_ms, uint64_t bytes);

/* What a test changes, before a model takes the survey. */
struct torus_link *fake_link(struct all_nodes *c, uint32_t rank, unsigned port);
struct torus_status *fake_status(struct all_nodes *c, uint32_t rank);
struct torus_activity *fake_exchange(struct all_nodes *c, uint32_t rank, const char *id);
struct torus_group_info *fake_group(struct all_nodes *c, uint32_t rank, const char *name);
struct torus_copy_activity *fake_copy(struct all_nodes *c, uint32_t rank, const char *id);

/* Both ends of a link have counted these bytes in the direction away from this end. */
void fake_bytes(struct all_nodes *c, uint32_t rank, unsigned port, uint64_t bytes);
/* The same for all directions of all links. */
void fake_all_bytes(struct all_nodes *c, uint64_t bytes);
/* Both ends of the link say that it is down. */
void fake_down(struct all_nodes *c, uint32_t rank, unsigned port, const char *reason);
/* The node is down, and so are its links, as its neighbours say. */
void fake_dead(struct all_nodes *c, uint32_t rank);

/* A model that has taken two such surveys, the second one of 2000 ms, with that many bytes a second on each direction;
 * NULL: one that has taken none. */
struct top_model fake_model(const char *dims, uint64_t bytes);
/* TOP_TEST(DIMS, BYTES, NAME) { ... }: a test with such a model, `m`. */
#define TOP_TEST(dims, bytes, name)                                                                \
    TEST_BETWEEN(struct top_model, m, fixture = fake_model(dims, bytes), top_model_free(&fixture), \
                 name)
/* The model takes the survey, that many seconds after the first one. */
void take(struct top_model *m, struct all_nodes *c, double seconds);
