/* Surveys: the request, and the conversion of the answers. Other nodes have made the answers, so nothing in them is
 * believed to be well-formed. */
#include <stdlib.h>
#include <string.h>

#include "client/libtorus/common.h"
#include "client/libtorus/requests/client.h"
#include "client/libtorus/requests/results.h"
#include "proto/text.h"
#include "proto/unpack.h"

#define WAIT_MS 3000u

struct answer_holder {
    struct torus_node_answer answer; /* must be first */
    struct torus_status *status;
    struct torus_links *links;
    struct torus_trace trace;
    Control__NodeAnswer *unpacked;
    uint64_t clock_us;
};

struct survey_holder {
    struct torus_survey survey; /* must be first */
    size_t count;
    struct answer_holder *node;
};

void torus_survey_free(struct torus_survey *survey)
{
    struct survey_holder *h = (struct survey_holder *)survey;

    if (h == NULL)
        return;
    for (size_t i = 0; h->node != NULL && i < h->count; i++) {
        torus_status_free(h->node[i].status);
        torus_links_free(h->node[i].links);
        if (h->node[i].unpacked != NULL)
            unpack_free(h->node[i].unpacked);
    }
    result_free(h);
}

/* Makes each line of a text printable. */
static const char *clean_lines(char *text)
{
    char *line = text;

    for (char *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        *end = '\0';
        text_clean(line);
        *end = '\n';
    }
    text_clean(line);
    return text;
}

/* Returns a reply that is as if the node had been asked alone; the caller puts the message into it. */
static Control__Reply *new_reply(Control__Reply__KindCase kind)
{
    Control__Reply *reply = malloc(sizeof *reply);

    if (reply == NULL)
        return NULL;
    control__reply__init(reply);
    reply->kind_case = kind;
    return reply;
}

static int convert_status(struct answer_holder *n, struct torus_error *e)
{
    Control__Reply *reply = new_reply(CONTROL__REPLY__KIND_STATUS);

    if (reply == NULL)
        return fail_memory(e);
    reply->status = n->unpacked->status;
    n->clock_us = reply->status->clock_us;
    n->unpacked->status = NULL;
    return status_from(reply, &n->status, e);
}

static int convert_links(struct answer_holder *n, struct torus_error *e)
{
    Control__Reply *reply = new_reply(CONTROL__REPLY__KIND_LINKS);

    if (reply == NULL)
        return fail_memory(e);
    reply->links = n->unpacked->links;
    n->unpacked->links = NULL;
    return links_from(reply, &n->links, e);
}

/* Reads the answer of a node. Returns 0, or -1 with *e: there is no memory, or the answer makes no sense. */
static int convert_answer(struct answer_holder *n, const ProtobufCBinaryData *bytes,
                          struct torus_error *e)
{
    n->unpacked =
        unpack_bounded(&control__node_answer__descriptor, bytes->data, bytes->len, UNPACK_MOST);
    if (n->unpacked == NULL)
        return invalid_reply(e, "it is not a message");
    n->answer.host = clean_text(n->unpacked->host);
    n->answer.facts = clean_lines(n->unpacked->facts);
    if (n->unpacked->status != NULL && convert_status(n, e) != 0)
        return -1;
    if (n->status != NULL && n->status->rank != n->answer.rank)
        return invalid_reply(e, "it has the rank of another node");
    if (n->unpacked->links != NULL && convert_links(n, e) != 0)
        return -1;
    if (n->unpacked->trace != NULL && trace_from(n->unpacked->trace, &n->trace, e) != 0)
        return -1;
    if ((n->status == NULL) != (n->links == NULL))
        return invalid_reply(e, "a part of it is missing");
    n->answer.status = n->status;
    n->answer.links = n->links;
    n->answer.trace = n->unpacked->trace != NULL ? &n->trace : NULL;
    return 0;
}

