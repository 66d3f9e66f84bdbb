#include "daemon/torusd/config_changes.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "daemon/lib/net/address.h"

enum kind { TEXT, VALUE, DIMS, ROOTS, MEMORY };
enum when { NOW, AT_START };

/* A row for each setting of section [node], except `coordinates`, which determine the rank. */
static const struct row {
    const char *name;
    enum when when;
    enum kind kind;
    size_t offset, size;
} rows[] = {
#define ROW(NAME, WHEN, KIND, FIELD)                                                               \
    {                                                                                              \
        NAME, WHEN, KIND, offsetof(struct config, FIELD), sizeof(((struct config *)0)->FIELD)      \
    }
    ROW("dims", AT_START, DIMS, torus),
    ROW("rank", AT_START, VALUE, rank),
    ROW("control", AT_START, TEXT, control),
    ROW("read_group", NOW, TEXT, group[ACCESS_READ]),
    ROW("exchange_group", NOW, TEXT, group[ACCESS_EXCHANGE]),
    ROW("admin_group", NOW, TEXT, group[ACCESS_ADMIN]),
    ROW("data_roots", NOW, ROOTS, roots),
    ROW("output_mode", NOW, VALUE, output_mode),
    ROW("state_dir", AT_START, TEXT, state_folder),
    ROW("key_file", NOW, TEXT, key_file),
    ROW("second_key_file", NOW, TEXT, second_key_file),
    ROW("encrypt", AT_START, VALUE, encrypt),
    ROW("link_mbit", AT_START, VALUE, link_mbit),
    ROW("link_burst", AT_START, VALUE, link_burst),
    ROW("daemons_per_processor", AT_START, VALUE, daemons_per_processor),
    ROW("memory", NOW, MEMORY, memory),
    ROW("heartbeat_ms", AT_START, VALUE, heartbeat_ms),
    ROW("silence_ms", AT_START, VALUE, silence_ms),
    ROW("congestion", AT_START, TEXT, congestion),
    ROW("metrics", AT_START, TEXT, metrics),
    ROW("hop_limit", AT_START, VALUE, hop_limit),
    ROW("protocol_minor", AT_START, VALUE, protocol_minor),
    ROW("log_level", NOW, VALUE, log_level),
#undef ROW
};

#define ROWS (sizeof rows / sizeof rows[0])

bool config_compares(const char *name)
{
    for (size_t i = 0; i < ROWS; i++)
        if (strcmp(rows[i].name, name) == 0)
            return true;
    return false;
}

static bool differs(const struct row *row, const struct config *now, const struct roots *roots,
                    const struct config *fresh)
{
    const char *a = (const char *)now + row->offset, *b = (const char *)fresh + row->offset;
    char dims[2][TORUS_TEXT_SIZE];

    switch (row->kind) {
    case TEXT:
        return strcmp(a, b) != 0;
    case DIMS:
        return strcmp(torus_format(&now->torus, dims[0]), torus_format(&fresh->torus, dims[1])) !=
               0;
    case ROOTS:
        return !roots_are_same(roots, &fresh->roots);
    default:
        return memcmp(a, b, row->size) != 0;
    }
}

static bool is_for_now(const struct row *row, const struct config *now, const struct config *fresh)
{
    /* Less memory may be reserved already. */
    return row->when == NOW && (row->kind != MEMORY || fresh->memory >= now->memory);
}

static void list_name(char list[CONFIG_CHANGES_SIZE], const char *name)
{
    size_t used = strlen(list);

    (void)snprintf(list + used, CONFIG_CHANGES_SIZE - used, "%s%s", used > 0 ? ", " : "", name);
}

static const struct named_endpoint *find_port(const struct config *c, const char *name)
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
        const struct named_endpoint *other = find_port(b, a->named[i].name);
        if (other != NULL) {
            endpoint_format(&a->named[i].endpoint, text[0], sizeof text[0]);
            endpoint_format(&other->endpoint, text[1], sizeof text[1]);
        }
        if (other == NULL || (!missing_only && strcmp(text[0], text[1]) != 0))
            list_name(list, a->named[i].name);
    }
}

void config_changes(const struct config *now, const struct roots *roots, const struct config *fresh,
                    char changed[CONFIG_CHANGES_SIZE], char others[CONFIG_CHANGES_SIZE])
{
    changed[0] = others[0] = '\0';
    for (size_t i = 0; i < ROWS; i++)
        if (differs(&rows[i], now, roots, fresh))
            list_name(is_for_now(&rows[i], now, fresh) ? changed : others, rows[i].name);
    list_ports(fresh, now, false, others);
    list_ports(now, fresh, true, others);
}

void config_take_changes(struct config *now, const struct config *fresh)
{
    for (size_t i = 0; i < ROWS; i++)
        if (rows[i].kind != ROOTS && is_for_now(&rows[i], now, fresh))
            memcpy((char *)now + rows[i].offset, (const char *)fresh + rows[i].offset,
                   rows[i].size);
}
