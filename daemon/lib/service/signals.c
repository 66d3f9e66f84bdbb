#include "daemon/lib/service/signals.h"

#include <pthread.h>
#include <signal.h>
#include <stddef.h>

static const int all[] = {SIGHUP, SIGTERM, SIGINT};
#define SIGNALS (sizeof all / sizeof all[0])

/* Holds or releases the first `count` of them. */
static void set_mask(int how, size_t count)
{
    sigset_t set;

    (void)sigemptyset(&set);
    for (size_t i = 0; i < count; i++)
        (void)sigaddset(&set, all[i]);
    (void)pthread_sigmask(how, &set, NULL);
}

void signals_hold_reload(void)
{
    set_mask(SIG_BLOCK, 1);
}

void signals_hold(void)
{
    set_mask(SIG_BLOCK, SIGNALS);
}

static void on_signal(uv_signal_t *handle, int number)
{
    struct signals *s = handle->data;

    if (number == SIGHUP)
        s->reload(s->context);
    else
        s->stop(s->context, number == SIGINT ? "SIGINT" : "SIGTERM");
}

void signals_open(struct signals *s, uv_loop_t *loop)
{
    for (size_t i = 0; i < SIGNALS; i++) {
        (void)uv_signal_init(loop, &s->handles[i]);
        s->handles[i].data = s;
        (void)uv_signal_start(&s->handles[i], on_signal, all[i]);
    }
    set_mask(SIG_UNBLOCK, SIGNALS);
}

void signals_close(struct signals *s)
{
    signals_hold();
    for (size_t i = 0; i < SIGNALS; i++)
        uv_close((uv_handle_t *)&s->handles[i], NULL);
}
