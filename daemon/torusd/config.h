/* The configuration of a daemon: from an INI file, from options, or from both (options win). */
#pragma once

#include <limits.h>

#include "daemon/lib/base/nominal_rate.h"
#include "daemon/lib/net/access.h"
#include "daemon/lib/net/address.h"
#include "daemon/lib/schedule/torus.h"
#include "daemon/torusd/disk/roots.h"
#include "daemon/torusd/router/handshake.h"

/* The settings of one port, found by its name. */
struct named_port {
    char name[TORUS_PORT_NAME_SIZE];
    struct endpoint endpoint; /* TCP port 0: not given */
    struct nominal_rate rate; /* 0: not given */
    uint32_t
        line; /* the first line of the configuration that mentions the port; 0: an option does */
};

/* The options of torusd --from-env, and what it has found out. */
struct from_env_config {
    bool on;
    pid_t parent; /* the process that has started this one, which may have ended since */
    bool guessed; /* the rank is the launcher's, because the cluster file does not have this host */
    char cluster[PATH_MAX]; /* "": the default */
    char name[65];          /* of this host; "": that of the system */
    char job[64];
    char note[400]; /* for the log; "": none */
};

struct config {
    struct from_env_config from_env;
    struct torus torus;
    bool have_dims;
    uint32_t rank;
    bool have_rank;
    char coordinates[96]; /* "1,2", checked when the dimensions are known */
    char control[PATH_MAX];
    char group[ACCESSES][ACCESS_NAME_SIZE]; /* names of groups; "": that of the daemon */
    char state_folder[PATH_MAX];
    char key_file[PATH_MAX];        /* "": no cluster key */
    char second_key_file[PATH_MAX]; /* "": none; the file may be missing */
    bool encrypt;
    struct roots roots;
    mode_t output_mode;           /* mode of folders that are made for results */
    double link_mbit;             /* of the ports that have no rate of their own; 0: unknown */
    uint64_t link_burst;          /* bytes that a link passes at once after a pause */
    double daemons_per_processor; /* at least 1 */
    uint64_t memory;
    uint64_t heartbeat_ms, silence_ms; /* see daemon/lib/base/limits.h */
    char congestion[16];
    char metrics[ENDPOINT_TEXT_SIZE]; /* the address for monitoring; "": none */
    int io_threads;                   /* IO_THREADS_AUTO: by the processors */
    unsigned hop_limit; /* limit for the hops of links, see daemon/lib/net/sockets.h */
    int log_level;
    uint32_t protocol_minor; /* of the peer protocol, at most PROTOCOL_MINOR */
    /* The settings of ports. A port has a name here, because its number depends on the rank. */
    struct named_port *named;
    unsigned nameds;
    char file[PATH_MAX]; /* that was read last, */
    uint32_t line;       /* and the line that is being read; 0: none */
    /* By port, after config_finish(): */
    struct endpoint *endpoint;                 /* NULL before; without a link, the TCP port is 0 */
    struct nominal_rate rate[TORUS_MAX_PORTS]; /* of its own; 0: it has none */
};

/* Fills *c with the defaults. The caller gives it to config_free(). */
void config_init(struct config *c);
void config_free(struct config *c);

/* Reads a file into *c. Returns 0, or -1 with *e naming the file and line. */
int config_read(struct config *c, const char *path, struct error *e);

/* Checks that the settings are complete and consistent, and computes values that follow from them. Returns 0,
 * or -1 with *e. */
int config_finish(struct config *c, struct error *e);

/* Returns the nominal rate of a port: its own, or link_mbit. To be called after config_finish(). */
struct nominal_rate config_port_rate(const struct config *c, unsigned port);

/* Reads the cluster keys from their files. Returns 0, or -1 with *e and *secrets unchanged. */
int config_read_keys(const struct config *c, struct secrets *secrets, struct error *e);
/* Overwrites keys with zeros. */
void config_forget_keys(struct secrets *secrets);

/* Finds the groups of the settings. Returns 0, or -1 with *e: there is no such group. */
int config_read_groups(const struct config *c, struct access_rules *rules, struct error *e);

/* What differs between the settings of a running daemon and those that have been read again. */

#define CONFIG_CHANGES_SIZE 512u

/* Lists the names of settings that differ ("log_level, data_roots"): those that config_take_changes() or the caller
 * can change while the daemon runs, and the others. `roots` are the data roots in use. */
void config_changes(const struct config *now, const struct roots *roots, const struct config *fresh,
                    char changed[CONFIG_CHANGES_SIZE], char others[CONFIG_CHANGES_SIZE]);

/* Copies the settings that can change while the daemon runs, except the data roots. */
void config_take_changes(struct config *now, const struct config *fresh);
