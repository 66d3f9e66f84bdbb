#include "client/cli/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <torus/torus.h>
#include <unistd.h>

#include "client/cli/format.h"
#include "client/cli/interrupt.h"
#include "client/cli/long_work.h"

#define FIRST_MS 1000 /* what ends sooner needs no bar */
#define REDRAW_MS 100
#define BAR 30 /* widest, */
#define SIDE 160
#define SHORTEST_BAR 8 /* and narrowest that says anything */

int64_t progress_clock(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void progress_begin(struct progress *p, bool wanted)
{
    const char *term = getenv("TERM");

    long_work_end(); /* one line at a time */
    bool capable = term != NULL && strcmp(term, "dumb") != 0;

    *p = (struct progress){
        .shown = wanted && capable && isatty(STDERR_FILENO),
        .began_ms = progress_clock(),
    };
}

static size_t terminal_columns(void)
{
    struct winsize size;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    return 80;
}

static void draw_bar(char *out, size_t width, double part)
{
    size_t full = (size_t)(part * (double)width);

    out[0] = '[';
    for (size_t i = 0; i < width; i++)
        out[1 + i] = i < full ? '=' : i == full ? '>' : ' ';
    out[1 + width] = ']';
    out[2 + width] = '\0';
}

/* How much of it has been delivered, 0..1. */
static double part_of(const struct torus_progress *progress)
{
    if (progress->done_bytes >= progress->total_bytes)
        return progress->total_bytes > 0 ? 1 : 0;
    return (double)progress->done_bytes / (double)progress->total_bytes;
}

static const char *state_text(enum torus_state state)
{
    if (state == TORUS_STATE_UNKNOWN)
        return "asking the daemon";
    if (state == TORUS_STATE_ENTERED)
        return "waiting for the other nodes";
    if (state == TORUS_STATE_WAITING)
        return "waiting for its turn";
    return torus_state_name(state);
}

/* The texts left and right of the bar, the longer the higher `detail` is: 0, 1, 2. */
static void texts(char left[SIDE], char right[SIDE], unsigned detail,
                  const struct torus_progress *progress, int64_t elapsed_ms)
{
    char time[32], done[FORMAT_SIZE], total[FORMAT_SIZE];
    const char *state = state_text(progress->state);
    int percent = (int)(part_of(progress) * 100);

    (void)snprintf(time, sizeof time, "%" PRId64 ":%02d", elapsed_ms / 60000,
                   (int)(elapsed_ms / 1000 % 60));
    format_bytes(done, (double)progress->done_bytes);
    format_bytes(total, (double)progress->total_bytes);
    left[0] = '\0';
    if (detail > 0 && progress->repeat > 1)
        (void)snprintf(left, SIDE, "%s, repetition %" PRIu32 " of %" PRIu32 " ", state,
                       progress->repetition + 1, progress->repeat);
    else if (detail > 0 && progress->rounds > 1)
        (void)snprintf(left, SIDE, "%s, round %" PRIu64 " of %" PRIu64 " ", state, progress->round,
                       progress->rounds);
    else if (detail > 0)
        (void)snprintf(left, SIDE, "%s ", state);
    if (progress->total_bytes == 0)
        (void)snprintf(right, SIDE, " %s", time);
    else if (detail > 1)
        (void)snprintf(right, SIDE, " %3d %%  %.20s of %.20s  %s", percent, done, total, time);
    else
        (void)snprintf(right, SIDE, " %3d %%  %s", percent, time);
}

size_t progress_line(char *out, size_t size, size_t columns, const struct torus_progress *progress,
                     int64_t elapsed_ms)
{
    char left[SIDE], right[SIDE], bar[BAR + 3] = "";
    size_t room =
        columns > 0 ? columns - 1 : 0; /* in the last one, some terminals break the line */
    unsigned detail = 2;
    size_t used, width;
    int n;

    do {
        texts(left, right, detail, progress, elapsed_ms);
        used = strlen(left) + strlen(right);
    } while (used > room && detail-- > 0);
    if (progress->total_bytes > 0 && room >= used + SHORTEST_BAR + 2) {
        width = room - used - 2;
        draw_bar(bar, width < BAR ? width : BAR, part_of(progress));
    }
    n = snprintf(out, size, "%s%s%s", left, bar, right);
    width = n < 0 ? 0 : (size_t)n < size ? (size_t)n : size - 1;
    if (width > room)
        width = room;
    out[width] = '\0';
    return width;
}

/* Removes the line from the screen and writes `text`, all in one piece so that nothing flickers. If
 * the terminal has become narrower meanwhile, the line has been broken into several. */
static void replace(const struct progress *p, size_t columns, const char *text)
{
    size_t lines = p->drawn_width > 0 ? (p->drawn_width - 1) / columns : 0;
    char up[32] = "";

    if (lines > 0)
        (void)snprintf(up, sizeof up, "\033[%zuA", lines);
    (void)fprintf(stderr, "\r%s\033[J%s", up, text);
}

int progress_update(void *data, const struct torus_progress *progress)
{
    struct progress *p = data;
    int64_t now = progress_clock();
    size_t columns, width;
    char text[256];

    if (!p->shown || now - p->began_ms < FIRST_MS || now - p->drawn_ms < REDRAW_MS)
        return interrupt_seen();
    columns = terminal_columns();
    width = 0;
    if (p->title != NULL && strlen(p->title) + 2 < columns && columns < sizeof text)
        width = (size_t)snprintf(text, sizeof text, "%s  ", p->title);
    width += progress_line(text + width, sizeof text - width, columns - width, progress,
                           now - p->began_ms);
    if (p->drawn_ms != 0)
        replace(p, columns, text);
    else
        (void)fputs(text, stderr);
    p->drawn_width = width;
    p->drawn_ms = now;
    return interrupt_seen();
}

void progress_end(struct progress *p)
{
    if (p->drawn_ms != 0)
        replace(p, terminal_columns(), "");
    p->shown = false;
    p->drawn_ms = 0;
}
