/* The names in one folder, in the order of a manifest. Memory is that of the names. */
#pragma once

#include <stddef.h>

struct folder_name {
    const char *name;   /* valid as long as the struct folder_names */
    unsigned char type; /* DT_...; DT_UNKNOWN: the file system does not tell */
};

struct folder_names {
    struct folder_name *name;
    size_t count;
    char *bytes;
};

/* Reads all names of an open folder, without "." and "..". Returns 0, or -1 with errno. */
int folder_names_read(struct folder_names *names, int folder);
void folder_names_free(struct folder_names *names);
