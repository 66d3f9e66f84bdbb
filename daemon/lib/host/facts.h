/* Facts about a machine as text: a line "name value" each. A name has words joined by dots and no blank; the value goes
 * to the end of its line. If a fact cannot be read, "unseen.NAME" says why. */
#pragma once

#include <linux/rtnetlink.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/lib/base/last_hour.h"

#define FACTS_MOST (56u * 1024u) /* bytes; an answer to a survey holds them */

struct facts {
    size_t length;
    bool full; /* facts were left out */
    char text[FACTS_MOST];
};

void facts_begin(struct facts *f);
/* Adds a line; control characters in the value become '?'. A line for which there is no room is left out. */
void facts_add(struct facts *f, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Adds lines that were made by these functions, if there is room for all of them. */
void facts_add_lines(struct facts *f, const char *lines);

/* Reads the first line of a small file, such as those of /proc and /sys, without blanks at its end. Returns false if
 * there is none. */
bool facts_read_line(const char *path, char *line, size_t size);
/* Adds "unseen.NAME", which says that a file cannot be read; `error` is an errno. */
void facts_unseen(struct facts *f, const char *name, const char *path, int error);
/* Adds the first line of a file, or says why there is none. */
void facts_add_file(struct facts *f, const char *name, const char *path);

/* The counters of the interfaces in the last hour. The kernel's own began when the machine started. */

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

/* Gathers the facts about this machine. It reads files and asks the kernel, which may take milliseconds, or longer on
 * disks that hang: not for the loop. It needs no privileges; what root alone may see is left out for others. */

#define GATHER_FOLDERS_MOST 32u

struct gather_setup {
    size_t folders;
    /* Data roots, with the kind "data_root", and the state folder, "state_dir". */
    const char *folder[GATHER_FOLDERS_MOST], *kind[GATHER_FOLDERS_MOST];
    struct past *past; /* NULL: what the interfaces have counted in the last hour is not known */
};

/* `settings`: lines of facts that come first. */
void gather_facts(struct facts *f, const char *settings, const struct gather_setup *setup);

/* The parts: each adds its facts. */
void gather_clock(struct facts *f);
void gather_firewall(struct facts *f);
void gather_interfaces(struct facts *f, struct past *past);
void gather_ip_routes(struct facts *f);
/* Adds a fact for each rule or table that diverts packets for the neighbours' IPv4 addresses, which `settings` has. */
void gather_diverted_cables(struct facts *f, const char *settings);

/* Returns what rules, as nft or iptables-save prints them, do with packets that match no rule: "drop" or "accept". If
 * rules of torus-routed let packets pass, these rules decide. */
const char *firewall_policy(const char *rules);

/* Returns firewall_policy() of this machine's rules, or "unknown": only root, or a process with CAP_NET_ADMIN (`may`),
 * can read them. Runs other programs, which may take a few seconds. */
const char *firewall_look(bool may);

/* The processor time of this thread. */

/* Opens the kernel's record of the calling thread. Returns a descriptor, or -1 if the kernel has none. */
int processor_open(void);
void processor_close(int file); /* -1 does nothing */

/* Sets the nanoseconds for which the thread has run, and for which it could have run and no processor was free (0 if
 * that is not known). */
void processor_read(int file, uint64_t *used, uint64_t *delayed);
