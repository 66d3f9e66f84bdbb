#include "client/cli/cluster/setup.h"

#include <arpa/inet.h>
#include <errno.h>
#include <jansson.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sodium.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "client/cli/cluster/child.h"
#include "client/cli/cluster/host_files.h"
#include "daemon/lib/host/netlink.h"
#include "proto/ini.h"
#include "proto/text.h"

#define KEY_TEXT_SIZE (2 * KEY_SIZE + 1)

char *setup_write(const struct cluster *c, uint32_t rank, const struct key *key,
                  const struct key *second_key, size_t *length)
{
    char first[KEY_TEXT_SIZE], second[KEY_TEXT_SIZE] = "";
    json_t *o;
    char *text;

    (void)sodium_bin2hex(first, sizeof first, key->bytes, KEY_SIZE);
    if (second_key != NULL)
        (void)sodium_bin2hex(second, sizeof second, second_key->bytes, KEY_SIZE);
    o = json_pack("{s:i, s:s, s:s%, s:s, s:s}", "version", SETUP_VERSION, "host",
                  c->hosts[rank].name, "cluster", c->text, c->length, "key", first, "second_key",
                  second);
    text = o != NULL ? json_dumps(o, JSON_COMPACT) : NULL;
    json_decref(o);
    sodium_memzero(first, sizeof first);
    sodium_memzero(second, sizeof second);
    *length = text != NULL ? strlen(text) : 0;
    return text;
}

/* Reads a key of hexadecimal digits. Returns 1, 0 if it is "", or -1 with *e. */
static int read_key(const json_t *o, const char *name, struct key *key, struct error *e)
{
    const char *text = json_string_value(json_object_get(o, name));
    uint8_t bytes[KEY_SIZE];
    size_t size;

    if (text != NULL && text[0] == '\0')
        return 0;
    if (text == NULL ||
        sodium_hex2bin(bytes, sizeof bytes, text, strlen(text), NULL, &size, NULL) != 0 ||
        size != KEY_SIZE || strlen(text) != KEY_TEXT_SIZE - 1)
        return error_set(e, ERROR_REFUSED, "\"%s\" of the setup is not a cluster key", name);
    key_set(key, bytes);
    sodium_memzero(bytes, sizeof bytes);
    return 1;
}

static int read_keys(struct setup *s, const json_t *o, struct error *e)
{
    int first = read_key(o, "key", &s->key, e);
    int second = first < 0 ? -1 : read_key(o, "second_key", &s->second_key, e);

    s->has_second_key = second > 0;
    if (first == 0)
        return error_set(e, ERROR_REFUSED, "the setup has no cluster key");
    return second < 0 ? -1 : 0;
}

static int read_object(struct setup *s, const json_t *o, struct error *e)
{
    const char *text = json_string_value(json_object_get(o, "cluster"));
    const char *host = json_string_value(json_object_get(o, "host"));
    int64_t rank;

    if (json_integer_value(json_object_get(o, "version")) != SETUP_VERSION)
        return error_set(e, ERROR_REFUSED,
                         "the setup is of another version: install the same release on all hosts");
    if (text == NULL || host == NULL)
        return error_set(e, ERROR_REFUSED, "the setup has no cluster file, or no name of the host");
    if (read_keys(s, o, e) != 0)
        return -1;
    if (cluster_read_text(&s->cluster, "the cluster file", text, strlen(text), e) != 0)
        return -1;
    rank = cluster_find(&s->cluster, host);
    if (rank >= 0 && s->cluster.has_ports) {
        s->rank = (uint32_t)rank;
        return 0;
    }
    cluster_free(&s->cluster);
    if (rank < 0)
        return error_set(e, ERROR_REFUSED, "the cluster file of the setup has no host \"%.80s\"",
                         host);
    return error_set(e, ERROR_REFUSED, "the cluster file of the setup has no ports");
}

int setup_read(struct setup *s, const char *json, size_t length, struct error *e)
{
    json_error_t error;
    json_t *o =
        length <= SETUP_MOST ? json_loadb(json, length, JSON_REJECT_DUPLICATES, &error) : NULL;
    int rc;

    *s = (struct setup){0};
    if (length > SETUP_MOST)
        return error_set(e, ERROR_REFUSED, "the setup is larger than %u KiB", SETUP_MOST >> 10);
    if (o == NULL)
        return error_set(e, ERROR_REFUSED, "this is not a setup: it is not JSON (%.80s)",
                         error.text);
    rc = read_object(s, o, e);
    json_decref(o);
    if (rc != 0)
        sodium_memzero(s, sizeof *s);
    return rc;
}

