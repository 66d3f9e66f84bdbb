#include "client/cli/drawing/svg_stroke.h"

void svg_stroke_begin(FILE *out, double width)
{
    (void)fprintf(out, "<path class=\"l\" stroke-width=\"%.1f\" d=\"", width);
}

double svg_stroke_head_length(double width)
{
    return 4.5 + 0.6 * width;
}

void svg_stroke_head(FILE *out, struct point tip, struct point ahead, double width)
{
    double length = svg_stroke_head_length(width), half = 2.2 + 0.5 * width;
    struct point base = point_plus(tip, ahead, -length), left = point_left(ahead);
    struct point a = point_plus(base, left, half), b = point_plus(base, left, -half);

    (void)fprintf(out, "<path class=\"h\" d=\"M%.1f %.1fL%.1f %.1fL%.1f %.1fz\"/>", tip.x, tip.y,
                  a.x, a.y, b.x, b.y);
}
