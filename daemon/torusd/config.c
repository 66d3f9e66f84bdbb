#include "daemon/torusd/config.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/lib/base/limits.h"
#include "daemon/lib/base/log.h"
#include "daemon/lib/net/address.h"
#include "daemon/lib/net/sockets.h"
#include "daemon/torusd/settings.h"
#include "proto/frame.h"
#include "proto/ini.h"
#include "proto/text.h"

#define CONFIG_BYTES_MOST (1u << 20)
#define DEFAULT_OUTPUT_MODE 0700
/* Enough for eight groups of all nodes of one user, one of which has all the memory that it may have. */
#define DEFAULT_MEMORY (96u * 1024u * 1024u)

void config_init(struct config *c)
{
    *c = (struct config){.daemons_per_processor = 1,
                         .memory = DEFAULT_MEMORY,
                         .output_mode = DEFAULT_OUTPUT_MODE,
                         .heartbeat_ms = ROUTER_HEARTBEAT / MILLISECONDS,
                         .silence_ms = ROUTER_SILENCE / MILLISECONDS,
                         .hop_limit = HOPS_DEFAULT,
                         .io_threads = IO_THREADS_AUTO,
                         .log_level = LOG_LEVEL_INFO,
                         .protocol_minor = PROTOCOL_MINOR};
    (void)strcpy(c->control, DEFAULT_CONTROL);
    (void)strcpy(c->state_folder, DEFAULT_STATE);
    (void)strcpy(c->congestion, "reno");
}

void config_free(struct config *c)
{
    roots_free(&c->roots);
    free(c->named);
    free(c->endpoint);
    c->named = NULL;
    c->endpoint = NULL;
    c->nameds = 0;
}

static int on_line(void *context, const struct ini_line *line, struct error *e)
{
    bool is_port;

    if (line->name == NULL) {
        if (strcmp(line->section, "node") == 0 || strcmp(line->section, "ports") == 0)
            return 0;
        return error_set(e, ERROR_USAGE,
                         "unknown section [%.40s]: the sections are [node] and [ports]",
                         line->section);
    }
    is_port = config_names_port(line->name);
    if (line->section[0] == '\0')
        return error_set(
            e, ERROR_USAGE,
            "setting \"%.40s\" stands above the first section: move it to section [%s]", line->name,
            is_port ? "ports" : "node");
    if (strcmp(line->section, is_port ? "ports" : "node") != 0)
        return error_set(e, ERROR_USAGE,
                         "setting \"%.40s\" stands in section [%.40s]: move it to section [%s]",
                         line->name, line->section, is_port ? "ports" : "node");
    ((struct config *)context)->line = line->number;
    return config_set(context, line->name, line->value, e);
}

int config_read(struct config *c, const char *path, struct error *e)
{
    static const struct text_kind configuration = {.name = "a configuration",
                                                   .most = CONFIG_BYTES_MOST};

    (void)snprintf(c->file, sizeof c->file, "%s", path);
    int result = ini_read(path, &configuration, on_line, c, e);
    c->line = 0;
    return result;
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
        return error_set(e, ERROR_USAGE,
                         "coordinates %s mean rank %u, but rank is %u: correct one of the two",
                         c->coordinates, rank, c->rank);
    c->rank = rank;
    c->have_rank = true;
    return 0;
}

/* Returns the number of a port that is set, or -1 with *e: there is no such link. */
static int find_named(const struct config *c, const struct named_port *named, struct error *e)
{
    const int port = torus_port_parse(&c->torus, c->rank, named->name);
    char dims[TORUS_TEXT_SIZE];

    if (port >= 0 && torus_neighbour(&c->torus, c->rank, (unsigned)port) != TORUS_NO_NODE)
        return port;
    (void)error_set(e, ERROR_USAGE,
                    "port %s has %s, but node %u of torus %s has no link at this port: remove it",
                    named->name, named->endpoint.port != 0 ? "an address" : "a rate", c->rank,
                    torus_format(&c->torus, dims));
    return named->line > 0 ? error_wrap(e, "%.200s:%u", c->file, named->line) : -1;
}

