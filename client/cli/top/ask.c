#include "client/cli/top/ask.h"

#include <poll.h>
#include <stddef.h>

static void fail(struct top_ask *a, const struct torus_error *e)
{
    a->error = *e;
    a->state = TOP_ASK_FAILED;
}

static void survey_done(void *data, const struct torus_error *e)
{
    struct top_ask *a = data;

    if (e != NULL)
        fail(a, e);
    else
        a->state = TOP_ASK_DONE;
}

static void status_done(void *data, const struct torus_error *e)
{
    struct top_ask *a = data;
    struct torus_error failed;

    if (e != NULL) {
        fail(a, e);
        return;
    }
    a->state = TOP_ASK_SURVEY;
    if (torus_client_start_survey(a->client, TORUS_SURVEY_STATE, 0, &a->survey, survey_done, a,
                                  &failed) != 0)
        fail(a, &failed);
}

void top_ask_start(struct top_ask *a)
{
    struct torus_error failed;

    if (a->client != NULL && !torus_client_is_open(a->client)) {
        torus_client_close(a->client);
        a->client = NULL;
    }
    if (a->client == NULL)
        a->client = torus_client_open(a->socket, &failed);
    if (a->client == NULL) {
        fail(a, &failed);
        return;
    }
    a->state = TOP_ASK_STATUS;
    if (torus_client_start_status(a->client, &a->status, status_done, a, &failed) != 0)
        fail(a, &failed);
}

int top_ask_fd(const struct top_ask *a)
{
    return a->client != NULL ? torus_client_fd(a->client) : -1;
}

void top_ask_work(struct top_ask *a)
{
    if (a->client != NULL)
        (void)torus_client_dispatch(a->client);
}

int top_ask_take(struct top_ask *a, struct all_nodes *c, struct torus_error *e)
{
    int result = -1;

    *c = (struct all_nodes){0};
    if (a->state == TOP_ASK_DONE) {
        result = all_nodes_make(c, a->status, a->survey, e);
        a->survey = NULL;
    } else {
        *e = a->error;
        torus_client_close(a->client); /* whatever it was, begin with a new connection */
        a->client = NULL;
    }
    torus_status_free(a->status);
    torus_survey_free(a->survey);
    a->status = NULL;
    a->survey = NULL;
    a->state = TOP_ASK_IDLE;
    return result;
}

int top_ask_now(struct top_ask *a, struct all_nodes *c, struct torus_error *e)
{
    top_ask_start(a);
    while (a->state == TOP_ASK_STATUS || a->state == TOP_ASK_SURVEY) {
        struct pollfd wait = {.fd = top_ask_fd(a), .events = POLLIN};
        (void)poll(&wait, 1, -1);
        top_ask_work(a);
    }
    return top_ask_take(a, c, e);
}

void top_ask_end(struct top_ask *a)
{
    torus_client_close(a->client);
    torus_status_free(a->status);
    torus_survey_free(a->survey);
    *a = (struct top_ask){0};
}
