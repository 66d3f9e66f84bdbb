/* Settings of the kernel below /proc/sys/net. Before one is changed, its value is added to a file, so that even a
 * later process can restore it. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "proto/error.h"

struct saved_setting {
    char *name, *value;
};

struct settings {
    const char *folder; /* "/proc/sys/net"; borrowed */
    char *file;         /* where the previous values are kept */
    struct saved_setting *saved;
    unsigned count;
};

/* Reads the file in the folder `state`, if there is one. Returns 0 with *s, which the caller gives to
 * settings_free(), or -1 with *e. */
int settings_open(struct settings *s, const char *state, struct error *e);
void settings_free(struct settings *s);

/* Lets an interface have IPv6 addresses where new interfaces have none. Returns 0, or -1 with *e. */
int settings_allow_v6(struct settings *s, const char *interface, struct error *e);

/* Prepares an interface for packets that pass through this host: it forwards them; answers to a packet may come by
 * another way (rp_filter); nobody is told of other ways (send_redirects); neighbours ask for the address of the host
 * at the cable (arp_ignore, arp_filter). All other interfaces keep what they have. Returns 0, or -1 with *e. */
int settings_prepare_interface(struct settings *s, const char *interface, bool v6, struct error *e);

/* Prepares the host: connections, not packets, are spread over paths that are equally short; with `v6`, IPv6 packets
 * are forwarded, and interfaces that learned addresses from routers still do. Returns 0, or -1 with *e. */
int settings_prepare_host(struct settings *s, unsigned rank, bool v6, struct error *e);

/* Says that an interface has a new name, which its settings have too. Returns 0, or -1 with *e. */
int settings_rename(struct settings *s, const char *from, const char *to, struct error *e);

/* Restores all former values, the last change first, and removes the file. Returns 0, or -1 with errno: then the file
 * stays, for another try. */
int settings_restore(struct settings *s);

/* Whether an interface forwards packets, as the kernel says now. */
bool settings_forwards(const struct settings *s, const char *interface, bool v6);

/* Files in the state folder. Whoever can write there must not lead a process of root to other files. */

/* Opens a regular file, which is made if it does not exist and `flags` (of open(2)) have O_CREAT. Returns a descriptor;
 * or -1 with errno, ELOOP if it is a link or anything else but a file. */
int state_file_descriptor(const char *path, int flags);

/* The same as a stream: mode "r", "w" or "a". */
FILE *state_file_open(const char *path, const char *mode);
