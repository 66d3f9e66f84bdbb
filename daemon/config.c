#include "daemon/config.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/net/sockets/hops.h"
#include "daemon/router/interface/limits.h"
#include "proto/ini.h"
#include "proto/text.h"

#define CONFIG_BYTES_MOST (1u << 20)
#define DEFAULT_CONTROL "/run/torusd/control.sock"
#define DEFAULT_OUTPUT_MODE 0700
#define OUTPUT_MODE_MOST 02777ul /* set-group-ID makes sense, the other special bits do not */
#define DEFAULT_STATE "/var/lib/torusd"
/* Four groups on a torus of two dimensions, three of them of one user. */
#define DEFAULT_MEMORY (96u * 1024u * 1024u)
#define LEAST_MEMORY (1024u * 1024u)
#define LEAST_HEARTBEAT_MS 10u
#define LEAST_SILENCE_MS (unsigned)(ROUTER_SILENCE_LEAST / MILLISECONDS)
#define MOST_HEARTBEAT_MS 5000u
#define MOST_SILENCE_MS 600000u

void config_init(struct config *c)
{
    *c = (struct config){.daemons_per_processor = 1,
                         .memory = DEFAULT_MEMORY,
                         .output_mode = DEFAULT_OUTPUT_MODE,
                         .heartbeat_ms = ROUTER_HEARTBEAT / MILLISECONDS,
                         .silence_ms = ROUTER_SILENCE / MILLISECONDS,
                         .hop_limit = HOPS_DEFAULT,
                         .log_level = LOG_LEVEL_INFO};
    (void)strcpy(c->control, DEFAULT_CONTROL);
    (void)strcpy(c->state_folder, DEFAULT_STATE);
    (void)strcpy(c->congestion, "reno");
}

void config_free(struct config *c)
{
    roots_free(&c->roots);
}

static int copy(char *out, size_t size, const char *name, const char *value, struct error *e)
{
    if (strlen(value) >= size)
        return error_set(e, ERROR_USAGE, "%s: %zu bytes are too long, at most %zu are possible",
                         name, strlen(value), size - 1);
    (void)strcpy(out, value);
    return 0;
}

static int set_dims(struct config *c, const char *value, struct error *e)
{
    c->have_dims = true;
    return torus_parse(&c->torus, value, e);
}

static int set_rank(struct config *c, const char *value, struct error *e)
{
    char *end;
    unsigned long rank;

    errno = 0;
    rank = strtoul(value, &end, 10);
    if (value[0] < '0' || value[0] > '9' || *end != '\0' || errno != 0 || rank >= TORUS_MAX_NODES)
        return error_set(e, ERROR_USAGE, "rank \"%.40s\" is not a rank", value);
    c->rank = (uint32_t)rank;
    c->have_rank = true;
    return 0;
}

static int set_coordinates(struct config *c, const char *value, struct error *e)
{
    return copy(c->coordinates, sizeof c->coordinates, "coordinates", value, e);
}

static int set_control(struct config *c, const char *value, struct error *e)
{
    return copy(c->control, sizeof c->control, "control", value, e);
}

static int set_state(struct config *c, const char *value, struct error *e)
{
    return copy(c->state_folder, sizeof c->state_folder, "state_dir", value, e);
}

static int set_key_file(struct config *c, const char *value, struct error *e)
{
    return copy(c->key_file, sizeof c->key_file, "key_file", value, e);
}

static int set_second_key_file(struct config *c, const char *value, struct error *e)
{
    return copy(c->second_key_file, sizeof c->second_key_file, "second_key_file", value, e);
}

static int set_encrypt(struct config *c, const char *value, struct error *e)
{
    c->encrypt = strcmp(value, "yes") == 0;
    if (!c->encrypt && strcmp(value, "no") != 0)
        return error_set(e, ERROR_USAGE, "encrypt \"%.40s\": yes or no", value);
    return 0;
}

static int set_group(struct config *c, enum access access, const char *value, struct error *e)
{
    return copy(c->group[access], sizeof c->group[access], access_setting(access), value, e);
}

static int set_read_group(struct config *c, const char *value, struct error *e)
{
    return set_group(c, ACCESS_READ, value, e);
}

static int set_exchange_group(struct config *c, const char *value, struct error *e)
{
    return set_group(c, ACCESS_EXCHANGE, value, e);
}

static int set_admin_group(struct config *c, const char *value, struct error *e)
{
    return set_group(c, ACCESS_ADMIN, value, e);
}

