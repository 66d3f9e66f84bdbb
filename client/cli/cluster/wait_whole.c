#include "client/cli/cluster/wait_whole.h"

#include <stdio.h>
#include <time.h>
#include <torus/status.h>

#include "client/cli/terminal/clock.h"
#include "client/cli/terminal/long_work.h"
#include "daemon/schedule/watch.h"

#define ASK_AGAIN_MS 200

enum answer { NO_DAEMON, NOT_WHOLE, WHOLE };

static enum answer ask(const struct cli *cli)
{
    struct torus_client *client;
    struct torus_status *status;
    struct torus_error e;
    enum answer answer = NO_DAEMON;

    client = torus_client_open(cli->socket, &e);
    if (client == NULL)
        return NO_DAEMON;
    if (torus_client_status(client, &status, &e) == 0) {
        answer = status->whole ? WHOLE : NOT_WHOLE;
        torus_status_free(status);
    }
    torus_client_close(client);
    return answer;
}

void wait_until_whole(const struct cli *cli, unsigned seconds, char result[WAIT_WHOLE_SIZE])
{
    const struct timespec pause = {.tv_nsec = ASK_AGAIN_MS * 1000000L};
    int64_t end = clock_ms() + 1000 * (int64_t)seconds;
    enum answer answer;

    result[0] = '\0';
    long_work_begin("waiting until the torus is whole");
    while ((answer = ask(cli)) == NOT_WHOLE && clock_ms() < end) {
        watch_tell(-1);
        (void)nanosleep(&pause, NULL);
    }
    long_work_end();
    if (answer == WHOLE)
        (void)snprintf(result, WAIT_WHOLE_SIZE, "whole");
    else if (answer == NOT_WHOLE)
        (void)snprintf(result, WAIT_WHOLE_SIZE,
                       "not whole after %u s: 'torusctl status' lists the faults", seconds);
}
