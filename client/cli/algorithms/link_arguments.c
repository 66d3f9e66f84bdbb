#include "client/cli/algorithms/link_arguments.h"

#include <stdlib.h>
#include <string.h>

#include "proto/text_file.h"

#define MOST_BYTES (1u << 20)

bool link_arguments_have_rates(const struct link_arguments *a)
{
    return a->rate != NULL || a->link_rate != NULL || a->rates != NULL;
}

bool link_arguments_given(const struct link_arguments *a)
{
    return a->without != NULL || link_arguments_have_rates(a);
}

const char *link_arguments_option(const struct link_arguments *a)
{
    return a->without != NULL     ? "--without"
           : a->rate != NULL      ? "--rate"
           : a->link_rate != NULL ? "--link-rate"
                                  : "--rates";
}

/* Reads a line of a file, which may be changed. */
static int read_line(struct damage *d, char *line, struct error *e)
{
    static const char word[] = "link";
    bool both = false;

    line[strcspn(line, "#")] = '\0';
    line += strspn(line, " \t");
    for (size_t length = strlen(line); length > 0 && strchr(" \t\r", line[length - 1]) != NULL;)
        line[--length] = '\0';
    if (strncmp(line, word, sizeof word - 1) == 0 && strchr(" \t", line[sizeof word - 1]) != NULL) {
        both = true;
        line += sizeof word - 1;
        line += strspn(line, " \t");
    }
    return line[0] == '\0' && !both ? 0 : damage_parse_rates(d, line, both, e);
}

static int read_file(struct damage *d, const char *path, struct error *e)
{
    static const struct text_kind kind = {.name = "a list of rates", .most = MOST_BYTES};
    unsigned number = 0;
    size_t length;
    char *text;
    int rc = 0;

    if (text_file_read(path, &kind, &text, &length, e) != 0)
        return -1;
    for (char *rest = text, *line; rc == 0 && (line = strsep(&rest, "\n")) != NULL;) {
        number++;
        rc = read_line(d, line, e);
    }
    free(text);
    return rc == 0 ? 0 : error_wrap(e, "%.200s, line %u", path, number);
}

/* Reads all rates. The file comes first, so that options can correct it. */
static int read_rates(const struct link_arguments *a, struct damage *d, struct error *e)
{
    if (a->rates != NULL && read_file(d, a->rates, e) != 0)
        return error_wrap(e, "--rates");
    if (a->link_rate != NULL && damage_parse_rates(d, a->link_rate, true, e) != 0)
        return error_wrap(e, "--link-rate");
    if (a->rate != NULL && damage_parse_rates(d, a->rate, false, e) != 0)
        return error_wrap(e, "--rate");
    return 0;
}

int link_arguments_read(const struct cli *cli, const struct link_arguments *a,
                        const struct torus *t, struct damage *d)
{
    struct error e;
    int rc = a->without != NULL ? damage_parse(d, t, a->without, &e) : damage_init(d, t, &e);

    if (rc != 0 && a->without != NULL)
        (void)error_wrap(&e, "--without");
    if (rc == 0 && read_rates(a, d, &e) != 0) {
        damage_free(d);
        rc = -1;
    }
    if (rc == 0)
        return EXIT_DONE;
    return e.code == ERROR_USAGE ? cli_fail_usage(cli, "%s", e.text) : cli_fail(cli, &e);
}
