/* MSCCL's XML on several tori: a schedule that is accepted stays the same when it is written as XML and read
 * again. */
#include <string.h>

#include "client/cli/schedule_files/msccl.h"
#include "daemon/lib/schedule/file/export.h"
#include "daemon/lib/schedule/file/imported.h"
#include "tests/fuzz/fuzz.h"

/* The schedule in XML, or NULL if it is refused. */
static struct imported *read_schedule(const char *xml, size_t size, const struct torus *t)
{
    struct imported *s;
    struct error e = {0};
    char *routes;
    size_t length;

    if (msccl_read(xml, size, t, &routes, &length, &e) != 0) {
        REQUIRE(e.code == ERROR_REFUSED && e.text[0] != '\0' && routes == NULL);
        return NULL;
    }
    if (imported_read(&s, routes, length, t, NULL, &e) != 0) {
        REQUIRE(e.code == ERROR_REFUSED && e.text[0] != '\0');
        s = NULL;
    }
    free(routes);
    return s;
}

/* All routes as text, to be freed by the caller. */
static char *routes_of(const struct imported *s)
{
    struct error e;
    char *text;
    size_t length;
    FILE *out = open_memstream(&text, &length);

    REQUIRE(out != NULL);
    REQUIRE(schedule_export(out, imported_torus(s), imported_algorithm(s), false, &e) == 0);
    REQUIRE(fclose(out) == 0);
    return text;
}

static void check_schedule(const struct imported *s)
{
    struct error e;
    char *xml;
    size_t length;
    FILE *out = open_memstream(&xml, &length);

    REQUIRE(out != NULL);
    REQUIRE(msccl_print(out, imported_torus(s), imported_algorithm(s), &e) == 0);
    REQUIRE(fclose(out) == 0);
    struct imported *again = read_schedule(xml, length, imported_torus(s));
    REQUIRE(again != NULL);
    char *routes = routes_of(s), *same = routes_of(again);
    REQUIRE(strcmp(routes, same) == 0);
    free(routes);
    free(same);
    free(xml);
    imported_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const tori[] = {"2", "3", "2x2", "3m"};

    for (size_t i = 0; i < sizeof tori / sizeof *tori; i++) {
        struct torus t;
        REQUIRE(torus_parse(&t, tori[i], NULL) == 0);
        struct imported *s = read_schedule((const char *)data, size, &t);
        if (s != NULL)
            check_schedule(s);
        imported_free(s);
    }
    return 0;
}
