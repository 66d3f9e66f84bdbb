/* Scenes: what runs on a torus while one of its nodes lies, and the consequences. */
#pragma once

#include "tests/sim/internal.h"
#include "tests/sim/lies.h"

#define LIAR 1u
#define LIE_SCENES 22u
#define LIE_HEAP_MOST (64u << 20) /* the most bytes that a lie may cost */

enum lie_scene_what {
    LIE_SCENE_EXCHANGE,
    LIE_SCENE_IMPORTED,
    LIE_SCENE_REFUSED,
    LIE_SCENE_CANCELLED,
    LIE_SCENE_GROUP,
    LIE_SCENE_MESSAGES,
    LIE_SCENE_LATE,
    LIE_SCENE_RESTART,
    LIE_SCENE_RESUMED,
    LIE_SCENE_REPAIR,
    LIE_SCENE_SURVEY,
    LIE_SCENE_COPY
};

struct lie_scene {
    const char *name;
    enum lie_scene_what what;
    uint32_t root;
    struct spec spec;
};
extern const struct lie_scene lie_scenes[LIE_SCENES];

/* Consequences of a lie: each includes those before it. */
enum lie_result { LIE_NOTHING, LIE_FAILS, LIE_LINK, LIE_RESULTS };
extern const char *const lie_result_names[LIE_RESULTS];

/* What the failure of an exchange names: the liar or its link; only a node before or behind the liar on the route
 * from the root; or neither. The ids of the liar's own exchanges name it, because they begin with its rank. */
enum lie_named { LIE_NAMES_LIAR, LIE_NAMES_ITS_WAY, LIE_NAMES_NOBODY, LIE_NAMINGS };
extern const char *const lie_named_names[LIE_NAMINGS];

struct lie_play {
    struct sim *sim;
    const struct lie_field *field; /* NULL: the truth */
    unsigned value, told, times;
    uint8_t *said[SIM_KINDS]; /* the last one of any node */
    size_t said_length[SIM_KINDS];
    size_t heap;
    const char *top_most; /* the highest allowed end of the heap */
    char id[EXCHANGE_ID_SIZE], failure[sizeof((struct error *)0)->text];
    uint32_t root;
    unsigned flips; /* flipped bits in blocks that node 0 sends farther than to its neighbours */
};

/* Starts a ring of four nodes for a scene, and waits until it is whole. The caller closes it. */
void lie_play_open(struct lie_play *s, const struct lie_scene *scene, uint64_t seed);
void lie_play_close(struct lie_play *s);
/* From now on, at most LIE_HEAP_MOST more bytes of heap may be used. */
void lie_play_watch_heap(struct lie_play *s);
/* Plays a scene to its end, with the lie of s->field, s->value and s->times. Returns the consequence, and sets
 * s->failure to the text of the failure, or "". */
enum lie_result lie_play_run(struct lie_play *s, const struct lie_scene *scene);
/* What s->failure names. */
enum lie_named lie_play_named(const struct lie_play *s);
/* Restarts the liar as an honest node. Fails unless exchanges then succeed and nothing is left of its lies. */
void lie_play_replace_liar(struct lie_play *s);
/* Whether a scene also fails without lies. */
bool lie_scene_fails_anyway(const struct lie_scene *scene);
