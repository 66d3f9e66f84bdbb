#include "client/cli/schedule_files/teccl.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/schedule_files/straight_leg.h"
#include "daemon/lib/base/grow.h"
#include "daemon/lib/schedule/file/export.h"
#include "daemon/lib/schedule/file/imported.h"
#include "proto/text.h"

#define DEVICES_MOST (2 * TORUS_MAX_NODES)
#define VOLUME_ERROR 1e-5 /* the solver's volumes are rounded to six digits */

/* A send. `from` and `to` are devices until number_gpus(), then nodes. */
struct hop {
    uint32_t source, chunk; /* of a flow */
    uint32_t from, to, epoch;
    double volume; /* 0: not given */
    bool used;     /* of a flow */
};

/* A path of a chunk, or of a part of it. */
struct path {
    uint32_t source, chunk, destination;
    size_t first, count; /* hops */
    const char *name;    /* of the demand, for errors */
};

struct reader {
    const struct torus *torus;
    FILE *out;
    bool exchange; /* hops have volumes */
    struct hop *hop;
    size_t hops, hop_room;
    struct path *path;
    size_t paths, path_room;
    uint32_t *gpu; /* devices at which chunks begin, sorted */
    uint32_t gpus;
    uint32_t chunks;    /* of a block */
    uint32_t parts;     /* segments of a chunk */
    struct leg *legs;   /* room for the longest path */
    uint64_t leg_count; /* of all routes */
};

static int no_memory(struct error *e)
{
    return error_set(e, ERROR_MEMORY, "out of memory for the schedule");
}

/* Sets *e to '"Demand at ...": why', without control characters. Returns -1. */
static int __attribute__((format(printf, 3, 4)))
refuse(const char *element, struct error *e, const char *format, ...)
{
    char why[200], name[100];
    va_list ap;

    va_start(ap, format);
    (void)vsnprintf(why, sizeof why, format, ap);
    va_end(ap);
    text_clean(why);
    return error_set(e, ERROR_REFUSED, "\"%s\": %s", text_printable(name, sizeof name, element),
                     why);
}

/* ---- Texts ----------------------------------------------------------------------------------- */

/* Moves *at past a word. Returns whether it was there. */
static bool take(const char **at, const char *word)
{
    size_t length = strlen(word);

    if (strncmp(*at, word, length) != 0)
        return false;
    *at += length;
    return true;
}

/* Moves *at past a number of at most `most`. Returns whether it was there. */
static bool take_number(const char **at, uint32_t most, uint32_t *number)
{
    const size_t digits = strspn(*at, "0123456789");

    if (digits == 0 || digits > 9)
        return false;
    *number = (uint32_t)strtoul(*at, NULL, 10);
    *at += digits;
    return *number <= most;
}

static bool take_volume(const char **at, double *volume)
{
    char *end = NULL;

    *volume = strtod(*at, &end);
    if (end == *at || !(*volume > 0 && *volume <= 1 + VOLUME_ERROR))
        return false;
    *at = end;
    return true;
}

/* Reads "0->1 with volume 0.5 in epoch 3 via switches 8->9" to its end. Returns whether it is that. */
static bool read_hop(const char *at, struct hop *hop)
{
    uint32_t device;

    if (!take_number(&at, DEVICES_MOST, &hop->from) || !take(&at, "->") ||
        !take_number(&at, DEVICES_MOST, &hop->to))
        return false;
    hop->volume = 0;
    if (take(&at, " with volume ") && !take_volume(&at, &hop->volume))
        return false;
    if (!take(&at, " in epoch ") || !take_number(&at, IMPORTED_STEP_MOST, &hop->epoch))
        return false;
    if (!take(&at, " via switches "))
        return *at == '\0';
    do {
        if (!take_number(&at, DEVICES_MOST, &device))
            return false;
    } while (take(&at, "->") || take(&at, " -> "));
    return *at == '\0';
}

