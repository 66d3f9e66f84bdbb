#include "client/cli/copying/copy_text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include "client/cli/copying/copy_failures.h"
#include "client/cli/terminal/writer.h"
#include "proto/elapsed.h"
#include "proto/text.h"

#define SHOWN_ABSENT 16u           /* ranks in a line */
#define RATE_LEAST (1024u * 1024u) /* bytes from which on a rate says something */

/* ---- Counting -------------------------------------------------------------------------------- */

/* Where a count is in struct torus_copy_node. */
#define COUNT_OF(name) offsetof(struct torus_copy_node, name)

static uint64_t count_of(const struct torus_copy_node *n, size_t offset)
{
    return *(const uint64_t *)(const void *)((const char *)n + offset);
}

/* The smallest and largest count of the outcomes that are not failures and, if `some`, are not 0. */
struct range {
    uint64_t least, most;
    size_t outcomes;
};

static struct range range_of(const struct torus_copy_result *r, size_t offset, bool some)
{
    struct range range = {0};

    for (size_t i = 0; i < r->node_count; i++) {
        uint64_t count = count_of(r->node[i], offset);
        if (r->node[i]->code != TORUS_ERROR_NONE || (some && count == 0))
            continue;
        if (range.outcomes == 0 || count < range.least)
            range.least = count;
        if (range.outcomes == 0 || count > range.most)
            range.most = count;
        range.outcomes++;
    }
    return range;
}

static uint64_t sum_of(const struct torus_copy_result *r, size_t offset)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < r->node_count; i++)
        if (r->node[i]->code == TORUS_ERROR_NONE)
            sum += count_of(r->node[i], offset);
    return sum;
}

/* What all sources have together: for a copy to all, every node has the same source. */
static uint64_t all_of(const struct copy_order *o, const struct torus_copy_result *r, size_t offset)
{
    return o->copy.kind == TORUS_COPY_TO_ALL ? range_of(r, offset, false).most : sum_of(r, offset);
}

/* ---- Parts of sentences ---------------------------------------------------------------------- */

/* Writes "12", or "3 to 12". */
static void range_text(char *out, size_t size, struct range range)
{
    if (range.least == range.most)
        (void)snprintf(out, size, "%" PRIu64, range.most);
    else
        (void)snprintf(out, size, "%" PRIu64 " to %" PRIu64, range.least, range.most);
}

static void append(char *out, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void append(char *out, size_t size, const char *format, ...)
{
    size_t used = strlen(out);
    va_list ap;

    va_start(ap, format);
    (void)vsnprintf(out + used, size - used, format, ap);
    va_end(ap);
}

/* Writes "3 files, 2 folders and 1 link (12 MiB)", without what there is none of. */
static void content_text(char *out, size_t size, const struct copy_order *o,
                         const struct torus_copy_result *r)
{
    const struct {
        uint64_t count;
        const char *one, *many;
    } kinds[] = {
        {all_of(o, r, COUNT_OF(files)), "file", "files"},
        {all_of(o, r, COUNT_OF(folders)), "folder", "folders"},
        {all_of(o, r, COUNT_OF(links)), "symbolic link", "symbolic links"},
    };
    char bytes[FORMAT_SIZE];

    out[0] = '\0';
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (kinds[i].count > 0)
            append(out, size, "%s%" PRIu64 " %s", out[0] != '\0' ? ", " : "", kinds[i].count,
                   text_plural(kinds[i].count, kinds[i].one, kinds[i].many));
    format_bytes(bytes, (double)all_of(o, r, COUNT_OF(bytes)));
    append(out, size, "%s (%s)", out[0] != '\0' ? "" : "nothing", bytes);
}

/* Returns how many nodes the outcomes are about that are not failures (or all outcomes): those that the files come from,
 * if `node` gathers them, otherwise those that write. */
static size_t nodes_of(const struct copy_order *o, const struct torus_copy_result *r, bool all)
{
    size_t count = 0;
    uint32_t last = UINT32_MAX;

    for (size_t i = 0; i < r->node_count; i++) {
        const struct torus_copy_node *n = r->node[i];
        uint32_t about = o->copy.kind == TORUS_COPY_GATHER ? n->from : n->rank;
        if ((all || n->code == TORUS_ERROR_NONE) && about != last) {
            count++;
            last = about;
        }
    }
    return count;
}

/* Writes "3 nodes", "1 node", or "2 of 3 nodes". */
static void nodes_text(char *out, size_t size, const struct copy_order *o,
                       const struct torus_copy_result *r)
{
    size_t good = nodes_of(o, r, false), all = nodes_of(o, r, true);

    if (good == all)
        (void)snprintf(out, size, "%zu %s", all, text_plural(all, "node", "nodes"));
    else
        (void)snprintf(out, size, "%zu of %zu %s", good, all, text_plural(all, "node", "nodes"));
}

/* ---- What was done --------------------------------------------------------------------------- */

static void moved_line(FILE *out, const struct torus_copy_result *r)
{
    const double seconds = (double)r->nanoseconds / 1e9;
    const double moving = (double)elapsed(r->compare_nanoseconds, r->nanoseconds) / 1e9;
    char sent[FORMAT_SIZE], all[FORMAT_SIZE], time[FORMAT_SIZE], rate[FORMAT_SIZE];

    format_bytes(sent, (double)r->bytes_sent);
    format_bytes(all, (double)r->bytes_all);
    format_seconds(time, seconds);
    if (r->bytes_sent == 0) {
        (void)fprintf(out, "moved no data of %s in %s\n", all, time);
        return;
    }
    (void)fprintf(out, "moved %s of %s in %s", sent, all, time);
    format_seconds(time, (double)r->compare_nanoseconds / 1e9);
    (void)fprintf(out, ", %s of it to compare", time);
    format_bytes(rate, moving > 0 ? (double)r->bytes_sent / moving : 0);
    if (r->bytes_sent >= RATE_LEAST)
        (void)fprintf(out, " (%s/s afterwards)", rate);
    (void)fputc('\n', out);
}

void copy_text_done(FILE *out, const struct copy_order *o, const struct torus_copy_result *r)
{
    static const char *const verbs[] = {
        [TORUS_COPY_TO_ALL] = "copied to",
        [TORUS_COPY_GATHER] = "gathered from",
        [TORUS_COPY_SCATTER] = "scattered to",
        [TORUS_COPY_EXCHANGE] = "exchanged among",
    };
    static const struct {
        const char *name;
        size_t offset;
    } counts[] = {
        {"added", COUNT_OF(added)},
        {"changed", COUNT_OF(changed)},
        {"removed", COUNT_OF(removed)},
        {"unchanged", COUNT_OF(unchanged)},
    };
    char nodes[80], content[200], range[64];
    bool differ = false;

    nodes_text(nodes, sizeof nodes, o, r);
    if (nodes_of(o, r, false) == 0) {
        (void)fprintf(out, "%s %s\n", verbs[o->copy.kind], nodes);
        return;
    }
    content_text(content, sizeof content, o, r);
    (void)fprintf(out, "%s %s: %s\n", verbs[o->copy.kind], nodes, content);
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        const struct range count = range_of(r, counts[i].offset, false);
        range_text(range, sizeof range, count);
        (void)fprintf(out, "%s%s %s", i > 0 ? ", " : "", counts[i].name, range);
        differ = differ || count.least < count.most;
    }
    (void)fprintf(out, "%s\n",
                  differ                      ? " (--per-node shows each node)"
                  : nodes_of(o, r, false) > 1 ? " at each node"
                                              : "");
    moved_line(out, r);
}

