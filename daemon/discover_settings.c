#include "daemon/discover_settings.h"

#include <string.h>

#include "daemon/discovery/process/command.h"
#include "daemon/discovery/process/interfaces.h"
#include "daemon/discovery/report.h"

static int copy(char *out, size_t size, const char *option, const char *value, struct error *e)
{
    if (strlen(value) >= size)
        return error_set(e, ERROR_USAGE, "%s is too long: %zu bytes, at most %zu are possible",
                         option, strlen(value), size - 1);
    (void)strcpy(out, value);
    return 0;
}

int discover_set_mode(struct config *c, const char *value, struct error *e)
{
    (void)value, (void)e;
    c->discover.on = true;
    return 0;
}

int discover_set_config(struct config *c, const char *value, struct error *e)
{
    return copy(c->discover.config, sizeof c->discover.config, "--config", value, e);
}

int discover_set_interfaces(struct config *c, const char *value, struct error *e)
{
    if (interfaces_check(value, e) != 0)
        return -1;
    return copy(c->discover.interfaces, sizeof c->discover.interfaces, "--interfaces", value, e);
}

int discover_set_name(struct config *c, const char *value, struct error *e)
{
    if (!host_name_is_valid(value))
        return error_set(e, ERROR_USAGE,
                         "name \"%.70s\" is not the name of a host: at most %u letters, digits, "
                         "and . _ -",
                         value, REPORT_NAME_SIZE - 1);
    return copy(c->discover.name, sizeof c->discover.name, "--name", value, e);
}

int discover_set_socket(struct config *c, const char *value, struct error *e)
{
    return copy(c->discover.socket, sizeof c->discover.socket, "--discover-socket", value, e);
}

int discover_set_command(struct config *c, const char *value, struct error *e)
{
    struct command command = {0};

    if (value[0] == '\0')
        return error_set(e, ERROR_USAGE, "the command of --accept-setups is empty");
    if (command_parse(&command, value, e) != 0)
        return -1;
    return copy(c->discover.command, sizeof c->discover.command, "--accept-setups", value, e);
}

int discover_set_links(struct config *c, const char *value, struct error *e)
{
    (void)value, (void)e;
    c->discover.set_up_links = true;
    return 0;
}

int discover_finish(struct config *c, struct error *e)
{
    const struct discover_config *d = &c->discover;

    if (d->on && c->from_env.on)
        return error_set(e, ERROR_USAGE,
                         "--discover runs no node, and --from-env does: remove one of the two");
    if (!d->on && d->name[0] != '\0' && !c->from_env.on)
        return error_set(e, ERROR_USAGE,
                         "--name is an option of --discover and --from-env: add one of them, or "
                         "remove it");
    if (!d->on && (d->interfaces[0] != '\0' || d->command[0] != '\0' || d->set_up_links))
        return error_set(e, ERROR_USAGE,
                         "--interfaces, --accept-setups and --set-up-links are options of "
                         "--discover: add --discover, or remove them");
    if (!d->on)
        return 0;
    if (d->interfaces[0] == '\0')
        return error_set(e, ERROR_USAGE,
                         "--interfaces is missing: name the interfaces with cables, such as "
                         "--interfaces eth1,eth2, or all");
    if (d->socket[0] == '\0')
        (void)strcpy(c->discover.socket, DEFAULT_DISCOVER_SOCKET);
    if (c->key_file[0] == '\0' && c->second_key_file[0] != '\0')
        return error_set(e, ERROR_USAGE,
                         "second_key_file is set, but key_file is not: set key_file, too");
    return 0;
}
