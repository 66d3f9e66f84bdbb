/* libtorus asks the torusd on this machine for its state, for its links, and for collective operations
 * on the torus: complete exchanges (MPI_Alltoall), allgathers, broadcasts and barriers.
 *
 *     struct torus_error error;
 *     struct torus_client *client = torus_client_open(NULL, &error);
 *     struct torus_request request;
 *     struct torus_result *result;
 *
 *     torus_request_init(&request);
 *     request.algorithm = "at2";
 *     request.block_bytes = 65536;
 *     if (client == NULL ||
 *         torus_client_exchange(client, &request, NULL, NULL, &result, &error) != 0)
 *         errx(1, "%s", error.text);
 *     printf("%.3f s\n", (double)result->nanoseconds / 1e9);
 *     torus_result_free(result);
 *     torus_client_close(client);
 *
 * Build with `pkg-config --cflags --libs libtorus`.
 *
 * Names
 * - All names begin with torus_ or TORUS_. The type that a function works on follows in its name.
 *
 * Errors and ownership
 * - Functions that can fail return 0 or -1 (or a pointer or NULL) and then fill *error, unless
 *   `error` is NULL. On failure the caller gets no result: result pointers are set to NULL.
 * - Results are allocated by the library; the caller frees each with the function named after its
 *   type. Results stay valid after the client has been closed. All texts and lists in a result
 *   belong to the result. Texts are valid UTF-8 without control characters, whatever the daemon has
 *   sent, and are never NULL (an empty text is "").
 * - Texts and structs passed in are borrowed for the duration of the call.
 *
 * Threads and signals
 * - A client is one connection with one operation at a time. Use it from one thread at a time;
 *   different clients are independent. Only torus_client_cancel() may be called at any time, from
 *   any thread and from signal handlers.
 * - The library installs no signal handlers and raises no SIGPIPE.
 *
 * Compatibility: programs built with this header keep working with every later libtorus.so.1.
 * - Structs that the caller fills (torus_request, torus_costs) begin with struct_size, which
 *   torus_request_init() or torus_costs_init() sets. New fields are added at the end only. A field
 *   that the program does not know counts as zero, and zero always means the behaviour from before
 *   the field was added. A library that is older than the header refuses fields that it does not know
 *   (TORUS_ERROR_USAGE), unless they are zero.
 * - Structs that the library allocates or passes to callbacks also get new fields at the end only. Do
 *   not allocate, copy or compare such structs as a whole. Their lists are lists of pointers for this
 *   reason.
 * - struct torus_error never changes. Enums may get more values: handle unknown values. */
#ifndef TORUS_TORUS_H
#define TORUS_TORUS_H

#include <torus/client.h>
#include <torus/error.h>
#include <torus/exchange.h>
#include <torus/prediction.h>
#include <torus/status.h>

#endif
