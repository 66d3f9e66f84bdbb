/* Permissions of an output: owner, group, mode and access-control lists of its folder and files. They are
 * copied from the folder that the output replaces. If there is none, they are those of a new folder with the
 * configured mode.
 *
 * While the temporary folder is filled, only its maker can enter it, so that its files may have their final
 * modes from the start. Access-control lists are also set at the start, because they need room on the disk,
 * with masks that close them. The commit only sets owner and mode. */
#pragma once

#include "daemon/torusd/disk/file_system.h"

#define ATTRIBUTES_PRIVATE 0700 /* mode of a folder that is being filled */

struct attributes {
    mode_t mode; /* mode of the folder */
    uid_t owner; /* owner of the folder and its files */
    gid_t group;
    bool given_away; /* new files must be given this owner and group */
    mode_t file_mode;
    bool by_acl; /* a default list decides the mode of files; otherwise it is file_mode */
};

/* Fills *out with the attributes that a new folder with `mode` (07777) gets at this place; `folder` is an
 * empty private folder that was made there. Returns 0 or -errno. */
int attributes_of_new(const struct file_system *files, int folder, mode_t mode,
                      struct attributes *out);

/* Fills *out with the attributes of the existing folder `from`, and gives its lists to the empty private
 * folder `to`. Returns 0; -EPERM if a folder that this process makes cannot have the same owner, group and
 * mode; or another -errno. */
int attributes_copy(const struct file_system *files, int from, int to, struct attributes *out);

/* Gives the attributes to an open folder. Returns 1 if anything had to be changed, 0, or -errno. */
int attributes_set(const struct file_system *files, int folder, const struct attributes *a);

/* Gives the attributes to a file that was created with file_mode in such a folder. Returns 0 or -errno. */
int attributes_set_file(const struct file_system *files, int file, const struct attributes *a);

/* Removes what a crash in attributes_copy() leaves in the private folder. Returns 0 or -errno. */
int attributes_clean_up(const struct file_system *files, int folder);
