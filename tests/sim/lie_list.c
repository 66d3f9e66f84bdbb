/* See lie_list.h. */
#include "tests/sim/lie_list.h"

#include "tests/support/cmocka.h"

/* "| `Hello.version` | what is said at worst | what comes of it | link |" */
void lie_list_read(struct lie_list *list, const char *path)
{
    FILE *f = fopen(path, "r");
    char text[1000];

    if (f == NULL)
        fail_msg("%s cannot be read", path);
    while (fgets(text, sizeof text, f) != NULL) {
        struct lie_line *line = &list->line[list->lines];
        if (sscanf(text, "| `%79[A-Za-z0-9_.]` |", line->name) != 1 ||
            strchr(line->name, '.') == NULL)
            continue;
        char *end = strrchr(text, '|'), *word = end;
        while (word > text && word[-1] != '|')
            word--;
        line->result = LIE_RESULTS;
        for (enum lie_result r = LIE_NOTHING; r < LIE_RESULTS; r++)
            if (strncmp(word + 1, lie_result_names[r], strlen(lie_result_names[r])) == 0)
                line->result = r;
        if (line->result == LIE_RESULTS)
            fail_msg("%s: its line does not end with the worst consequence", line->name);
        for (enum lie_named n = LIE_NAMES_ITS_WAY; n < LIE_NAMINGS; n++)
            if (strstr(word, lie_named_names[n]) != NULL)
                line->named = n;
        assert_true(++list->lines < LIE_FIELDS_MOST);
    }
    (void)fclose(f);
    list->fields = lie_fields(list->field, LIE_FIELDS_MOST);
    assert_true(list->fields < LIE_FIELDS_MOST);
}

struct lie_line *lie_list_line(struct lie_list *list, const char *name)
{
    for (size_t i = 0; i < list->lines; i++)
        if (strcmp(list->line[i].name, name) == 0)
            return &list->line[i];
    return NULL;
}

void lie_list_note(struct lie_list *list, const struct lie_field *field, enum lie_result result,
                   enum lie_named named, const char *failure)
{
    struct lie_found *found = &list->found[field - list->field];

    if (result > found->worst)
        found->worst = result;
    if (named <= found->least_named)
        return;
    found->least_named = named;
    (void)snprintf(found->failure, sizeof found->failure, "%s", failure);
}
