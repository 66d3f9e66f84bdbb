#include "daemon/torusd/settings.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/lib/base/limits.h"
#include "daemon/lib/base/log.h"
#include "daemon/lib/net/sockets.h"
#include "daemon/torusd/from_env.h"
#include "proto/frame.h"
#include "proto/text.h"

#define OUTPUT_MODE_MOST 02777ul /* set-group-ID makes sense, the other special bits do not */
#define LEAST_MEMORY (1024u * 1024u)
#define LEAST_HEARTBEAT_MS 10u
#define LEAST_SILENCE_MS (unsigned)(ROUTER_SILENCE_LEAST / MILLISECONDS)
#define MOST_HEARTBEAT_MS 5000u
#define MOST_SILENCE_MS 600000u
#define PORT_WORD_SIZE 32 /* longer words are not ports */

static int set_text(char *out, size_t size, const char *name, const char *value, struct error *e)
{
    if (strlen(value) >= size)
        return error_set(e, ERROR_USAGE, "%s is too long: %zu bytes, at most %zu are possible",
                         name, strlen(value), size - 1);
    (void)strcpy(out, value);
    return 0;
}

static int set_dims(struct config *c, const char *value, struct error *e)
{
    c->have_dims = true;
    return torus_parse(&c->torus, value, e);
}

/* Whether this is a whole number in this range; then stores it. */
static bool is_whole(const char *value, uint64_t least, uint64_t most, uint64_t *number)
{
    char *end;

    errno = 0;
    *number = strtoull(value, &end, 10);
    return value[0] >= '0' && value[0] <= '9' && *end == '\0' && errno == 0 && *number >= least &&
           *number <= most;
}

static int set_rank(struct config *c, const char *value, struct error *e)
{
    uint64_t rank;

    if (!is_whole(value, 0, TORUS_MAX_NODES - 1, &rank))
        return error_set(e, ERROR_USAGE, "rank \"%.40s\" is not a number such as 0", value);
    c->rank = (uint32_t)rank;
    c->have_rank = true;
    return 0;
}

static int set_encrypt(struct config *c, const char *value, struct error *e)
{
    c->encrypt = strcmp(value, "yes") == 0;
    if (!c->encrypt && strcmp(value, "no") != 0)
        return error_set(e, ERROR_USAGE, "encrypt \"%.40s\" is neither yes nor no", value);
    return 0;
}

static int add_root(struct config *c, const char *folder, struct error *e)
{
    if (folder[0] == '\0')
        return error_set(e, ERROR_USAGE, "the name of a data root is empty");
    return roots_add(&c->roots, file_system_posix(), folder, e);
}

/* A folder whose name has a colon cannot be in the list: --data-root takes it. */
static int set_roots(struct config *c, const char *value, struct error *e)
{
    char *list = strdup(value), *rest = list, *one;
    int result = list != NULL ? 0 : error_set(e, ERROR_MEMORY, "out of memory for data_roots");

    while (result == 0 && rest != NULL && (one = strsep(&rest, ":")) != NULL)
        if (*one != '\0')
            result = add_root(c, one, e);
    if (result != 0 && strchr(value, ':') != NULL)
        error_wrap(e,
                   "data_roots \"%.80s\" (colons separate folders; give a folder with a colon in "
                   "its name by --data-root)",
                   value);
    free(list);
    return result;
}

static int set_output_mode(struct config *c, const char *value, struct error *e)
{
    char *end;
    unsigned long mode = strtoul(value, &end, 8);

    if (value[0] < '0' || value[0] > '7' || *end != '\0' || (mode & ~OUTPUT_MODE_MOST) != 0 ||
        (mode & 0700u) != 0700u)
        return error_set(e, ERROR_USAGE,
                         "output_mode \"%.40s\" is not a mode of folders such as 0750, with all "
                         "rights for the owner",
                         value);
    c->output_mode = (mode_t)mode;
    return 0;
}

