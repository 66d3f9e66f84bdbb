#include "daemon/torusd/setting_facts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/lib/base/limits.h"
#include "daemon/lib/host/facts.h"

static void add_ports(struct facts *f, const struct config *c)
{
    for (unsigned port = 0; port < torus_ports(&c->torus); port++) {
        char text[ENDPOINT_TEXT_SIZE], name[TORUS_PORT_NAME_SIZE], key[TORUS_PORT_NAME_SIZE + 20];
        char rate[NOMINAL_RATE_TEXT_SIZE];
        if (torus_neighbour(&c->torus, c->rank, port) == TORUS_NO_NODE)
            continue;
        endpoint_format(&c->endpoint[port], text, sizeof text);
        (void)snprintf(key, sizeof key, "port.%s", torus_port_name(&c->torus, c->rank, port, name));
        facts_add(f, key, "%s", text);
        (void)snprintf(key, sizeof key, "port_link_mbit.%s", name);
        if (c->rate[port].send > 0)
            facts_add(f, key, "%s", nominal_rate_format(c->rate[port], rate));
    }
}

static void add_texts(struct facts *f, const struct config *c)
{
    const struct {
        const char *name, *value;
    } texts[] = {{"setting.control", c->control},
                 {"setting.state_dir", c->state_folder},
                 {"setting.key_file", c->key_file},
                 {"setting.second_key_file", c->second_key_file},
                 {"setting.congestion", c->congestion},
                 {"setting.metrics", c->metrics},
                 {"setting.read_group", c->group[ACCESS_READ]},
                 {"setting.exchange_group", c->group[ACCESS_EXCHANGE]},
                 {"setting.admin_group", c->group[ACCESS_ADMIN]}};

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (texts[i].value[0] != '\0')
            facts_add(f, texts[i].name, "%s", texts[i].value);
}

char *setting_facts(const struct config *c, const struct roots *roots)
{
    struct facts *f = malloc(sizeof *f);
    char dims[TORUS_TEXT_SIZE], *text;

    if (f == NULL)
        return NULL;
    facts_begin(f);
    facts_add(f, "setting.dims", "%s", torus_format(&c->torus, dims));
    facts_add(f, "setting.rank", "%u", c->rank);
    add_texts(f, c);
    for (size_t i = 0; i < roots->count; i++)
        facts_add(f, "setting.data_root", "%s", roots->path[i]);
    facts_add(f, "setting.encrypt", "%s", c->encrypt ? "yes" : "no");
    facts_add(f, "setting.output_mode", "%o", (unsigned)c->output_mode);
    facts_add(f, "setting.link_mbit", "%g", c->link_mbit);
    facts_add(f, "setting.memory", "%" PRIu64, c->memory);
    facts_add(f, "setting.heartbeat_ms", "%" PRIu64, c->heartbeat_ms);
    facts_add(f, "setting.silence_ms", "%" PRIu64, c->silence_ms);
    facts_add(f, "setting.hop_limit", "%u", c->hop_limit);
    if (c->io_threads != IO_THREADS_AUTO)
        facts_add(f, "setting.io_threads", "%d", c->io_threads);
    add_ports(f, c);
    text = strdup(f->text);
    free(f);
    return text;
}