/* Adds a hop. Returns 0, or -1 with *e, which names `element`. */
static int add_hop(struct reader *r, const char *element, const char *text, struct hop hop,
                   struct error *e)
{
    if (text == NULL || !read_hop(text, &hop))
        return refuse(element, e,
                      "\"%.60s\" is not a send, as in \"0->1 in epoch 3\" or "
                      "\"0->1 with volume 0.5 in epoch 3\", of at most %u epochs",
                      text != NULL ? text : "", IMPORTED_STEP_MOST + 1);
    if (r->hops == 0)
        r->exchange = hop.volume > 0;
    if (r->exchange != (hop.volume > 0))
        return refuse(element, e, "some sends have volumes, others have none");
    if (GROW(r->hop, r->hops, r->hop_room) != 0)
        return no_memory(e);
    r->hop[r->hops++] = hop;
    return 0;
}

/* ---- Chunk paths ----------------------------------------------------------------------------- */

/* Reads one path: a list of sends, of which each may stand behind its epoch. Returns 0, or -1 with *e. */
static int read_path(struct reader *r, const struct path *demand, const json_t *sends,
                     struct error *e)
{
    struct path path = *demand;

    path.first = r->hops;
    path.count = json_array_size(sends);
    if (!json_is_array(sends) || path.count == 0)
        return refuse(demand->name, e, "a path must be a list of sends");
    for (size_t i = 0; i < path.count; i++) {
        const json_t *send = json_array_get(sends, i);
        if (json_is_array(send))
            send = json_array_get(send, 1);
        if (add_hop(r, demand->name, json_string_value(send), (struct hop){0}, e) != 0)
            return -1;
    }
    if (GROW(r->path, r->paths, r->path_room) != 0)
        return no_memory(e);
    r->path[r->paths++] = path;
    return 0;
}

static int read_demand(struct reader *r, const char *name, const json_t *paths, struct error *e)
{
    struct path demand = {.name = name};
    const char *at = name;
    uint32_t epoch;

    if (!take(&at, "Demand at ") || !take_number(&at, DEVICES_MOST, &demand.destination) ||
        !take(&at, " for chunk ") || !take_number(&at, IMPORTED_ROUTES_MOST, &demand.chunk) ||
        !take(&at, " from ") || !take_number(&at, DEVICES_MOST, &demand.source) ||
        !take(&at, " met by epoch ") || !take_number(&at, IMPORTED_STEP_MOST, &epoch) ||
        *at != '\0')
        return refuse(name, e, "expected \"Demand at 2 for chunk 0 from 1 met by epoch 3\"");
    if (!json_is_array(paths) || json_array_size(paths) == 0)
        return refuse(name, e, "a demand must have a list of sends, or of paths");
    if (json_is_string(json_array_get(paths, 0)))
        return read_path(r, &demand, paths, e);
    for (size_t i = 0; i < json_array_size(paths); i++)
        if (read_path(r, &demand, json_array_get(paths, i), e) != 0)
            return -1;
    return 0;
}

static int read_chunk_paths(struct reader *r, const char *key, json_t *demands, struct error *e)
{
    const char *name;
    json_t *paths;

    if (!json_is_object(demands))
        return refuse(key, e, "expected an object of demands");
    json_object_foreach(demands, name, paths) if (read_demand(r, name, paths, e) != 0) return -1;
    return 0;
}

/* ---- Flows ----------------------------------------------------------------------------------- */

static int read_flows(struct reader *r, const char *key, const json_t *flows, struct error *e)
{
    if (!json_is_array(flows))
        return refuse(key, e, "expected a list of flows");
    for (size_t i = 0; i < json_array_size(flows); i++) {
        const char *text = json_string_value(json_array_get(flows, i)), *at = text;
        struct hop hop = {0};
        if (at == NULL || !take(&at, "Chunk ") ||
            !take_number(&at, IMPORTED_ROUTES_MOST, &hop.chunk) || !take(&at, " from ") ||
            !take_number(&at, DEVICES_MOST, &hop.source) || !take(&at, " traveled over "))
            return refuse(text != NULL ? text : key, e,
                          "flow %zu must be as in \"Chunk 0 from 2 traveled over 2->3 in epoch 0\"",
                          i + 1);
        if (add_hop(r, text, at, hop, e) != 0)
            return -1;
    }
    return 0;
}

