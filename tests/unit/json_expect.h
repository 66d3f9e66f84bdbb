/* A JSON value compared with a text of what must be in it. */
#pragma once

#include <jansson.h>
#include <string.h>

#include "tests/support/cmocka.h"

/* The item of a list at a place, "3", or with a member of this text, "check:mtu"; NULL if there is none. */
static inline const json_t *json_item(const json_t *list, char *name)
{
    char *text = strchr(name, ':');

    if (text == NULL)
        return json_array_get(list, strtoul(name, NULL, 10));
    *text++ = '\0';
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *here = json_string_value(json_object_get(json_array_get(list, i), name));
        if (here != NULL && strcmp(here, text) == 0)
            return json_array_get(list, i);
    }
    return NULL;
}

/* The value at a path, such as "per_node.3.ports.+0" or "checks.check:mtu.fine", or NULL. */
static inline const json_t *json_at(const json_t *value, const char *path)
{
    char text[100], *rest = text, *name;

    (void)snprintf(text, sizeof text, "%s", path);
    while (value != NULL && (name = strsep(&rest, ".")) != NULL)
        value = json_is_array(value) ? json_item(value, name) : json_object_get(value, name);
    return value;
}

/* "true", "null", "none" (there is no value), "12.5" (nine digits), a text, or "#3": a list or object of three. */
static inline void json_spell(const json_t *value, char *out, size_t size)
{
    if (json_is_string(value))
        (void)snprintf(out, size, "%s", json_string_value(value));
    else if (json_is_number(value))
        (void)snprintf(out, size, "%.9g", json_number_value(value));
    else if (json_is_array(value) || json_is_object(value))
        (void)snprintf(out, size, "#%zu",
                       json_is_array(value) ? json_array_size(value) : json_object_size(value));
    else
        (void)snprintf(out, size, "%s",
                       value == NULL         ? "none"
                       : json_is_null(value) ? "null"
                       : json_is_true(value) ? "true"
                                             : "false");
}

/* Fails the test unless the value has this: "bounds.one_port=64 rows=#8 worst=fine", words of a path and what is there;
 * '_' stands for a space in texts. */
static inline void json_expect(const json_t *value, const char *wanted)
{
    char all[1000], *rest = all, *word, found[200];

    (void)snprintf(all, sizeof all, "%s", wanted);
    while ((word = strsep(&rest, " ")) != NULL) {
        char *expected = strchr(word, '=');
        assert_non_null(expected);
        *expected++ = '\0';
        json_spell(json_at(value, word), found, sizeof found);
        for (char *at = found; *at != '\0'; at++)
            *at = *at == ' ' ? '_' : *at;
        if (strcmp(found, expected) != 0)
            fail_msg("%s is %s, not %s", word, found, expected);
    }
}
