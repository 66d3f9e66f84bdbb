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
