#include "daemon/torusd-setup/command.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/lib/base/log.h"

#define OUTPUT_MS 2000 /* how long the output may stay open after the command has ended */

/* What a run prints, on one descriptor. */
struct printed {
    uv_pipe_t pipe;
    bool ended;
    uint8_t *bytes; /* of the run */
    size_t size, most;
    uint8_t rest[4096]; /* takes what is too long */
};

/* One run. It is freed when all handles are closed. */
struct command_run {
    uv_process_t process;
    uv_pipe_t in;
    struct printed output, errors;
    uv_timer_t deadline;
    uv_write_t write;
    struct command *command; /* NULL: abandoned */
    uint8_t *bytes;
    unsigned handles; /* that are not closed yet */
    bool exited;
    bool late; /* it was killed */
    int64_t status;
    int signal;
    uint8_t output_bytes[DISCOVERY_OUTPUT_MOST];
    uint8_t error_bytes[DISCOVERY_ERRORS_MOST];
};

int command_parse(struct command *c, const char *text, struct error *e)
{
    char *at, *saved;

    if (strlen(text) >= sizeof c->text)
        return error_set(e, ERROR_USAGE, "the command for setups is too long");
    (void)strcpy(c->text, text);
    c->words = 0;
    for (at = strtok_r(c->text, " ", &saved); at != NULL; at = strtok_r(NULL, " ", &saved)) {
        if (c->words == COMMAND_WORDS_MOST)
            return error_set(e, ERROR_USAGE, "the command for setups has more than %u words",
                             COMMAND_WORDS_MOST);
        c->word[c->words++] = at;
    }
    if (c->words == 0 || c->word[0][0] != '/' || access(c->word[0], X_OK) != 0)
        return error_set(
            e, ERROR_USAGE,
            "\"%.80s\" is not a command for setups: give the absolute path of a program, "
            "such as \"/usr/bin/torusctl init --receive\"",
            text);
    return 0;
}

static void on_closed(uv_handle_t *handle)
{
    struct command_run *r = handle->data;

    if (--r->handles > 0)
        return;
    free(r->bytes);
    free(r);
}

static void close_handle(uv_handle_t *handle)
{
    if (!uv_is_closing(handle))
        uv_close(handle, on_closed);
}

static void close_all(struct command_run *r)
{
    close_handle((uv_handle_t *)&r->in);
    close_handle((uv_handle_t *)&r->output.pipe);
    close_handle((uv_handle_t *)&r->errors.pipe);
    close_handle((uv_handle_t *)&r->deadline);
    if (r->process.type == UV_PROCESS) /* uv_spawn() has been called */
        close_handle((uv_handle_t *)&r->process);
    else
        r->handles--;
}

static bool has_ended(const struct command_run *r)
{
    return r->output.ended && r->errors.ended;
}

/* Answers when the process has ended and its output is complete. */
static void finish(struct command_run *r)
{
    struct setup_answer answer = {.status = (uint32_t)r->status,
                                  .output = r->output_bytes,
                                  .size = r->output.size,
                                  .errors = r->error_bytes,
                                  .errors_size = r->errors.size};
    struct command *c = r->command;

    if (!r->exited || !has_ended(r))
        return;
    if (r->late)
        (void)error_set(&answer.e, ERROR_TIMEOUT,
                        "the command ran for more than %u s, and was ended", COMMAND_SECONDS);
    else if (r->signal != 0)
        (void)error_set(&answer.e, ERROR_IO, "the command was ended by signal %d", r->signal);
    r->command = NULL;
    if (c != NULL) {
        c->run = NULL;
        c->ended(c->context, &answer);
    }
    close_all(r);
}

/* A process that the command left behind keeps the output open. */
static void on_output_late(uv_timer_t *timer)
{
    struct command_run *r = timer->data;

    r->output.ended = r->errors.ended = true;
    finish(r);
}

static void on_exited(uv_process_t *process, int64_t status, int number)
{
    struct command_run *r = process->data;

    r->exited = true;
    r->status = status;
    r->signal = number;
    if (!has_ended(r))
        (void)uv_timer_start(&r->deadline, on_output_late, OUTPUT_MS, 0);
    finish(r);
}

static struct printed *printed_of(const struct command_run *r, const void *pipe)
{
    const struct printed *p = pipe == (const void *)&r->output.pipe ? &r->output : &r->errors;

    return (struct printed *)(uintptr_t)p;
}

