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
    .details =
        "The daemons of a torus have one key in common, in a file that the setting key_file\n"
        "names. Neighbours prove to each other that they have the key before they exchange\n"
        "anything else; a machine without the key is rejected. generate makes a random key and\n"
        "writes it to a new file with mode 0600. It never overwrites a file. Copy the file to\n"
        "all nodes in a way that nobody else can read, such as scp. torusd rejects a file that\n"
        "anybody except its owner can read or write.\n"
        "\n"
        "The id is the same for equal keys, and does not reveal them; 'torusctl links' and the\n"
        "logs show it.\n"
        "\n"
        "To change the key while exchanges run, do each of these steps on all nodes before the\n"
        "next step. First, copy the new key to the second_key_file, and send SIGHUP to torusd.\n"
        "Second, swap the two files, and send SIGHUP. Third, remove the second file, and send\n"
        "SIGHUP. At any time, two neighbours have a key in common, and links that are up stay\n"
        "up.\n"
        "\n"
        "examples:\n"
        "  torusctl key generate /etc/torusd.key\n"
        "  torusctl key id /etc/torusd.key\n",
    .options = options,
    .arguments_size = sizeof(struct key_arguments),
    .run = run,
};
