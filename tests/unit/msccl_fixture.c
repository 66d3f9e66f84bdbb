#include "tests/unit/msccl_fixture.h"

#include "daemon/lib/schedule/algorithms/registry.h"
#include "tests/support/cmocka.h"

struct torus msccl_torus(const char *dims)
{
    struct torus t;

    assert_int_equal(torus_parse(&t, dims, NULL), 0);
    return t;
}

char *msccl_xml(const struct torus *t, const char *algorithm, size_t *length)
{
    struct error e;
    char *text;
    FILE *out = open_memstream(&text, length);

    assert_success(msccl_print(out, t, algorithm_find(algorithm), &e), e);
    assert_int_equal(fclose(out), 0);
    return text;
}

struct imported *msccl_read_back(const char *xml, size_t length, const struct torus *t,
                                 struct schedule_report *report)
{
    struct imported *s;
    char *routes;
    size_t size;
    struct error e;

    if (msccl_read(xml, length, t, &routes, &size, &e) != 0 ||
        imported_read(&s, routes, size, t, report, &e) != 0)
        fail_msg("%s", e.text);
    free(routes);
    return s;
}

void msccl_refused(const char *xml, const struct torus *t, const char *part, const char *other)
{
    struct error e;
    char *routes = NULL;
    size_t size;

    if (msccl_read(xml, strlen(xml), t, &routes, &size, &e) == 0)
        fail_msg("taken: %.200s", xml);
    if (strstr(e.text, part) == NULL || strstr(e.text, other) == NULL)
        fail_msg("\"%s\" or \"%s\" is not in \"%s\"", part, other, e.text);
    assert_null(routes);
}
