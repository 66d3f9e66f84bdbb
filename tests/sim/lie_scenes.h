/* What is under way on a torus while one of its nodes lies, and what comes of that. */
#ifndef TORUSD_TESTS_SIM_LIE_SCENES_H
#define TORUSD_TESTS_SIM_LIE_SCENES_H

#include "tests/sim/internal.h"
#include "tests/sim/lies.h"

#define LIAR 1u
#define LIE_SCENES 19u
#define LIE_HEAP_MOST (64u << 20) /* bytes beyond those before, whatever is said */

enum lie_scene_what {
    LIE_SCENE_EXCHANGE,
    LIE_SCENE_IMPORTED,
    LIE_SCENE_REFUSED,
    LIE_SCENE_CANCELLED,
    LIE_SCENE_GROUP,
    LIE_SCENE_LATE,
    LIE_SCENE_RESTART,
    LIE_SCENE_RESUMED,
    LIE_SCENE_REPAIR
};

struct lie_scene {
    const char *name;
    enum lie_scene_what what;
    uint32_t root;
    struct spec spec;
};
extern const struct lie_scene lie_scenes[LIE_SCENES];

/* What comes of a lie: each contains those before it. */
enum lie_result { LIE_NOTHING, LIE_FAILS, LIE_LINK, LIE_RESULTS };
extern const char *const lie_result_names[LIE_RESULTS];

/* Whom the failure of an exchange names: the liar, or its link; only a node before or behind it on the way from
 * the root; or neither. What its own exchanges fail by is named by their ids, which begin with its rank. */
enum lie_named { LIE_NAMES_LIAR, LIE_NAMES_ITS_WAY, LIE_NAMES_NOBODY, LIE_NAMINGS };
extern const char *const lie_named_names[LIE_NAMINGS];

struct lie_play {
    struct sim *sim;
    const struct lie_field *field; /* NULL: the truth */
    unsigned value, told, times;
    uint8_t *said[SIM_KINDS]; /* last, by anybody */
    size_t said_length[SIM_KINDS];
    size_t heap;
    const char *top_most; /* where the heap may end, whatever is free in it */
    char id[EXCHANGE_ID_SIZE], failure[sizeof((struct error *)0)->text];
    uint32_t root;
    unsigned flips; /* of bits in blocks that node 0 sends further than to its neighbours */
};

/* Opens a ring of four for a scene, and waits until it is whole. The caller closes it. */
void lie_play_open(struct lie_play *s, const struct lie_scene *scene, uint64_t seed);
void lie_play_close(struct lie_play *s);
/* From here on, no more than LIE_HEAP_MOST bytes may be taken beyond those that are in use. */
void lie_play_watch_heap(struct lie_play *s);
/* Plays the scene until it has ended, with the lie that s->field, s->value and s->times say. Returns what came of it;
 * s->failure is then the text of its failure, or "". */
enum lie_result lie_play_run(struct lie_play *s, const struct lie_scene *scene);
/* Whom s->failure names. */
enum lie_named lie_play_named(const struct lie_play *s);
/* Restarts the liar as an honest node. Fails unless exchanges then succeed and nothing is left of what it said. */
void lie_play_replace_liar(struct lie_play *s);
/* Whether a scene fails without lies, too. */
bool lie_scene_fails_anyway(const struct lie_scene *scene);

#endif
