/* Lines and heads of the arrows of a picture. */
#pragma once

#include <stdio.h>

#include "client/cli/drawing/point.h"

/* Begins a path of this width; the caller writes its data and closes it. */
void svg_stroke_begin(FILE *out, double width);

/* The length of the head of an arrow. */
double svg_stroke_head_length(double width);

/* Draws a head with its tip at a point, in the direction of a unit vector. */
void svg_stroke_head(FILE *out, struct point tip, struct point ahead, double width);
