/* Draws what `torusctl top` shows into character cells. Without I/O. */
#pragma once

#include "client/cli/top/layout.h"
#include "client/cli/top/model.h"
#include "client/cli/top/screen.h"
#include "client/cli/top/view.h"

/* Draws everything on an empty screen. Scrolls *v so that what is chosen can be seen. */
void top_draw(struct top_screen *s, const struct top_model *m, struct top_view *v);

/* Makes a screen for all of the torus, all that runs and all faults, and draws them, with the age of *v. Nothing is cut.
 * If `wrapped`, texts that are longer than `columns` go on in the next line, and a torus that is wider is drawn in parts
 * below each other; otherwise each text is a line. Returns 0 with *s that the caller passes to top_screen_free(), or -1
 * if memory is short. */
int top_draw_all(struct top_screen *s, const struct top_model *m, const struct top_view *v,
                 unsigned columns, bool wrapped, bool unicode);

/* ---- Parts ----------------------------------------------------------------------------------- */

/* Draws the nodes and links. */
void top_draw_torus(struct top_window *w, const struct top_layout *l, const struct top_model *m,
                    const struct top_view *v);

/* Draws what explains the links; what has no room in a line goes on in the next one. Returns the number of lines. */
unsigned top_draw_legend(struct top_window *w, unsigned row);

/* The least columns and rows that a panel needs. */
#define TOP_PANEL_COLUMNS 46u
#define TOP_PANEL_ROWS 8u

/* Draws the rates of the last surveys, and the links that matter most, into the whole window. */
void top_draw_panel(const struct top_window *w, const struct top_model *m,
                    const struct top_view *v);

/* Draws the details of what is chosen, or the keys. Returns the number of lines. */
unsigned top_draw_details(struct top_window *w, const struct top_model *m,
                          const struct top_view *v);
unsigned top_draw_help(struct top_window *w);

/* ---- Texts ----------------------------------------------------------------------------------- */

#define TOP_TEXT_SIZE 512u

/* Writes bytes a second as "940 Mbit/s"; "-" if not known. Returns `out`. */
const char *top_text_rate(char out[TOP_TEXT_SIZE], double bytes_per_second);

/* Writes bytes, and seconds or microseconds. Return `out`. */
const char *top_text_bytes(char out[TOP_TEXT_SIZE], uint64_t bytes);
const char *top_text_seconds(char out[TOP_TEXT_SIZE], double seconds);

/* Writes a load as "87 %"; "-" if not known. Returns `out`. */
const char *top_text_load(char out[TOP_TEXT_SIZE], double load);

/* Writes one line about a run: its progress, rate and remaining time; with a bar if there is room for it. Returns
 * `out`. */
const char *top_text_run(char out[TOP_TEXT_SIZE], const struct run *r, unsigned columns);

/* Writes "node 7 (1, 3) alpha". Returns `out`. */
const char *top_text_node(char out[TOP_TEXT_SIZE], const struct top_model *m, uint32_t rank);

/* Writes "7:+0 alpha", an end of a link. Returns `out`. */
const char *top_text_end(char out[TOP_TEXT_SIZE], const struct top_model *m, uint32_t rank,
                         unsigned port);