static int compare_flows(const void *a, const void *b)
{
    const struct hop *x = a, *y = b;

    if (x->source != y->source)
        return x->source < y->source ? -1 : 1;
    if (x->chunk != y->chunk)
        return x->chunk < y->chunk ? -1 : 1;
    return x->to < y->to ? -1 : x->to > y->to;
}

static int bad_flow(const struct hop *flow, struct error *e, const char *why)
{
    return error_set(e, ERROR_REFUSED,
                     "flow of chunk %" PRIu32 " from %" PRIu32 " over %" PRIu32 "->%" PRIu32
                     " in epoch %" PRIu32 ": %s",
                     flow->chunk, flow->source, flow->from, flow->to, flow->epoch, why);
}

/* Sorts the flows by chunk and end. No chunk may come to a device twice. Returns 0, or -1 with *e. */
static int sort_flows(struct hop *flow, size_t count, struct error *e)
{
    qsort(flow, count, sizeof *flow, compare_flows);
    for (size_t i = 1; i < count; i++)
        if (compare_flows(&flow[i - 1], &flow[i]) == 0)
            return bad_flow(&flow[i], e,
                            "another flow brings the chunk there as well; only a file with chunk "
                            "paths says which part goes where");
    return 0;
}

/* Follows the flows of a chunk back from a device to its source, and adds the path. `flow` has `count` flows of this
 * chunk. Returns 0, or -1 with *e. */
static int follow_flows(struct reader *r, struct hop *flow, size_t count, uint32_t destination,
                        struct error *e)
{
    struct path path = {.source = flow->source,
                        .chunk = flow->chunk,
                        .destination = destination,
                        .first = r->hops,
                        .name = "flows"};

    for (uint32_t at = destination; at != path.source; path.count++) {
        struct hop wanted = {.source = path.source, .chunk = path.chunk, .to = at};
        struct hop *found = bsearch(&wanted, flow, count, sizeof *flow, compare_flows);
        if (found == NULL || path.count == count)
            return error_set(e, ERROR_REFUSED,
                             "no flows bring chunk %" PRIu32 " from %" PRIu32 " to %" PRIu32,
                             path.chunk, path.source, at);
        found->used = true;
        at = found->from;
        if (GROW(r->hop, r->hops, r->hop_room) != 0)
            return no_memory(e);
        r->hop[r->hops++] = *found;
        if (r->hops > STRAIGHT_LEGS_MOST)
            return error_set(e, ERROR_REFUSED, "the routes do not fit into a schedule of %u MiB",
                             IMPORTED_BYTES_MOST >> 20);
    }
    for (size_t i = 0; i < path.count / 2; i++) {
        struct hop *one = &r->hop[path.first + i], *other = &r->hop[r->hops - 1 - i], swap = *one;
        *one = *other;
        *other = swap;
    }
    if (GROW(r->path, r->paths, r->path_room) != 0)
        return no_memory(e);
    r->path[r->paths++] = path;
    return 0;
}

/* Makes the paths of a chunk from its flows. Returns 0, or -1 with *e. */
static int join_chunk(struct reader *r, struct hop *flow, size_t count, struct error *e)
{
    const uint32_t only = r->gpu[flow->chunk % r->gpus];

    for (uint32_t i = 0; i < r->gpus; i++)
        if (r->gpu[i] != flow->source && (!r->exchange || r->gpu[i] == only) &&
            follow_flows(r, flow, count, r->gpu[i], e) != 0)
            return -1;
    for (size_t i = 0; i < count; i++) {
        if (!flow[i].used)
            return bad_flow(&flow[i], e, "it leads to no destination of the chunk");
        if (r->exchange && flow[i].volume < 1 - VOLUME_ERROR)
            return bad_flow(&flow[i], e, "the rest of the chunk does not come");
    }
    return 0;
}