static bool parse_number(const char *value, double least, double *number)
{
    char *end;

    *number = strtod(value, &end);
    return end != value && *end == '\0' && isfinite(*number) && *number >= least;
}

static int set_link_mbit(struct config *c, const char *value, struct error *e)
{
    if (!parse_number(value, 0, &c->link_mbit))
        return error_set(e, ERROR_USAGE, "link_mbit \"%.40s\" is not a rate in Mbit/s", value);
    return 0;
}

static int set_link_burst(struct config *c, const char *value, struct error *e)
{
    if (text_parse_bytes(value, &c->link_burst) != 0)
        return error_set(e, ERROR_USAGE, "link_burst \"%.40s\" is not a size such as 64KiB", value);
    return 0;
}

static int set_daemons_per_processor(struct config *c, const char *value, struct error *e)
{
    if (!parse_number(value, 1, &c->daemons_per_processor))
        return error_set(e, ERROR_USAGE,
                         "daemons_per_processor \"%.40s\" is not a number, 1 or higher", value);
    return 0;
}

static int set_memory(struct config *c, const char *value, struct error *e)
{
    if (text_parse_bytes(value, &c->memory) != 0)
        return error_set(e, ERROR_USAGE, "memory \"%.40s\" is not a size such as 64MiB", value);
    if (c->memory < LEAST_MEMORY)
        return error_set(e, ERROR_USAGE, "memory %s is too little: at least 1MiB is needed", value);
    return 0;
}

static int set_milliseconds(const char *name, const char *value, uint64_t least, uint64_t most,
                            uint64_t *milliseconds, struct error *e)
{
    if (!is_whole(value, least, most, milliseconds))
        return error_set(e, ERROR_USAGE,
                         "%s \"%.40s\" is not a number of milliseconds from %" PRIu64
                         " to %" PRIu64,
                         name, value, least, most);
    return 0;
}

static int set_heartbeat(struct config *c, const char *value, struct error *e)
{
    return set_milliseconds("heartbeat_ms", value, LEAST_HEARTBEAT_MS, MOST_HEARTBEAT_MS,
                            &c->heartbeat_ms, e);
}

static int set_silence(struct config *c, const char *value, struct error *e)
{
    return set_milliseconds("silence_ms", value, LEAST_SILENCE_MS, MOST_SILENCE_MS, &c->silence_ms,
                            e);
}

static int set_metrics(struct config *c, const char *value, struct error *e)
{
    struct endpoint endpoint;

    if (value[0] != '\0' && endpoint_parse_own(value, &endpoint, e) != 0)
        return error_wrap(e, "metrics");
    return set_text(c->metrics, sizeof c->metrics, "metrics", value, e);
}

static int set_hop_limit(struct config *c, const char *value, struct error *e)
{
    uint64_t limit;

    if (!is_whole(value, 1, HOPS_MOST, &limit))
        return error_set(e, ERROR_USAGE, "hop_limit \"%.40s\" is not a number from 1 to %u", value,
                         HOPS_MOST);
    c->hop_limit = (unsigned)limit;
    return 0;
}

static int set_io_threads(struct config *c, const char *value, struct error *e)
{
    uint64_t count;

    if (strcmp(value, "auto") == 0) {
        c->io_threads = IO_THREADS_AUTO;
        return 0;
    }
    if (!is_whole(value, 0, IO_THREADS_MOST, &count))
        return error_set(e, ERROR_USAGE,
                         "io_threads \"%.40s\" is neither auto nor a number from 0 to %u", value,
                         IO_THREADS_MOST);
    c->io_threads = (int)count;
    return 0;
}

static int set_log_level(struct config *c, const char *value, struct error *e)
{
    c->log_level = log_level_parse(value);
    if (c->log_level < 0)
        return error_set(e, ERROR_USAGE, "log_level \"%.40s\" is not error, warning, info or debug",
                         value);
    return 0;
}

