#include "client/cli/cluster/init_report.h"

#include <stdio.h>
#include <string.h>

static const struct field fields[] = {
    {"applied", "applied", FORMAT_PLAIN},
    {"torus", "torus", FORMAT_PLAIN},
    {0},
};
static const struct field host_fields[] = {
    {"host", "host", FORMAT_PLAIN},
    {"result", "result", FORMAT_PLAIN},
    {"files", "files", FORMAT_PLAIN},
    {0},
};
static const struct section sections[] = {
    {.layout = LAYOUT_RECORD, .fields = fields},
    {.layout = LAYOUT_TABLE, .key = "hosts", .fields = host_fields},
};

/* Prints a text that came from another host, without control characters except newlines. */
static void print_clean(const char *text)
{
    for (; *text != '\0'; text++)
        (void)putchar((unsigned char)*text < ' ' && *text != '\n' && *text != '\t' ? '?' : *text);
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text != NULL ? text : "";
}

static void print_sentences(const char *kind, const json_t *list)
{
    const json_t *text;
    size_t i;

    json_array_foreach(list, i, text)
    {
        (void)printf("  %s: ", kind);
        print_clean(json_string_value(text) != NULL ? json_string_value(text) : "");
        (void)fputs("\n", stdout);
    }
}

static void print_host(const struct delivery *d)
{
    const json_t *changes = json_object_get(d->reply, "changes"), *change;
    size_t i;

    if (json_array_size(changes) == 0 &&
        json_array_size(json_object_get(d->reply, "warnings")) == 0)
        return;
    (void)printf("%s:\n", d->host->name);
    print_sentences("warning", json_object_get(d->reply, "warnings"));
    print_sentences("less safe", json_object_get(d->reply, "less_safe"));
    json_array_foreach(changes, i, change)
    {
        const char *diff = text_of(change, "diff");
        (void)fputs("  ", stdout);
        print_clean(text_of(change, "action"));
        (void)fputs(" ", stdout);
        print_clean(text_of(change, "file"));
        (void)fputs(strchr(diff, '\n') != NULL ? "\n" : diff[0] != '\0' ? ": " : "", stdout);
        print_clean(diff);
        (void)fputs(strchr(diff, '\n') != NULL ? "" : "\n", stdout);
    }
    (void)fputs("\n", stdout);
}

void init_report_changes(const struct delivery *list, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (list[i].reply != NULL)
            print_host(&list[i]);
}

uint32_t init_report_changing(const struct delivery *list, uint32_t count)
{
    uint32_t changing = 0;

    for (uint32_t i = 0; i < count; i++)
        changing += json_array_size(json_object_get(list[i].reply, "changes")) > 0;
    return changing;
}

static json_t *host_row(const struct delivery *d, bool applied)
{
    static const char *const copied[] = {"changes", "warnings", "less_safe"};
    const json_t *changes = json_object_get(d->reply, "changes");
    size_t files = json_array_size(changes);
    json_t *row = json_pack("{s:s, s:I}", "host", d->host->name, "files", (json_int_t)files);
    const char *result = files == 0 ? "up to date" : applied ? "changed" : "would change";

    (void)json_object_set_new(row, "result", json_string(d->reply != NULL ? result : "failed"));
    if (d->reply == NULL)
        (void)json_object_set_new(row, "error", json_string(d->error.text));
    for (size_t i = 0; d->reply != NULL && i < sizeof copied / sizeof copied[0]; i++)
        (void)json_object_set(row, copied[i], json_object_get(d->reply, copied[i]));
    (void)json_object_set_new(row, "failed", json_boolean(d->reply == NULL));
    return row;
}

int init_report_result(const struct cli *cli, const struct delivery *list, uint32_t count,
                       bool applied, const char *whole)
{
    json_t *hosts = json_array(), *value;
    uint32_t failed = 0;
    int code;

    for (uint32_t i = 0; i < count; i++) {
        failed += list[i].reply == NULL;
        (void)json_array_append_new(hosts, host_row(&list[i], applied));
    }
    value = json_pack("{s:b, s:o}", "applied", applied, "hosts", hosts);
    if (whole[0] != '\0')
        (void)json_object_set_new(value, "torus", json_string(whole));
    code = cli_print(cli, value, &(struct view){sections, sizeof sections / sizeof sections[0]});
    if (failed == 0 || code != EXIT_DONE)
        return code;
    for (uint32_t i = 0; i < count; i++)
        if (list[i].reply == NULL)
            (void)fprintf(stderr, "torusctl: %s\n", list[i].error.text);
    return EXIT_FAILED;
}
