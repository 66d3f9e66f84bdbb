/* The torus of a picture of a schedule, which all steps share. */
#pragma once

#include "client/cli/drawing/svg_page.h"

/* Writes the style sheet of the page. */
void svg_torus_style(const struct svg_page *p);

/* Defines the torus as "torus", with its planes, links and nodes. */
void svg_torus_define(const struct svg_page *p);
