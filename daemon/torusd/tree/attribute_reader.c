#include "daemon/torusd/tree/attribute_reader.h"

#include <errno.h>
#include <linux/limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>

#include "daemon/torusd/tree/manifest_format.h"

/* Where the attributes are: of an open file, or by the path of a link. */
struct holder {
    int file;
    const char *link; /* NULL: `file` */
};

static ssize_t list(const struct holder *h, char *names, size_t room)
{
    return h->link != NULL ? llistxattr(h->link, names, room) : flistxattr(h->file, names, room);
}

static ssize_t get(const struct holder *h, const char *name, void *value, size_t room)
{
    return h->link != NULL ? lgetxattr(h->link, name, value, room)
                           : fgetxattr(h->file, name, value, room);
}

static bool has_prefix(const char *name, const char *prefix)
{
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

static bool is_copied(const char *name)
{
    return has_prefix(name, "user.") ||
           (has_prefix(name, "trusted.") && !has_prefix(name, "trusted.overlay.")) ||
           strcmp(name, "security.capability") == 0 ||
           strcmp(name, "system.posix_acl_access") == 0 ||
           strcmp(name, "system.posix_acl_default") == 0;
}

static int grow(void **memory, size_t *room, size_t least)
{
    if (*room >= least)
        return 0;
    void *more = realloc(*memory, least);
    if (more == NULL)
        return -1;
    *memory = more;
    *room = least;
    return 0;
}

/* Reads the list of names. Returns its length, or -1 with errno. */
static ssize_t read_names(struct attribute_reader *r, const struct holder *h)
{
    void *names = r->names;
    ssize_t n = -1;

    for (size_t room = 1024; room <= XATTR_LIST_MAX; room *= 8) {
        if (grow(&names, &r->names_room, room) != 0)
            return -1;
        r->names = names;
        n = list(h, r->names, r->names_room);
        if (n >= 0 || errno != ERANGE)
            break;
    }
    /* A link cannot be asked without /proc: links have no attributes then. */
    if (n < 0 && (errno == EOPNOTSUPP || errno == EPERM || errno == EACCES ||
                  (h->link != NULL && errno == ENOENT)))
        return 0;
    return n;
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Finds the names that are copied, in order. Returns how many, or -1 without memory; the caller frees *sorted. */
static ssize_t sort_names(const char *names, size_t length, const char ***sorted)
{
    size_t count = 0;

    *sorted = calloc(length / 2 + 1, sizeof **sorted);
    if (*sorted == NULL)
        return -1;
    for (size_t at = 0; at < length; at += strlen(names + at) + 1)
        if (is_copied(names + at))
            (*sorted)[count++] = names + at;
    qsort(*sorted, count, sizeof **sorted, compare);
    return (ssize_t)count;
}

/* Reads one attribute to the end of the bytes. One that cannot be read is passed over. */
static int add(struct attribute_reader *r, const struct holder *h, const char *name, size_t *used)
{
    size_t length = strlen(name) + 1, begin = *used + length + 4;
    void *bytes = r->bytes;

    if (grow(&bytes, &r->room, MANIFEST_ATTRIBUTES_MOST + NAME_MOST + 5 + XATTR_SIZE_MAX) != 0)
        return -1;
    r->bytes = bytes;
    ssize_t n = get(h, name, r->bytes + begin, XATTR_SIZE_MAX);
    if (n < 0)
        return 0;
    if (begin + (size_t)n > MANIFEST_ATTRIBUTES_MOST) {
        errno = E2BIG;
        return -1;
    }
    memcpy(r->bytes + *used, name, length);
    (void)put_u32(r->bytes + *used + length, (uint64_t)n);
    *used = begin + (size_t)n;
    return 0;
}

static int read_all(struct attribute_reader *r, const struct holder *h, uint32_t *length)
{
    ssize_t names = read_names(r, h);
    const char **sorted;
    size_t used = 0;
    int result = 0;

    *length = 0;
    if (names <= 0)
        return names < 0 ? -1 : 0;
    ssize_t count = sort_names(r->names, (size_t)names, &sorted);
    if (count < 0)
        return -1;
    for (ssize_t i = 0; i < count && result == 0; i++)
        result = add(r, h, sorted[i], &used);
    int error = errno;
    free(sorted);
    errno = error;
    *length = (uint32_t)used;
    return result;
}

int attributes_read(struct attribute_reader *r, int file, uint32_t *length)
{
    return read_all(r, &(struct holder){.file = file}, length);
}

/* No system call reads the attributes of a link by a folder and a name. */
int attributes_read_link(struct attribute_reader *r, int folder, const char *name, uint32_t *length)
{
    char path[NAME_MOST + 40];

    (void)snprintf(path, sizeof path, "/proc/self/fd/%d/%s", folder, name);
    return read_all(r, &(struct holder){.link = path}, length);
}

void attribute_reader_free(struct attribute_reader *r)
{
    free(r->names);
    free(r->bytes);
    *r = (struct attribute_reader){0};
}
