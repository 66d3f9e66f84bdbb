/* Schedules from files, in torusd's own format and in MSCCL's: what is taken can be written and read
 * again, and is the same. */
#include <string.h>

#include "client/cli/msccl.h"
#include "daemon/schedule/export.h"
#include "daemon/schedule/imported.h"
#include "tests/fuzz/fuzz.h"

/* Whether it is taken as a schedule. */
static bool take(const char *text, size_t length)
{
    struct imported *s, *again;
    struct error e = {0};
    char *written;
    size_t size;

    if (imported_read(&s, text, length, NULL, NULL, &e) != 0) {
        REQUIRE(e.code == ERROR_REFUSED && e.text[0] != '\0');
        return false;
    }
    FILE *out = open_memstream(&written, &size);
    REQUIRE(out != NULL);
    REQUIRE(schedule_export(out, imported_torus(s), imported_algorithm(s), true, &e) == 0);
    REQUIRE(fclose(out) == 0);
    REQUIRE(imported_read(&again, written, size, imported_torus(s), NULL, &e) == 0);
    REQUIRE(imported_bytes(s) >= sizeof(struct leg));
    imported_free(again);
    imported_free(s);
    free(written);
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const tori[] = {"3", "2x2", "3m"};

    (void)take((const char *)data, size);
    for (size_t i = 0; i < sizeof tori / sizeof *tori; i++) {
        struct error e = {0};
        struct torus t;
        char *routes;
        size_t length;
        REQUIRE(torus_parse(&t, tori[i], NULL) == 0);
        if (msccl_read((const char *)data, size, &t, &routes, &length, &e) != 0) {
            REQUIRE(e.code == ERROR_REFUSED && e.text[0] != '\0');
            continue;
        }
        (void)take(routes, length);
        free(routes);
    }
    return 0;
}
