/* torusctl serve: shows the torus in a browser, live. */
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "client/cli/serving/server.h"
#include "client/cli/terminal/command.h"
#include "client/cli/terminal/progress.h"

#define DEFAULT_ADDRESS "127.0.0.1:8080"

struct serve_arguments {
    const char *address;
    const char *token;
    bool no_token;
};

static const struct option options[] = {
    {"--address", "ADDRESS:PORT", offsetof(struct serve_arguments, address),
     "where to serve the page (default: " DEFAULT_ADDRESS "); port 0 is\n"
     "a free one"},
    {"--token", "TOKEN", offsetof(struct serve_arguments, token),
     "what a browser must know to see the page: 16 to 128 letters,\n"
     "digits, '_' and '-' (default: a random one)"},
    {"--no-token", NULL, offsetof(struct serve_arguments, no_token),
     "show the page to everybody on this machine; on loopback only"},
    {0},
};

/* Says where the page is. Returns false if that failed: the program then says at its end that standard output cannot be
 * written to. */
static bool announce(const struct cli *cli, const struct door *door)
{
    if (cli->json) {
        json_t *o = json_object();
        (void)json_object_set_new(o, "url", json_string(door->url));
        writer_json(stdout, o);
        json_decref(o);
    } else {
        (void)printf("%s\n", door->url);
    }
    if (fflush(stdout) != 0 || ferror(stdout) != 0)
        return false;
    if (!cli->json)
        (void)fprintf(stderr, "Open this address in a browser. Ctrl-C ends the page.\n");
    if (!door->loopback)
        cli_warn("the page and its token are not encrypted on the network; 'ssh -L' to a page on "
                 "127.0.0.1 is safer");
    return true;
}

static int run(struct cli *cli, const void *arguments)
{
    const struct serve_arguments *a = arguments;
    struct door door;
    struct error e;

    if (door_parse(&door, a->address != NULL ? a->address : DEFAULT_ADDRESS, &e) != 0)
        return cli_fail_usage(cli, "%s", e.text);
    if (a->no_token && a->token != NULL)
        return cli_fail_usage(cli, "give --token or --no-token, not both");
    if (a->no_token && !door.loopback)
        return cli_fail_usage(cli, "--no-token is for addresses of this machine only, such as "
                                   "127.0.0.1: others need a token");
    if (!a->no_token && door_set_token(&door, a->token, &e) != 0)
        return cli_fail(cli, &e);
    int code = cli_connect(cli); /* no daemon: that is said now, not in the browser */
    if (code != EXIT_DONE)
        return code;
    const int fd = door_open(&door, &e);
    if (fd < 0)
        return cli_fail(cli, &e);
    torus_client_close(cli->client);
    cli->client = NULL;
    long_work_end();
    return server_run(cli, &door, fd, announce);
}

const struct command command_serve = {
    .name = "serve",
    .summary = "Show the torus in a browser, live",
    .usage = "[--address ADDRESS:PORT] [--token TOKEN | --no-token] [--socket PATH] [--json]",
    .options = options,
    .arguments_size = sizeof(struct serve_arguments),
    .needs_daemon = true,
    .run = run,
};
