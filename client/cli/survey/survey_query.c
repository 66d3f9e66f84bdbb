#include "client/cli/survey/survey_query.h"

#include <poll.h>

static void forget(struct survey_query *a)
{
    torus_status_free(a->status);
    torus_survey_free(a->survey);
    all_nodes_free(&a->all);
    a->status = NULL;
    a->survey = NULL;
}

static void end(struct survey_query *a, const struct torus_error *e)
{
    a->ended = true;
    a->error = e != NULL ? *e : (struct torus_error){0};
}

static void take(struct survey_query *a)
{
    struct torus_survey *survey = a->survey;
    struct torus_error e;

    a->survey = NULL;
    end(a, all_nodes_make(&a->all, a->status, survey, &e) == 0 ? NULL : &e);
}

static void on_survey(void *data, const struct torus_error *e)
{
    struct survey_query *a = data;

    if (e != NULL)
        end(a, e);
    else
        take(a);
}

static void on_status(void *data, const struct torus_error *failed)
{
    struct survey_query *a = data;
    struct torus_error e;

    if (failed != NULL)
        end(a, failed);
    else if (torus_client_start_survey(a->client, TORUS_SURVEY_STATE, 0, &a->survey, on_survey, a,
                                       &e) != 0)
        end(a, &e);
}

void survey_query_begin(struct survey_query *a)
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

enum survey_query_result survey_query_go_on(struct survey_query *a)
{
    if (!a->ended && a->client != NULL)
        (void)torus_client_dispatch(a->client);
    if (!a->ended)
        return SURVEY_QUERY_UNDER_WAY;
    a->under_way = false;
    if (a->error.code == TORUS_ERROR_NONE)
        return SURVEY_QUERY_ANSWERED;
    torus_client_close(a->client); /* whatever it was, begin with a new connection */
    a->client = NULL;
    return SURVEY_QUERY_FAILED;
}

enum survey_query_result survey_query_wait(struct survey_query *a)
{
    enum survey_query_result result;

    survey_query_begin(a);
    while ((result = survey_query_go_on(a)) == SURVEY_QUERY_UNDER_WAY) {
        struct pollfd wait = {.fd = survey_query_fd(a), .events = POLLIN};
        (void)poll(&wait, 1, -1);
    }
    return result;
}

int survey_query_fd(const struct survey_query *a)
{
    return a->under_way && a->client != NULL ? torus_client_fd(a->client) : -1;
}

void survey_query_free(struct survey_query *a)
{
    torus_client_close(a->client);
    a->client = NULL;
    forget(a);
}
