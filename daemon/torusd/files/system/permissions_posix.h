/* The part of file_system_posix.c that deals with owners, modes, access-control lists, and entries that the
 * system refuses to remove. */
#pragma once

#include "daemon/torusd/files/system/file_system.h"

int permissions_set_owner(void *context, int file, uid_t owner, gid_t group);
int permissions_set_mode(void *context, int file, mode_t mode);
ssize_t permissions_read_acl(void *context, int file, enum acl which, void *bytes, size_t most);
int permissions_write_acl(void *context, int file, enum acl which, const void *bytes,
                          size_t length);
int permissions_check_removable(void *context, int folder, const char *name, const char **why);
int permissions_check_writable(void *context, int folder);