void setup_free(struct setup *s)
{
    cluster_free(&s->cluster);
    sodium_memzero(s, sizeof *s);
}

/* --- what it changes --- */

#define DIFF_MS 10000
#define DIFF_LINES 40 /* shown of a file */

/* --- the files as they are --- */

/* Reads a file into *text; NULL if there is none. */
static int read_file(const char *path, char **text, struct error *e)
{
    FILE *in = fopen(path, "re");
    size_t room = 0;
    ssize_t length;
    int rc = 0;

    *text = NULL;
    if (in == NULL && errno == ENOENT)
        return 0;
    if (in == NULL)
        return error_set(e, ERROR_IO, "cannot read %.200s: %s%s", path, strerror(errno),
                         errno == EACCES ? " (run this as root)" : "");
    length = getdelim(text, &room, '\0', in); /* all of it, as texts have no '\0' */
    if (length < 0 && feof(in) && *text != NULL)
        (*text)[0] = '\0'; /* an empty file */
    else if (length < 0)
        rc = error_set(e, ERROR_IO, "cannot read %.200s: %s", path, strerror(errno));
    else if (strlen(*text) != (size_t)length)
        rc = error_set(e, ERROR_REFUSED, "%.200s is not a text", path);
    (void)fclose(in);
    return rc;
}

/* Finds the line of the text that is equal to `line`. Returns its beginning, and that of the next line; or NULL if the
 * text has no such line. Lines end with "\n" or "\r\n"; the last one may have no end. */
static const char *find_line(const char *text, const char *line, const char **next)
{
    const size_t length = strlen(line);

    for (const char *at = text; (at = strstr(at, line)) != NULL; at += length) {
        const char *end = at + length + (at[length] == '\r');
        if ((at > text && at[-1] != '\n') || (*end != '\n' && *end != '\0'))
            continue;
        *next = end + (*end == '\n');
        return at;
    }
    return NULL;
}

/* Returns a copy of `before` with `block` in place of the block that it has, or at its end; NULL with *e. */
static char *replace_block(const char *before, const char *block, const char *path, struct error *e)
{
    const char *rest = "";
    const char *begin = find_line(before, HOST_BLOCK_BEGIN, &rest);
    const char *end = begin != NULL ? find_line(rest, HOST_BLOCK_END, &rest) : NULL;
    size_t head = begin != NULL ? (size_t)(begin - before) : strlen(before);
    bool open_line = begin == NULL && head > 0 && before[head - 1] != '\n';
    char *text;

    if (begin != NULL && end == NULL) {
        (void)error_set(e, ERROR_REFUSED,
                        "%.200s has the line \"" HOST_BLOCK_BEGIN
                        "\" but not the line \"" HOST_BLOCK_END "\": repair it by hand",
                        path);
        return NULL;
    }
    if (asprintf(&text, "%.*s%s%s%s", (int)head, before, open_line ? "\n" : "", block, rest) < 0) {
        (void)error_set(e, ERROR_MEMORY, "out of memory for %.200s", path);
        return NULL;
    }
    return text;
}

/* --- the plan --- */

/* Takes over *text, the content that the file should have. */
static int plan_file(struct setup_plan *p, enum host_file which, char **text, struct error *e)
{
    struct setup_change *c = &p->change[which];

    if (asprintf(&c->path, "%s%s", p->root, host_file_kinds[which].path) < 0) {
        c->path = NULL;
        return error_set(e, ERROR_MEMORY, "out of memory for the files");
    }
    if (read_file(c->path, &c->before, e) != 0)
        return -1;
    if (host_file_kinds[which].block) {
        c->after = replace_block(c->before != NULL ? c->before : "", *text, c->path, e);
        if (c->after == NULL)
            return -1;
    } else if ((*text)[0] != '\0') {
        c->after = *text;
        *text = NULL;
    }
    c->differs = c->before == NULL || c->after == NULL ? c->before != c->after
                                                       : strcmp(c->before, c->after) != 0;
    return 0;
}

/* Whether torus-routed is installed on this host. */
static bool has_routed(const char *root)
{
    char path[4096];

    return (size_t)snprintf(path, sizeof path, "%s" ROUTED_PROGRAM, root) < sizeof path &&
           access(path, X_OK) == 0;
}

