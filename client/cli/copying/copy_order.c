#include "client/cli/copying/copy_order.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/cli/terminal/arguments.h"
#include "daemon/lib/base/ranked_path.h"
#include "daemon/lib/schedule/torus.h"
#include "proto/text.h"
#include "proto/text_file.h"

/* --- paths --- */

/* A path that is being made: it has room for everything that is added. */
struct path {
    char *text; /* "", or absolute without a slash at its end */
    size_t length;
    size_t own; /* names that the user wrote, and that may be symbolic links */
};

/* Adds a slash and a name. The daemon reads %r in paths as a rank, and %% as a per cent sign. */
static void add_name(struct path *p, const char *name, size_t length, bool literal)
{
    p->text[p->length++] = '/';
    for (size_t i = 0; i < length; i++) {
        if (name[i] == '%' && literal)
            p->text[p->length++] = '%';
        p->text[p->length++] = name[i];
    }
    p->text[p->length] = '\0';
}

/* Handles a component of a path that the user wrote. */
static int add_component(struct path *p, const char *name, size_t length, bool literal,
                         struct error *e)
{
    if (length == 0 || (length == 1 && name[0] == '.'))
        return 0;
    if (length != 2 || memcmp(name, "..", 2) != 0) {
        add_name(p, name, length, literal);
        p->own++;
        return 0;
    }
    /* The working directory has no symbolic links, so that ".." is known there. */
    if (p->own > 0)
        return error_set(e, ERROR_USAGE,
                         "a path cannot have '..' behind a name, which may be a symbolic link: "
                         "write the path without it");
    if (p->length > 0)
        p->length = (size_t)(strrchr(p->text, '/') - p->text);
    p->text[p->length] = '\0';
    return 0;
}

static int add_components(struct path *p, const char *text, bool literal, struct error *e)
{
    while (*text != '\0') {
        size_t length = strcspn(text, "/");
        if (add_component(p, text, length, literal, e) != 0)
            return -1;
        text += length + (text[length] == '/');
    }
    return 0;
}

int copy_path_absolute(const char *text, bool literal, char **path, struct error *e)
{
    char *here = NULL;
    struct path p = {0};
    int r = 0;

    *path = NULL;
    if (text[0] == '\0')
        return error_set(e, ERROR_USAGE, "the path is empty");
    if (text[0] != '/') {
        here = getcwd(NULL, 0);
        if (here == NULL)
            return error_set(e, ERROR_IO,
                             "cannot find the working directory: %s; give an absolute path",
                             strerror(errno));
    }
    p.text = malloc(2 * strlen(text) + (here != NULL ? 2 * strlen(here) : 0) + 3);
    if (p.text == NULL) {
        free(here);
        return error_set(e, ERROR_MEMORY, "out of memory");
    }
    p.text[0] = '\0';
    if (here != NULL) {
        r = add_components(&p, here, true, e);
        p.own = 0;
    }
    if (r == 0)
        r = add_components(&p, text, literal, e);
    if (r == 0 && p.length == 0)
        (void)strcpy(p.text, "/");
    free(here);
    if (r == 0)
        *path = p.text;
    else
        free(p.text);
    return r;
}

/* Returns the last name of an absolute path. */
static const char *copy_path_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

/* --- patterns --- */

static const struct text_kind pattern_file = {.name = "a file with patterns", .most = 64u * 1024u};

/* Refuses what has another meaning in rsync or in git, and would be a name here. */
static int check_pattern(const char *pattern, size_t length, struct error *e)
{
    if (length == 0)
        return error_set(e, ERROR_USAGE, "the pattern is empty");
    if (length == 1 && pattern[0] == '!')
        return error_set(e, ERROR_USAGE,
                         "'!' would forget the patterns before it, which torusctl does not do: "
                         "leave these out; for a file with this name, write '[\\!]'");
    if (pattern[0] == '!')
        return error_set(e, ERROR_USAGE,
                         "'!' does not negate a pattern: to keep these names, write --include "
                         "'%.*s' before the patterns that leave them out; for names that begin "
                         "with '!', write '[\\!]%.*s'",
                         (int)(length - 1 < 80 ? length - 1 : 80), pattern + 1,
                         (int)(length - 1 < 80 ? length - 1 : 80), pattern + 1);
    if (length > 2 && (pattern[0] == '-' || pattern[0] == '+') && pattern[1] == ' ')
        return error_set(e, ERROR_USAGE,
                         "'%c ' before a pattern has a meaning only in files of --exclude-from: "
                         "write %s '%.*s'; for names that begin with it, write '[%c] %.*s'",
                         pattern[0], pattern[0] == '+' ? "--include" : "--exclude",
                         (int)(length - 2 < 80 ? length - 2 : 80), pattern + 2, pattern[0],
                         (int)(length - 2 < 80 ? length - 2 : 80), pattern + 2);
    return 0;
}

