#include "daemon/torusd/from_env_settings.h"

#include <string.h>

int from_env_set(struct config *c, const char *value, struct error *e)
{
    (void)value, (void)e;
    c->from_env.on = true;
    return 0;
}

int from_env_set_cluster(struct config *c, const char *value, struct error *e)
{
    if (strlen(value) >= sizeof c->from_env.cluster)
        return error_set(e, ERROR_USAGE, "the path of --cluster is too long");
    (void)strcpy(c->from_env.cluster, value);
    return 0;
}

int from_env_set_name(struct config *c, const char *value, struct error *e)
{
    if (value[0] == '\0' || strlen(value) >= sizeof c->from_env.name)
        return error_set(e, ERROR_USAGE, "--name: the name of a host has 1 to %zu characters",
                         sizeof c->from_env.name - 1);
    (void)strcpy(c->from_env.name, value);
    return 0;
}
