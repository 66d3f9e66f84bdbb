#include "client/cli/copying/copy_paths.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

bool copy_path_has_rank(const char *path)
{
    for (; (path = strchr(path, '%')) != NULL; path += path[1] != '\0' ? 2 : 1)
        if (path[1] == 'r')
            return true;
    return false;
}

const char *copy_path_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}
