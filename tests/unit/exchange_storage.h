/* The storage of exchange_fixture.h: folders whose blocks are empty, and decisions that are recorded and resolved when
 * the test says so. The caller runs the work that is due afterwards. */
#pragma once

#include "exchange_fixture.h"

/* Storage that behaves as the fixture says. It borrows the fixture. */
struct storage exchange_storage(struct exchange_fixture *n);
/* See xf_wake(), xf_folders_fail(), xf_closed() and xf_storage_done(). */
void exchange_storage_wake(struct exchange_fixture *n);
void exchange_storage_fail(struct exchange_fixture *n, enum error_code code, const char *text);
void exchange_storage_closed(struct exchange_fixture *n);
void exchange_storage_done(struct exchange_fixture *n, const struct error *e);