static int set_protocol_minor(struct config *c, const char *value, struct error *e)
{
    uint64_t minor;

    if (!is_whole(value, 0, PROTOCOL_MINOR, &minor))
        return error_set(
            e, ERROR_USAGE,
            "protocol_minor \"%.40s\" is not a minor version of the peer protocol that "
            "this torusd speaks, from 0 to %u",
            value, PROTOCOL_MINOR);
    c->protocol_minor = (uint32_t)minor;
    return 0;
}

/* Whether this can be a port: its dimension is a digit below TORUS_MAX_DIMS. */
static bool is_port(const char *name)
{
    bool has_sign = name[0] == '+' || name[0] == '-';
    const char *dim = name + has_sign, *neighbour = dim + 2;

    if (dim[0] < '0' || dim[0] >= '0' + TORUS_MAX_DIMS)
        return false;
    if (has_sign)
        return dim[1] == '\0';
    return dim[1] == ':' && neighbour[0] != '\0' &&
           strspn(neighbour, "0123456789") == strlen(neighbour);
}

/* Returns the port of this name, which is added if it is not there. On failure returns NULL with *e: the name is not that
 * of a port, there are too many ports, or memory is short. */
static struct named_port *name_port(struct config *c, const char *name, struct error *e)
{
    struct named_port *named;
    unsigned at = 0;

    if (!is_port(name) || strlen(name) >= sizeof named->name) {
        (void)error_set(e, ERROR_USAGE, "\"%.20s\" is not a port such as +0, -1 or 0:3", name);
        return NULL;
    }
    while (at < c->nameds && strcmp(c->named[at].name, name) != 0)
        at++;
    if (at == TORUS_MAX_PORTS) {
        (void)error_set(e, ERROR_USAGE, "port %s: a node has at most %d ports", name,
                        TORUS_MAX_PORTS);
        return NULL;
    }
    if (at < c->nameds)
        return &c->named[at];
    named = realloc(c->named, (c->nameds + 1) * sizeof *named);
    if (named == NULL) {
        (void)error_set(e, ERROR_MEMORY, "out of memory for port %s", name);
        return NULL;
    }
    c->named = named;
    named[c->nameds] = (struct named_port){.line = c->line};
    (void)strcpy(named[c->nameds].name, name);
    return &named[c->nameds++];
}

static int set_endpoint(struct config *c, const char *name, const char *value, struct error *e)
{
    struct named_port *named = name_port(c, name, e);
    struct endpoint endpoint;

    if (named == NULL)
        return -1;
    if (endpoint_parse(value, &endpoint, e) != 0)
        return error_wrap(e, "port %s", name);
    named->endpoint = endpoint;
    return 0;
}

static int set_rate(struct config *c, const char *name, const char *value, struct error *e)
{
    struct named_port *named = name_port(c, name, e);

    if (named == NULL)
        return -1;
    if (!nominal_rate_parse(value, &named->rate))
        return error_set(e, ERROR_USAGE,
                         "link_mbit \"%.40s\" of port %s is not a rate in Mbit/s such as 1000, or "
                         "2/20 for a link that sends at 2 and receives at 20",
                         value, name);
    return 0;
}

/* Whether this is "+0.link_mbit"; then writes "+0" to `port`. */
static bool is_rate_of_port(const char *name, char port[PORT_WORD_SIZE])
{
    const size_t length = strlen(name), suffix = sizeof PORT_RATE_SUFFIX - 1;

    if (length < suffix || strcmp(name + length - suffix, PORT_RATE_SUFFIX) != 0)
        return false;
    (void)snprintf(port, PORT_WORD_SIZE, "%.*s", (int)(length - suffix), name);
    return true;
}

bool config_names_port(const char *name)
{
    size_t digits = strspn(name, "0123456789");

    return name[0] == '+' || name[0] == '-' || (digits > 0 && name[digits] == ':');
}

