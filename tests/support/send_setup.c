/* Sends a setup as 'torusctl init --links' does, with any bytes and any keys:
 *
 *     send_setup SOCKET HOST apply|show [KEY-FILE]   with the bytes at standard input
 *
 * SOCKET is that of torusd-discover, and HOST an id; or HOST is "own", and SOCKET that of torusd-setup. Prints a line of
 * JSON when the setup has been handed over, and one with the end: {"status", "output", "errors"} or {"code", "text"}. */
#include <jansson.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/discovering/discovery_socket.h"

static void print(json_t *value)
{
    (void)json_dumpf(value, stdout, JSON_COMPACT | JSON_ENCODE_ANY);
    (void)printf("\n");
    (void)fflush(stdout);
    json_decref(value);
}

static int print_error(const struct error *e)
{
    print(json_pack("{s:i, s:s}", "code", (int)e->code, "text", e->text));
    return 0;
}

static int run(struct setup_sending *s, const char *socket, const char *host)
{
    struct host_id id;
    struct setup_answer answer;
    char *storage;
    struct error e;
    int rc;

    if (strcmp(host, "own") == 0)
        rc = setup_begin_own(s, socket, &e);
    else
        rc = host_id_parse(&id, host) ? setup_begin(s, socket, &id, &e) : 2;
    if (rc != 0)
        return rc < 0 ? print_error(&e) : rc;
    print(json_string("sent"));
    while ((rc = setup_continue(s, &answer, &storage, &e)) == 0)
        continue;
    if (rc < 0)
        return print_error(&e);
    print(json_pack("{s:i, s:s, s:s}", "status", (int)answer.status, "output", answer.output,
                    "errors", answer.errors));
    free(storage);
    return 0;
}

int main(int argc, char **argv)
{
    static uint8_t bytes[DISCOVERY_SETUP_MOST + 1];
    struct secrets secrets = {0};
    struct error e;

    if (argc < 4 || sodium_init() < 0)
        return 2;
    if (argc > 4 && key_read_as_root(argv[4], &secrets.key[secrets.count++], &e) != 0)
        return print_error(&e);
    struct setup_sending s = {.apply = strcmp(argv[3], "apply") == 0,
                              .bytes = bytes,
                              .size = fread(bytes, 1, sizeof bytes, stdin),
                              .secrets = &secrets};
    return run(&s, argv[1], argv[2]);
}
