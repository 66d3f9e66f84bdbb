#include "client/cli/copying/copy_report.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/algorithms/link_rates.h"
#include "client/cli/terminal/json.h"
#include "client/cli/terminal/writer.h"
#include "proto/elapsed.h"
#include "proto/text.h"

/* Returns whether the target of a node differs from its source, or would be changed. */
static bool copy_report_differs(const struct torus_copy_node *n)
{
    return n->added > 0 || n->changed > 0 || n->removed > 0;
}

/* --- nodes that have failed --- */

#define SHOWN_LINES 16u /* different errors */
#define SHOWN_NODES 4u  /* of one error */

/* ---- Names ----------------------------------------------------------------------------------- */

/* Writes the name of a node: "node 3 (alpha)", or "node 3" if its host is not known. */
static void node_text(char *out, size_t size, const struct all_nodes *names, uint32_t rank)
{
    const char *host =
        names->state != NULL && rank < names->state->count ? names->state->nodes[rank]->host : "";

    if (host[0] != '\0')
        (void)snprintf(out, size, "node %" PRIu32 " (%.64s)", rank, host);
    else
        (void)snprintf(out, size, "node %" PRIu32, rank);
}

/* Writes the node that an outcome is about, and where its files come from if several nodes have sent some. */
static void outcome_text(char *out, size_t size, const struct copy_order *o,
                         const struct all_nodes *names, const struct torus_copy_node *n)
{
    node_text(out, size, names, n->rank);
    if (o->copy.kind == TORUS_COPY_GATHER || o->copy.kind == TORUS_COPY_EXCHANGE) {
        char from[100];
        node_text(from, sizeof from, names, n->from);
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
        node_text(name, sizeof name, f->names, n->from);
        (void)fprintf(out, "torusctl: %s", name);
    }
    for (size_t i = first; i < f->result->node_count; i++) {
        const struct torus_copy_node *other = f->result->node[i];
        if (other->code != n->code || strcmp(other->error, n->error) != 0)
            continue;
        f->printed[i] = true;
        if (prefix > 0 || count++ >= SHOWN_NODES)
            continue;
        outcome_text(name, sizeof name, f->order, f->names, other);
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

/* --- text --- */

#define SHOWN_ABSENT 16u           /* ranks in a line */
#define RATE_LEAST (1024u * 1024u) /* the rate of fewer bytes says nothing */

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

/* A count, and what is counted. */
struct counted {
    uint64_t count;
    const char *one, *many; /* NULL ends a list */
};

/* Writes "3 files, 1 folder", without what there is none of. */
static void counts_text(char *out, size_t size, const struct counted *list)
{
    out[0] = '\0';
    for (; list->one != NULL; list++)
        if (list->count > 0)
            append(out, size, "%s%" PRIu64 " %s", out[0] != '\0' ? ", " : "", list->count,
                   text_plural(list->count, list->one, list->many));
}

/* Writes "3 files, 2 folders, 1 symbolic link (12 MiB)". */
static void content_text(char *out, size_t size, const struct copy_order *o,
                         const struct torus_copy_result *r)
{
    const struct counted counts[] = {
        {all_of(o, r, COUNT_OF(files)), "file", "files"},
        {all_of(o, r, COUNT_OF(folders)), "folder", "folders"},
        {all_of(o, r, COUNT_OF(links)), "symbolic link", "symbolic links"},
        {0},
    };
    char bytes[FORMAT_SIZE];

    counts_text(out, size, counts);
    format_bytes(bytes, (double)all_of(o, r, COUNT_OF(bytes)));
    append(out, size, "%s (%s)", out[0] != '\0' ? "" : "nothing", bytes);
}

/* Returns how many nodes have outcomes that are not failures (or any outcomes). If `node` gathers files, these are the
 * nodes that the files come from, otherwise the nodes that write. */
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

/* Adds the rates of links, and the bounds if all nodes lacked all that was moved. */
static int set_rates(json_t *v, const struct copy_order *o, const struct torus_copy_result *x)
{
    bool all_lacked = o->copy.kind == TORUS_COPY_TO_ALL;

    for (size_t i = 0; i < x->node_count; i++)
        all_lacked = all_lacked && (x->node[i]->rank == o->copy.node ||
                                    x->node[i]->bytes_missing == x->bytes_sent);
    return all_lacked ? link_rates_set_bounds(v, x->link_rates, (double)x->bytes_sent)
                      : link_rates_set(v, x->link_rates);
}

static void rates_line(FILE *out, const struct copy_order *o, const struct torus_copy_result *r)
{
    json_t *v = json_object();
    char rates[FORMAT_SIZE], full[FORMAT_SIZE], bound[FORMAT_SIZE], equal[FORMAT_SIZE];

    if (set_rates(v, o, r) == 0 && link_rates_shorten(v) == 0 && json_object_size(v) > 0) {
        (void)format_field(rates, v, "rates", FORMAT_PLAIN);
        (void)format_field(full, v, "full_bits_per_second", FORMAT_RATE);
        (void)format_field(bound, v, "bound_seconds", FORMAT_SECONDS);
        (void)format_field(equal, v, "equal_bound_seconds", FORMAT_SECONDS);
        (void)fprintf(out, "rates of links: %s (fastest: %s)", rates, full);
        if (json_is_number(json_object_get(v, "bound_seconds")))
            (void)fprintf(out, "; lower bound %s, %s if links were equal", bound, equal);
        (void)fputc('\n', out);
    }
    json_decref(v);
}

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
    if (r->algorithm[0] != '\0')
        (void)fprintf(out, "carried by %s, %s\n", r->algorithm, torus_mode_name(r->mode));
}

static void print_done(FILE *out, const struct copy_order *o, const struct torus_copy_result *r)
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
    rates_line(out, o, r);
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

static void print_dry_run(FILE *out, const struct copy_order *o, const struct torus_copy_result *r)
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

static void print_going(FILE *out, const struct copy_order *o, const struct torus_copy_result *r,
                        const struct all_nodes *names)
{
    char name[250];

    for (size_t i = 0; i < r->node_count; i++) {
        const struct torus_copy_node *n = r->node[i];
        if (n->code != TORUS_ERROR_NONE || n->going_count == 0)
            continue;
        outcome_text(name, sizeof name, o, names, n);
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
    const struct counted counts[] = {
        {n->added, "missing", "missing"},
        {n->changed > n->grown ? n->changed - n->grown : 0, "different", "different"},
        {n->grown, "has grown since", "have grown since"},
        {n->removed, "that the source lacks", "that the source lacks"},
        {0},
    };
    char what[160];

    counts_text(what, sizeof what, counts);
    (void)fprintf(out, "%s: differs: %s", name, what);
    if (n->first[0] != '\0')
        (void)fprintf(out, "; first: %s", n->first);
    (void)fputc('\n', out);
}

static void print_verified(FILE *out, const struct copy_order *o, const struct torus_copy_result *r,
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
        outcome_text(name, sizeof name, o, names, r->node[i]);
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
        node_text(name, sizeof name, names, r->absent[i]);
        (void)fprintf(out, "%s%s", i > 0 ? ", " : "", name);
    }
    (void)fprintf(out, "%s\n", r->absent_count > SHOWN_ABSENT ? " ..." : "");
}

static void print_remarks(FILE *out, const struct torus_copy_result *r,
                          const struct all_nodes *names)
{
    static const struct {
        size_t offset;
        const char *what, *where;
    } losses[] = {
        {COUNT_OF(not_owned), "owner", "where torusd may not change owners"},
        {COUNT_OF(not_attributed), "extended attributes", "whose file system refuses them"},
    };
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
    for (size_t i = 0; i < sizeof losses / sizeof losses[0]; i++) {
        const struct range loss = range_of(r, losses[i].offset, true);
        if (loss.outcomes == 0)
            continue;
        range_text(range, sizeof range, loss);
        (void)fprintf(out, "%s not kept: %s %s at %zu %s, %s\n", losses[i].what, range,
                      text_plural(loss.most, "entry", "entries"), loss.outcomes,
                      text_plural(loss.outcomes, "node", "nodes"), losses[i].where);
    }
}

void copy_report_print(FILE *out, const struct copy_order *o, const struct torus_copy_result *r,
                       const struct all_nodes *names)
{
    if (o->copy.verify) {
        print_verified(out, o, r, names);
    } else if (o->copy.dry_run) {
        print_dry_run(out, o, r);
        print_going(out, o, r, names);
    } else {
        print_done(out, o, r);
    }
    print_remarks(out, r, names);
}

/* --- JSON --- */

static const char *const kinds[] = {
    [TORUS_COPY_TO_ALL] = "copy",
    [TORUS_COPY_GATHER] = "gather",
    [TORUS_COPY_SCATTER] = "scatter",
    [TORUS_COPY_EXCHANGE] = "exchange",
};

static const struct section table_section[] = {
    TABLE("per_node", FIELD("node", "rank"), FIELD("host"), FIELD("from"), FIELD("added"),
          FIELD("changed"), FIELD("removed"), FIELD("unchanged"),
          FIELD("bytes", "bytes", FORMAT_BYTES), FIELD("missing", "bytes_missing", FORMAT_BYTES),
          FIELD("no owner", "not_owned"), FIELD("no attributes", "not_attributed"), FIELD("first")),
};
const struct view copy_report_table = {table_section, 1};

bool copy_report_removes(const struct torus_copy_result *r)
{
    for (size_t i = 0; i < r->node_count; i++)
        if (r->node[i]->going_count > 0)
            return true;
    return false;
}

size_t copy_report_failures(const struct torus_copy_result *r)
{
    size_t count = 0;

    for (size_t i = 0; i < r->node_count; i++)
        count += r->node[i]->code != TORUS_ERROR_NONE;
    return count;
}

size_t copy_report_differences(const struct torus_copy_result *r)
{
    size_t count = 0;

    for (size_t i = 0; i < r->node_count; i++)
        count += r->node[i]->code == TORUS_ERROR_NONE && copy_report_differs(r->node[i]);
    return count;
}

/* A path may have any bytes. */
static json_t *path_value(const char *path)
{
    char *text = text_escaped((const uint8_t *)path, strlen(path));
    json_t *value = text != NULL ? json_string(text) : NULL;

    free(text);
    return value;
}

static json_t *host_value(const struct all_nodes *names, uint32_t rank)
{
    if (names->state != NULL && rank < names->state->count &&
        names->state->nodes[rank]->host[0] != '\0')
        return json_string(names->state->nodes[rank]->host);
    return json_null();
}

static JSON_MEMBERS(node_members, MEMBER(torus_copy_node, rank), MEMBER(torus_copy_node, files),
                    MEMBER(torus_copy_node, folders), MEMBER(torus_copy_node, links),
                    MEMBER(torus_copy_node, added), MEMBER(torus_copy_node, changed),
                    MEMBER(torus_copy_node, removed), MEMBER(torus_copy_node, grown),
                    MEMBER(torus_copy_node, unchanged), MEMBER(torus_copy_node, bytes),
                    MEMBER(torus_copy_node, bytes_missing), MEMBER(torus_copy_node, not_owned),
                    MEMBER(torus_copy_node, not_attributed), MEMBER(torus_copy_node, first));

static JSON_MEMBERS(result_members, MEMBER(torus_copy_result, id),
                    MEMBER(torus_copy_result, bytes_all), MEMBER(torus_copy_result, bytes_sent),
                    KNOWN(torus_copy_result, algorithm),
                    FROM_NS("seconds", torus_copy_result, nanoseconds),
                    FROM_NS("compare_seconds", torus_copy_result, compare_nanoseconds),
                    MEMBER(torus_copy_result, left_out), MEMBER(torus_copy_result, first_left_out),
                    MEMBER(torus_copy_result, links_out), MEMBER(torus_copy_result, first_link_out),
                    MEMBER(torus_copy_result, skipped), MEMBER(torus_copy_result, first_skipped),
                    MEMBER(torus_copy_result, attempts));

static json_t *node_value(const struct copy_order *o, const struct torus_copy_node *n,
                          const struct all_nodes *names)
{
    json_t *v = json_of(n, node_members), *error = json_null();
    int r = 0;

    if (n->code != TORUS_ERROR_NONE)
        error = json_pack("{s:s, s:s}", "code", torus_error_name(n->code), "text", n->error);
    r |= json_object_set_new(v, "host", host_value(names, n->rank));
    if (o->copy.kind == TORUS_COPY_GATHER || o->copy.kind == TORUS_COPY_EXCHANGE)
        r |= json_object_set_new(v, "from", json_integer(n->from));
    r |= json_object_set_new(v, "error", error);
    if (o->copy.verify)
        r |= json_object_set_new(
            v, "equal", json_boolean(n->code == TORUS_ERROR_NONE && !copy_report_differs(n)));
    if (o->copy.dry_run)
        r |= json_object_set_new(v, "would_remove", json_texts(n->going, n->going_count));
    return json_checked(v, r);
}

static json_t *nodes_value(const struct copy_order *o, const struct torus_copy_result *r,
                           const struct all_nodes *names)
{
    json_t *list = json_array();
    int failed = 0;

    for (size_t i = 0; i < r->node_count; i++)
        failed |= json_array_append_new(list, node_value(o, r->node[i], names));
    return json_checked(list, failed);
}

static int set_request(json_t *v, const struct copy_order *o)
{
    json_t *sources = json_array();
    int r = 0;

    for (size_t i = 0; i < o->copy.source_count; i++)
        r |= json_array_append_new(sources, path_value(o->source[i]));
    r |= json_object_set_new(v, "operation", json_string(kinds[o->copy.kind]));
    r |= json_object_set_new(v, "node", json_integer(o->copy.node));
    r |= json_object_set_new(v, "sources", sources);
    r |= json_object_set_new(v, "target", path_value(o->target));
    r |= json_object_set_new(v, "dry_run", json_boolean(o->copy.dry_run));
    r |= json_object_set_new(v, "verify", json_boolean(o->copy.verify));
    return r;
}

json_t *copy_report_value(const struct copy_order *o, const struct torus_copy_result *x,
                          const struct all_nodes *names)
{
    json_t *v = json_of(x, result_members);
    int r = set_request(v, o);

    r |= json_object_set_new(v, "failures", json_count(copy_report_failures(x)));
    if (o->copy.verify)
        r |= json_object_set_new(
            v, "equal",
            json_boolean(copy_report_failures(x) == 0 && copy_report_differences(x) == 0));
    r |= json_object_set_new(v, "mode",
                             json_text(x->algorithm[0] != '\0' ? torus_mode_name(x->mode) : ""));
    r |= set_rates(v, o, x);
    r |= json_object_set_new(v, "absent", json_numbers(x->absent, x->absent_count));
    r |= json_object_set_new(v, "per_node", nodes_value(o, x, names));
    return json_checked(v, r);
}