/* Finds the numbers of the ports that are set; each port with a link must have an address. */
static int set_ports(struct config *c, struct error *e)
{
    char name[TORUS_PORT_NAME_SIZE];

    free(c->endpoint);
    memset(c->rate, 0, sizeof c->rate);
    c->endpoint = calloc(torus_ports(&c->torus), sizeof *c->endpoint);
    if (c->endpoint == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for the addresses of the ports");
    for (unsigned i = 0; i < c->nameds; i++) {
        const int port = find_named(c, &c->named[i], e);
        if (port < 0)
            return -1;
        c->endpoint[port] = c->named[i].endpoint;
        c->rate[port] = c->named[i].rate;
    }
    for (unsigned port = 0; port < torus_ports(&c->torus); port++)
        if (torus_neighbour(&c->torus, c->rank, port) != TORUS_NO_NODE &&
            c->endpoint[port].port == 0)
            return error_set(e, ERROR_USAGE, "port %s needs an address to %s",
                             torus_port_name(&c->torus, c->rank, port, name),
                             torus_port_dials(&c->torus, c->rank, port)
                                 ? "dial (the neighbour's)"
                                 : "listen on (this node's)");
    return 0;
}

struct nominal_rate config_port_rate(const struct config *c, unsigned port)
{
    return c->rate[port].send > 0 ? c->rate[port]
                                  : (struct nominal_rate){c->link_mbit, c->link_mbit};
}

int config_finish(struct config *c, struct error *e)
{
    char dims[TORUS_TEXT_SIZE];

    if (!c->have_dims)
        return error_set(
            e, ERROR_USAGE,
            "dims is missing: give the dimensions of the torus, for example --dims 4x4");
    if (c->coordinates[0] != '\0' && rank_of_coordinates(c, e) != 0)
        return -1;
    if (!c->have_rank)
        return error_set(
            e, ERROR_USAGE,
            "rank is missing: give the rank or the coordinates of this node, for example --rank 0");
    if (c->rank >= c->torus.nodes)
        return error_set(e, ERROR_USAGE, "rank %u does not exist: torus %s has ranks 0 to %u",
                         c->rank, torus_format(&c->torus, dims), c->torus.nodes - 1);
    if (set_ports(c, e) != 0)
        return -1;
    if (c->key_file[0] == '\0' && (c->encrypt || c->second_key_file[0] != '\0'))
        return error_set(e, ERROR_USAGE, "%s is set, but key_file is not: set key_file, too",
                         c->encrypt ? "encrypt" : "second_key_file");
    if (c->silence_ms < 2 * c->heartbeat_ms)
        return error_set(e, ERROR_USAGE,
                         "silence_ms is %" PRIu64
                         ", but must be at least twice heartbeat_ms, which is %" PRIu64,
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

void config_forget_keys(struct secrets *secrets)
{
    for (unsigned i = 0; i < SECRETS_MOST; i++)
        key_forget(&secrets->key[i]);
}

int config_read_groups(const struct config *c, struct access_rules *rules, struct error *e)
{
    const char *const groups[ACCESSES] = {[ACCESS_READ] = c->group[ACCESS_READ],
                                          [ACCESS_EXCHANGE] = c->group[ACCESS_EXCHANGE],
                                          [ACCESS_ADMIN] = c->group[ACCESS_ADMIN]};

    return access_resolve(rules, groups, e);
}

static bool differs(const struct setting *s, const struct config *now, const struct roots *roots,
                    const struct config *fresh)
{
    const char *a = (const char *)now + s->offset, *b = (const char *)fresh + s->offset;
    char dims[2][TORUS_TEXT_SIZE];

    switch (s->kind) {
    case SETTING_TEXT:
        return strcmp(a, b) != 0;
    case SETTING_DIMS:
        return strcmp(torus_format(&now->torus, dims[0]), torus_format(&fresh->torus, dims[1])) !=
               0;
    case SETTING_ROOTS:
        return !roots_are_same(roots, &fresh->roots);
    default:
        return memcmp(a, b, s->size) != 0;
    }
}

static bool is_for_now(const struct setting *s, const struct config *now,
                       const struct config *fresh)
{
    /* Less memory may be reserved already. */
    return s->when == SETTING_NOW && (s->kind != SETTING_MEMORY || fresh->memory >= now->memory);
}

static void list_name(char list[CONFIG_CHANGES_SIZE], const char *name)
{
    size_t used = strlen(list);

    (void)snprintf(list + used, CONFIG_CHANGES_SIZE - used, "%s%s", used > 0 ? ", " : "", name);
}

static const struct named_port *find_port(const struct config *c, const char *name)
{
    for (unsigned i = 0; i < c->nameds; i++)
        if (strcmp(c->named[i].name, name) == 0)
            return &c->named[i];
    return NULL;
}

/* Lists the ports of `a` whose addresses are not the same in `b`; with `missing_only`, those that `b` lacks. */
static void list_ports(const struct config *a, const struct config *b, bool missing_only,
                       char list[CONFIG_CHANGES_SIZE])
{
    char text[2][ENDPOINT_TEXT_SIZE];

    for (unsigned i = 0; i < a->nameds; i++) {
        const struct named_port *other = find_port(b, a->named[i].name);
        if (other != NULL) {
            endpoint_format(&a->named[i].endpoint, text[0], sizeof text[0]);
            endpoint_format(&other->endpoint, text[1], sizeof text[1]);
        }
        if (other == NULL || (!missing_only && strcmp(text[0], text[1]) != 0))
            list_name(list, a->named[i].name);
    }
}

/* Whether both are of the same node, so that the numbers of their ports mean the same. */
static bool is_same_node(const struct config *a, const struct config *b)
{
    return a->rank == b->rank && torus_equal(&a->torus, &b->torus);
}

/* Lists the ports whose own rates differ. */
static void list_rates(const struct config *now, const struct config *fresh,
                       char list[CONFIG_CHANGES_SIZE])
{
    char port_name[TORUS_PORT_NAME_SIZE], name[TORUS_PORT_NAME_SIZE + sizeof PORT_RATE_SUFFIX];

    for (unsigned port = 0; is_same_node(now, fresh) && port < torus_ports(&now->torus); port++) {
        if (memcmp(&now->rate[port], &fresh->rate[port], sizeof now->rate[port]) == 0)
            continue;
        (void)snprintf(name, sizeof name, "%s%s",
                       torus_port_name(&now->torus, now->rank, port, port_name), PORT_RATE_SUFFIX);
        list_name(list, name);
    }
}

void config_changes(const struct config *now, const struct roots *roots, const struct config *fresh,
                    char changed[CONFIG_CHANGES_SIZE], char others[CONFIG_CHANGES_SIZE])
{
    changed[0] = others[0] = '\0';
    for (const struct setting *s = config_settings; s->option != NULL; s++)
        if (s->when != SETTING_NEVER && differs(s, now, roots, fresh))
            list_name(is_for_now(s, now, fresh) ? changed : others, s->name);
    list_rates(now, fresh, changed);
    list_ports(fresh, now, false, others);
    list_ports(now, fresh, true, others);
}

void config_take_changes(struct config *now, const struct config *fresh)
{
    for (const struct setting *s = config_settings; s->option != NULL; s++)
        if (s->kind != SETTING_ROOTS && is_for_now(s, now, fresh))
            memcpy((char *)now + s->offset, (const char *)fresh + s->offset, s->size);
    if (is_same_node(now, fresh))
        memcpy(now->rate, fresh->rate, sizeof now->rate);
}