static int join_flows(struct reader *r, struct hop *flow, size_t count, struct error *e)
{
    if (sort_flows(flow, count, e) != 0)
        return -1;
    for (size_t first = 0, end; first < count; first = end) {
        for (end = first + 1; end < count && flow[end].source == flow[first].source &&
                              flow[end].chunk == flow[first].chunk;)
            end++;
        if (join_chunk(r, flow + first, end - first, e) != 0)
            return -1;
    }
    return 0;
}

/* ---- Routes ---------------------------------------------------------------------------------- */

static int compare_devices(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

/* Sorts the devices at which chunks begin, and keeps one of each. Returns 0, or -1 with *e. */
static int number_gpus(struct reader *r, size_t count, struct error *e)
{
    char dims[TORUS_TEXT_SIZE];

    qsort(r->gpu, count, sizeof *r->gpu, compare_devices);
    for (size_t i = 0; i < count; i++)
        if (r->gpus == 0 || r->gpu[r->gpus - 1] != r->gpu[i])
            r->gpu[r->gpus++] = r->gpu[i];
    if (r->gpus == r->torus->nodes)
        return 0;
    return error_set(e, ERROR_REFUSED,
                     "chunks begin at %" PRIu32 " GPUs, but %s has %" PRIu32 " nodes", r->gpus,
                     torus_format(r->torus, dims), r->torus->nodes);
}

/* Finds the GPUs, and makes paths of the flows if the file has no chunk paths. Returns 0, or -1 with *e. */
static int find_paths(struct reader *r, struct error *e)
{
    struct hop *flow = r->hop;
    const size_t flows = r->paths == 0 ? r->hops : 0, count = flows > 0 ? flows : r->paths;

    r->gpu = calloc(count + 1, sizeof *r->gpu);
    if (r->gpu == NULL)
        return no_memory(e);
    for (size_t i = 0; i < count; i++)
        r->gpu[i] = flows > 0 ? flow[i].source : r->path[i].source;
    if (number_gpus(r, count, e) != 0)
        return -1;
    if (flows == 0)
        return 0;
    r->hop = NULL;
    r->hops = r->hop_room = 0;
    int rc = join_flows(r, flow, flows, e);
    free(flow);
    return rc;
}

/* Replaces a device by its node. Returns 0, or -1 with *e. */
static int find_node(const struct reader *r, const char *name, uint32_t *device, struct error *e)
{
    const uint32_t *found = bsearch(device, r->gpu, r->gpus, sizeof *r->gpu, compare_devices);

    if (found == NULL)
        return refuse(name, e, "no chunk begins at device %" PRIu32 ", so it is no GPU", *device);
    *device = (uint32_t)(found - r->gpu);
    return 0;
}

/* Replaces the devices of a path by nodes, and checks that its hops follow each other. Returns 0, or -1 with *e. */
static int check_path(struct reader *r, struct path *p, struct error *e)
{
    struct hop *hop = &r->hop[p->first];

    if (find_node(r, p->name, &p->source, e) != 0 || find_node(r, p->name, &p->destination, e) != 0)
        return -1;
    uint32_t at = p->source;
    for (size_t i = 0; i < p->count; i++) {
        if (find_node(r, p->name, &hop[i].from, e) != 0 ||
            find_node(r, p->name, &hop[i].to, e) != 0)
            return -1;
        if (hop[i].from != at || (i > 0 && hop[i].epoch <= hop[i - 1].epoch))
            return refuse(p->name, e,
                          "send %zu of a path begins elsewhere than the one before ends, or in no "
                          "later epoch",
                          i + 1);
        if (fabs(hop[i].volume - hop[0].volume) > VOLUME_ERROR)
            return refuse(p->name, e, "the sends of a path have different volumes");
        at = hop[i].to;
    }
    if (at != p->destination || at == p->source)
        return refuse(p->name, e, "a path does not lead to the destination");
    if (r->exchange && p->chunk % r->gpus != p->destination)
        return refuse(p->name, e,
                      "chunk %" PRIu32 " belongs to GPU number %" PRIu32 " of %" PRIu32
                      " in an exchange",
                      p->chunk, p->chunk % r->gpus, r->gpus);
    return 0;
}

static int compare_paths(const void *a, const void *b)
{
    const struct path *x = a, *y = b;

    if (x->source != y->source)
        return x->source < y->source ? -1 : 1;
    if (x->chunk != y->chunk)
        return x->chunk < y->chunk ? -1 : 1;
    if (x->destination != y->destination)
        return x->destination < y->destination ? -1 : 1;
    return x->first < y->first ? -1 : x->first > y->first;
}

/* Returns how many of `parts` equal parts a path carries, or 0 if it is no whole number. */
static uint32_t parts_of(const struct reader *r, const struct path *p, uint32_t parts)
{
    const double volume = r->exchange ? r->hop[p->first].volume : 1, whole = rint(volume * parts);

    return fabs(volume - whole / parts) <= VOLUME_ERROR ? (uint32_t)whole : 0;
}

/* Finds into how many parts a chunk must be cut. Returns 0, or -1 with *e. */
static int find_parts(struct reader *r, struct error *e)
{
    for (size_t i = 0; i < r->paths; i++) {
        const uint32_t chunk = r->path[i].chunk / (r->exchange ? r->gpus : 1);
        r->chunks = chunk >= r->chunks ? chunk + 1 : r->chunks;
    }
    for (r->parts = 1; r->chunks * r->parts <= IMPORTED_SEGMENTS_MOST; r->parts++) {
        size_t i = 0;
        while (i < r->paths && parts_of(r, &r->path[i], r->parts) > 0)
            i++;
        if (i == r->paths)
            return 0;
    }
    return error_set(e, ERROR_REFUSED,
                     "the chunks of a block, and their volumes, need more than the %u equal "
                     "segments that a schedule can have",
                     IMPORTED_SEGMENTS_MOST);
}

/* Prints the routes of a path's segments, of which the first is `segment`. Returns 0, or -1 with *e. */
static int print_path(struct reader *r, const struct path *p, uint32_t segment, uint32_t count,
                      struct error *e)
{
    struct error why;

    r->leg_count += p->count * count;
    if (r->leg_count > STRAIGHT_LEGS_MOST)
        return error_set(e, ERROR_REFUSED, "the routes do not fit into a schedule of %u MiB",
                         IMPORTED_BYTES_MOST >> 20);
    for (size_t i = 0; i < p->count; i++) {
        const struct hop *hop = &r->hop[p->first + i];
        if (straight_leg(r->torus, hop->from, hop->to, 0, &r->legs[i], &why) != 0)
            return refuse(p->name, e, "%s", why.text);
        r->legs[i].step = hop->epoch;
    }
    for (uint32_t i = 0; i < count; i++)
        schedule_export_route(r->out, p->source, p->destination, segment + i, r->legs,
                              (uint32_t)p->count);
    return 0;
}

/* Prints the routes of all paths of a chunk to a destination. Returns 0, or -1 with *e. */
static int print_demand(struct reader *r, const struct path *path, size_t count, struct error *e)
{
    const uint32_t first = path->chunk / (r->exchange ? r->gpus : 1) * r->parts;
    uint32_t done = 0;

    for (size_t i = 0; i < count; i++) {
        const uint32_t parts = parts_of(r, &path[i], r->parts);
        if (parts > r->parts - done)
            return refuse(path->name, e, "more than the whole chunk comes");
        if (print_path(r, &path[i], first + done, parts, e) != 0)
            return -1;
        done += parts;
    }
    if (done < r->parts)
        return refuse(path->name, e, "only %" PRIu32 " of %" PRIu32 " parts of the chunk come",
                      done, r->parts);
    return 0;
}

static int print_paths(struct reader *r, struct error *e)
{
    size_t longest = 0;

    for (size_t i = 0; i < r->paths; i++) {
        if (check_path(r, &r->path[i], e) != 0)
            return -1;
        longest = r->path[i].count > longest ? r->path[i].count : longest;
    }
    if (find_parts(r, e) != 0)
        return -1;
    r->legs = calloc(longest + 1, sizeof *r->legs);
    if (r->legs == NULL)
        return no_memory(e);
    qsort(r->path, r->paths, sizeof *r->path, compare_paths);
    schedule_export_header(r->out, r->torus, "te-ccl",
                           r->exchange ? OPERATION_EXCHANGE : OPERATION_ALLGATHER, false,
                           r->chunks * r->parts);
    for (size_t first = 0, end; first < r->paths; first = end) {
        const struct path *p = &r->path[first];
        for (end = first + 1; end < r->paths && r->path[end].source == p->source &&
                              r->path[end].chunk == p->chunk &&
                              r->path[end].destination == p->destination;)
            end++;
        if (print_demand(r, p, end - first, e) != 0)
            return -1;
    }
    return 0;
}

/* ---- The whole ------------------------------------------------------------------------------- */

static int convert(struct reader *r, json_t *file, struct error *e)
{
    static const char *const path_keys[] = {"8-Chunk paths", "7-chunk paths"};
    static const char *const flow_keys[] = {"7-Flows", "6-Flows"};
    int rc = -1;

    for (size_t i = 0; i < 2; i++) {
        json_t *value = json_object_get(file, path_keys[i]);
        if (value != NULL && (rc = read_chunk_paths(r, path_keys[i], value, e)) != 0)
            return -1;
    }
    for (size_t i = 0; i < 2 && r->paths == 0; i++) {
        const json_t *value = json_object_get(file, flow_keys[i]);
        if (value != NULL && (rc = read_flows(r, flow_keys[i], value, e)) != 0)
            return -1;
    }
    if (r->hops == 0)
        return error_set(e, ERROR_REFUSED,
                         "neither \"%s\" nor \"%s\" has a send (in the form of TE-CCL)",
                         path_keys[0], flow_keys[0]);
    return find_paths(r, e) != 0 ? -1 : print_paths(r, e);
}

int teccl_read(const char *json, size_t length, const struct torus *t, char **routes,
               size_t *routes_length, struct error *e)
{
    struct reader r = {.torus = t};
    json_error_t why;

    *routes = NULL;
    if (length > TECCL_BYTES_MOST)
        return error_set(e, ERROR_REFUSED, "JSON of TE-CCL may have at most %u MiB",
                         TECCL_BYTES_MOST >> 20);
    json_t *file = json_loadb(json, length, JSON_REJECT_DUPLICATES, &why);
    if (file == NULL)
        return error_set(e, ERROR_REFUSED, "line %d: not JSON: %.150s", why.line,
                         text_printable((char[160]){0}, 160, why.text));
    r.out = open_memstream(routes, routes_length);
    int rc = r.out != NULL ? convert(&r, file, e) : no_memory(e);
    bool written = r.out != NULL && ferror(r.out) == 0;
    if (r.out != NULL && (fclose(r.out) != 0 || !written) && rc == 0)
        rc = no_memory(e);
    if (rc != 0) {
        free(*routes);
        *routes = NULL;
    }
    json_decref(file);
    free(r.hop);
    free(r.path);
    free(r.gpu);
    free(r.legs);
    return rc;
}
