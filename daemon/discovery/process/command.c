#include "daemon/discovery/process/command.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/log.h"

#define OUTPUT_MS 2000 /* how long the output may stay open after the command has ended */

/* One run. It is freed when all handles are closed. */
struct command_run {
    uv_process_t process;
    uv_pipe_t in, out;
    uv_timer_t deadline;
    uv_write_t write;
    struct command *command; /* NULL: abandoned */
    uint8_t *bytes;
    unsigned handles;   /* that are not closed yet */
    bool exited, ended; /* the process; the output */
    bool late;          /* it was killed */
    int64_t status;
    int signal;
    size_t size;
    uint8_t output[DISCOVERY_OUTPUT_MOST];
    uint8_t rest[4096]; /* for output that is too long */
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
        return error_set(e, ERROR_USAGE,
                         "\"%.80s\" is no command for setups: give the absolute path of a program, "
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

/* Answers when the process has ended and its output is complete. */
static void finish(struct command_run *r)
{
    struct setup_answer answer = {
        .status = (uint32_t)r->status, .output = r->output, .size = r->size};
    struct command *c = r->command;

    if (!r->exited || !r->ended)
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
    close_handle((uv_handle_t *)&r->in);
    close_handle((uv_handle_t *)&r->out);
    close_handle((uv_handle_t *)&r->deadline);
    close_handle((uv_handle_t *)&r->process);
}

/* A process that the command has left behind keeps the output open. */
static void on_output_late(uv_timer_t *timer)
{
    struct command_run *r = timer->data;

    r->ended = true;
    finish(r);
}

static void on_exited(uv_process_t *process, int64_t status, int number)
{
    struct command_run *r = process->data;

    r->exited = true;
    r->status = status;
    r->signal = number;
    if (!r->ended)
        (void)uv_timer_start(&r->deadline, on_output_late, OUTPUT_MS, 0);
    finish(r);
}

static void on_room(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer)
{
    struct command_run *r = handle->data;

    (void)suggested;
    if (r->size < sizeof r->output)
        *buffer = uv_buf_init((char *)r->output + r->size, (unsigned)(sizeof r->output - r->size));
    else
        *buffer = uv_buf_init((char *)r->rest, sizeof r->rest);
}

static void on_read(uv_stream_t *stream, ssize_t length, const uv_buf_t *buffer)
{
    struct command_run *r = stream->data;

    if (length > 0 && buffer->base != (char *)r->rest)
        r->size += (size_t)length;
    if (length >= 0)
        return;
    r->ended = true;
    (void)uv_read_stop(stream);
    finish(r);
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
    r->ended = true; /* a process that has left the session may keep the output open */
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
    (void)uv_pipe_init(c->loop, &r->in, 0);
    (void)uv_pipe_init(c->loop, &r->out, 0);
    (void)uv_timer_init(c->loop, &r->deadline);
    r->in.data = r->out.data = r->deadline.data = r->process.data = r->write.data = r;
    r->handles = 4;
    return r;
}

/* Starts the process; both its output and its errors go into the descriptor. */
static int spawn(struct command *c, struct command_run *r, bool apply, int output)
{
    char mode[8];
    uv_stdio_container_t stdio[3] = {
        {.flags = UV_CREATE_PIPE | UV_READABLE_PIPE, .data.stream = (uv_stream_t *)&r->in},
        {.flags = UV_INHERIT_FD, .data.fd = output},
        {.flags = UV_INHERIT_FD, .data.fd = output},
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

/* Starts the process with a pipe for its output. Returns 0, or an error of libuv. */
static int start_with_output(struct command *c, struct command_run *r, bool apply)
{
    int ends[2], result;

    if (pipe2(ends, O_CLOEXEC) != 0)
        return -errno;
    result = uv_pipe_open(&r->out, ends[0]);
    if (result != 0)
        (void)close(ends[0]);
    else
        result = spawn(c, r, apply, ends[1]);
    (void)close(ends[1]);
    return result;
}

int command_start(struct command *c, bool apply, const uint8_t *bytes, size_t size, struct error *e)
{
    struct command_run *r = make_run(c, bytes, size);
    const uv_buf_t buffer = uv_buf_init(r != NULL ? (char *)r->bytes : NULL, (unsigned)size);
    int result;

    if (r == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for the command");
    result = start_with_output(c, r, apply);
    if (result != 0) {
        close_handle((uv_handle_t *)&r->in);
        close_handle((uv_handle_t *)&r->out);
        close_handle((uv_handle_t *)&r->deadline);
        if (r->process.type == UV_PROCESS) /* uv_spawn() has been called */
            close_handle((uv_handle_t *)&r->process);
        else
            r->handles--;
        return error_set(e, ERROR_IO, "%s cannot be started: %s", c->word[0], uv_strerror(result));
    }
    log_info("a setup has arrived: %s %s runs (process %d)", c->word[0], apply ? "apply" : "show",
             (int)r->process.pid);
    (void)uv_read_start((uv_stream_t *)&r->out, on_room, on_read);
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
    close_handle((uv_handle_t *)&r->in);
    close_handle((uv_handle_t *)&r->out);
    close_handle((uv_handle_t *)&r->deadline);
    close_handle((uv_handle_t *)&r->process);
}
