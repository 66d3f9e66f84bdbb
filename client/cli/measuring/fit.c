#include "client/cli/measuring/fit.h"

#include <math.h>
#include <stdlib.h>

#include "client/cli/terminal/quantile.h"
#include "proto/text.h"

#define SAME                                                                                       \
    1e-9 /* startups and bytes count as proportional if 1 - their squared correlation is below */

/* Returns Student's t for 95 %: this part of the distribution lies between -t and t. */
static double student(size_t degrees)
{
    static const double t[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306,
                               2.262,  2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
                               2.110,  2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064,
                               2.060,  2.056, 2.052, 2.048, 2.045, 2.042};
    if (degrees <= sizeof t / sizeof t[0])
        return t[degrees - 1];
    /* The first terms of the expansion for many degrees of freedom; exact to four decimals here. */
    return 1.95996 + 2.3722 / (double)degrees + 2.8225 / (double)(degrees * degrees);
}

/* Sums over all points, for x = startups / seconds and y = bytes / seconds: the relative residuals are those of the
 * linear model 1 = ts x + tw y. */
struct sums {
    double xx, xy, yy, x, y;
};

static int add_up(const struct fit_point *points, size_t count, struct sums *s, struct error *e)
{
    if (count < FIT_LEAST_POINTS)
        return error_set(
            e, ERROR_REFUSED, "%zu %s not enough for a fit: measure at least %d block sizes", count,
            text_plural(count, "measurement is", "measurements are"), FIT_LEAST_POINTS);
    for (size_t i = 0; i < count; i++) {
        const struct fit_point *p = &points[i];
        if (!(p->seconds > 0) || !isfinite(p->seconds))
            return error_set(e, ERROR_REFUSED, "a measured time of %g seconds cannot be fitted",
                             p->seconds);
        double x = p->startups / p->seconds, y = p->bytes / p->seconds;
        s->xx += x * x;
        s->xy += x * y;
        s->yy += y * y;
        s->x += x;
        s->y += y;
    }
    if (!(s->xx * s->yy - s->xy * s->xy > SAME * s->xx * s->yy))
        return error_set(e, ERROR_REFUSED,
                         "the measurements cannot separate startups from bytes: measure at least "
                         "three block sizes, such as 256, 4KiB and 64KiB");
    return 0;
}

double fit_seconds(const struct fit *fit, const struct fit_point *point)
{
    return fit->ts.value * point->startups + fit->tw.value * point->bytes;
}

double fit_residual(const struct fit *fit, const struct fit_point *point)
{
    return 1 - fit_seconds(fit, point) / point->seconds;
}

/* Sets the figures of the residuals. Returns the sum of their squares, or -1 if memory is short. */
static double set_residuals(const struct fit_point *points, size_t count, struct fit *fit)
{
    double *size = calloc(count, sizeof *size), squares = 0;

    if (size == NULL)
        return -1;
    fit->worst = -1;
    for (size_t i = 0; i < count; i++) {
        double residual = fit_residual(fit, &points[i]);
        size[i] = fabs(residual);
        squares += residual * residual;
        if (size[i] > fit->worst) {
            fit->worst = size[i];
            fit->worst_point = i;
        }
    }
    sort_values(size, count);
    fit->median = quantile(size, count, 0.5);
    free(size);
    return squares;
}

/* Returns the sum of squared residuals if the model is one time for all points, the weighted mean. */
static double squares_of_mean(const struct fit_point *points, size_t count)
{
    double weights = 0, times = 0;

    /* The weights are 1 / seconds^2. */
    for (size_t i = 0; i < count; i++) {
        weights += 1 / (points[i].seconds * points[i].seconds);
        times += 1 / points[i].seconds;
    }
    return (double)count - times * times / weights;
}

static void set_interval(struct fit_value *v, double half)
{
    v->low = v->value - half;
    v->high = v->value + half;
}

int fit_model(const struct fit_point *points, size_t count, struct fit *fit, struct error *e)
{
    struct sums s = {0};
    double determinant, squares, of_mean, spread;

    if (add_up(points, count, &s, e) != 0)
        return -1;
    *fit = (struct fit){.points = count};
    determinant = s.xx * s.yy - s.xy * s.xy;
    fit->ts.value = (s.x * s.yy - s.y * s.xy) / determinant;
    fit->tw.value = (s.y * s.xx - s.x * s.xy) / determinant;
    squares = set_residuals(points, count, fit);
    if (squares < 0)
        return error_set(e, ERROR_MEMORY, "out of memory for the fit");
    of_mean = squares_of_mean(points, count);
    fit->r2 = of_mean > 0 ? 1 - squares / of_mean : 0;
    spread = student(count - 2) * sqrt(squares / (double)(count - 2) / determinant);
    set_interval(&fit->ts, spread * sqrt(s.yy));
    set_interval(&fit->tw, spread * sqrt(s.xx));
    return 0;
}
