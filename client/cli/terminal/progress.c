#include "client/cli/terminal/progress.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <torus/torus.h>
#include <unistd.h>

#include "client/cli/terminal/clock.h"
#include "client/cli/terminal/interrupt.h"
#include "client/cli/terminal/writer.h"
#include "daemon/lib/schedule/work.h"
#include "proto/notices.h"
#include "proto/text.h"

#define REDRAW_MS 100
#define PACE_SECONDS 1 /* a pace is shown after it has been measured for this time */
#define BAR 30         /* width of the widest bar */
#define SIDE 160       /* size of the texts beside the bar */
#define BYTES 80       /* size of the text with bytes */
#define SHORTEST_BAR 8 /* width of the narrowest bar */

/* Returns whether a line on stderr can be drawn again in place. */
static bool is_capable(void)
{
    const char *term = getenv("TERM");

    return isatty(STDERR_FILENO) && term != NULL && strcmp(term, "dumb") != 0;
}

void progress_begin(struct progress *p)
{
    long_work_end(); /* there is one line at a time */
    *p = (struct progress){
        .shown = notices_wanted(),
        .lines = !is_capable(),
        .began_ms = clock_ms(),
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

/* Returns the part that has been delivered, 0 to 1. If the total bytes are not known (files), it is counted in
 * rounds. Below 0: not known. */
static double part_of(const struct torus_progress *progress)
{
    uint64_t done = progress->total_bytes > 0 ? progress->done_bytes : progress->round;
    uint64_t all = progress->total_bytes > 0 ? progress->total_bytes : progress->rounds;

    if (progress->total_bytes == 0 && progress->rounds < 2)
        return -1;
    return done >= all ? 1 : (double)done / (double)all;
}

struct progress_pace progress_pace(struct progress *p, const struct torus_progress *progress,
                                   int64_t now)
{
    struct progress_pace pace = {.elapsed_ms = now - p->began_ms, .left_ms = -1, .doing = p->doing};
    double part = part_of(progress), seconds;

    if (progress->done_bytes == 0 && part <= 0)
        return pace;
    if (p->from_ms == 0 || progress->done_bytes < p->from_bytes || part < p->from_part) {
        p->from_ms = now; /* the first data, or a new attempt or repetition */
        p->from_bytes = progress->done_bytes;
        p->from_part = part;
    }
    seconds = (double)(now - p->from_ms) / 1000;
    if (seconds < PACE_SECONDS)
        return pace;
    pace.bytes_per_second = (double)(progress->done_bytes - p->from_bytes) / seconds;
    if (part > p->from_part && part >= 0)
        pace.left_ms = (int64_t)((1 - part) / (part - p->from_part) * seconds * 1000);
    return pace;
}

static void state_text(char out[SIDE], const struct torus_progress *progress,
                       const struct progress_pace *pace)
{
    if (progress->waits_for != NULL && progress->waits_for[0] != '\0')
        (void)snprintf(out, SIDE, "waiting for %.100s", progress->waits_for);
    else if (pace->doing != NULL)
        (void)snprintf(out, SIDE, "%s", pace->doing);
    else if (progress->missing_count > 0 && progress->missing != NULL)
        (void)snprintf(out, SIDE, "waiting for %s %.100s",
                       text_plural(progress->missing_count, "node", "nodes"), progress->missing);
    else if (progress->state == TORUS_STATE_UNKNOWN)
        (void)snprintf(out, SIDE, "asking the daemon");
    else if (progress->state == TORUS_STATE_ENTERED)
        (void)snprintf(out, SIDE, "waiting for the other nodes");
    else if (progress->state == TORUS_STATE_WAITING)
        (void)snprintf(out, SIDE, "in the start queue");
    else
        (void)snprintf(out, SIDE, "%s", torus_state_name(progress->state));
}

/* Writes "1:05" or "2:03:04". */
static void clock_text(char out[32], int64_t ms)
{
    int64_t minutes = ms / 60000;
    int seconds = (int)(ms / 1000 % 60);

    if (minutes >= 60)
        (void)snprintf(out, 32, "%" PRId64 ":%02d:%02d", minutes / 60, (int)(minutes % 60),
                       seconds);
    else
        (void)snprintf(out, 32, "%" PRId64 ":%02d", minutes, seconds);
}

static void left_text(char left[SIDE], unsigned detail, const struct torus_progress *progress,
                      const struct progress_pace *pace)
{
    char state[SIDE];

    state_text(state, progress, pace);
    if (detail < 3)
        (void)snprintf(left, SIDE, "%.150s ", state);
    else if (progress->repeat > 1)
        (void)snprintf(left, SIDE, "%.100s, %" PRIu32 " of %" PRIu32 " repetitions ", state,
                       progress->repetition, progress->repeat);
    else if (progress->rounds > 1)
        (void)snprintf(left, SIDE, "%.100s, %" PRIu64 " of %" PRIu64 " rounds ", state,
                       progress->round, progress->rounds);
    else
        (void)snprintf(left, SIDE, "%.150s ", state);
}

static void bytes_text(char out[BYTES], unsigned detail, const struct torus_progress *progress,
                       const struct progress_pace *pace)
{
    char done[FORMAT_SIZE], total[FORMAT_SIZE], rate[FORMAT_SIZE];

    format_bytes(done, (double)progress->done_bytes);
    format_bytes(total, (double)progress->total_bytes);
    format_bytes(rate, pace->bytes_per_second);
    out[0] = '\0';
    if (detail > 1 && progress->total_bytes > 0)
        (void)snprintf(out, BYTES, "  %.20s of %.20s", done, total);
    else if (detail > 1 && progress->done_bytes > 0)
        (void)snprintf(out, BYTES, "  %.20s", done);
    if (pace->bytes_per_second > 0)
        (void)snprintf(out + strlen(out), BYTES - strlen(out), "  %.20s/s", rate);
}

/* Writes the texts left and right of the bar. `detail`: 0 (shortest) to 3 (longest). */
static void texts(char left[SIDE], char right[SIDE], unsigned detail,
                  const struct torus_progress *progress, const struct progress_pace *pace)
{
    char time[32], rest[32], bytes[BYTES] = "", percent[16] = "";
    double part = part_of(progress);

    clock_text(time, pace->elapsed_ms);
    left[0] = '\0';
    if (detail > 0)
        left_text(left, detail, progress, pace);
    if (detail > 0)
        bytes_text(bytes, detail, progress, pace);
    if (part >= 0)
        (void)snprintf(percent, sizeof percent, " %3d %%", (int)(part * 100));
    (void)snprintf(right, SIDE, "%s%s%s%s", percent,
                   percent[0] == '\0' && bytes[0] != '\0' ? bytes + 1 : bytes,
                   percent[0] != '\0' || bytes[0] != '\0' ? "  " : " ", time);
    if (detail > 0 && pace->left_ms >= 0) {
        clock_text(rest, pace->left_ms);
        (void)snprintf(right + strlen(right), SIDE - strlen(right), ", %s left", rest);
    }
}

size_t progress_line(char *out, size_t size, size_t columns, const struct torus_progress *progress,
                     const struct progress_pace *pace)
{
    char left[SIDE], right[SIDE], bar[BAR + 3] = "";
    size_t room =
        columns > 0 ? columns - 1 : 0; /* some terminals break the line after the last column */
    unsigned detail = 3;
    size_t used, width;
    int n;

    do {
        texts(left, right, detail, progress, pace);
        used = strlen(left) + strlen(right);
    } while (used > room && detail-- > 0);
    if (part_of(progress) >= 0 && room >= used + SHORTEST_BAR + 2) {
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

/* Removes the line from the screen and writes `text`, in one write so that nothing flickers. If the terminal has
 * become narrower, the old line takes several lines. */
static void replace(const struct progress *p, size_t columns, const char *text)
{
    size_t lines = p->drawn_width > 0 ? (p->drawn_width - 1) / columns : 0;
    char up[32] = "";

    if (lines > 0)
        (void)snprintf(up, sizeof up, "\033[%zuA", lines);
    (void)fprintf(stderr, "\r%s\033[J%s", up, text);
}

/* Prints a new line without a bar. */
static void print_line(struct progress *p, const struct torus_progress *progress,
                       const struct progress_pace *pace)
{
    char left[SIDE], right[SIDE];

    texts(left, right, 3, progress, pace);
    (void)fprintf(stderr, "torusctl: %s%s%s%s\n", p->title != NULL ? p->title : "",
                  p->title != NULL ? "  " : "", left, right + strspn(right, " "));
}

static void draw(struct progress *p, const struct torus_progress *progress,
                 const struct progress_pace *pace)
{
    size_t columns = terminal_columns(), width = 0;
    char text[256];

    if (p->title != NULL && strlen(p->title) + 2 < columns && columns < sizeof text)
        width = (size_t)snprintf(text, sizeof text, "%s  ", p->title);
    width += progress_line(text + width, sizeof text - width, columns - width, progress, pace);
    if (p->drawn_ms != 0)
        replace(p, columns, text);
    else
        (void)fputs(text, stderr);
    p->drawn_width = width;
}

/* Returns the milliseconds until the progress is shown again. */
static int64_t pause_after(const struct progress *p, const struct torus_progress *progress)
{
    if (!p->lines)
        return REDRAW_MS;
    return progress->missing_count != p->printed_missing ? NOTICE_FIRST_MS : NOTICE_AGAIN_MS;
}

int progress_update(void *data, const struct torus_progress *progress)
{
    struct progress *p = data;
    int64_t now = clock_ms();
    struct progress_pace pace = progress_pace(p, progress, now);

    if (!p->shown || pace.elapsed_ms < NOTICE_FIRST_MS ||
        now - p->drawn_ms < pause_after(p, progress))
        return interrupt_seen();
    if (p->lines)
        print_line(p, progress, &pace);
    else
        draw(p, progress, &pace);
    p->drawn_ms = now;
    p->printed_missing = progress->missing_count;
    return interrupt_seen();
}

void progress_end(struct progress *p)
{
    if (p->drawn_ms != 0 && !p->lines)
        replace(p, terminal_columns(), "");
    p->shown = false;
    p->drawn_ms = 0;
}

/* --- long computations --- */

#define WORK_REDRAW_MS 200 /* on a terminal, where the line is drawn again in place */

static struct {
    char name[120];
    int64_t began_ms, printed_ms;
    double done; /* last reported part, 0 to 1; below 0: not known */
    bool terminal, printed;
} work;

static void print_notice(int64_t now)
{
    char part[32] = "";

    if (work.done >= 0)
        (void)snprintf(part, sizeof part, "%d %%, ", (int)(work.done * 100));
    (void)fprintf(stderr, "%storusctl: still working on %s: %s%" PRId64 " s so far%s",
                  work.terminal ? "\r" : "", work.name, part, (now - work.began_ms) / 1000,
                  work.terminal ? "\033[K" : "\n");
    work.printed = true;
    work.printed_ms = now;
}

static void on_watch(void *context, double done)
{
    int64_t now = clock_ms();
    int64_t pause = work.terminal ? WORK_REDRAW_MS : NOTICE_AGAIN_MS;

    (void)context;
    if (done >= 0)
        work.done = done < 1 ? done : 1;
    if (now - work.began_ms >= NOTICE_FIRST_MS && (!work.printed || now - work.printed_ms >= pause))
        print_notice(now);
}

void long_work_next(const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    (void)vsnprintf(work.name, sizeof work.name, format, ap);
    va_end(ap);
    work.done = -1;
}

void long_work_begin(const char *format, ...)
{
    va_list ap;

    work.printed = false;
    work.terminal = isatty(STDERR_FILENO) == 1;
    work.began_ms = clock_ms();
    work.done = -1;
    va_start(ap, format);
    (void)vsnprintf(work.name, sizeof work.name, format, ap);
    va_end(ap);
    watch_set(on_watch, NULL);
}

void long_work_end(void)
{
    watch_set(NULL, NULL);
    if (work.printed && work.terminal)
        (void)fputs("\r\033[K", stderr);
    work.printed = false;
}
