#include "client/cli/algorithms/daemon_torus.h"

#include <string.h>

int daemon_torus_of_status(const struct torus_status *status, struct torus *t, struct error *e)
{
    for (size_t i = 0; i < status->graph_count; i++)
        if (graph_of_edges(status->graphs[i]->edges, status->graphs[i]->number_count / 2, e) ==
            NULL)
            return -1;
    if (torus_parse_named(t, status->dims, e) == 0)
        return 0;
    e->code = ERROR_PROTOCOL;
    return error_wrap(e, "the daemon's dimensions are invalid");
}

int daemon_torus_parse(const struct cli *cli, const char *dims, struct torus *t)
{
    struct torus_status *status;
    struct torus_error failed;
    struct error e;

    if (strstr(dims, "graph:") != NULL && torus_parse_named(t, dims, NULL) != 0) {
        if (torus_client_status(cli->client, &status, &failed) != 0)
            return cli_fail_client(cli, &failed);
        (void)daemon_torus_of_status(status, t, &e); /* an error shows below */
        torus_status_free(status);
    }
    if (torus_parse_named(t, dims, &e) == 0)
        return EXIT_DONE;
    e.code = ERROR_PROTOCOL;
    (void)error_wrap(&e, "the daemon's dimensions are invalid");
    return cli_fail(cli, &e);
}
