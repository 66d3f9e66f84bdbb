#include "daemon/lib/service/program_options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/lib/base/log.h"
#include "proto/text.h"

#define EXIT_USAGE 2
#define OPTIONS_MOST 24
#define LEFT 21 /* columns of the names */

static void print_help(const struct program_options *options)
{
    (void)fputs(options->head, stdout);
    for (const struct program_option *o = options->option; o->name != NULL; o++) {
        char left[64];
        (void)snprintf(left, sizeof left, "  --%s%s%s", o->name, o->value != NULL ? " " : "",
                       o->value != NULL ? o->value : "");
        if (strlen(left) < LEFT - 1)
            (void)printf("%-*s", LEFT, left);
        else
            (void)printf("%s\n%*s", left, LEFT, "");
        for (const char *c = o->help; *c != '\0'; c++)
            if (*c == '\n')
                (void)printf("\n%*s", LEFT, "");
            else
                (void)putchar(*c);
        (void)putchar('\n');
    }
    (void)fputs(options->tail, stdout);
}

int program_options_fail(const struct program_options *options, const struct error *e)
{
    (void)fprintf(stderr, "%s: %s\n%s --help lists the options\n", options->program, e->text,
                  options->program);
    return EXIT_USAGE;
}

/* Returns 0, 1 to end, or -1 with *e. */
static int take(const struct program_options *options, int which, const char *value, void *context,
                struct error *e)
{
    const char *name = options->option[which].name;

    if (strcmp(name, "help") == 0) {
        print_help(options);
        return 1;
    }
    if (strcmp(name, "version") == 0) {
        (void)printf("%s " TORUSD_VERSION "\n", options->program);
        return 1;
    }
    if (strcmp(name, "log-level") != 0)
        return options->set(context, which, value, e);
    if (log_level_parse(value) < 0)
        return error_set(e, ERROR_USAGE, "it is error, warning, info or debug");
    log_set_level((enum log_level)log_level_parse(value));
    return 0;
}

int program_options_read(const struct program_options *options, int argc, char **argv,
                         void *context, int *exit_code)
{
    struct option list[OPTIONS_MOST] = {{0}};
    struct error e;
    int which;

    for (int i = 0; options->option[i].name != NULL; i++)
        list[i] = (struct option){.name = options->option[i].name,
                                  .has_arg = options->option[i].value != NULL ? required_argument
                                                                              : no_argument,
                                  .val = i};
    *exit_code = EXIT_USAGE;
    while ((which = getopt_long(argc, argv, "", list, NULL)) != -1) {
        int result = which == '?' ? -1 : take(options, which, optarg, context, &e);
        char value[80];
        if (result > 0) {
            *exit_code = EXIT_SUCCESS;
            return -1;
        }
        if (which == '?') { /* getopt_long() has printed what is wrong */
            (void)fprintf(stderr, "%s --help lists the options\n", options->program);
            return -1;
        }
        if (result == 0)
            continue;
        (void)error_wrap(&e, "--%s %s", list[which].name,
                         text_printable(value, sizeof value, optarg != NULL ? optarg : ""));
        *exit_code = program_options_fail(options, &e);
        return -1;
    }
    if (optind == argc)
        return 0;
    (void)error_set(&e, ERROR_USAGE, "unexpected argument \"%.60s\"", argv[optind]);
    *exit_code = program_options_fail(options, &e);
    return -1;
}
