/* How a manifest is stored: one record for each entry, and what a record may contain.
 *
 *     head      8 bytes "TORUSTRE", u32 version (1), u32 MANIFEST_STRIDE
 *     records   see below
 *     links     for each hard link: u64 number of the entry that it leads to; ascending, some repeated. So the check of a
 *               manifest needs neither to go back for each link, nor much memory: see manifest.c
 *     index     for every MANIFEST_STRIDE-th entry, from the first on: u64 place of its record in the manifest, u64 begin
 *               in the stream of this entry or of the next file behind it
 *     tail      u64 number of entries, u64 number of hard links, u64 size of the stream, 16 bytes digest (BLAKE2b of
 *               everything before)
 *
 * A record:
 *
 *      0  u32  bytes of the record
 *      4  u8   kind (enum entry_kind)
 *      5  u8   flags: RECORD_...
 *      6  u16  mode
 *      8  u16  bytes of the path that are the same as in the path before; 0 where the index leads to
 *     10  u16  further bytes of the path
 *     12  u32  owner
 *     16  u32  group
 *     20  i64  modification time, seconds
 *     28  u32  modification time, nanoseconds
 *     32       further bytes of the path
 *              file: u64 size; with RECORD_HOLES u64 bytes without holes, u32 number of extents, and for
 *              each u64 offset, u64 length;
 *              with RECORD_DIGEST 16 bytes digest
 *              symbolic link: u16 length, text
 *              hard link: u64 number of the earlier entry, u16 length, path of that entry
 *              with RECORD_ATTRIBUTES: u32 length, attributes
 *

 *
 */
#pragma once

#include "daemon/torusd/tree/manifest.h"

#define MANIFEST_MAGIC "TORUSTRE" /* 8 bytes */
#define MANIFEST_VERSION 1u
#define MANIFEST_HEAD 16u
#define MANIFEST_INDEX 16u /* bytes for an entry in the index */
#define MANIFEST_LINK 8u
#define MANIFEST_TAIL 40u
#define MANIFEST_DIGEST 16u

#define RECORD_HEAD 32u
#define RECORD_MOST                                                                                \
    (RECORD_HEAD + 2 * MANIFEST_PATH_MOST + 16 * MANIFEST_EXTENTS_MOST +                           \
     MANIFEST_ATTRIBUTES_MOST + 64u)
#define RECORD_DIGEST 1u
#define RECORD_HOLES 2u
#define RECORD_ATTRIBUTES 4u

#define NAME_MOST 255u /* bytes of a name, or of the name of an attribute */

/* The path of the entry before, and memory for what an entry points to. */
struct record_state {
    char path[2][MANIFEST_PATH_MOST + 1];
    size_t path_length;
    unsigned now;         /* which path is the last one */
    enum entry_kind kind; /* of the last entry */
    bool known;           /* whether an entry before is known */
    char link[MANIFEST_PATH_MOST + 1];
    struct extent_of_file *extent;
    uint32_t extents_room;
};

static inline uint64_t manifest_groups(uint64_t entries)
{
    return entries / MANIFEST_STRIDE + (entries % MANIFEST_STRIDE != 0);
}

/* Little-endian numbers at any address. */
uint16_t get_u16(const uint8_t *at);
uint32_t get_u32(const uint8_t *at);
uint64_t get_u64(const uint8_t *at);
uint8_t *put_u16(uint8_t *at, uint64_t value); /* return the address behind */
uint8_t *put_u32(uint8_t *at, uint64_t value);
uint8_t *put_u64(uint8_t *at, uint64_t value);

/* Checks everything of an entry that needs no other entry, except its path; sets entry->bytes. Returns NULL, or what is
 * wrong. */
const char *entry_check(struct entry *entry);

/* Checks a path of `length` bytes, and that it may follow the last entry of *s. Returns NULL, or what is wrong. */
const char *entry_check_path(const struct record_state *s, uint64_t index, const char *path,
                             size_t length);

/* Makes this entry, which has been checked, the last one. */
void record_state_advance(struct record_state *s, const struct entry *entry);
void record_state_free(struct record_state *s);

/* Bytes of the record of an entry, if the first `shared` bytes of its path are left out; and writes it. */
size_t record_size(const struct entry *entry, size_t shared);
void record_write(const struct entry *entry, size_t shared, uint8_t *at);

/* Reads only the path and entry->bytes of a record, whose first `length` bytes are there: all, or RECORD_SKIPPED. The
 * record must have been checked before; everything else in *entry is undefined. Returns NULL, or
 * what is wrong. */
#define RECORD_SKIPPED (RECORD_HEAD + MANIFEST_PATH_MOST + 16u)
const char *record_skip(struct record_state *s, const uint8_t *at, size_t length,
                        struct entry *entry);

/* Reads a record that is there completely, and checks it; entry->index must be set. Its bytes must stay until the entry
 * is no longer used. Sets neither entry->begin nor the state's last entry. Returns NULL on success. On
 * failure returns a text that says what is wrong; record_no_memory: memory is short. */
extern const char record_no_memory[];
const char *record_read(struct record_state *s, const uint8_t *at, struct entry *entry);
