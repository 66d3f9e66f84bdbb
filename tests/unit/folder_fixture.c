#include "folder_fixture.h"

#include <dirent.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

int folder_setup(void **state)
{
    char template[] = "/tmp/torusd-test-XXXXXX";

    if (mkdtemp(template) == NULL)
        return -1;
    *state = realpath(template, NULL);
    return *state != NULL ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    (void)st, (void)kind, (void)ftw;
    return remove(path);
}

int folder_teardown(void **state)
{
    int result = nftw(*state, remove_one, 8, FTW_DEPTH | FTW_PHYS);

    free(*state);
    return result;
}

const char *at(void **state, const char *name, ...)
{
    static char buffer[64][FIXTURE_PATH];
    static unsigned next;
    char *path = buffer[next++ % 64];
    va_list ap;

    int n = snprintf(path, FIXTURE_PATH, "%s/", (const char *)*state);
    va_start(ap, name);
    (void)vsnprintf(path + n, FIXTURE_PATH - (size_t)n, name, ap);
    va_end(ap);
    return path;
}

void make_folder(const char *path)
{
    assert_int_equal(mkdir(path, 0777), 0);
}

void make_file(const char *path, const void *bytes, size_t length)
{
    FILE *f = fopen(path, "wb");

    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, length, f), length);
    assert_int_equal(fclose(f), 0);
}

bool exists(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

unsigned entries(const char *path)
{
    DIR *dir = opendir(path);
    struct dirent *entry;
    unsigned n = 0;

    if (dir == NULL)
        return 0;
    while ((entry = readdir(dir)) != NULL)
        n += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    (void)closedir(dir);
    return n;
}

void check_file(const char *path, const void *bytes, size_t length)
{
    FILE *f = fopen(path, "rb");
    char *read = malloc(length + 1);

    if (f == NULL)
        fail_msg("%s is not there", path);
    assert_non_null(read);
    assert_int_equal(fread(read, 1, length + 1, f), length);
    assert_memory_equal(read, bytes, length);
    free(read);
    (void)fclose(f);
}
