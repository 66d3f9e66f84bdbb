/* Extended attributes of a file, folder or link, in the form of struct entry: of users ("user."), access-control lists,
 * and, as far as they can be read, "trusted." and "security.capability". Other "security." and "system." attributes belong
 * to a machine, and stay there. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct attribute_reader {
    char *names;
    size_t names_room;
    uint8_t *bytes; /* what was read last */
    size_t room;
};

/* Read the attributes of an open file or folder; of a symbolic link with a name in an open folder. Return 0 with *length;
 * the bytes stay until the next call. Return -1 with errno: E2BIG for more than MANIFEST_ATTRIBUTES_MOST bytes. */
int attributes_read(struct attribute_reader *r, int file, uint32_t *length);
int attributes_read_link(struct attribute_reader *r, int folder, const char *name,
                         uint32_t *length);
void attribute_reader_free(struct attribute_reader *r);
