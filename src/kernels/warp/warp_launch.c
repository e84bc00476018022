/* Tables and launches of warps. */
#include "kernels/warp/warp_args.h"

#include "base/checked.h"
#include "base/math.h"
#include "base/memory.h"
#include "cpu/warp.h"

_Static_assert(sizeof(struct cogpu_warp_args) <= 1024, "too much for the arguments of a launch");

/* ---- the table ---- */

/* Offsets of its parts, in bytes. */
struct table_lattice {
    uint64_t nodes, cells, exact;
};
struct table_layout {
    uint64_t rules, bytes;
    struct table_lattice lattice, forward;
};

enum { TABLE_ALIGN = 16 };

/* Their sizes are those of host memory, so sums do not overflow. */
static uint64_t reserve(uint64_t *bytes, uint64_t count, uint64_t size) {
    uint64_t at = *bytes;
    *bytes = divide_up(at + count * size, TABLE_ALIGN) * TABLE_ALIGN;
    return at;
}

static uint64_t node_numbers(const cogpu_coordinates *coordinates) {
    return 2 * ((uint64_t)coordinates->across + 1) * ((uint64_t)coordinates->down + 1);
}

static uint64_t cell_count(const cogpu_coordinates *coordinates) {
    return (uint64_t)coordinates->across * coordinates->down;
}

static uint64_t exact_numbers(const cogpu_coordinates *coordinates) {
    uint64_t points = cogpu_cell_points(coordinates);
    return 2 * points * points * coordinates->exact_count;
}

static struct table_lattice lay_out_lattice(const cogpu_coordinates *coordinates, uint64_t *bytes) {
    struct table_lattice lattice;
    lattice.nodes = reserve(bytes, node_numbers(coordinates), sizeof(double));
    lattice.cells = reserve(bytes, cell_count(coordinates), sizeof(uint32_t));
    lattice.exact = reserve(bytes, exact_numbers(coordinates), sizeof(double));
    return lattice;
}

static struct table_layout lay_out(const cogpu_warp_job *job) {
    struct table_layout layout = {0};
    layout.rules = reserve(&layout.bytes, job->warp->bands, sizeof(struct warp_rule));
    layout.lattice = lay_out_lattice(job->coordinates, &layout.bytes);
    if (job->forward)
        layout.forward = lay_out_lattice(job->forward, &layout.bytes);
    return layout;
}

static void copy_lattice(const cogpu_coordinates *coordinates, const struct table_lattice *lattice,
                         uint8_t *table) {
    memcpy(table + lattice->nodes, coordinates->nodes, node_numbers(coordinates) * sizeof(double));
    memcpy(table + lattice->cells, coordinates->cells, cell_count(coordinates) * sizeof(uint32_t));
    if (coordinates->exact_count)
        memcpy(table + lattice->exact, coordinates->exact,
               exact_numbers(coordinates) * sizeof(double));
}

uint64_t cogpu_gpu_warp_table_bytes(const cogpu_warp_job *job) {
    return lay_out(job).bytes;
}

void cogpu_gpu_warp_fill_table(const cogpu_warp_job *job, void *table) {
    const struct table_layout layout = lay_out(job);
    struct warp_args args;
    memset(table, 0, layout.lattice.nodes); /* rules have padding */
    cogpu_warp_prepare(job, (struct warp_rule *)((uint8_t *)table + layout.rules), &args);
    copy_lattice(job->coordinates, &layout.lattice, table);
    if (job->forward)
        copy_lattice(job->forward, &layout.forward, table);
}

static void point_to_table(struct warp_lattice *lattice, const struct table_lattice *layout,
                           const uint8_t *table) {
    lattice->nodes = (const double *)(const void *)(table + layout->nodes);
    lattice->cells = (const uint32_t *)(const void *)(table + layout->cells);
    lattice->exact = (const double *)(const void *)(table + layout->exact);
}

/* ---- kernels ---- */

/* Kernels of one method, by the type of samples: `strip` and `pixel` in the order of strip types.
 */
struct method_kernels {
    const cogpu_kernel *strip[4], *pixel[4], *any;
};

