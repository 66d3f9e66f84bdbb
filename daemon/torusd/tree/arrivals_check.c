/* What records say about files is compared with the files. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/torusd/disk/file_stamp.h"
#include "daemon/torusd/engine/digest.h"
#include "daemon/torusd/tree/arrivals.h"
#include "daemon/torusd/tree/file_bytes.h"

uint64_t arrivals_stamp_of(uint64_t index, const struct stat *st)
{
    return file_stamp(index, st->st_ino, (uint64_t)st->st_size, st->st_ctim);
}

/* --- whole files --- */

int arrivals_open_stamps(struct arrivals *a, const struct staging *s, struct error *e)
{
    if (a->stamps >= 0)
        return 0;
    a->stamps = openat(s->folder, ARRIVALS_STAMPS, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    return a->stamps >= 0 ? 0 : staging_failed(s, "recorded", errno, e);
}

/* If the disk is full, the file has no stamp, and is sent again if the copy does not end well. */
void arrivals_stamp_whole(const struct arrivals *a, uint64_t index, const struct stat *st)
{
    const uint64_t stamp = arrivals_stamp_of(index, st);

    if (a->stamps >= 0)
        (void)file_write(a->stamps, &stamp, sizeof stamp, index * sizeof stamp);
}

bool arrivals_whole_is_same(const struct arrivals *a, uint64_t index, const struct stat *st)
{
    uint64_t stamp = FILE_STAMP_NONE;

    return a->stamps >= 0 &&
           file_read(a->stamps, &stamp, sizeof stamp, index * sizeof stamp) == 0 &&
           stamp == arrivals_stamp_of(index, st);
}

int arrivals_check_staged(const struct arrivals *a, const struct staging *s,
                          const struct entry *entry, struct error *e)
{
    char name[STAGING_NAME_SIZE], path[2 * PATH_MAX + STAGING_NAME_SIZE];
    struct stat st;

    if (fstatat(s->folder, staging_file(entry->index, name), &st, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? 0 : staging_failed(s, "examined", errno, e);
    if (arrivals_whole_is_same(a, entry->index, &st))
        return 0;
    (void)snprintf(path, sizeof path, "%s/%s", s->shown, name);
    return file_stamp_changed(path, "copy again", e);
}

/* --- pieces --- */

void arrivals_note_piece(struct partial *p, struct arrived_piece piece, uint64_t bytes)
{
    if (piece.end - piece.begin > ARRIVALS_PIECE_MOST ||
        p->pieces > bytes / ARRIVALS_PIECE_LEAST + 64 ||
        spans_contain(&p->spans, piece.begin, piece.end))
        return;
    if (p->pieces == p->pieces_room) {
        size_t room = 2 * p->pieces_room + 8;
        struct arrived_piece *more = reallocarray(p->piece, room, sizeof *more);
        if (more == NULL)
            return;
        p->piece = more;
        p->pieces_room = room;
    }
    p->piece[p->pieces++] = piece;
}

/* Returns 1 if the file has these bytes, 0 or -errno. `block` has room for the longest piece. */
static int is_right(int file, struct file_data *data, const struct arrived_piece *piece,
                    uint8_t *block)
{
    const size_t length = (size_t)(piece->end - piece->begin);

    if (file_data_read(file, data, piece->begin, block, length) != 0)
        return errno == 0 ? 0 : -errno;
    return digest_bytes(block, length, 0) == piece->digest;
}

int arrivals_check_pieces(struct partial *p, int file, const struct file_data *data,
                          const struct tree_progress *progress)
{
    struct file_data reading = *data;
    struct spans right = {0};
    uint64_t longest = 1;
    size_t kept = 0;

    for (size_t i = 0; i < p->pieces; i++) {
        const struct arrived_piece *piece = &p->piece[i];
        if (piece->begin >= piece->end || piece->end > data->bytes ||
            piece->end - piece->begin > ARRIVALS_PIECE_MOST)
            continue;
        longest = piece->end - piece->begin > longest ? piece->end - piece->begin : longest;
        p->piece[kept++] = *piece;
    }
    p->pieces = kept;
    uint8_t *block = malloc(longest);
    int result = block != NULL ? 0 : -ENOMEM;
    kept = 0;
    for (size_t i = 0; i < p->pieces && result >= 0; i++) {
        result = progress != NULL && atomic_load(&progress->stop)
                     ? -ECANCELED
                     : is_right(file, &reading, &p->piece[i], block);
        if (result == 1 && spans_add(&right, p->piece[i].begin, p->piece[i].end) != 0)
            result = -ENOMEM;
        if (result == 1)
            p->piece[kept++] = p->piece[i];
    }
    p->pieces = kept;
    free(block);
    spans_free(&p->spans);
    p->spans = right;
    return result < 0 ? result : 0;
}
