/* Schedules in the formats of ForestColl and TE-CCL (FORMAT_READ) on several tori: what is accepted has routes that are
 * accepted or refused as a schedule, and the same text has the same routes. */
#include <string.h>

#include "client/cli/schedule_files/forestcoll.h"
#include "client/cli/schedule_files/teccl.h"
#include "daemon/lib/schedule/file/imported.h"
#include "tests/fuzz/fuzz.h"

/* The routes of the text, to be freed by the caller, or NULL if it is refused. */
static char *read_routes(const uint8_t *data, size_t size, const struct torus *t, size_t *length)
{
    struct error e = {0};
    char *routes;

    if (FORMAT_READ((const char *)data, size, t, &routes, length, &e) == 0)
        return routes;
    REQUIRE(e.code == ERROR_REFUSED && e.text[0] != '\0' && routes == NULL);
    return NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const tori[] = {"2", "3", "2x2", "3m", "star:3"};

    for (size_t i = 0; i < sizeof tori / sizeof *tori; i++) {
        struct torus t;
        struct imported *s;
        struct error e = {0};
        size_t length, again_length;
        REQUIRE(torus_parse(&t, tori[i], NULL) == 0);
        char *routes = read_routes(data, size, &t, &length);
        if (routes == NULL)
            continue;
        char *again = read_routes(data, size, &t, &again_length);
        REQUIRE(again != NULL && again_length == length && memcmp(again, routes, length) == 0);
        if (imported_read(&s, routes, length, &t, NULL, &e) == 0)
            imported_free(s);
        else
            REQUIRE(e.code == ERROR_REFUSED && e.text[0] != '\0');
        free(routes);
        free(again);
    }
    return 0;
}