int setup_plan_make(struct setup_plan *p, const struct setup *s, const char *root, struct error *e)
{
    char *text[HOST_FILES];
    int rc;

    *p = (struct setup_plan){.root = root};
    rc = host_files_make(&s->cluster, s->rank, &s->key, s->has_second_key ? &s->second_key : NULL,
                         has_routed(root), text, e);
    for (unsigned i = 0; rc == 0 && i < HOST_FILES; i++)
        rc = plan_file(p, (enum host_file)i, &text[i], e);
    host_files_forget(text);
    return rc;
}

static void forget(char *text, bool secret)
{
    if (text != NULL && secret)
        sodium_memzero(text, strlen(text));
    free(text);
}

void setup_plan_free(struct setup_plan *p)
{
    for (unsigned i = 0; i < HOST_FILES; i++) {
        forget(p->change[i].before, host_file_kinds[i].secret);
        forget(p->change[i].after, host_file_kinds[i].secret);
        free(p->change[i].path);
    }
}

/* --- what becomes less safe --- */

#define VALUE_SIZE 1024u
#define DAEMON_GROUP "torusd"

/* The settings of a torusd.ini that count here. */
struct settings {
    bool encrypt;
    char data_roots[VALUE_SIZE], exchange_group[VALUE_SIZE], admin_group[VALUE_SIZE],
        key_file[VALUE_SIZE];
};

static const struct text_kind kind = {.name = "a configuration", .most = CLUSTER_FILE_MOST};

static int on_line(void *context, const struct ini_line *line, struct error *e)
{
    struct settings *s = context;
    const struct {
        const char *name;
        char *value;
    } texts[] = {{"data_roots", s->data_roots},
                 {"exchange_group", s->exchange_group},
                 {"admin_group", s->admin_group},
                 {"key_file", s->key_file}};

    if (line->name == NULL)
        return 0;
    if (strcmp(line->name, "encrypt") == 0)
        s->encrypt = strcmp(line->value, "yes") == 0;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (strcmp(line->name, texts[i].name) != 0)
            continue;
        if (strlen(line->value) >= VALUE_SIZE)
            return error_set(e, ERROR_REFUSED, "%s is too long", line->name);
        (void)strcpy(texts[i].value, line->value);
    }
    return 0;
}

static int read_settings(struct settings *s, const char *path, const char *text, struct error *e)
{
    char *copy = strdup(text);
    int rc;

    *s = (struct settings){0};
    if (copy == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for %.200s", path);
    rc = ini_read_text(path, &kind, copy, strlen(copy), on_line, s, e);
    free(copy);
    return rc;
}

/* --- data roots --- */

/* Whether a path is this folder, or in it. */
static bool is_in(const char *path, size_t length, const char *folder)
{
    const size_t size = strlen(folder);

    return length >= size && memcmp(path, folder, size) == 0 &&
           (length == size || path[size] == '/' || size == 1);
}

/* Returns the folder of the system that contains the data root, or that the data root contains; NULL if there is no
 * such folder. Folders in somebody's home are not folders of the system. */
static const char *system_folder(const char *root, size_t length)
{
    static const struct {
        const char *path;
        bool inside; /* folders in it count, too */
    } folders[] = {{"/etc", true},   {"/boot", true}, {"/dev", true}, {"/proc", true},
                   {"/sys", true},   {"/run", true},  {"/usr", true}, {"/var/lib", false},
                   {"/home", false}, {"/root", false}};
    char path[VALUE_SIZE];

    (void)snprintf(path, sizeof path, "%.*s", (int)length, root);
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++)
        if (is_in(folders[i].path, strlen(folders[i].path), path) ||
            (folders[i].inside && is_in(path, length, folders[i].path)))
            return folders[i].path;
    return NULL;
}

static bool has_root(const char *list, const char *root, size_t length)
{
    for (size_t size; *list != '\0'; list += size + (list[size] == ':')) {
        size = strcspn(list, ":");
        if (size == length && memcmp(list, root, size) == 0)
            return true;
    }
    return false;
}

