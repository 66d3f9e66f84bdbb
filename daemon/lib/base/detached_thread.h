/* A thread for a call that may block for long, or for ever: nothing waits for its end, not even the end of the
 * program. */
#pragma once

/* Starts a thread with a small stack that runs run(argument). It gets no signals, because the thread of the loop takes
 * them. Returns 0, or an error number: then run() is not called. */
int detached_thread_start(void *(*run)(void *argument), void *argument);
