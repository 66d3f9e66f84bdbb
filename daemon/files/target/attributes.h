/* Who may do what with an output: owner, group, mode and access-control lists of its folder and its
 * files. They are those of the folder that has been prepared in its place, or that is replaced; else
 * those of a new folder there with the configured mode.
 *
 * While it is filled the temporary folder is its maker's alone, so that its files may have their
 * final modes from the start. Lists, which take room on the disk, are set at once, too, closed by
 * their masks; what remains for the commit are owner and mode. */
#ifndef TORUSD_FILES_TARGET_ATTRIBUTES_H
#define TORUSD_FILES_TARGET_ATTRIBUTES_H

#include "daemon/files/system/file_system.h"

#define ATTRIBUTES_PRIVATE 0700 /* of a folder that is being filled */

struct attributes {
    mode_t mode; /* of the folder */
    uid_t owner; /* of the folder and its files */
    gid_t group;
    bool given_away; /* the owner or group is another than files have by themselves */
    mode_t file_mode;
    bool by_acl; /* which the folder's default list changes as it says; else files have just that */
};

/* What a new folder with `mode` (07777) gets beside or in others, given an empty private one that was
 * made there. Returns 0 or -errno. */
int attributes_of_new(const struct file_system *files, int folder, mode_t mode,
                      struct attributes *out);

/* Those of an existing folder; the empty private folder `to` gets its lists. Returns 0; -EPERM if a
 * folder that this process makes cannot have the same owner, group and mode; or another -errno. */
int attributes_copy(const struct file_system *files, int from, int to, struct attributes *out);

/* To an open folder, which is then what it is to be. Returns 1 if anything had to be changed, 0, or
 * -errno. */
int attributes_set(const struct file_system *files, int folder, const struct attributes *a);

/* To a file that has been created with file_mode in such a folder. Returns 0 or -errno. */
int attributes_set_file(const struct file_system *files, int file, const struct attributes *a);

/* What a crash in attributes_copy() leaves in the private folder. Returns 0 or -errno. */
int attributes_clean_up(const struct file_system *files, int folder);

#endif
