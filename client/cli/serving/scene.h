/* What `torusctl serve` knows of a torus: what is observed, the machines, and the history of an hour. Without I/O. What
 * other machines say is cut and made valid text, never more. */
#pragma once

#include "client/cli/serving/history.h"
#include "client/cli/survey/observed.h"

#define SCENE_GAP_SECONDS 10.0 /* between surveys: nobody has looked, and rates are not known */
#define SCENE_NAME_SIZE 101u

struct scene {
    struct observed seen;
    char (*name)[SCENE_NAME_SIZE]; /* by rank, also of nodes that are down now; "": not known */
    struct history history;        /* by rank and port what was sent; the last one is the sum */
    bool new_torus;                /* the survey is the first one of this torus */
};

/* Takes over a survey, which becomes empty in any case. `seconds` is a steady clock. If the survey is about another
 * torus, what was known is forgotten. Returns 0, or -1 if memory is short: the scene is then empty. */
int scene_take(struct scene *s, struct all_nodes *survey, double seconds);
void scene_free(struct scene *s);

/* ---- The scene as the page in the browser reads it: values that the caller owns, or NULL if memory is short ---- */

/* The torus (torus_json()); "asker", the node that was asked; and "opposite", for each channel the number of the
 * channel in the opposite direction. NULL with *e: also if it is too large. */
json_t *scene_torus_value(const struct scene *s, struct error *e);

/* The state of now:
 *
 *     at               milliseconds since 1970
 *     took             seconds
 *     capacity         of a channel in bytes a second (null: not known), and "nominal": whether it is configured
 *     node             for each node: [name, why it has not answered or "", version, memory used, memory budget,
 *                      seconds it has been up]
 *     end              for each channel of the torus, in its order: null if nothing is known about it, otherwise [up,
 *                      sent, received, queue, unacked, retransmissions, retransmissions a second, round trip in us, MTU,
 *                      state, reason, interface]; the last three are left out if the link is up. Rates are bytes a
 *                      second; null: not known
 *     faults, more     [{"node", "port" (null: the node itself), "text", "why" (which may change often)}, ...], and
 *                      how many more there are
 *     links, links_up  their numbers
 *     runs, left_out   what runs, and what has ended last
 */
json_t *scene_state_value(const struct scene *s, uint64_t at_ms);

/* The history of an hour: "step" in seconds, and "series": [{"mean": [...], "peak": [...]}, ...] in bytes a second (null:
 * not known). Without a node (TORUS_RANK_NONE), the series is the sum of all channels. With a node, or with one of its
 * ports (TORUS_RANK_NONE: all), there are two series: what it sends, then what it receives. NULL also if there is no
 * such node or port. */
json_t *scene_history_value(const struct scene *s, uint32_t rank, uint32_t port);