/* Adds "- PATTERN" or "+ PATTERN". */
static int add(struct copy_patterns *p, char sign, const char *pattern, size_t length,
               struct error *e)
{
    char *text;

    if (check_pattern(pattern, length, e) != 0)
        return -1;
    if (p->count == TORUS_COPY_LIST_MAX)
        return error_set(e, ERROR_USAGE, "more than %u patterns", TORUS_COPY_LIST_MAX);
    text = malloc(length + 3);
    if (text == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory");
    text[0] = sign;
    text[1] = ' ';
    memcpy(text + 2, pattern, length);
    text[length + 2] = '\0';
    p->pattern[p->count++] = text;
    return 0;
}

static int add_line(struct copy_patterns *p, const char *line, size_t length, struct error *e)
{
    if (length > 0 && line[length - 1] == '\r')
        length--;
    if (length == 0 || line[0] == '#' || line[0] == ';')
        return 0;
    if (length >= 2 && (line[0] == '+' || line[0] == '-') && line[1] == ' ')
        return add(p, line[0], line + 2, length - 2, e);
    return add(p, '-', line, length, e);
}

static int add_file(struct copy_patterns *p, const char *path, struct error *e)
{
    char *text;
    size_t length;
    unsigned number = 1;
    int r = text_file_read(path, &pattern_file, &text, &length, e);

    if (r != 0)
        return -1;
    for (const char *line = text, *end; r == 0 && line < text + length; line = end + 1, number++) {
        end = strchr(line, '\n');
        if (end == NULL)
            end = text + length;
        r = add_line(p, line, (size_t)(end - line), e);
        if (r != 0)
            (void)error_wrap(e, "%s: line %u", path, number);
    }
    free(text);
    return r;
}

/* Collects the patterns of --exclude, --include and --exclude-from in their order. In a file, empty lines and lines
 * that begin with '#' or ';' have no meaning, and "+ PATTERN" keeps names. Returns 0, or -1 with *e. In either case the
 * caller gives *p to copy_patterns_free(). */
static int copy_patterns_read(struct copy_patterns *p, const struct option_list *list,
                              struct error *e)
{
    int r = 0;

