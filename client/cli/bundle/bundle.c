#include "client/cli/bundle/bundle.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/cli/terminal/output_file.h"
#include "daemon/lib/host/run.h"

#define OUTPUT_MOST (1024u * 1024u)
#define PATIENCE_MS 10000
#define TAR_PATIENCE_MS 120000
#define HEX_MOST 31u
#define BASE64_MOST 42u

static bool is_base64(char c)
{
    return isalnum((unsigned char)c) || c == '+' || c == '=' || c == '_' || c == '-';
}

void bundle_mask(char *text)
{
    for (char *at = text; *at != '\0';) {
        size_t hex = 0, base64 = 0;
        while (isxdigit((unsigned char)at[hex]))
            hex++;
        while (is_base64(at[base64]))
            base64++;
        if (hex > HEX_MOST)
            memset(at, 'x', hex);
        else if (base64 > BASE64_MOST)
            memset(at, 'x', base64);
        at += base64 > 0 ? base64 : 1;
    }
}

int bundle_begin(struct bundle *b, const char *name, struct error *e)
{
    char folder[160];

    *b = (struct bundle){.parts = json_array()};
    (void)snprintf(b->name, sizeof b->name, "%s", name);
    (void)strcpy(b->folder, "/tmp/torus-support-XXXXXX");
    if (mkdtemp(b->folder) == NULL) {
        b->folder[0] = '\0';
        return error_set(e, ERROR_IO, "cannot make a folder in /tmp: %s", strerror(errno));
    }
    (void)snprintf(folder, sizeof folder, "%s/%s", b->folder, b->name);
    if (mkdir(folder, 0700) != 0)
        return error_set(e, ERROR_IO, "cannot make %s: %s", folder, strerror(errno));
    return 0;
}

static void note_error(struct bundle *b, const char *name)
{
    if (b->error.code == ERROR_NONE)
        (void)error_set(&b->error, ERROR_IO, "cannot write %s/%s: %s", b->folder, name,
                        strerror(errno));
}

static void write_part(struct bundle *b, const char *name, const char *text)
{
    char path[PATH_MAX], *slash;
    FILE *f;

    (void)snprintf(path, sizeof path, "%s/%s/%s", b->folder, b->name, name);
    slash = strrchr(path, '/');
    *slash = '\0';
    if (mkdir(path, 0700) != 0 && errno != EEXIST) {
        note_error(b, name);
        return;
    }
    *slash = '/';
    f = fopen(path, "we");
    if (f == NULL) {
        note_error(b, name);
        return;
    }
    const bool written = fputs(text, f) >= 0;
    if (fclose(f) != 0 || !written)
        note_error(b, name);
}

void bundle_add(struct bundle *b, const char *name, const char *about, const char *text)
{
    char *masked = strdup(text);
    json_t *part = json_object();

    if (masked == NULL)
        (void)error_set(&b->error, ERROR_MEMORY, "out of memory");
    else if (masked[0] != '\0') {
        bundle_mask(masked);
        write_part(b, name, masked);
        (void)json_object_set_new(part, "name", json_string(name));
        (void)json_object_set_new(part, "bytes", json_integer((json_int_t)strlen(masked)));
        (void)json_object_set_new(part, "about", json_string(about));
        (void)json_array_append(b->parts, part);
    }
    json_decref(part);
    free(masked);
}

void bundle_add_json(struct bundle *b, const char *name, const char *about, json_t *value)
{
    char *text = value != NULL ? json_dumps(value, JSON_INDENT(1)) : NULL;

    if (text == NULL)
        (void)error_set(&b->error, ERROR_MEMORY, "out of memory");
    else
        bundle_add(b, name, about, text);
    free(text);
    json_decref(value);
}

void bundle_add_output(struct bundle *b, const char *name, const char *about,
                       const char *const *argv)
{
    char *text = malloc(OUTPUT_MOST);

    if (text == NULL)
        (void)error_set(&b->error, ERROR_MEMORY, "out of memory");
    else if (host_run(argv, PATIENCE_MS, text, OUTPUT_MOST, NULL))
        bundle_add(b, name, about, text);
    free(text);
}

/* README.txt lists what is in the archive. */
static void add_list(struct bundle *b)
{
    char *text = NULL;
    size_t size = 0, i;
    const json_t *part;
    FILE *f = open_memstream(&text, &size);

    if (f == NULL) {
        (void)error_set(&b->error, ERROR_MEMORY, "out of memory");
        return;
    }
    (void)fputs(
        "Made by 'torusctl support-bundle'. It has no keys: key files are not read, and what "
        "looks\n"
        "like a key in other files was replaced by x. It has names and addresses of machines.\n\n",
        f);
    json_array_foreach(b->parts, i, part)(void)
        fprintf(f, "%-32s %s\n", json_string_value(json_object_get(part, "name")),
                json_string_value(json_object_get(part, "about")));
    if (fclose(f) == 0)
        bundle_add(b, "README.txt", "this list", text);
    free(text);
}

static int run_tar(const struct bundle *b, const char *path, struct error *e)
{
    const char *const argv[] = {"tar", "--force-local", "--numeric-owner", "-cvzf", path,
                                "-C",  b->folder,       b->name,           NULL};
    char *text = malloc(OUTPUT_MOST);
    int status = -1;

    if (text == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory");
    (void)host_run(argv, TAR_PATIENCE_MS, text, OUTPUT_MOST, &status);
    free(text);
    if (status == 0)
        return 0;
    return error_set(e, ERROR_IO,
                     "tar could not write %s (exit status %d): is /tmp full, or are tar and gzip "
                     "missing?",
                     path, status);
}

/* Copies a file to a stream. Returns 0 with its size, or -1 with errno. */
static int copy_to(FILE *to, const char *path, int64_t *size)
{
    char bytes[16384];
    FILE *from = fopen(path, "re");
    size_t n;
    int why = 0;

    if (from == NULL)
        return -1;
    *size = 0;
    while (why == 0 && (n = fread(bytes, 1, sizeof bytes, from)) > 0) {
        *size += (int64_t)n;
        why = fwrite(bytes, 1, n, to) == n ? 0 : errno;
    }
    if (why == 0 && ferror(from) != 0)
        why = EIO;
    (void)fclose(from);
    errno = why;
    return why == 0 ? 0 : -1;
}

/* The archive is made in the temporary folder first: tar would not know what to do with devices and links. */
int bundle_write(struct bundle *b, const char *path, struct error *e)
{
    char archive[sizeof b->folder + 16];
    struct output_file f;
    int why;

    add_list(b);
    if (b->error.code != ERROR_NONE) {
        *e = b->error;
        return -1;
    }
    (void)snprintf(archive, sizeof archive, "%s/tar.gz", b->folder);
    if (run_tar(b, archive, e) != 0 || output_file_open(&f, path, e) != 0)
        return -1;
    if (f.unfinished != NULL)
        (void)fchmod(fileno(f.stream), 0600);
    why = copy_to(f.stream, archive, &b->bytes) == 0 ? 0 : errno;
    if (output_file_finish(&f, e) == 0 && why == 0)
        return 0;
    return why != 0 ? error_set(e, ERROR_IO, "cannot write %s: %s", path, strerror(why)) : -1;
}

static int remove_one(const char *path, const struct stat *s, int type, struct FTW *place)
{
    (void)s, (void)type, (void)place;
    return remove(path);
}

void bundle_free(struct bundle *b)
{
    if (b->folder[0] != '\0')
        (void)nftw(b->folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    json_decref(b->parts);
    *b = (struct bundle){.parts = NULL};
}