static void check_roots(const struct settings *before, const struct settings *after, json_t *list)
{
    size_t length, used;

    for (const char *root = after->data_roots; *root != '\0';
         root += length + (root[length] == ':')) {
        length = strcspn(root, ":");
        used = length;
        while (used > 1 && root[used - 1] == '/')
            used--;
        const char *folder = used > 0 ? system_folder(root, used) : NULL;
        if (folder == NULL || has_root(before->data_roots, root, length))
            continue;
        (void)json_array_append_new(
            list, json_sprintf("all who may exchange get access to %s, by the data root %.*s",
                               folder, (int)length, root));
    }
}

bool less_safe_had_root(const struct setup_plan *p, const char *root)
{
    const struct setup_change *c = &p->change[HOST_FILE_CONFIG];
    struct settings before;
    struct error e;

    return c->before != NULL && read_settings(&before, c->path, c->before, &e) == 0 &&
           has_root(before.data_roots, root, strlen(root));
}

/* --- groups --- */

/* A setting that is left out stands for the group of the daemon. */
static const char *group_of(const char *setting)
{
    return setting[0] != '\0' ? setting : DAEMON_GROUP;
}

static void check_groups(const struct settings *before, const struct settings *after, json_t *list)
{
    const char *was[] = {group_of(before->exchange_group), group_of(before->admin_group),
                         DAEMON_GROUP};
    const char *is[] = {group_of(after->exchange_group), group_of(after->admin_group)};

    for (size_t i = 0; i < sizeof is / sizeof is[0]; i++) {
        bool known = i == 1 && strcmp(is[1], is[0]) == 0; /* is named already */
        for (size_t k = 0; k < sizeof was / sizeof was[0]; k++)
            known |= strcmp(is[i], was[k]) == 0;
        if (!known)
            (void)json_array_append_new(
                list, json_sprintf("members of the group %s may exchange, which reads and writes "
                                   "below the data roots",
                                   is[i]));
    }
}

/* --- the key --- */

/* Leaves out the keys in the files of init: the asking host compares these, because it knows which keys all hosts
 * have. */
static void check_key_file(const struct setup_plan *p, const struct setup *s,
                           const struct settings *before, json_t *list)
{
    char path[2 * VALUE_SIZE], id[KEY_ID_TEXT_SIZE];
    struct key key = {0};
    struct error e;

    if (before->key_file[0] == '\0' ||
        strcmp(before->key_file, host_file_kinds[HOST_FILE_KEY].path) == 0)
        return;
    (void)snprintf(path, sizeof path, "%s%s", p->root, before->key_file);
    if (key_read_as_root(path, &key, &e) != 0)
        (void)json_array_append_new(list, json_sprintf("its key file %s, which cannot be read now, "
                                                       "is not used any more",
                                                       before->key_file));
    else if (memcmp(key.id, s->key.id, KEY_ID_SIZE) != 0)
        (void)json_array_append_new(list,
                                    json_sprintf("its key in %s, with the id %s, is not used any "
                                                 "more",
                                                 before->key_file, key_id_text(key.id, id)));
    key_forget(&key);
}

/* Returns an array with a sentence for each change that makes the host less safe: links are not encrypted any more,
 * members of a group may exchange who could not before, a data root has files of the system, a key file in another
 * place is not used any more. A first setup makes nothing less safe. Returns NULL if there is not enough memory. */
static json_t *less_safe(const struct setup_plan *p, const struct setup *s)
{
    const struct setup_change *c = &p->change[HOST_FILE_CONFIG];
    struct settings before, after;
    struct error e;
    json_t *list = json_array();

    if (c->before == NULL || c->after == NULL)
        return list;
    if (read_settings(&before, c->path, c->before, &e) != 0 ||
        read_settings(&after, c->path, c->after, &e) != 0) {
        text_clean(e.text);
        (void)json_array_append_new(list,
                                    json_sprintf("whether it was safer is not known: %s", e.text));
        return list;
    }
    if (before.encrypt && !after.encrypt)
        (void)json_array_append_new(list, json_string("its links are not encrypted any more"));
    check_groups(&before, &after, list);
    check_roots(&before, &after, list);
    check_key_file(p, s, &before, list);
    return list;
}

/* --- networks that the addresses of the hosts collide with --- */

#define MOST 8u         /* warnings */
#define OWN_PROTOCOL 84 /* of the routes of torus-routed and 'torusctl ip-routes' */

struct search {
    const struct cluster *cluster;
    uint32_t rank;
    json_t *warnings;
    unsigned family, found;
};

/* What a route says. */
struct network {
    const uint8_t *to; /* NULL: everything, which collides with nothing */
    unsigned bits;
    char interface[IF_NAMESIZE];
};