    p->count = 0;
    for (size_t i = 0; r == 0 && i < list->count; i++) {
        const struct option_given *g = &list->given[i];
        if (strcmp(g->option->name, "--exclude-from") == 0)
            r = add_file(p, g->text, e);
        else
            r = add(p, strcmp(g->option->name, "--include") == 0 ? '+' : '-', g->text,
                    strlen(g->text), e);
        if (r != 0)
            (void)error_wrap(e, "%s", g->option->name);
    }
    return r;
}

static void copy_patterns_free(struct copy_patterns *p)
{
    for (size_t i = 0; i < p->count; i++)
        free(p->pattern[i]);
    p->count = 0;
}

/* --- the request --- */

/* ---- Paths ----------------------------------------------------------------------------------- */

/* Whether per cent signs in the sources stand for themselves, because shells write these names. */
static bool is_literal(enum torus_copy_kind kind)
{
    return kind == TORUS_COPY_TO_ALL;
}

/* Sources that keep their names must have different ones. */
static int check_names(const struct copy_order *o, const struct copy_arguments *a, struct error *e)
{
    for (size_t i = 0; o->copy.into && i < o->copy.source_count; i++) {
        const char *name = copy_path_name(o->source[i]);
        if (name[0] == '\0')
            return error_set(e, ERROR_USAGE,
                             "/ has no name that it could keep in the folder %s: name a target "
                             "without a '/' at its end",
                             a->to);
        for (size_t k = 0; k < i; k++)
            if (strcmp(copy_path_name(o->source[k]), name) == 0)
                return error_set(e, ERROR_USAGE,
                                 "two sources would have the same name in %.60s: %.80s and %.80s",
                                 a->to, a->sources.given[k].text, a->sources.given[i].text);
    }
    return 0;
}

static int check_ranks(const struct copy_order *o, const struct copy_arguments *a, struct error *e)
{
    if (o->copy.kind == TORUS_COPY_GATHER && !ranked_path_has_rank(o->target))
        return error_set(e, ERROR_USAGE,
                         "--to: the target must contain %%r, which stands for the rank of the node "
                         "that the files come from, so that each node has a place of its own: "
                         "%.120s/%%r",
                         a->to);
    for (size_t i = 0; o->copy.kind == TORUS_COPY_SCATTER && i < o->copy.source_count; i++)
        if (!ranked_path_has_rank(o->source[i]))
            return error_set(e, ERROR_USAGE,
                             "%.120s must contain %%r, which stands for the rank of the node that "
                             "the files go to; to send the same files to all nodes, use 'torusctl "
                             "copy'",
                             a->sources.given[i].text);
    return 0;
}

/* Whether a path says that it is a folder: it ends with a slash, or with '.' or '..', as for cp. */
static bool names_folder(const char *path)
{
    const char *last = copy_path_name(path);

    return last[0] == '\0' || strcmp(last, ".") == 0 || strcmp(last, "..") == 0;
}

static int read_paths(struct copy_order *o, const struct copy_arguments *a, struct error *e)
{
    const struct option_list *list = &a->sources;

    if (list->count == 0)
        return error_set(e, ERROR_USAGE, "nothing to copy: name a file or folder");
    if (a->to == NULL)
        return error_set(e, ERROR_USAGE, "--to is missing: give the path of the copy");
    if (list->count > TORUS_COPY_LIST_MAX)
        return error_set(e, ERROR_USAGE,
                         "more than %u sources: name their folder, and leave out the rest with "
                         "--exclude",
                         TORUS_COPY_LIST_MAX);
    for (size_t i = 0; i < list->count; i++) {
        if (copy_path_absolute(list->given[i].text, is_literal(o->copy.kind), &o->source[i], e) !=
            0)
            return error_wrap(e, "%.80s", list->given[i].text);
        o->copy.source_count++;
    }
    if (copy_path_absolute(a->to, false, &o->target, e) != 0)
        return error_wrap(e, "--to");
    o->copy.source = (const char *const *)o->source;
    o->copy.target = o->target;
    o->copy.into = o->copy.kind != TORUS_COPY_EXCHANGE && (list->count > 1 || names_folder(a->to));
    return check_names(o, a, e) != 0 || check_ranks(o, a, e) != 0 ? -1 : 0;
}

/* ---- Other options --------------------------------------------------------------------------- */

/* Reads what to do about nodes that are down, files that change, and entries that only the target has. */
static int read_actions(struct copy_order *o, const struct copy_arguments *a, struct error *e)
{
    static const char *const names[] = {"fail", "skip", NULL};
    size_t changing = 0;
    uint32_t most = 0;

    if (READ_OPTION(e, "--on-failure", a->on_failure, parse_on_failure, &o->copy.shrink,
                    &o->copy.wait) != 0 ||
        READ_OPTION(e, "--changing", a->changing, parse_named, names, &changing) != 0)
        return -1;
    const struct refusal refusals[] = {
        REFUSAL(changing == 1 && a->as_it_comes,
                "--changing skip and --as-it-comes: give one or the other; only the end of a copy "
                "tells which files have changed"),
        REFUSAL(!a->delete &&(a->delete_root || a->max_delete != NULL),
                "%s has a meaning only with --delete",
                a->delete_root ? "--delete-root" : "--max-delete"),
        {0},
    };
    o->copy.skip_changing = changing == 1;
    o->copy.remove = a->delete;
    o->copy.remove_root = a->delete_root;
    o->copy.limit_remove = a->max_delete != NULL;
    if (refuse(refusals, e) != 0 ||
        READ_OPTION(e, "--max-delete", a->max_delete, parse_number, UINT32_MAX, &most) != 0)
        return -1;
    o->copy.remove_most = most;
    return 0;
}

/* Reads "5" or "3-5", and marks these ranks. */
static int mark_ranks(char *item, bool *marked, struct error *e)
{
    char *dash = strchr(item, '-');
    uint32_t first, last;

    if (dash != NULL)
        *dash = '\0';
    if (parse_number(item, TORUS_MAX_NODES - 1, &first, e) != 0)
        return -1;
    last = first;
    if (dash != NULL && parse_number(dash + 1, TORUS_MAX_NODES - 1, &last, e) != 0)
        return -1;
    if (last < first)
        return error_set(e, ERROR_USAGE, "%u-%u: the first rank is the larger one", first, last);
    for (uint32_t i = first; i <= last; i++)
        marked[i] = true;
    return 0;
}

static int read_nodes(const char *list, bool *marked, struct error *e)
{
    char item[32];

    while (list != NULL)
        if (parse_item(&list, item, sizeof item, e) != 0 || mark_ranks(item, marked, e) != 0)
            return -1;
    return 0;
}

int copy_order_make(struct copy_order *o, enum torus_copy_kind kind, const struct copy_arguments *a,
                    struct error *e)
{
    memset(o, 0, sizeof *o);
    torus_copy_init(&o->copy);
    o->copy.kind = kind;
    if (a->dry_run && a->verify)
        return error_set(e, ERROR_USAGE,
                         "--dry-run and --verify: give one or the other; --verify compares "
                         "contents");
    if (read_paths(o, a, e) != 0 || read_actions(o, a, e) != 0 ||
        copy_patterns_read(&o->patterns, &a->patterns, e) != 0 ||
        READ_OPTION(e, "--timeout", a->timeout, parse_seconds, &o->copy.timeout_ms) != 0)
        return -1;
    o->copy.pattern = (const char *const *)o->patterns.pattern;
    o->copy.pattern_count = o->patterns.count;
    o->copy.copy_links = a->copy_links;
    o->copy.checksum = a->checksum;
    o->copy.dry_run = a->dry_run;
    o->copy.verify = a->verify;
    o->copy.as_it_comes = a->as_it_comes;
    o->copy.missing_ok = a->missing_ok;
    o->copy.trace = a->trace != NULL;
    o->copy.algorithm = a->algorithm;
    o->copy.mode = a->mode;
    return 0;
}

/* Stores the marked ranks, except that of the asked node. */
static int store_nodes(struct copy_order *o, const bool *marked, uint32_t rank, uint32_t nodes,
                       struct error *e)
{
    o->nodes = calloc(nodes, sizeof *o->nodes);
    if (o->nodes == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory");
    for (uint32_t i = 0; i < TORUS_MAX_NODES; i++) {
        if (marked[i] && i >= nodes)
            return error_set(e, ERROR_USAGE,
                             "--nodes: there is no node %u: the torus has %u %s, from 0 to %u", i,
                             nodes, text_plural(nodes, "node", "nodes"), nodes - 1);
        if (marked[i] && i != rank)
            o->nodes[o->copy.node_count++] = i;
    }
    o->copy.nodes = o->nodes;
    if (o->copy.node_count == 0)
        return error_set(e, ERROR_USAGE,
                         "--nodes names no other node than node %u, which was asked", rank);
    return 0;
}

int copy_order_place(struct copy_order *o, const char *list, uint32_t rank, uint32_t nodes,
                     struct error *e)
{
    bool *marked;
    int r;

    o->copy.node = rank;
    if (nodes < 2)
        return error_set(e, ERROR_USAGE, "the torus has no other node");
    if (list == NULL || strcmp(list, "all") == 0)
        return 0;
    marked = calloc(TORUS_MAX_NODES, sizeof *marked);
    if (marked == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory");
    r = read_nodes(list, marked, e);
    if (r != 0)
        (void)error_wrap(e, "--nodes");
    else
        r = store_nodes(o, marked, rank, nodes, e);
    free(marked);
    return r;
}

void copy_order_free(struct copy_order *o)
{
    for (size_t i = 0; i < o->copy.source_count; i++)
        free(o->source[i]);
    free(o->target);
    free(o->nodes);
    copy_patterns_free(&o->patterns);
}