/* The node has read its clock between the begin of the survey and the arrival of its answer. */
static void compare_clocks(struct answer_holder *n, const Control__Survey *in,
                           const Control__Survey__Node *node, uint64_t clock_us)
{
    const uint64_t half = node->arrived_us / 2;

    if (clock_us == 0 || in->began_us == 0)
        return;
    n->answer.clock_offset_us = (int64_t)(clock_us - in->began_us - half);
    n->answer.clock_error_us = half > 0 ? half : 1;
}

static enum torus_survey_outcome outcome_of(uint32_t number)
{
    return number < TORUS_SURVEY_UNREADABLE ? (enum torus_survey_outcome)number
                                            : TORUS_SURVEY_UNREADABLE;
}

static int fill_survey(struct survey_holder *h, const Control__Survey *in, struct torus_error *e)
{
    h->count = in->n_node;
    h->node = result_array(h, in->n_node, sizeof *h->node);
    h->survey.count = in->n_node;
    h->survey.nodes = result_list(h, h->node, in->n_node, sizeof *h->node);
    h->survey.took_us = in->took_us;
    if (h->survey.nodes == NULL)
        return fail_memory(e);
    for (size_t i = 0; i < in->n_node; i++) {
        struct answer_holder *n = &h->node[i];
        struct torus_error why;
        n->answer = (struct torus_node_answer){.rank = (uint32_t)i,
                                               .outcome = outcome_of(in->node[i]->outcome),
                                               .host = "",
                                               .facts = ""};
        if (n->answer.outcome != TORUS_SURVEY_ANSWERED)
            continue;
        if (convert_answer(n, &in->node[i]->answer, &why) == 0) {
            compare_clocks(n, in, in->node[i], n->clock_us);
            continue;
        }
        if (why.code == TORUS_ERROR_MEMORY)
            return fail_memory(e);
        n->answer.outcome = TORUS_SURVEY_UNREADABLE;
        n->answer.status = NULL;
        n->answer.links = NULL;
        n->answer.facts = "";
        n->answer.trace = NULL;
    }
    return 0;
}

static int survey_from(Control__Reply *reply, void *result, struct torus_error *e)
{
    struct survey_holder *h = result_new(sizeof *h, NULL, e);
    struct torus_survey **out = result;
    int r = h != NULL ? fill_survey(h, reply->survey, e) : -1;

    unpack_free(reply);
    if (r == 0)
        *out = &h->survey;
    else
        torus_survey_free((struct torus_survey *)h);
    return r;
}

const char *torus_survey_outcome_name(enum torus_survey_outcome outcome)
{
    switch (outcome) {
    case TORUS_SURVEY_SILENT:
        return "silent";
    case TORUS_SURVEY_ANSWERED:
        return "answered";
    case TORUS_SURVEY_UNREACHABLE:
        return "unreachable";
    case TORUS_SURVEY_TOO_LARGE:
        return "too large";
    case TORUS_SURVEY_UNREADABLE:
        return "unreadable";
    }
    return "unknown";
}

int torus_client_start_survey(struct torus_client *client, enum torus_survey_kind kind,
                              uint32_t wait_ms, struct torus_survey **survey, torus_done_fn *done,
                              void *data, struct torus_error *error)
{
    const uint32_t wait = wait_ms > 0 ? wait_ms : WAIT_MS;
    const struct pending_request pending = {
        .expects = CONTROL__REPLY__KIND_SURVEY,
        .convert = survey_from,
        .result = survey,
        .done = done,
        .data = data,
        .limit_ms = client->timeout_ms > 0 ? (int64_t)client->timeout_ms + wait : 0,
    };
    Control__SurveyRequest body = CONTROL__SURVEY_REQUEST__INIT;

    *survey = NULL;
    body.kind = (uint32_t)kind;
    body.timeout_ms = wait;
    return client_start(client, &pending, CONTROL_REQUEST(SURVEY, survey, &body), error);
}

int torus_client_survey(struct torus_client *client, enum torus_survey_kind kind, uint32_t wait_ms,
                        struct torus_survey **survey, struct torus_error *error)
{
    return CLIENT_WAIT(
        client, error,
        torus_client_start_survey(client, kind, wait_ms, survey, outcome_set, &outcome, error));
}
