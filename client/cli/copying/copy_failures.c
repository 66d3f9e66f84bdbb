#include "client/cli/copying/copy_failures.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "proto/text.h"

#define SHOWN_LINES 16u /* different errors */
#define SHOWN_NODES 4u  /* of one error */

/* ---- Names ----------------------------------------------------------------------------------- */

void copy_text_node(char *out, size_t size, const struct all_nodes *names, uint32_t rank)
{
    const char *host =
        names->state != NULL && rank < names->state->count ? names->state->nodes[rank]->host : "";

    if (host[0] != '\0')
        (void)snprintf(out, size, "node %" PRIu32 " (%.64s)", rank, host);
    else
        (void)snprintf(out, size, "node %" PRIu32, rank);
}

void copy_text_outcome(char *out, size_t size, const struct copy_order *o,
                       const struct all_nodes *names, const struct torus_copy_node *n)
{
    copy_text_node(out, size, names, n->rank);
    if (o->copy.kind == TORUS_COPY_GATHER || o->copy.kind == TORUS_COPY_EXCHANGE) {
        char from[100];
        copy_text_node(from, sizeof from, names, n->from);
        (void)snprintf(out + strlen(out), size - strlen(out), ", files from %s", from);
    }
}

/* ---- Failures -------------------------------------------------------------------------------- */

struct failures {
    const struct copy_order *order;
    const struct torus_copy_result *result;
    const struct all_nodes *names;
    bool *printed; /* by outcome */
};

/* An error of the node that reads is the same for all nodes that it should have sent files to. The node's rank is at the
 * beginning of the text. Returns the length of that beginning, or 0. */
static size_t reader_prefix(const struct torus_copy_node *n)
{
    char prefix[32];

    (void)snprintf(prefix, sizeof prefix, "node %" PRIu32 ": ", n->from);
    return strncmp(n->error, prefix, strlen(prefix)) == 0 ? strlen(prefix) : 0;
}

/* Prints the error of outcome `first`, and marks all outcomes with the same one. */
static void print_error(FILE *out, struct failures *f, size_t first)
{
    const struct torus_copy_node *n = f->result->node[first];
    const size_t prefix = reader_prefix(n);
    size_t count = 0;
    char name[250];

    if (prefix > 0) {
        copy_text_node(name, sizeof name, f->names, n->from);
        (void)fprintf(out, "torusctl: %s", name);
    }
    for (size_t i = first; i < f->result->node_count; i++) {
        const struct torus_copy_node *other = f->result->node[i];
        if (other->code != n->code || strcmp(other->error, n->error) != 0)
            continue;
        f->printed[i] = true;
        if (prefix > 0 || count++ >= SHOWN_NODES)
            continue;
        copy_text_outcome(name, sizeof name, f->order, f->names, other);
        (void)fprintf(out, "%s%s", count > 1 ? "; " : "torusctl: ", name);
    }
    if (count > SHOWN_NODES)
        (void)fprintf(out, "; and %zu more", count - SHOWN_NODES);
    (void)fprintf(out, ": %s\n", n->error + prefix);
}

void copy_failures_print(FILE *out, const struct copy_order *o, const struct torus_copy_result *r,
                         const struct all_nodes *names)
{
    struct failures f = {o, r, names, calloc(r->node_count + 1, sizeof *f.printed)};
    size_t lines = 0, left = 0;

    for (size_t i = 0; f.printed != NULL && i < r->node_count; i++) {
        if (r->node[i]->code == TORUS_ERROR_NONE || f.printed[i])
            continue;
        if (lines++ < SHOWN_LINES)
            print_error(out, &f, i);
        else
            left++;
    }
    if (left > 0)
        (void)fprintf(out, "torusctl: and %zu more %s; --json has all\n", left,
                      text_plural(left, "error", "errors"));
    free(f.printed);
}
