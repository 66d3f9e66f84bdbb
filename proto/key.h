/* The cluster key: a secret of the daemons of one torus. It is kept in a file of one line,
 * "torusd-key-1 " and 64 hexadecimal digits, that only its owner may read (text_file.h). */
#pragma once

#include <stdint.h>

#include "proto/error.h"

#define KEY_SIZE 32u
#define KEY_ID_SIZE 8u
#define KEY_ID_TEXT_SIZE (2 * KEY_ID_SIZE + 1)
#define KEY_LINE_SIZE (sizeof "torusd-key-1 \n" + 2 * KEY_SIZE)

struct key {
    uint8_t bytes[KEY_SIZE];
    uint8_t id[KEY_ID_SIZE]; /* derived from the bytes without revealing them: may be shown */
};

/* Makes a key of random bytes. Returns 0, or -1 with *e if the system cannot provide random bytes. */
int key_make(struct key *key, struct error *e);

/* Writes a key to a new file with mode 0600, which is complete when it appears. Returns 0, or -1 with *e and no file:
 * one exists already, or it cannot be written. */
int key_write(const char *path, const struct key *key, struct error *e);

/* Makes a key, and writes it to a new file: key_make() and key_write(). */
int key_generate(const char *path, struct key *key, struct error *e);

/* Reads a key. Refuses a file that users other than its owner may read or write, or that belongs
 * neither to the user of this process nor to root. Returns 0, or -1 with *e naming the file;
 * errno is then ENOENT if, and only if, there is no such file. */
int key_read(const char *path, struct key *key, struct error *e);

/* Like key_read(), but if root reads, the file may belong to any user, such as that of torusd. For programs of the
 * administrator, who has named the file. */
int key_read_as_root(const char *path, struct key *key, struct error *e);

/* Writes the line of a key file, with its newline, as key_generate() does. Returns `line`; the caller overwrites it
 * when it is no longer needed. */
char *key_line(const struct key *key, char line[KEY_LINE_SIZE]);

/* Fills in *key from KEY_SIZE given bytes. */
void key_set(struct key *key, const uint8_t *bytes);

/* Overwrites a key that is no longer needed. */
void key_forget(struct key *key);

/* Writes the id as 16 hexadecimal digits. Returns `text`. */
char *key_id_text(const uint8_t id[KEY_ID_SIZE], char text[KEY_ID_TEXT_SIZE]);
