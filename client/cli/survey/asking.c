#include "client/cli/survey/asking.h"

#include <poll.h>

static void forget(struct asking *a)
{
    torus_status_free(a->status);
    torus_survey_free(a->survey);
    all_nodes_free(&a->all);
    a->status = NULL;
    a->survey = NULL;
}

static void end(struct asking *a, const struct torus_error *e)
{
    a->ended = true;
    a->error = e != NULL ? *e : (struct torus_error){0};
}

static void take(struct asking *a)
{
    struct torus_survey *survey = a->survey;
    struct torus_error e;

    a->survey = NULL;
    end(a, all_nodes_make(&a->all, a->status, survey, &e) == 0 ? NULL : &e);
}

static void on_survey(void *data, const struct torus_error *e)
{
    struct asking *a = data;

    if (e != NULL)
        end(a, e);
    else
        take(a);
}

static void on_status(void *data, const struct torus_error *failed)
{
    struct asking *a = data;
    struct torus_error e;

    if (failed != NULL)
        end(a, failed);
    else if (torus_client_start_survey(a->client, TORUS_SURVEY_STATE, 0, &a->survey, on_survey, a,
                                       &e) != 0)
        end(a, &e);
}

void asking_begin(struct asking *a)
{
    struct torus_error e;

    if (a->under_way)
        return;
    forget(a);
    a->ended = false;
    a->under_way = true;
    if (a->client != NULL && !torus_client_is_open(a->client)) {
        torus_client_close(a->client);
        a->client = NULL;
    }
    if (a->client == NULL && (a->client = torus_client_open(a->socket, &e)) == NULL) {
        end(a, &e);
        return;
    }
    if (a->patience_ms > 0)
        torus_client_set_timeout(a->client, a->patience_ms);
    if (torus_client_start_status(a->client, &a->status, on_status, a, &e) != 0)
        end(a, &e);
}

enum asking_result asking_go_on(struct asking *a)
{
    if (!a->ended && a->client != NULL)
        (void)torus_client_dispatch(a->client);
    if (!a->ended)
        return ASKING_UNDER_WAY;
    a->under_way = false;
    if (a->error.code == TORUS_ERROR_NONE)
        return ASKING_ANSWERED;
    torus_client_close(a->client); /* whatever it was, begin with a new connection */
    a->client = NULL;
    return ASKING_FAILED;
}

enum asking_result asking_wait(struct asking *a)
{
    enum asking_result result;

    asking_begin(a);
    while ((result = asking_go_on(a)) == ASKING_UNDER_WAY) {
        struct pollfd wait = {.fd = asking_fd(a), .events = POLLIN};
        (void)poll(&wait, 1, -1);
    }
    return result;
}

int asking_fd(const struct asking *a)
{
    return a->under_way && a->client != NULL ? torus_client_fd(a->client) : -1;
}

void asking_free(struct asking *a)
{
    torus_client_close(a->client);
    a->client = NULL;
    forget(a);
}
