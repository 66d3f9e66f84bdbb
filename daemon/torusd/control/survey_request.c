/* Surveys: a client asks for the answers of all nodes; and this node's own answer about its state. */
#include <stdlib.h>
#include <sys/utsname.h>
#include <time.h>

#include "daemon/lib/base/log.h"
#include "daemon/torusd/control/internal.h"
#include "daemon/torusd/control/server.h"
#include "daemon/torusd/control/trace_answer.h"
#include "proto/elapsed.h"
#include "proto/version.h"

#define TIMEOUT_MS 3000u
#define TRACE_ROOM 1024u /* bytes of an answer beside the trace */
#define TIMEOUT_LEAST_MS 100u
#define TIMEOUT_MOST_MS 60000u

/* --- asking --- */

static uint64_t clock_us(void)
{
    struct timespec t;

    return clock_gettime(CLOCK_REALTIME, &t) == 0
               ? (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000
               : 0;
}

static void on_surveyed(void *context, const struct survey_node *nodes, uint64_t took)
{
    struct control_client *client = context;
    const size_t count = router_torus(client->server->set.router)->nodes;
    Control__Survey__Node **list = control_list(count, sizeof **list);
    Control__Survey survey = CONTROL__SURVEY__INIT;

    client->surveys = false;
    for (size_t i = 0; list != NULL && i < count; i++) {
        Control__Survey__Node *to = list[i];
        control__survey__node__init(to);
        to->outcome = nodes[i].outcome;
        to->answer.data = (uint8_t *)(uintptr_t)nodes[i].bytes;
        to->answer.len = nodes[i].outcome == SURVEY_ANSWERED ? nodes[i].length : 0;
        to->arrived_us = nodes[i].arrived / 1000;
    }
    survey.n_node = count;
    survey.node = list;
    survey.took_us = took / 1000;
    survey.began_us = elapsed(survey.took_us, clock_us());
    if (list != NULL)
        control_reply(client, CONTROL_REPLY(SURVEY, survey, &survey));
    else
        control_reply_error(
            client, &(struct error){.code = ERROR_MEMORY, .text = "out of memory for the survey"},
            NULL);
    free((void *)list);
}

void control_survey(struct control_client *client, const Control__Request *request)
{
    uint32_t kind = request->survey->kind, timeout_ms = request->survey->timeout_ms;
    struct error e;

    if (timeout_ms == 0)
        timeout_ms = TIMEOUT_MS;
    if (timeout_ms < TIMEOUT_LEAST_MS)
        timeout_ms = TIMEOUT_LEAST_MS;
    if (timeout_ms > TIMEOUT_MOST_MS)
        timeout_ms = TIMEOUT_MOST_MS;
    client->survey = (struct survey_request){.context = client, .done = on_surveyed};
    if (kind >= SURVEY_KINDS) {
        (void)error_set(&e, ERROR_USAGE,
                        "torusd " TORUSD_VERSION " knows no survey of kind %u: install the client "
                        "and torusd from the same release",
                        kind);
        control_reply_error(client, &e, NULL);
    } else if (survey_start(client->server->set.survey, (enum survey_kind)kind,
                            timeout_ms * MILLISECONDS, &client->survey, &e) != 0) {
        control_reply_error(client, &e, NULL);
    } else {
        client->surveys = true;
    }
}

void control_survey_forget(struct control_client *client)
{
    if (client->surveys)
        survey_forget(client->server->set.survey, &client->survey);
    client->surveys = false;
}

/* --- answering --- */

struct telling {
    struct control_server *server;
    enum survey_kind kind;
    Control__NodeAnswer answer;
};

static void tell(const struct telling *t)
{
    size_t length = control__node_answer__get_packed_size(&t->answer);
    uint8_t *bytes = malloc(length);

    if (bytes != NULL)
        length = control__node_answer__pack(&t->answer, bytes);
    else
        log_warning("out of memory for an answer to a survey");
    survey_tell(t->server->set.survey, t->kind, bytes, bytes != NULL ? length : 0);
    free(bytes);
}

static void tell_with_links(void *context, Control__Links *links)
{
    struct telling *t = context;

    t->answer.links = links;
    tell(t);
}

static void tell_with_status(void *context, Control__Status *status)
{
    struct telling *t = context;

    t->answer.host = status->host;
    t->answer.status = status;
    status->clock_us = clock_us();
    control_with_links(t->server, tell_with_links, t);
}

void control_tell_state(struct control_server *server)
{
    struct telling t = {.server = server, .kind = SURVEY_STATE};

    control__node_answer__init(&t.answer);
    control_with_own_status(server, tell_with_status, &t);
}

void control_tell_trace(struct control_server *server)
{
    const struct trace *trace = exchanges_last_trace(server->set.exchanges);
    struct router *router = server->set.router;
    const size_t nodes = router_torus(router)->nodes, most = SURVEY_TOTAL_MOST / nodes;
    struct telling t = {.server = server, .kind = SURVEY_TRACE};
    struct utsname host = {.nodename = ""};

    (void)uname(&host);
    control__node_answer__init(&t.answer);
    t.answer.host = host.nodename;
    if (trace != NULL)
        t.answer.trace = trace_answer_make(
            trace, router, (most < SURVEY_ANSWER_MOST ? most : SURVEY_ANSWER_MOST) - TRACE_ROOM);
    tell(&t);
    trace_answer_free(t.answer.trace);
}

void control_tell_facts(struct control_server *server, const char *facts)
{
    struct telling t = {.server = server, .kind = SURVEY_HOST};
    struct utsname host = {.nodename = ""};

    (void)uname(&host);
    control__node_answer__init(&t.answer);
    t.answer.host = host.nodename;
    t.answer.facts = (char *)(uintptr_t)facts;
    tell(&t);
}
