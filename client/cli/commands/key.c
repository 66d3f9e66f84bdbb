/* torusctl key: makes cluster keys. */
#include <stddef.h>
#include <string.h>

#include "client/cli/terminal/command.h"
#include "client/cli/terminal/json.h"
#include "proto/key.h"

struct key_arguments {
    const char *action, *file;
};

static const struct option options[] = {
    {"ACTION", NULL, offsetof(struct key_arguments, action),
     "generate: write a new key to FILE; id: print the id of the key in FILE"},
    {"FILE", NULL, offsetof(struct key_arguments, file), "the key file"},
    {0},
};

static const struct section sections[] = {
    RECORD(NULL, FIELD("key file", "file"), FIELD("key")),
};

static int run(struct cli *cli, const void *arguments)
{
    const struct key_arguments *a = arguments;
    char id[KEY_ID_TEXT_SIZE];
    struct key key;
    struct error e;
    json_t *o;

    if (a->action == NULL || (strcmp(a->action, "generate") != 0 && strcmp(a->action, "id") != 0))
        return cli_fail_usage(cli, "key: give generate FILE, or id FILE");
    if (a->file == NULL)
        return cli_fail_usage(cli, "key %s: FILE is missing", a->action);
    if ((a->action[0] == 'g' ? key_generate : key_read_as_root)(a->file, &key, &e) != 0)
        return cli_fail(cli, &e);
    o = json_pack("{s:o, s:s}", "file", json_path(a->file, ""), "key", key_id_text(key.id, id));
    key_forget(&key);
    return cli_print(cli, o, VIEW(sections));
}

const struct command command_key = {
    .name = "key",
    .summary = "Make a cluster key, or print the id of one",
    .usage = "generate FILE | id FILE [--json]",
    .options = options,
    .arguments_size = sizeof(struct key_arguments),
    .run = run,
};
