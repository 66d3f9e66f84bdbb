#include "client/cli/terminal/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "proto/text.h"

json_t *json_count(uint64_t count)
{
    return json_integer(count > INT64_MAX ? INT64_MAX : (json_int_t)count);
}

json_t *json_number(double number)
{
    if (!isfinite(number))
        return json_null();
    if (fabs(number) < 9e15 && number == (double)(json_int_t)number)
        return json_integer((json_int_t)number);
    return json_real(number);
}

json_t *json_known(uint64_t count)
{
    return count > 0 ? json_count(count) : json_null();
}

json_t *json_positive(double number)
{
    return number > 0 ? json_number(number) : json_null();
}

json_t *json_text(const char *text)
{
    return text[0] != '\0' ? json_string(text) : json_null();
}

json_t *json_path(const char *folder, const char *name)
{
    json_t *value;
    char *path;

    if (asprintf(&path, "%s%s", folder, name) < 0)
        return NULL;
    text_clean(path);
    value = json_string(path);
    free(path);
    return value;
}

json_t *json_checked(json_t *value, int result)
{
    if (result == 0)
        return value;
    json_decref(value);
    return NULL;
}

int json_set_torus(json_t *object, const struct torus *t)
{
    json_t *dims = json_array(), *wrap = json_array();
    char text[TORUS_TEXT_SIZE];
    bool mesh = false;
    int r = 0;

    for (unsigned i = 0; i < t->dims; i++) {
        r |= json_array_append_new(dims, json_integer(t->size[i]));
        r |= json_array_append_new(wrap, json_boolean(t->wrap[i]));
        mesh = mesh || !t->wrap[i];
    }
    r |= json_object_set_new(object, "dims", dims);
    if (mesh)
        r |= json_object_set_new(object, "wrap", wrap);
    else
        json_decref(wrap);
    if (!torus_is_plain(t))
        r |= json_object_set_new(object, "network", json_string(torus_format(t, text)));
    return r;
}

/* --- objects from structs --- */

/* Returns the value of a member; NULL if it is 0 or "" and *m leaves such values out. */
static json_t *member_value(const void *at, const struct json_member *m)
{
    const char *text = m->type == 's' ? *(const char *const *)at : NULL;
    const uint64_t count = m->type == 'u'   ? *(const uint32_t *)at
                           : m->type == 'U' ? *(const uint64_t *)at
                                            : 0;
    const double number = m->type == 'd' ? *(const double *)at : (double)count;

    if (m->type == 'b')
        return json_boolean(*(const bool *)at);
    if (m->rule != JSON_ALWAYS && (text != NULL ? text[0] == '\0' : !(number > 0)))
        return NULL;
    if (text != NULL)
        return json_string(text);
    if (m->name != NULL)
        return json_string(m->name((unsigned)count));
    if (m->scale > 0)
        return json_real(number / m->scale);
    return m->type == 'd' ? json_number(number) : json_count(count);
}

int json_set_members(json_t *object, const void *from, const struct json_member *members)
{
    int r = 0;

    for (const struct json_member *m = members; m->key != NULL; m++) {
        json_t *value = member_value((const char *)from + m->offset, m);
        if (value == NULL && m->rule == JSON_KNOWN)
            value = json_null();
        if (value != NULL || m->rule != JSON_PRESENT)
            r |= json_object_set_new(object, m->key, value);
    }
    return r;
}

json_t *json_of(const void *from, const struct json_member *members)
{
    json_t *object = json_object();

    return json_checked(object, json_set_members(object, from, members));
}

json_t *json_list_of(const void *list, size_t count, const struct json_member *members)
{
    const void *const *from = list;
    json_t *value = json_array();
    int r = 0;

    for (size_t i = 0; i < count; i++)
        r |= json_array_append_new(value, json_of(from[i], members));
    return json_checked(value, r);
}

json_t *json_numbers(const uint32_t *number, size_t count)
{
    json_t *list = json_array();
    int r = 0;

    for (size_t i = 0; i < count; i++)
        r |= json_array_append_new(list, json_integer(number[i]));
    return json_checked(list, r);
}

json_t *json_texts(const char *const *text, size_t count)
{
    json_t *list = json_array();
    int r = 0;

    for (size_t i = 0; i < count; i++)
        r |= json_array_append_new(list, json_string(text[i]));
    return json_checked(list, r);
}
