#include "daemon/lib/host/facts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "proto/text.h"

void facts_begin(struct facts *f)
{
    f->length = 0;
    f->full = false;
    f->text[0] = '\0';
}

void facts_add(struct facts *f, const char *name, const char *format, ...)
{
    char value[512];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(value, sizeof value, format, arguments);
    va_end(arguments);
    text_clean(value);
    const size_t needed = strlen(name) + 1 + strlen(value) + 1;
    if (needed >= FACTS_MOST - f->length) {
        f->full = true;
        return;
    }
    f->length +=
        (size_t)snprintf(f->text + f->length, FACTS_MOST - f->length, "%s %s\n", name, value);
}

void facts_add_lines(struct facts *f, const char *lines)
{
    const size_t length = strlen(lines);

    if (length >= FACTS_MOST - f->length) {
        f->full = true;
        return;
    }
    memcpy(f->text + f->length, lines, length + 1);
    f->length += length;
}

bool facts_read_line(const char *path, char *line, size_t size)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t length;

    if (fd < 0)
        return false;
    errno = 0;
    length = read(fd, line, size - 1);
    const int error = errno;
    (void)close(fd);
    errno = error;
    if (length <= 0)
        return false;
    line[length] = '\0';
    line[strcspn(line, "\n")] = '\0';
    for (length = (ssize_t)strlen(line); length > 0 && line[length - 1] == ' '; length--)
        line[length - 1] = '\0';
    return length > 0;
}

void facts_unseen(struct facts *f, const char *name, const char *path, int error)
{
    char unseen[96];

    (void)snprintf(unseen, sizeof unseen, "unseen.%s", name);
    /* One cause has one text, whatever it hides. */
    if (error == ENOENT && strncmp(path, "/proc/", 6) == 0 && access("/proc/sys", F_OK) != 0)
        facts_add(f, unseen,
                  "/proc shows torusd nothing but processes (ProcSubset=pid in its unit)");
    else
        facts_add(f, unseen, "%s: %s", path, error != 0 ? strerror(error) : "it is empty");
}

void facts_add_file(struct facts *f, const char *name, const char *path)
{
    char line[256];

    if (facts_read_line(path, line, sizeof line))
        facts_add(f, name, "%s", line);
    else
        facts_unseen(f, name, path, errno);
}
