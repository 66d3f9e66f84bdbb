#include "client/cli/drawing/plan_picture.h"

#include <string.h>

#include "client/cli/drawing/svg.h"
#include "client/cli/terminal/arguments.h"
#include "client/cli/terminal/output_file.h"

bool plan_picture_is_output(const struct picture_arguments *a)
{
    return a->file != NULL && strcmp(a->file, "-") == 0;
}

const char *plan_picture_option(const struct picture_arguments *a)
{
    if (a->file != NULL)
        return "--svg";
    if (a->steps != NULL)
        return "--steps";
    if (a->source != NULL)
        return "--source";
    return a->load ? "--load" : NULL;
}

static int write_picture(const char *file, struct drawing *d, const struct schedule_report *report,
                         struct error *e)
{
    struct output_file output;

    if (output_file_open(&output, file, e) != 0)
        return -1;
    svg_draw(output.stream, d, report);
    return output_file_finish(&output, e);
}

int plan_picture(const struct cli *cli, const struct picture_arguments *a, const struct torus *t,
                 const struct algorithm *algorithm, const struct schedule_report *report,
                 const uint32_t *node)
{
    struct drawing_choice choice = {
        .load = a->load || (algorithm->streaming && a->steps == NULL),
        .steps = a->steps,
        .source = TORUS_NO_NODE,
        .node = node != NULL ? *node : TORUS_NO_NODE,
    };
    struct drawing drawing;
    struct error e;

    if (plan_picture_option(a) == NULL)
        return EXIT_DONE;
    if (a->file == NULL)
        return cli_fail_usage(cli, "%s is for a picture: give its file with --svg FILE",
                              plan_picture_option(a));
    if (a->source != NULL && parse_number(a->source, t->nodes - 1, &choice.source, &e) != 0)
        return cli_fail_usage(cli, "--source: %s", e.text);
    if (drawing_make(&drawing, t, algorithm, &choice, &e) != 0)
        return cli_fail(cli, &e);
    int rc = write_picture(a->file, &drawing, report, &e);
    if (rc == 0 && (drawing.left_out || !drawing_part_is_whole(&drawing.part, t)))
        cli_warn("the schedule is too large for a picture; the heading of the picture says what it "
                 "leaves out");
    drawing_free(&drawing);
    return rc == 0 ? EXIT_DONE : cli_fail(cli, &e);
}
