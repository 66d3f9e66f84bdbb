#include "client/cli/serving/scene.h"

#include <stdlib.h>
#include <string.h>

#include "proto/text.h"

void scene_free(struct scene *s)
{
    observed_free(&s->seen);
    free(s->name);
    history_free(&s->history);
    *s = (struct scene){0};
}

const char *scene_name(const struct scene *s, uint32_t rank)
{
    static char text[SCENE_NAME_SIZE];

    if (rank < s->seen.now.torus.nodes && s->name[rank][0] != '\0')
        return s->name[rank];
    (void)snprintf(text, sizeof text, "node %u", rank);
    return text;
}

static void note_names(struct scene *s)
{
    const struct all_nodes *now = &s->seen.now;

    for (uint32_t rank = 0; rank < now->torus.nodes; rank++)
        if (now->state->nodes[rank]->host[0] != '\0' && now->name != NULL)
            (void)text_printable(s->name[rank], sizeof s->name[rank], now->name[rank]);
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
        const double sent = s->seen.ends[i].sent;
        history_set(&s->history, i, since, sent);
        if (sent >= 0)
            sum = (sum < 0 ? 0 : sum) + sent;
    }
    history_set(&s->history, all, since, sum);
}

/* Makes what depends on the size of the torus. Returns 0, or -1 if memory is short. */
static int begin(struct scene *s)
{
    const uint32_t nodes = s->seen.now.torus.nodes;

    s->name = calloc(nodes, sizeof *s->name);
    return history_begin(&s->history, (size_t)nodes * s->seen.ports + 1) == 0 && s->name != NULL
               ? 0
               : -1;
}

int scene_take(struct scene *s, struct all_nodes *survey, double seconds)
{
    const bool is_new = observed_is_new(&s->seen, survey);

    if (is_new)
        scene_free(s);
    s->new_torus = is_new;
    if (observed_take(&s->seen, survey, SCENE_GAP_SECONDS, seconds) != 0 ||
        (is_new && begin(s) != 0)) {
        scene_free(s);
        return -1;
    }
    note_names(s);
    remember(s, seconds);
    return 0;
}