#define DECLARE(name) extern const cogpu_kernel cogpu_kernel_warp_##name;
#define DECLARE_TYPED(method)                                                                      \
    DECLARE(method##_u8)                                                                           \
    DECLARE(method##_u16) DECLARE(method##_i16) DECLARE(method##_f32) DECLARE(method##_any)
DECLARE_TYPED(nearest)
DECLARE_TYPED(bilinear)
DECLARE_TYPED(cubic)
DECLARE_TYPED(spline)
DECLARE_TYPED(lanczos)
DECLARE_TYPED(average)
DECLARE(rms_any)
DECLARE(mode_any)
DECLARE(min_any)
DECLARE(max_any)
DECLARE(median_any)
DECLARE(q1_any)
DECLARE(q3_any)
DECLARE(sum_any)

#define TYPED(method)                                                                              \
    {                                                                                              \
        &cogpu_kernel_warp_##method##_u8, &cogpu_kernel_warp_##method##_u16,                       \
            &cogpu_kernel_warp_##method##_i16, &cogpu_kernel_warp_##method##_f32                   \
    }
#define ANY(method) .any = &cogpu_kernel_warp_##method##_any

static const struct method_kernels kernels[] = {
    [COGPU_RESAMPLE_NEAREST] = {.strip = TYPED(nearest), ANY(nearest)},
    [COGPU_RESAMPLE_AVERAGE] = {.pixel = TYPED(average), ANY(average)},
    [COGPU_RESAMPLE_RMS] = {ANY(rms)},
    [COGPU_RESAMPLE_BILINEAR] = {.strip = TYPED(bilinear), ANY(bilinear)},
    [COGPU_RESAMPLE_CUBIC] = {.strip = TYPED(cubic), ANY(cubic)},
    [COGPU_RESAMPLE_MODE] = {ANY(mode)},
    [COGPU_RESAMPLE_MIN] = {ANY(min)},
    [COGPU_RESAMPLE_MAX] = {ANY(max)},
    [COGPU_RESAMPLE_MEDIAN] = {ANY(median)},
    [COGPU_RESAMPLE_CUBICSPLINE] = {.pixel = TYPED(spline), ANY(spline)},
    [COGPU_RESAMPLE_LANCZOS] = {.pixel = TYPED(lanczos), ANY(lanczos)},
    [COGPU_RESAMPLE_Q1] = {ANY(q1)},
    [COGPU_RESAMPLE_Q3] = {ANY(q3)},
    [COGPU_RESAMPLE_SUM] = {ANY(sum)}};

enum { NO_TYPE = 4 };

static uint32_t index_of_type(uint32_t type) {
    static const uint32_t types[] = {COGPU_TYPE_U8, COGPU_TYPE_U16, COGPU_TYPE_I16, COGPU_TYPE_F32};
    uint32_t i = 0;
    while (i < NO_TYPE && types[i] != type)
        i++;
    return i;
}

static bool is_short(int64_t stride, uint32_t size) {
    return stride % size == 0 && stride > INT32_MIN && stride < INT32_MAX;
}

/* Whether strip kernels can compute its addresses. */
static bool is_strip_plane(const struct warp_plane *plane, uint32_t size) {
    return (uintptr_t)plane->data % size == 0 && plane->stride_band % size == 0 &&
           is_short(plane->stride_y, size) && is_short(plane->stride_x, size);
}

/* Positions are split into 31-bit integers there, and taps loaded that are not used. */
static bool can_use_strips(const struct warp_args *warp) {
    enum { TAPS = 4 };
    const uint32_t size = sample_bytes(warp->from_type);
    return warp->from_type == warp->to_type && !warp->mask.data && !warp->alpha_band &&
           warp->bands <= COGPU_WARP_STRIP_BANDS &&
           (warp->method == COGPU_RESAMPLE_NEAREST || warp->has_four_taps) &&
           is_strip_plane(&warp->source, size) && is_strip_plane(&warp->target, size) &&
           is_strip_plane(&warp->valid, 1) && warp->level_width < INT32_MAX / 2 &&
           warp->level_height < INT32_MAX / 2 && warp->target_width < INT32_MAX / 2 &&
           warp->target_height < INT32_MAX / 2 && warp->width >= TAPS && warp->height >= TAPS &&
           (uint64_t)warp->x + warp->width <= warp->level_width &&
           (uint64_t)warp->y + warp->height <= warp->level_height;
}

static const cogpu_kernel *select_kernel(const struct warp_args *warp, bool *is_strip) {
    const struct method_kernels *of_method = &kernels[warp->method];
    const uint32_t i = index_of_type(warp->from_type);
    *is_strip = i < NO_TYPE && of_method->strip[i] && can_use_strips(warp);
    if (*is_strip)
        return of_method->strip[i];
    return i < NO_TYPE && of_method->pixel[i] ? of_method->pixel[i] : of_method->any;
}

/* ---- launches ---- */

bool cogpu_gpu_can_warp(const cogpu_warp *warp) {
    const double pixels_max = 4096; /* of the source, in an area */
    double across = warp->scale_x < 1 ? 1 / warp->scale_x : 1;
    double down = warp->scale_y < 1 ? 1 / warp->scale_y : 1;
    return warp->method != COGPU_RESAMPLE_MODE || across * down <= pixels_max;
}

/* Where positions have all taps in the source window: with a margin for the rounding of positions
 * between two that are inside. */
static void set_inside(struct cogpu_warp_args *args) {
    const struct warp_args *warp = &args->warp;
    const double margin = 1e-6, half_taps = warp->method == COGPU_RESAMPLE_NEAREST    ? 0
                                            : warp->method == COGPU_RESAMPLE_BILINEAR ? 0.5
                                                                                      : 1.5;
    args->left = warp->x + half_taps + margin;
    args->top = warp->y + half_taps + margin;
    args->right = (double)warp->x + warp->width - half_taps - margin;
    args->bottom = (double)warp->y + warp->height - half_taps - margin;
}

static void set_tasks(bool is_strip, struct cogpu_warp_args *args) {
    const struct warp_args *warp = &args->warp;
    if (is_strip) {
        uint64_t cells_x =
            divide_up(warp->target_x % WARP_CELL + (uint64_t)warp->target_width, WARP_CELL);
        args->across = (uint32_t)divide_up(cells_x, COGPU_WARP_STRIP_CELLS);
        args->down = (uint32_t)divide_up(warp->target_y % WARP_CELL + (uint64_t)warp->target_height,
                                         WARP_CELL);
    } else {
        args->across = (uint32_t)divide_up(warp->target_width, COGPU_WARP_PIECE_COLUMNS);
        args->down = (uint32_t)divide_up(warp->target_height, COGPU_WARP_PIECE_ROWS);
    }
}

cogpu_status cogpu_gpu_warp_prepare(const cogpu_warp_job *job, const void *table,
                                    struct cogpu_warp_launch *launch, cogpu_error *error) {
    const struct table_layout layout = lay_out(job);
    struct cogpu_warp_args *args = &launch->args;
    struct warp_rule *rules = cogpu_allocate(job->warp->bands * sizeof *rules);
    bool is_strip;
    if (!rules)
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory for a warp of %u bands",
                          job->warp->bands);
    *args = (struct cogpu_warp_args){0};
    cogpu_warp_prepare(job, rules, &args->warp);
    cogpu_release(rules);
    args->warp.rules =
        (const struct warp_rule *)(const void *)((const uint8_t *)table + layout.rules);
    point_to_table(&args->warp.lattice, &layout.lattice, table);
    if (job->forward)
        point_to_table(&args->warp.forward, &layout.forward, table);
    launch->kernel = select_kernel(&args->warp, &is_strip);
    set_inside(args);
    set_tasks(is_strip, args);
    if ((uint64_t)args->across * args->down > INT32_MAX)
        return cogpu_fail(error, COGPU_LIMIT_EXCEEDED,
                          "a warp into %u x %u pixels at once is too large for the device",
                          args->warp.target_width, args->warp.target_height);
    launch->blocks = args->across * args->down;
    return COGPU_OK;
}

cogpu_status cogpu_gpu_warp(cogpu_gpu *gpu, const cogpu_warp_job *job, const void *table,
                            cogpu_gpu_stream *stream, cogpu_error *error) {
    struct cogpu_warp_launch launch;
    TRY(cogpu_gpu_warp_prepare(job, table, &launch, error));
    if (launch.blocks == 0)
        return COGPU_OK;
    return gpu->calls->launch(gpu, launch.kernel, launch.blocks, &launch.args, stream, error);
}