static size_t length_of(unsigned family)
{
    return family == AF_INET ? sizeof(struct in_addr) : sizeof(struct in6_addr);
}

static struct network read_route(const struct nlmsghdr *m)
{
    const struct rtmsg *route = mnl_nlmsg_get_payload(m);
    const struct nlattr *to = netlink_attribute(m, sizeof *route, RTA_DST);
    const struct nlattr *hops = netlink_attribute(m, sizeof *route, RTA_MULTIPATH);
    struct network n = {.bits = route->rtm_dst_len};
    unsigned index = netlink_u32(netlink_attribute(m, sizeof *route, RTA_OIF));
    struct rtnexthop hop = {.rtnh_ifindex = (int)index};

    if (to != NULL && mnl_attr_get_payload_len(to) == length_of(route->rtm_family))
        n.to = mnl_attr_get_payload(to);
    netlink_take(&hop, sizeof hop, hops);
    index = (unsigned)hop.rtnh_ifindex;
    if (index == 0 || if_indextoname(index, n.interface) == NULL)
        (void)strcpy(n.interface, "?");
    return n;
}

static bool contains(const struct network *n, const uint8_t *address)
{
    const unsigned bytes = n->bits / 8, rest = n->bits % 8;

    if (n->bits == 0 || n->to == NULL || memcmp(n->to, address, bytes) != 0)
        return false;
    return rest == 0 || (n->to[bytes] ^ address[bytes]) >> (8 - rest) == 0;
}

/* Whether torusd uses this interface. */
static bool is_own(const struct search *s, const char *interface)
{
    if (strcmp(interface, OWN_INTERFACE) == 0 || strcmp(interface, "lo") == 0)
        return true;
    for (unsigned port = 0; port < TORUS_MAX_PORTS; port++)
        if (strcmp(s->cluster->hosts[s->rank].port[port].interface, interface) == 0)
            return true;
    return false;
}

static void warn(struct search *s, const struct network *n, const void *address, uint32_t host)
{
    char network[INET6_ADDRSTRLEN], own[INET6_ADDRSTRLEN];

    (void)inet_ntop((int)s->family, n->to, network, sizeof network);
    (void)inet_ntop((int)s->family, address, own, sizeof own);
    (void)json_array_append_new(
        s->warnings,
        json_sprintf(
            "the address %s of %s is in the network %s/%u, which this machine reaches over "
            "%s: machines there and hosts of the torus could be taken for each other; give "
            "the hosts other addresses (%s in [cluster])",
            own, s->cluster->hosts[host].name, network, n->bits, n->interface,
            s->family == AF_INET ? "address" : "address6"));
    s->found++;
}

static int look_at(const struct nlmsghdr *m, void *context)
{
    struct search *s = context;
    const struct rtmsg *route = mnl_nlmsg_get_payload(m);

    if (route->rtm_family != s->family || route->rtm_type != RTN_UNICAST ||
        route->rtm_protocol == OWN_PROTOCOL || s->found == MOST ||
        (route->rtm_flags & RTM_F_CLONED) != 0)
        return MNL_CB_OK;
    const struct network n = read_route(m);
    if (is_own(s, n.interface) || n.bits > 8 * length_of(s->family))
        return MNL_CB_OK;
    for (uint32_t host = 0; host < s->cluster->count; host++) {
        struct in6_addr v6;
        const uint8_t *address = (const uint8_t *)&s->cluster->hosts[host].address;
        if (s->family == AF_INET6 && !host_files_address6(s->cluster, host, &v6))
            return MNL_CB_OK;
        address = s->family == AF_INET6 ? v6.s6_addr : address;
        if (contains(&n, address)) {
            warn(s, &n, address, host);
            return MNL_CB_OK;
        }
    }
    return MNL_CB_OK;
}

/* Appends a text to `warnings` for each network of this machine (of a LAN, Docker, a VPN ...) that contains an address
 * of a host. Routes over torus0 and over the cables of the host hosts[rank] do not count. */
static void overlap_warn(const struct cluster *c, uint32_t rank, json_t *warnings)
{
    static const unsigned char families[] = {AF_INET, AF_INET6};

    for (unsigned i = 0; c->ip_routes && i < sizeof families; i++) {
        struct search s = {.cluster = c, .rank = rank, .warnings = warnings, .family = families[i]};
        (void)netlink_list(RTM_GETROUTE, families[i], sizeof(struct rtmsg), look_at, &s);
    }
}