/* ---- What a copy would do -------------------------------------------------------------------- */

/* Writes "add 12 entries at 3 nodes", "change nothing". */
static void intent_text(char *out, size_t size, const char *verb, const struct torus_copy_result *r,
                        size_t offset)
{
    const struct range range = range_of(r, offset, true);
    char counts[64];

    if (range.outcomes == 0) {
        (void)snprintf(out, size, "%s nothing", verb);
        return;
    }
    range_text(counts, sizeof counts, range);
    (void)snprintf(out, size, "%s %s %s at %zu %s", verb, counts,
                   text_plural(range.most, "entry", "entries"), range.outcomes,
                   text_plural(range.outcomes, "node", "nodes"));
}

void copy_text_dry_run(FILE *out, const struct copy_order *o, const struct torus_copy_result *r)
{
    const struct range missing = range_of(r, COUNT_OF(bytes_missing), true);
    char nodes[80], add[128], change[128], remove[128], bytes[FORMAT_SIZE];

    nodes_text(nodes, sizeof nodes, o, r);
    if (nodes_of(o, r, false) == 0)
        return;
    if (copy_report_differences(r) == 0) {
        (void)fprintf(out, "nothing to do at %s: everything is there already\n", nodes);
        return;
    }
    intent_text(add, sizeof add, "add", r, COUNT_OF(added));
    intent_text(change, sizeof change, "change", r, COUNT_OF(changed));
    intent_text(remove, sizeof remove, "remove", r, COUNT_OF(removed));
    format_bytes(bytes, (double)missing.most);
    (void)fprintf(out, "would %s, %s, and %s; ", add, change, remove);
    if (missing.outcomes == 0)
        (void)fprintf(out, "no data would move; ");
    else
        (void)fprintf(out, "%s%s would move to %s; ", missing.least < missing.most ? "up to " : "",
                      bytes, missing.outcomes > 1 ? "each of these nodes" : "this node");
    (void)fprintf(out, "nothing was changed\n");
}

void copy_text_going(FILE *out, const struct copy_order *o, const struct torus_copy_result *r,
                     const struct all_nodes *names)
{
    char name[250];

    for (size_t i = 0; i < r->node_count; i++) {
        const struct torus_copy_node *n = r->node[i];
        if (n->code != TORUS_ERROR_NONE || n->going_count == 0)
            continue;
        copy_text_outcome(name, sizeof name, o, names, n);
        (void)fprintf(out, "%s would remove:\n", name);
        for (size_t k = 0; k < n->going_count; k++)
            (void)fprintf(out, "  %s\n", n->going[k][0] != '\0' ? n->going[k] : ".");
        if (n->removed > n->going_count)
            (void)fprintf(out, "  and %" PRIu64 " more\n", n->removed - n->going_count);
    }
}

