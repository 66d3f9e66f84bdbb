/* libtorus is the C interface to the torusd daemon on this machine. It reports the state of the daemon
 * and its links, copies trees of files between nodes, and runs collective operations on the torus: complete
 * exchanges (MPI_Alltoall), allgathers, broadcasts and barriers. torus/group.h is for programs that exchange data in their memory.
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
 * - All names begin with torus_ or TORUS_. The name of a function continues with the type that it works on:
 *   torus_client_open(), torus_result_free().
 *
 * Errors and ownership
 * - A function that can fail returns 0 on success and -1 on failure (or a pointer, and NULL on failure). On
 *   failure it fills *error, unless `error` is NULL, and sets the result pointer to NULL.
 * - The library allocates results. The caller frees each result with the function named after its type. Results
 *   stay valid after the client has been closed. All texts and lists in a result belong to the result. Texts are
 *   never NULL ("" if empty) and always valid UTF-8 without control characters, whatever the daemon has sent.
 * - The library reads the texts and structs that it is passed only during the call, and does not keep them.
 *
 * Threads and signals
 * - A client is one connection, which runs one operation at a time. Use a client from one thread at a time;
 *   different clients are independent. Only torus_client_cancel() may be called at any time, from any thread and
 *   from signal handlers.
 * - The library installs no signal handlers and raises no SIGPIPE.
 *
 * Compatibility: programs built with this header keep working with every later libtorus.so.1.
 * - Structs that the caller fills (torus_request, torus_copy, torus_costs) begin with struct_size, which
 *   torus_request_init(), torus_copy_init() or torus_costs_init() sets. New fields are added at the end only. Fields that are newer
 *   than the program count as zero, and zero always means the behaviour from before the field was added. A library
 *   that is older than the program rejects fields that it does not know (TORUS_ERROR_USAGE), unless they are zero.
 * - Structs that the library allocates or passes to callbacks also get new fields at the end only. Do not allocate,
 *   copy or compare such structs as a whole. For this reason lists of structs are arrays of pointers.
 * - struct torus_error never changes. Enums may get more values, so handle unknown values. */
#ifndef TORUS_TORUS_H
#define TORUS_TORUS_H

#include <torus/client.h>
#include <torus/copy.h>
#include <torus/error.h>
#include <torus/exchange.h>
#include <torus/prediction.h>
#include <torus/status.h>
#include <torus/survey.h>

#endif