/* The value of the option --link-mbit, "1000" or "+0=1000". */
static int set_link_mbit_option(struct config *c, const char *value, struct error *e)
{
    char name[PORT_WORD_SIZE];
    const char *equals = strchr(value, '=');

    if (equals == NULL)
        return set_link_mbit(c, value, e);
    (void)snprintf(name, sizeof name, "%.*s", (int)(equals - value), value);
    return set_rate(c, name, equals + 1, e);
}

/* The value of the option --port, "+0=10.0.0.2:7411". */
static int set_port(struct config *c, const char *value, struct error *e)
{
    char name[PORT_WORD_SIZE];
    const char *equals = strchr(value, '=');

    if (equals == NULL)
        return error_set(e, ERROR_USAGE, "--port %s is not PORT=ADDRESS, such as +0=10.0.0.2:7411",
                         value);
    (void)snprintf(name, sizeof name, "%.*s", (int)(equals - value), value);
    return set_endpoint(c, name, equals + 1, e);
}

static int set_from_env(struct config *c, const char *value, struct error *e)
{
    (void)value, (void)e;
    c->from_env.on = true;
    return 0;
}

static int set_cluster(struct config *c, const char *value, struct error *e)
{
    if (strlen(value) >= sizeof c->from_env.cluster)
        return error_set(e, ERROR_USAGE, "the path of --cluster is too long");
    (void)strcpy(c->from_env.cluster, value);
    return 0;
}

static int set_host_name(struct config *c, const char *value, struct error *e)
{
    if (value[0] == '\0' || strlen(value) >= sizeof c->from_env.name)
        return error_set(e, ERROR_USAGE, "--name: the name of a host has 1 to %zu characters",
                         sizeof c->from_env.name - 1);
    (void)strcpy(c->from_env.name, value);
    return 0;
}

#define PLACE(set, when, kind, field)                                                              \
    SETTING_##when, SETTING_##kind, set, offsetof(struct config, field),                           \
        sizeof(((struct config *)0)->field)
#define NO_PLACE SETTING_NEVER, SETTING_TEXT, NULL, 0, 0