int config_add_root(struct config *c, const char *folder, struct error *e)
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
            result = config_add_root(c, one, e);
    if (result != 0 && strchr(value, ':') != NULL)
        error_wrap(e,
                   "data_roots \"%.80s\" (colons separate folders; one with a colon in its "
                   "name needs --data-root)",
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
                         "daemons_per_processor \"%.40s\" is not a number of at least 1", value);
    return 0;
}

static int set_memory(struct config *c, const char *value, struct error *e)
{
    if (text_parse_bytes(value, &c->memory) != 0)
        return error_set(e, ERROR_USAGE, "memory \"%.40s\" is not a size such as 64MiB", value);
    if (c->memory < LEAST_MEMORY)
        return error_set(e, ERROR_USAGE, "memory %s: at least 1MiB is needed", value);
    return 0;
}

static int set_milliseconds(const char *name, const char *value, uint64_t least, uint64_t most,
                            uint64_t *milliseconds, struct error *e)
{
    char *end;

    errno = 0;
    *milliseconds = strtoull(value, &end, 10);
    if (value[0] < '0' || value[0] > '9' || *end != '\0' || errno != 0 || *milliseconds < least ||
        *milliseconds > most)
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

static int set_congestion(struct config *c, const char *value, struct error *e)
{
    return copy(c->congestion, sizeof c->congestion, "congestion", value, e);
}

static int set_hop_limit(struct config *c, const char *value, struct error *e)
{
    char *end;
    unsigned long limit = strtoul(value, &end, 10);

    if (value[0] < '0' || value[0] > '9' || *end != '\0' || limit < 1 || limit > HOPS_MOST)
        return error_set(e, ERROR_USAGE, "hop_limit \"%.40s\" is not a number from 1 to %u", value,
                         HOPS_MOST);
    c->hop_limit = (unsigned)limit;
    return 0;
}

static int set_log_level(struct config *c, const char *value, struct error *e)
{
    c->log_level = log_level_parse(value);
    if (c->log_level < 0)
        return error_set(e, ERROR_USAGE, "log_level \"%.40s\": error, warning, info or debug",
                         value);
    return 0;
}

static const struct {
    const char *name;
    int (*set)(struct config *c, const char *value, struct error *e);
} settings[] = {
    {"dims", set_dims},
    {"rank", set_rank},
    {"coordinates", set_coordinates},
    {"control", set_control},
    {"read_group", set_read_group},
    {"exchange_group", set_exchange_group},
    {"admin_group", set_admin_group},
    {"state_dir", set_state},
    {"key_file", set_key_file},
    {"second_key_file", set_second_key_file},
    {"encrypt", set_encrypt},
    {"data_roots", set_roots},
    {"output_mode", set_output_mode},
    {"link_mbit", set_link_mbit},
    {"link_burst", set_link_burst},
    {"memory", set_memory},
    {"heartbeat_ms", set_heartbeat},
    {"silence_ms", set_silence},
    {"congestion", set_congestion},
    {"hop_limit", set_hop_limit},
    {"log_level", set_log_level},
    {"daemons_per_processor", set_daemons_per_processor},
};

int config_set(struct config *c, const char *name, const char *value, struct error *e)
{
    if (name[0] == '+' || name[0] == '-') {
        const struct torus largest = {.dims = TORUS_MAX_DIMS};
        int port = torus_port_parse(&largest, name);
        if (port < 0)
            return error_set(e, ERROR_USAGE, "\"%.20s\" is not a port such as +0 or -1", name);
        if (endpoint_parse(value, &c->endpoint[port], e) != 0)
            return error_wrap(e, "port %s", name);
        return 0;
    }
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++)
        if (strcmp(settings[i].name, name) == 0)
            return settings[i].set(c, value, e);
    return error_set(e, ERROR_USAGE, "unknown setting \"%.40s\"", name);
}

static int on_line(void *context, const struct ini_line *line, struct error *e)
{
    bool is_port;

    if (line->name == NULL) {
        if (strcmp(line->section, "node") == 0 || strcmp(line->section, "ports") == 0)
            return 0;
        return error_set(e, ERROR_USAGE, "unknown section [%.40s]: there are [node] and [ports]",
                         line->section);
    }
    is_port = line->name[0] == '+' || line->name[0] == '-';
    if (line->section[0] == '\0')
        return error_set(e, ERROR_USAGE, "\"%.40s\" above the first section; it belongs in [%s]",
                         line->name, is_port ? "ports" : "node");
    if (strcmp(line->section, is_port ? "ports" : "node") != 0)
        return error_set(e, ERROR_USAGE, "\"%.40s\" in section [%.40s]; it belongs in [%s]",
                         line->name, line->section, is_port ? "ports" : "node");
    return config_set(context, line->name, line->value, e);
}

