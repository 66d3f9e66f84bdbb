#include "client/cli/schedule_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/msccl.h"

#define READ_MOST (64u << 20) /* XML is longer than our own format */

/* All of a file, up to READ_MOST and one more byte. */
static int read_all(FILE *file, char **text, size_t *length, struct error *e)
{
    size_t room = 0;

    *text = NULL;
    *length = 0;
    while (!feof(file) && !ferror(file) && *length <= READ_MOST) {
        if (*length == room) {
            room = room == 0 ? 65536 : 2 * room;
            char *more = realloc(*text, room);
            if (more == NULL)
                return error_set(e, ERROR_MEMORY, "out of memory");
            *text = more;
        }
        *length += fread(*text + *length, 1, room - *length, file);
    }
    if (ferror(file))
        return error_set(e, ERROR_IO, "%s", strerror(errno));
    if (*length > READ_MOST)
        return error_set(e, ERROR_REFUSED, "longer than %u MiB", READ_MOST >> 20);
    return 0;
}

static bool begins_with(const char *text, size_t length, const char *what, size_t size)
{
    return length >= size && memcmp(text, what, size) == 0;
}

/* Our own format is ASCII, and begins with '{'. */
static bool is_xml(const char *text, size_t length)
{
    size_t at = 0;

    if (begins_with(text, length, "\xfe\xff", 2) || begins_with(text, length, "\xff\xfe", 2) ||
        begins_with(text, length, "\0<", 2))
        return true; /* UTF-16 */
    if (begins_with(text, length, "\xef\xbb\xbf", 3))
        at = 3;
    while (at < length && strchr(" \t\r\n", text[at]) != NULL && text[at] != '\0')
        at++;
    return at < length && text[at] == '<';
}

/* Replaces XML by what it means in torusd's own format. */
static int convert(struct schedule_file *f, const struct torus *torus, struct error *e)
{
    char *xml = f->text;
    size_t length = f->length;
    int rc;

    if (torus == NULL)
        return error_set(e, ERROR_USAGE,
                         "MSCCL's format does not say which torus it is for: give --dims");
    f->text = NULL;
    rc = msccl_read(xml, length, torus, &f->text, &f->length, e);
    free(xml);
    return rc;
}

/* The lines that an error in converted text names are not lines of the user's file. */
static int verify(struct schedule_file *f, bool converted, const struct torus *torus,
                  struct error *e)
{
    if (imported_read(&f->imported, f->text, f->length, torus, &f->report, e) == 0)
        return 0;
    return converted ? error_wrap(e, "as torusd's own format") : -1;
}

int schedule_file_read(struct schedule_file *f, const char *path, const struct torus *torus,
                       struct error *e)
{
    FILE *file = fopen(path, "re");
    int rc;

    *f = (struct schedule_file){0};
    if (file == NULL)
        return error_set(e, ERROR_IO, "%s: %s", path, strerror(errno));
    rc = read_all(file, &f->text, &f->length, e);
    (void)fclose(file);
    bool xml = rc == 0 && is_xml(f->text, f->length);
    if (xml)
        rc = convert(f, torus, e);
    if (rc == 0)
        rc = verify(f, xml, torus, e);
    if (rc == 0)
        return 0;
    schedule_file_free(f);
    return error_wrap(e, "%s", path);
}

void schedule_file_free(struct schedule_file *f)
{
    imported_free(f->imported);
    free(f->text);
    *f = (struct schedule_file){0};
}