/* ---- What differs ---------------------------------------------------------------------------- */

static void difference_line(FILE *out, const char *name, const struct torus_copy_node *n)
{
    char what[160] = "";

    if (n->added > 0)
        append(what, sizeof what, "%" PRIu64 " missing", n->added);
    if (n->changed > n->grown)
        append(what, sizeof what, "%s%" PRIu64 " different", what[0] != '\0' ? ", " : "",
               n->changed - n->grown);
    if (n->grown > 0)
        append(what, sizeof what, "%s%" PRIu64 " %s grown since", what[0] != '\0' ? ", " : "",
               n->grown, n->grown == 1 ? "has" : "have");
    if (n->removed > 0)
        append(what, sizeof what, "%s%" PRIu64 " that the source lacks",
               what[0] != '\0' ? ", " : "", n->removed);
    (void)fprintf(out, "%s: differs: %s", name, what);
    if (n->first[0] != '\0')
        (void)fprintf(out, "; first: %s", n->first);
    (void)fputc('\n', out);
}

void copy_text_verified(FILE *out, const struct copy_order *o, const struct torus_copy_result *r,
                        const struct all_nodes *names)
{
    const size_t differences = copy_report_differences(r), failures = copy_report_failures(r);
    const size_t equal = r->node_count - differences - failures;
    char name[250], content[200];

    content_text(content, sizeof content, o, r);
    if (equal == r->node_count)
        (void)fprintf(out, "equal at %s%zu %s: %s\n", equal > 1 ? "all " : "", nodes_of(o, r, true),
                      text_plural(nodes_of(o, r, true), "node", "nodes"), content);
    for (size_t i = 0; i < r->node_count; i++) {
        copy_text_outcome(name, sizeof name, o, names, r->node[i]);
        if (r->node[i]->code != TORUS_ERROR_NONE || equal == r->node_count)
            continue;
        if (copy_report_differs(r->node[i]))
            difference_line(out, name, r->node[i]);
        else
            (void)fprintf(out, "%s: equal\n", name);
    }
}

/* ---- Remarks  -------------------------------------------------------------------- */

static void absent_line(FILE *out, const struct torus_copy_result *r, const struct all_nodes *names)
{
    char name[100];

    (void)fprintf(out, "%zu %s down, and took no part: ", r->absent_count,
                  text_plural(r->absent_count, "node was", "nodes were"));
    for (size_t i = 0; i < r->absent_count && i < SHOWN_ABSENT; i++) {
        copy_text_node(name, sizeof name, names, r->absent[i]);
        (void)fprintf(out, "%s%s", i > 0 ? ", " : "", name);
    }
    (void)fprintf(out, "%s\n", r->absent_count > SHOWN_ABSENT ? " ..." : "");
}

void copy_text_remarks(FILE *out, const struct torus_copy_result *r, const struct all_nodes *names)
{
    const struct range owners = range_of(r, COUNT_OF(not_owned), true);
    const struct range attributes = range_of(r, COUNT_OF(not_attributed), true);
    char range[64];

    if (r->absent_count > 0)
        absent_line(out, r, names);
    if (r->attempts > 1)
        (void)fprintf(out, "%" PRIu32 " attempts, because links or nodes went down\n", r->attempts);
    if (r->left_out > 0 && copy_report_failures(r) < r->node_count)
        (void)fprintf(
            out, "not copied: %" PRIu64 " %s, such as %s\n", r->left_out,
            text_plural(r->left_out, "socket, FIFO or device", "sockets, FIFOs or devices"),
            r->first_left_out);
    if (r->links_out > 0 && copy_report_failures(r) < r->node_count)
        (void)fprintf(
            out,
            "%" PRIu64 " symbolic %s out of the copy, such as %s; --copy-links copies what "
            "links lead to\n",
            r->links_out, text_plural(r->links_out, "link leads", "links lead"), r->first_link_out);
    if (r->skipped > 0)
        (void)fprintf(out, "changed meanwhile, and left as %s: %" PRIu64 " %s, such as %s\n",
                      r->skipped == 1 ? "it is at the target" : "they are at the targets",
                      r->skipped, text_plural(r->skipped, "file", "files"), r->first_skipped);
    if (owners.outcomes > 0) {
        range_text(range, sizeof range, owners);
        (void)fprintf(out, "owner not kept: %s %s at %zu %s, where torusd may not change owners\n",
                      range, text_plural(owners.most, "entry", "entries"), owners.outcomes,
                      text_plural(owners.outcomes, "node", "nodes"));
    }
    if (attributes.outcomes > 0) {
        range_text(range, sizeof range, attributes);
        (void)fprintf(out,
                      "extended attributes not kept: %s %s at %zu %s, whose file system refuses "
                      "them\n",
                      range, text_plural(attributes.most, "entry", "entries"), attributes.outcomes,
                      text_plural(attributes.outcomes, "node", "nodes"));
    }
}
