/* The counters of the interfaces in the last hour. The kernel's own began when the machine started. */
#pragma once

#include <linux/rtnetlink.h>
#include <pthread.h>

#include "daemon/lib/base/last_hour.h"
#include "daemon/lib/host/facts.h"

#define PAST_INTERFACES 64u

struct past {
    pthread_mutex_t lock; /* worker threads use it */
    unsigned count;
    struct past_interface {
        char name[16];
        int index; /* an interface that was made again has another one */
        struct last_hour hour;
    } interface[PAST_INTERFACES];
};

/* Returns NULL if memory is short. */
struct past *past_new(void);
void past_free(struct past *p); /* NULL does nothing */

/* Notes the counters of all interfaces that the kernel lists. */
void past_note(struct past *p);
/* Notes the counters of an interface, and adds facts about what they have counted in the last hour. */
void past_add(struct past *p, struct facts *f, const char *name, int index,
              const struct rtnl_link_stats64 *stats);
