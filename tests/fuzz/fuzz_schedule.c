/* Schedules from files in torusd's own format: a schedule that is accepted can be written and read again. */
#include "daemon/lib/schedule/file/export.h"
#include "daemon/lib/schedule/file/imported.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct imported *s, *again;
    struct error e = {0};
    char *written;
    size_t length;

    if (imported_read(&s, (const char *)data, size, NULL, NULL, &e) != 0) {
        REQUIRE(e.code == ERROR_REFUSED && e.text[0] != '\0');
        return 0;
    }
    FILE *out = open_memstream(&written, &length);
    REQUIRE(out != NULL);
    REQUIRE(schedule_export(out, imported_torus(s), imported_algorithm(s), true, &e) == 0);
    REQUIRE(fclose(out) == 0);
    REQUIRE(imported_read(&again, written, length, imported_torus(s), NULL, &e) == 0);
    REQUIRE(imported_bytes(s) >= sizeof(struct leg));
    imported_free(again);
    imported_free(s);
    free(written);
    return 0;
}
