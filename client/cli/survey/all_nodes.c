#include "client/cli/survey/all_nodes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/algorithms/named_algorithm.h"
#include "client/cli/terminal/json.h"
#include "proto/text.h"

#define NAME_SIZE 100u

static bool has_twin(const struct torus_survey *s, size_t node)
{
    for (size_t i = 0; i < s->count; i++)
        if (i != node && strcmp(s->nodes[i]->host, s->nodes[node]->host) == 0)
            return true;
    return false;
}

static int make_names(struct all_nodes *c)
{
    const struct torus_survey *s = c->state;

    c->name = calloc(s->count, sizeof *c->name);
    for (size_t i = 0; c->name != NULL && i < s->count; i++) {
        const char *host = s->nodes[i]->host;
        c->name[i] = malloc(NAME_SIZE);
        if (c->name[i] == NULL)
            return -1;
        if (host[0] == '\0')
            (void)snprintf(c->name[i], NAME_SIZE, "node %zu", i);
        else if (has_twin(s, i))
            (void)snprintf(c->name[i], NAME_SIZE, "%.64s (node %zu)", host, i);
        else
            (void)snprintf(c->name[i], NAME_SIZE, "%.64s", host);
    }
    return c->name != NULL ? 0 : -1;
}

static const struct torus_link *link_at(const struct torus_survey *s, uint32_t rank, unsigned port)
{
    const struct torus_links *links = s->nodes[rank]->links;

    for (size_t i = 0; links != NULL && i < links->count; i++)
        if (links->link[i]->port == port)
            return links->link[i];
    return NULL;
}

/* " (2 of 2 links to it are up)", from what its neighbours have answered; "" if none has. */
static void links_to(const struct all_nodes *c, uint32_t rank, char *text, size_t size)
{
    unsigned known = 0, up = 0;

    text[0] = '\0';
    for (unsigned port = 0; port < torus_ports(&c->torus); port++) {
        const uint32_t there = torus_neighbour(&c->torus, rank, port);
        const struct torus_link *l =
            there < c->state->count && there != rank
                ? link_at(c->state, there, torus_port_opposite(&c->torus, port))
                : NULL;
        known += l != NULL;
        up += l != NULL && l->state == TORUS_LINK_UP;
    }
    if (known > 0)
        (void)snprintf(text, size, " (%u of %u %s to it %s up)", up, known,
                       text_plural(known, "link", "links"), text_plural(known, "is", "are"));
}

static void write_missing(const struct all_nodes *c, uint32_t rank, char *text, size_t size)
{
    char links[64];

    text[0] = '\0';
    if (all_nodes_answered(c, rank))
        return;
    switch (c->state->nodes[rank]->outcome) {
    case TORUS_SURVEY_UNREACHABLE:
        (void)snprintf(text, size, "is down, or cannot be reached");
        break;
    case TORUS_SURVEY_SILENT:
        links_to(c, rank, links, sizeof links);
        (void)snprintf(text, size, "has not answered within %.3g s%s",
                       (double)(c->state->took_us / 100000) / 10, links);
        break;
    case TORUS_SURVEY_TOO_LARGE:
        (void)snprintf(text, size, "has sent an answer that is too large");
        break;
    case TORUS_SURVEY_ANSWERED:
    case TORUS_SURVEY_UNREADABLE:
        (void)snprintf(text, size,
                       "has sent an answer that cannot be read: it may run another "
                       "release of torusd");
        break;
    }
}

static int make_missing(struct all_nodes *c)
{
    c->missing = calloc(c->state->count, sizeof *c->missing);
    for (size_t i = 0; c->missing != NULL && i < c->state->count; i++) {
        c->missing[i] = malloc(NAME_SIZE);
        if (c->missing[i] == NULL)
            return -1;
        write_missing(c, (uint32_t)i, c->missing[i], NAME_SIZE);
    }
    return c->missing != NULL ? 0 : -1;
}

