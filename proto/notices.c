#include "proto/notices.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool notices_wanted(void)
{
    const char *setting = getenv("TORUS_PROGRESS");

    if (setting != NULL && strcmp(setting, "1") == 0)
        return true;
    if (setting != NULL && strcmp(setting, "0") == 0)
        return false;
    return isatty(STDERR_FILENO) == 1;
}