/* --- what is shown --- */

/* Ends a difference after some lines. */
static void shorten(char *diff)
{
    unsigned lines = 0;

    for (char *at = diff; *at != '\0'; at++)
        if (*at == '\n' && ++lines == DIFF_LINES && at[1] != '\0') {
            (void)strcpy(at + 1, "");
            return;
        }
}

/* Returns the difference as 'diff -u' prints it, or NULL. */
static char *difference(const struct setup_change *c)
{
    const char *const arguments[] = {
        "diff",    "-u",    "--label", c->path,
        "--label", c->path, "--",      c->before != NULL ? c->path : "/dev/null",
        "-",       NULL};
    struct child child = {.arguments = arguments, .input = c->after != NULL ? c->after : ""};
    char *result = NULL;

    child.input_length = strlen(child.input);
    child_run(&child, 1, 1, DIFF_MS, NULL, NULL);
    if (child_exit_status(&child) == 1 && child.output != NULL) {
        result = child.output;
        child.output = NULL;
        shorten(result);
    }
    child_free(&child);
    return result;
}

/* Returns "new, id 0123456789abcdef" for a key. */
static json_t *describe_key(const struct setup_change *c, const struct key *key)
{
    char id[KEY_ID_TEXT_SIZE];

    return c->after == NULL ? json_string("the key is removed")
                            : json_sprintf("the key with id %s", key_id_text(key->id, id));
}

static json_t *describe(const struct setup_plan *p, const struct setup *s, enum host_file which)
{
    const struct setup_change *c = &p->change[which];
    const char *action = c->before == NULL ? "new" : c->after == NULL ? "removed" : "changed";
    json_t *difference_text;
    char *diff;

    if (host_file_kinds[which].secret) {
        difference_text = describe_key(c, which == HOST_FILE_KEY ? &s->key : &s->second_key);
    } else if (which == HOST_FILE_CLUSTER || (which == HOST_FILE_ROUTES && c->before == NULL)) {
        difference_text = json_string(""); /* the user's own file; a long script without news */
    } else {
        diff = difference(c);
        difference_text = json_string(diff != NULL ? diff : "");
        free(diff);
    }
    return json_pack("{s:s, s:s, s:o}", "file", c->path, "action", action, "diff", difference_text);
}

static json_t *warnings(const struct setup_plan *p, const struct setup *s)
{
    const struct host *h = &s->cluster.hosts[s->rank];
    json_t *list = json_array();
    struct utsname name;

    if (p->root[0] != '\0')
        return list;
    if (uname(&name) == 0 && !hosts_file_is_same_host(name.nodename, h->name))
        (void)json_array_append_new(
            list, json_sprintf("this machine calls itself %s, not %s", name.nodename, h->name));
    for (unsigned port = 0; port < torus_ports(&s->cluster.routes.torus); port++)
        if (h->port[port].interface[0] != '\0' && if_nametoindex(h->port[port].interface) == 0)
            (void)json_array_append_new(
                list, json_sprintf("there is no interface %s now", h->port[port].interface));
    overlap_warn(&s->cluster, s->rank, list);
    return list;
}

/* The ids of the keys that this host has, the preferred one first. */
static json_t *keys_now(const struct setup_plan *p)
{
    static const enum host_file files[] = {HOST_FILE_KEY, HOST_FILE_SECOND_KEY};
    json_t *list = json_array();

    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char id[KEY_ID_TEXT_SIZE];
        struct key key;
        struct error e;
        if (key_read_as_root(p->change[files[i]].path, &key, &e) != 0)
            continue;
        (void)json_array_append_new(list, json_string(key_id_text(key.id, id)));
        key_forget(&key);
    }
    return list;
}

json_t *setup_plan_json(const struct setup_plan *p, const struct setup *s)
{
    json_t *changes = json_array();

    for (unsigned i = 0; i < HOST_FILES; i++)
        if (p->change[i].differs)
            (void)json_array_append_new(changes, describe(p, s, (enum host_file)i));
    return json_pack("{s:s, s:o, s:o, s:o, s:o}", "host", s->cluster.hosts[s->rank].name, "changes",
                     changes, "warnings", warnings(p, s), "keys", keys_now(p), "less_safe",
                     less_safe(p, s));
}