static int set_error(struct torus_error *to, enum torus_error_code code, const char *text)
{
    *to = (struct torus_error){.code = code};
    (void)snprintf(to->text, sizeof to->text, "%s", text);
    return -1;
}

int all_nodes_make(struct all_nodes *c, const struct torus_status *status,
                   struct torus_survey *survey, struct torus_error *failed)
{
    struct error e;

    *c = (struct all_nodes){.initiator = status->rank, .state = survey};
    if (daemon_torus_of_status(status, &c->torus, &e) != 0)
        return set_error(failed, TORUS_ERROR_PROTOCOL, e.text);
    if (c->state->count != c->torus.nodes || c->initiator >= c->torus.nodes)
        return set_error(failed, TORUS_ERROR_PROTOCOL,
                         "the daemon asked more or fewer nodes than its torus has");
    return make_names(c) == 0 && make_missing(c) == 0
               ? 0
               : set_error(failed, TORUS_ERROR_MEMORY, "out of memory");
}

int all_nodes_try(const struct cli *cli, struct all_nodes *c, struct torus_error *failed)
{
    struct torus_status *status;
    struct torus_survey *survey;
    int result = -1;

    *c = (struct all_nodes){0};
    if (torus_client_status(cli->client, &status, failed) != 0)
        return -1;
    if (torus_client_survey(cli->client, TORUS_SURVEY_STATE, 0, &survey, failed) == 0)
        result = all_nodes_make(c, status, survey, failed);
    torus_status_free(status);
    return result;
}

int all_nodes_ask(struct cli *cli, struct all_nodes *c)
{
    struct torus_error e;

    return all_nodes_try(cli, c, &e) == 0 ? EXIT_DONE : cli_fail_client(cli, &e);
}

void all_nodes_free(struct all_nodes *c)
{
    for (size_t i = 0; c->name != NULL && i < c->state->count; i++)
        free(c->name[i]);
    free(c->name);
    for (size_t i = 0; c->missing != NULL && i < c->state->count; i++)
        free(c->missing[i]);
    free(c->missing);
    torus_survey_free(c->state);
    *c = (struct all_nodes){0};
}

bool all_nodes_answered(const struct all_nodes *c, uint32_t rank)
{
    return rank < c->state->count && c->state->nodes[rank]->status != NULL;
}

const char *all_nodes_name(const struct all_nodes *c, uint32_t rank)
{
    static char text[NAME_SIZE];

    if (c->name != NULL && rank < c->state->count)
        return c->name[rank];
    (void)snprintf(text, sizeof text, "node %u", rank);
    return text;
}

const char *all_nodes_missing(const struct all_nodes *c, uint32_t rank)
{
    return c->missing != NULL && rank < c->state->count ? c->missing[rank] : "";
}

bool all_nodes_late(const struct all_nodes *c, uint32_t rank)
{
    return !all_nodes_answered(c, rank) && rank < c->state->count &&
           c->state->nodes[rank]->outcome == TORUS_SURVEY_SILENT;
}

int all_nodes_set_node(json_t *o, const struct all_nodes *c, uint32_t rank)
{
    const struct torus_node_answer *n = c->state->nodes[rank];
    uint32_t at[TORUS_MAX_DIMS];
    json_t *coordinates = json_array();
    int r = 0;

    torus_coordinates(&c->torus, rank, at);
    for (unsigned dim = 0; dim < c->torus.dims; dim++)
        r |= json_array_append_new(coordinates, json_integer(at[dim]));
    r |= json_object_set_new(o, "rank", json_integer(rank));
    r |= json_object_set_new(o, "host", json_text(n->host));
    r |= json_object_set_new(o, "coordinates", coordinates);
    r |= json_object_set_new(o, "outcome",
                             json_string(torus_survey_outcome_name(
                                 all_nodes_answered(c, rank) || n->outcome != TORUS_SURVEY_ANSWERED
                                     ? n->outcome
                                     : TORUS_SURVEY_UNREADABLE)));
    return r;
}