const struct setting config_settings[] = {
    {"config", NULL, "FILE", NULL, NO_PLACE,
     "read the settings from this INI file (see torusd.ini(5)); options override it"},
    {"dims", "dims", "RxC", NULL, PLACE(set_dims, AT_START, DIMS, torus),
     "dimensions of the torus, such as 4x4 or 3x4x5; in \"4x8m\" the last\n"
     "dimension does not wrap. Other networks are products of 4 (a ring), 4m (a\n"
     "line), complete:4, star:5, tree:2^3 and graph:FILE (a list of edges), such as\n"
     "\"complete:4\", \"8 x complete:3\" or \"2m^5\""},
    {"rank", "rank", "N", NULL, PLACE(set_rank, AT_START, VALUE, rank),
     "rank of this node: nodes are counted from 0, the last dimension fastest"},
    {"coordinates", "coordinates", "X,Y", NULL, PLACE(NULL, NEVER, TEXT, coordinates),
     "coordinates of this node, instead of its rank"},
    {"port", NULL, "PORT=ADDRESS", set_port, NO_PLACE,
     "address of a port, once for each port with a cable. A + port dials the\n"
     "neighbour's address: --port +0=10.0.0.2:7411. A - port listens on this\n"
     "node's own address: --port -0=10.0.1.1:7411. In factors that are neither\n"
     "rings nor lines, port 0:3 leads along dimension 0 to the neighbour with\n"
     "coordinate 3, and the end with the smaller coordinate dials. [fd00::1]:7411,\n"
     "[fe80::1%eth0]:7411 and name:7411 are addresses, too; \" on eth0\" after\n"
     "an address restricts the port to that interface. torusd waits for an\n"
     "address or an interface that does not exist yet"},
    {"control", "control", "PATH", NULL, PLACE(NULL, AT_START, TEXT, control),
     "control socket (default: " DEFAULT_CONTROL ")"},
    {"read-group", "read_group", "GROUP", NULL, PLACE(NULL, NOW, TEXT, group[ACCESS_READ]),
     "members of this group may ask for the state (torusctl status, links)"},
    {"exchange-group", "exchange_group", "GROUP", NULL,
     PLACE(NULL, NOW, TEXT, group[ACCESS_EXCHANGE]),
     "members of this group may also exchange, and open groups of programs"},
    {"admin-group", "admin_group", "GROUP", NULL, PLACE(NULL, NOW, TEXT, group[ACCESS_ADMIN]),
     "members of this group may also change settings (torusctl calibrate). Each\n"
     "of the three groups that is not named is the daemon's group. If none is\n"
     "named, the daemon's user and group may connect, and may do everything"},
    {"data-root", "data_roots", "DIR", add_root, PLACE(set_roots, NOW, ROOTS, roots),
     "exchanges may read and write files below folder DIR. The option may be\n"
     "repeated; the setting is a list of folders separated by colons"},
    {"output-mode", "output_mode", "MODE", NULL, PLACE(set_output_mode, NOW, VALUE, output_mode),
     "permissions of new folders for results, such as 0750 (default: 0700). Files\n"
     "in them get the same permissions without execution. An existing folder\n"
     "keeps its permissions"},
    {"state-dir", "state_dir", "DIR", NULL, PLACE(NULL, AT_START, TEXT, state_folder),
     "folder for records that must survive a crash or power failure (default:\n" DEFAULT_STATE
     "). Each daemon needs a folder of its own, on a disk if the\n"
     "data roots are on disks"},
    {"key-file", "key_file", "FILE", NULL, PLACE(NULL, NOW, TEXT, key_file),
     "the cluster key (see torusctl-key(1)), which is the same on all nodes.\n"
     "Neighbours prove to each other that they have it. Without a key, anybody\n"
     "who reaches a port can speak to the daemon"},
    {"second-key-file", "second_key_file", "FILE", NULL, PLACE(NULL, NOW, TEXT, second_key_file),
     "a second key that is accepted while keys are changed; the file may be\n"
     "missing"},
    {"encrypt", "encrypt", "yes|no", NULL, PLACE(set_encrypt, AT_START, VALUE, encrypt),
     "encrypt all links (default: no); every node needs the same value"},
    {"link-mbit", "link_mbit", "RATE", set_link_mbit_option,
     PLACE(set_link_mbit, NOW, VALUE, link_mbit),
     "nominal rate of a link in Mbit/s, for the lower bound in reports. A rate up\n"
     "to 500 Mbit/s also paces TCP. PORT=RATE is the rate of one link, if it\n"
     "is another one: --link-mbit 1000 --link-mbit +0=100. In \"+0=2/20\" the port sends\n"
     "at 2 Mbit/s and receives at 20. In torusd.ini: \"+0.link_mbit = 100\""},
    {"link-burst", "link_burst", "SIZE", NULL, PLACE(set_link_burst, AT_START, VALUE, link_burst),
     "bytes that a link passes at once before it limits its rate, as token\n"
     "buckets do (default: 0, as a cable does)"},
    {"daemons-per-processor", "daemons_per_processor", "N", NULL,
     PLACE(set_daemons_per_processor, AT_START, VALUE, daemons_per_processor),
     "how many daemons share a processor of this machine, on average (default:\n"
     "1). The prediction of times uses it until torusctl calibrate has been run"},
    {"memory", "memory", "SIZE", NULL, PLACE(set_memory, NOW, MEMORY, memory),
     "memory for blocks in transit, of all exchanges together (default: 96MiB)"},
    {"heartbeat-ms", "heartbeat_ms", "TIME", NULL,
     PLACE(set_heartbeat, AT_START, VALUE, heartbeat_ms),
     "milliseconds between two heartbeats on each link (default: 250)"},
    {"silence-ms", "silence_ms", "TIME", NULL, PLACE(set_silence, AT_START, VALUE, silence_ms),
     "milliseconds without data from a neighbour, and without acknowledgements\n"
     "of its system, after which its link is down (default: 1000; at least 300,\n"
     "and twice the time between heartbeats). If the neighbour's system answers\n"
     "and its torusd does not, the link is down after 5 s, or after this time if\n"
     "it is longer"},
    {"congestion", "congestion", "NAME", NULL, PLACE(NULL, AT_START, TEXT, congestion),
     "TCP congestion control of the links (default: reno; \"\" keeps the one of\n"
     "the system)"},
    {"hop-limit", "hop_limit", "N", NULL, PLACE(set_hop_limit, AT_START, VALUE, hop_limit),
     "how many hosts away a neighbour may be (default: 1, the other end of the\n"
     "cable; a route over a third host does not work). 2 to 255 are for links\n"
     "that are tunnels, or routed on purpose"},
    {"io-threads", "io_threads", "N", NULL, PLACE(set_io_threads, AT_START, VALUE, io_threads),
     "threads that encrypt and decrypt long frames of encrypted links, beside the one\n"
     "that does everything else; 0: none. Links of up to 500 Mbit/s need none.\n"
     "Default: auto, by the processors (as many as may be used, divided by the\n"
     "daemons of this machine): none for less than 4, else half of them, at most 4"},
    {"metrics", "metrics", "ADDRESS", NULL, PLACE(set_metrics, AT_START, TEXT, metrics),
     "let monitoring (Prometheus) read counters of the links, exchanges and memory\n"
     "at http://ADDRESS/metrics, and whether the torus is whole at /healthz, such as\n"
     "[::1]:9101, or 10.0.0.5:9101 for a server elsewhere (default: nobody reads\n"
     "them). Whoever reaches the address may read. Port 0 is any free port, which\n"
     "torusctl status shows"},
    {"protocol-minor", "protocol_minor", "N", NULL,
     PLACE(set_protocol_minor, AT_START, VALUE, protocol_minor),
     "speak an older minor version of the peer protocol (\"--version\" shows the\n"
     "newest), to try out how nodes of two releases work together"},
    {"log-level", "log_level", "LEVEL", NULL, PLACE(set_log_level, NOW, VALUE, log_level),
     "error, warning, info (default) or debug"},
    {"check", NULL, NULL, NULL, NO_PLACE, "check the settings, and start nothing"},
    {"from-env", NULL, NULL, set_from_env, NO_PLACE,
     "run a node for the time of a job that srun, mpiexec or ssh has started: the\n"
     "settings come from the cluster file, and the folders are those of the job.\n"
     "The node ends when the process that started it ends. See torusd(8)"},
    {"cluster", NULL, "FILE", set_cluster, NO_PLACE,
     "with --from-env: the cluster file, as for torusctl init (default:\n" DEFAULT_CLUSTER_FILE
     ")"},
    {"name", NULL, "NAME", set_host_name, NO_PLACE,
     "with --from-env: this host's name (default: as 'uname -n' prints it)"},
    {"help", NULL, NULL, NULL, NO_PLACE, "print the options"},
    {"version", NULL, NULL, NULL, NO_PLACE, "print the version, and those of the protocols"},
    {0},
};

int config_set(struct config *c, const char *name, const char *value, struct error *e)
{
    char port[PORT_WORD_SIZE];

    if (config_names_port(name))
        return is_rate_of_port(name, port) ? set_rate(c, port, value, e)
                                           : set_endpoint(c, name, value, e);
    for (const struct setting *s = config_settings; s->option != NULL; s++)
        if (s->name != NULL && strcmp(s->name, name) == 0)
            return s->set != NULL ? s->set(c, value, e)
                                  : set_text((char *)c + s->offset, s->size, name, value, e);
    return error_set(e, ERROR_USAGE, "unknown setting \"%.40s\"", name);
}