static void on_room(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer)
{
    struct printed *p = printed_of(handle->data, handle);

    (void)suggested;
    if (p->size < p->most)
        *buffer = uv_buf_init((char *)p->bytes + p->size, (unsigned)(p->most - p->size));
    else
        *buffer = uv_buf_init((char *)p->rest, sizeof p->rest);
}

static void on_read(uv_stream_t *stream, ssize_t length, const uv_buf_t *buffer)
{
    struct printed *p = printed_of(stream->data, stream);

    if (length > 0 && buffer->base != (char *)p->rest)
        p->size += (size_t)length;
    if (length >= 0)
        return;
    p->ended = true;
    (void)uv_read_stop(stream);
    finish(stream->data);
}

static void on_written(uv_write_t *request, int status)
{
    struct command_run *r = request->data;

    (void)status; /* a command that does not read its input says why by its status */
    close_handle((uv_handle_t *)&r->in);
}

/* The command has started a session, so that its children are ended with it. */
static void on_deadline(uv_timer_t *timer)
{
    struct command_run *r = timer->data;

    r->late = true;
    (void)kill(-r->process.pid, SIGKILL);
    r->output.ended = r->errors.ended =
        true; /* a process that has left the session keeps them open */
    finish(r);
}

static struct command_run *make_run(struct command *c, const uint8_t *bytes, size_t size)
{
    struct command_run *r = calloc(1, sizeof *r);

    if (r != NULL)
        r->bytes = malloc(size + 1);
    if (r == NULL || r->bytes == NULL) {
        free(r);
        return NULL;
    }
    if (size > 0)
        memcpy(r->bytes, bytes, size);
    r->command = c;
    r->output.bytes = r->output_bytes;
    r->output.most = sizeof r->output_bytes;
    r->errors.bytes = r->error_bytes;
    r->errors.most = sizeof r->error_bytes;
    (void)uv_pipe_init(c->loop, &r->in, 0);
    (void)uv_pipe_init(c->loop, &r->output.pipe, 0);
    (void)uv_pipe_init(c->loop, &r->errors.pipe, 0);
    (void)uv_timer_init(c->loop, &r->deadline);
    r->in.data = r->deadline.data = r->process.data = r->write.data = r;
    r->output.pipe.data = r->errors.pipe.data = r;
    r->handles = 5;
    return r;
}

static int spawn(struct command *c, struct command_run *r, bool apply)
{
    char mode[8];
    uv_stdio_container_t stdio[3] = {
        {.flags = UV_CREATE_PIPE | UV_READABLE_PIPE, .data.stream = (uv_stream_t *)&r->in},
        {.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE, .data.stream = (uv_stream_t *)&r->output.pipe},
        {.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE, .data.stream = (uv_stream_t *)&r->errors.pipe},
    };
    uv_process_options_t options = {.exit_cb = on_exited,
                                    .file = c->word[0],
                                    .args = c->word,
                                    .stdio_count = 3,
                                    .stdio = stdio,
                                    .flags = UV_PROCESS_DETACHED};

    (void)strcpy(mode, apply ? "apply" : "show");
    c->word[c->words] = mode;
    c->word[c->words + 1] = NULL;
    return uv_spawn(c->loop, &r->process, &options);
}

int command_start(struct command *c, bool apply, const uint8_t *bytes, size_t size, struct error *e)
{
    struct command_run *r = make_run(c, bytes, size);
    const uv_buf_t buffer = uv_buf_init(r != NULL ? (char *)r->bytes : NULL, (unsigned)size);
    int result;

    if (r == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for the command");
    result = spawn(c, r, apply);
    if (result != 0) {
        close_all(r);
        return error_set(e, ERROR_IO, "%s cannot be started: %s", c->word[0], uv_strerror(result));
    }
    log_info("a setup has arrived: %s %s runs (process %d)", c->word[0], apply ? "apply" : "show",
             (int)r->process.pid);
    (void)uv_read_start((uv_stream_t *)&r->output.pipe, on_room, on_read);
    (void)uv_read_start((uv_stream_t *)&r->errors.pipe, on_room, on_read);
    if (uv_write(&r->write, (uv_stream_t *)&r->in, &buffer, 1, on_written) != 0)
        close_handle((uv_handle_t *)&r->in);
    (void)uv_timer_start(&r->deadline, on_deadline, COMMAND_SECONDS * 1000u, 0);
    c->run = r;
    return 0;
}

void command_abandon(struct command *c)
{
    struct command_run *r = c->run;

    if (r == NULL)
        return;
    c->run = NULL;
    r->command = NULL;
    close_all(r);
}