int config_read(struct config *c, const char *path, struct error *e)
{
    static const struct text_kind configuration = {.name = "a configuration",
                                                   .most = CONFIG_BYTES_MOST};

    return ini_read(path, &configuration, on_line, c, e);
}

static int rank_of_coordinates(struct config *c, struct error *e)
{
    uint32_t at[TORUS_MAX_DIMS];
    const char *text = c->coordinates;

    for (unsigned i = 0; i < c->torus.dims; i++) {
        char *end;
        unsigned long v = strtoul(text, &end, 10);
        char expected = i + 1 < c->torus.dims ? ',' : '\0';
        if (end == text || *text < '0' || *text > '9' || *end != expected || v >= c->torus.size[i])
            return error_set(e, ERROR_USAGE, "coordinates \"%s\": %u %s below its dimension",
                             c->coordinates, c->torus.dims,
                             text_plural(c->torus.dims, "number", "numbers with commas, each"));
        at[i] = (uint32_t)v;
        text = end + 1;
    }
    uint32_t rank = torus_rank(&c->torus, at);
    if (c->have_rank && c->rank != rank)
        return error_set(e, ERROR_USAGE, "coordinates %s are rank %u, not %u", c->coordinates, rank,
                         c->rank);
    c->rank = rank;
    c->have_rank = true;
    return 0;
}

int config_finish(struct config *c, struct error *e)
{
    char name[TORUS_PORT_NAME_SIZE], dims[TORUS_TEXT_SIZE];

    if (!c->have_dims)
        return error_set(e, ERROR_USAGE, "dims is missing (such as --dims 4x4)");
    if (c->coordinates[0] != '\0' && rank_of_coordinates(c, e) != 0)
        return -1;
    if (!c->have_rank)
        return error_set(e, ERROR_USAGE, "rank or coordinates is missing");
    if (c->rank >= c->torus.nodes)
        return error_set(e, ERROR_USAGE, "rank %u: %s has ranks 0 to %u", c->rank,
                         torus_format(&c->torus, dims), c->torus.nodes - 1);
    for (unsigned port = 0; port < TORUS_MAX_PORTS; port++) {
        bool linked = port < torus_ports(&c->torus) &&
                      torus_neighbour(&c->torus, c->rank, port) != TORUS_NO_NODE;
        (void)torus_port_name(port, name);
        if (!linked && c->endpoint[port].port != 0)
            return error_set(e, ERROR_USAGE,
                             "port %s has an address, but node %u of %s has no link there", name,
                             c->rank, torus_format(&c->torus, dims));
        if (linked && c->endpoint[port].port == 0)
            return error_set(e, ERROR_USAGE, "port %s needs an address: the one to %s", name,
                             torus_port_direction(port) > 0 ? "dial (the neighbour's)"
                                                            : "listen on (this node's)");
    }
    if (c->key_file[0] == '\0' && (c->encrypt || c->second_key_file[0] != '\0'))
        return error_set(e, ERROR_USAGE, "%s needs a key_file",
                         c->encrypt ? "encrypt" : "second_key_file");
    if (c->silence_ms < 2 * c->heartbeat_ms)
        return error_set(e, ERROR_USAGE,
                         "silence_ms %" PRIu64 " must be at least twice heartbeat_ms, which is "
                         "%" PRIu64,
                         c->silence_ms, c->heartbeat_ms);
    if (c->state_folder[0] == '\0')
        return error_set(e, ERROR_USAGE, "state_dir must not be empty");
    return 0;
}

int config_read_keys(const struct config *c, struct secrets *secrets, struct error *e)
{
    struct secrets read = {.encrypt = c->encrypt};

    if (c->key_file[0] != '\0') {
        if (key_read(c->key_file, &read.key[0], e) != 0)
            return -1;
        read.count = 1;
    }
    if (c->second_key_file[0] != '\0') {
        if (key_read(c->second_key_file, &read.key[1], e) == 0)
            read.count = 2;
        else if (errno != ENOENT)
            return -1;
    }
    *secrets = read;
    for (unsigned i = 0; i < SECRETS_MOST; i++)
        key_forget(&read.key[i]);
    return 0;
}
