#include "daemon/torusd/node_log.h"

#include "daemon/lib/base/log.h"
#include "daemon/torusd/config_changes.h"

void node_log_keys(const struct secrets *s)
{
    char id[SECRETS_MOST][KEY_ID_TEXT_SIZE];

    if (s->count == 0)
        log_warning("no key_file: anybody who reaches a port of this node can speak to it; set "
                    "key_file to prevent that");
    else if (s->count == 1)
        log_info("cluster key %s; links are %sencrypted", key_id_text(s->key[0].id, id[0]),
                 s->encrypt ? "" : "not ");
    else
        log_info("cluster key %s, second key %s accepted; links are %sencrypted",
                 key_id_text(s->key[0].id, id[0]), key_id_text(s->key[1].id, id[1]),
                 s->encrypt ? "" : "not ");
}

void node_log_changes(const struct config *now, const struct roots *roots,
                      const struct config *fresh)
{
    char changed[CONFIG_CHANGES_SIZE], others[CONFIG_CHANGES_SIZE];

    config_changes(now, roots, fresh, changed, others);
    log_info("the settings have been read again; changed: %s",
             changed[0] != '\0' ? changed : "nothing");
    if (others[0] != '\0')
        log_warning("these settings differ from those that the daemon has started with, and need a "
                    "restart: %s",
                    others);
}
