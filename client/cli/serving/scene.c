#include "client/cli/serving/scene.h"

#include <stdlib.h>
#include <string.h>

#include "proto/text.h"

void scene_free(struct scene *s)
{
    all_nodes_free(&s->now);
    free(s->ends);
    free(s->name);
    history_free(&s->history);
    *s = (struct scene){0};
}

const struct link_end *scene_end(const struct scene *s, uint32_t rank, unsigned port)
{
    return &s->ends[(size_t)rank * s->ports + port];
}

const char *scene_name(const struct scene *s, uint32_t rank)
{
    static char text[SCENE_NAME_SIZE];

    if (rank < s->now.torus.nodes && s->name[rank][0] != '\0')
        return s->name[rank];
    (void)snprintf(text, sizeof text, "node %u", rank);
    return text;
}

static void fill_node(struct scene *s, const struct link_end *before, uint32_t rank, double elapsed)
{
    const size_t first = (size_t)rank * s->ports;

    link_ends_fill(&s->ends[first], &s->now, rank, before != NULL ? before + first : NULL, elapsed);
    if (s->now.state->nodes[rank]->host[0] != '\0' && s->now.name != NULL)
        (void)text_printable(s->name[rank], sizeof s->name[rank], s->now.name[rank]);
}

/* Adds the rates to the history; they are those of all seconds since the survey before. */
static void remember(struct scene *s, double seconds)
{
    const uint64_t second = (uint64_t)seconds + 1, last = s->history.newest;
    const size_t all = s->history.channels - 1;
    double sum = -1;

    history_move(&s->history, second);
    uint64_t since = last == 0 || second - last > (uint64_t)SCENE_GAP_SECONDS ? 1 : second - last;
    if (since == 0)
        since = 1; /* two surveys in a second: the last one counts */
    for (size_t i = 0; i < all; i++) {
        history_set(&s->history, i, since, s->ends[i].sent);
        if (s->ends[i].sent >= 0)
            sum = (sum < 0 ? 0 : sum) + s->ends[i].sent;
    }
    history_set(&s->history, all, since, sum);
}

/* Makes what depends on the size of the torus. Returns 0, or -1 if memory is short. */
static int begin(struct scene *s)
{
    const uint32_t nodes = s->now.torus.nodes;

    s->new_torus = true;
    s->ports = torus_ports(&s->now.torus);
    s->name = calloc(nodes, sizeof *s->name);
    return history_begin(&s->history, (size_t)nodes * s->ports + 1) == 0 && s->name != NULL ? 0
                                                                                            : -1;
}

/* Fills the scene from s->now and what was known before. Returns 0, or -1 if memory is short. */
static int fill(struct scene *s, const struct all_nodes *before, const struct link_end *ends,
                double seconds)
{
    const uint32_t nodes = s->now.torus.nodes;
    double *elapsed = calloc(nodes, sizeof *elapsed);

    s->ends = calloc((size_t)nodes * s->ports + 1, sizeof *s->ends);
    if (s->ends == NULL || elapsed == NULL) {
        free(elapsed);
        return -1;
    }
    for (uint32_t rank = 0; rank < nodes; rank++) {
        elapsed[rank] = link_ends_elapsed(&s->now, before, rank);
        if (elapsed[rank] > SCENE_GAP_SECONDS)
            elapsed[rank] = 0;
        fill_node(s, ends, rank, elapsed[rank]);
    }
    link_capacity_update(&s->capacity, &s->now, s->ends);
    remember(s, seconds);
    runs_fill(&s->runs, &s->now, before, elapsed, seconds);
    free(elapsed);
    return 0;
}

int scene_take(struct scene *s, struct all_nodes *survey, double seconds)
{
    if (s->now.state != NULL && !torus_equal(&s->now.torus, &survey->torus))
        scene_free(s);
    struct all_nodes before = s->now;
    struct link_end *ends = s->ends;

    s->now = *survey;
    *survey = (struct all_nodes){0};
    s->new_torus = false;
    int result = before.state == NULL ? begin(s) : 0;
    s->ends = NULL;
    if (result == 0)
        result = fill(s, &before, ends, seconds);
    all_nodes_free(&before);
    free(ends);
    if (result != 0)
        scene_free(s);
    return result;
}
