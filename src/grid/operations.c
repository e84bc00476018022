/*
 * PROJ's coordinate operations and their cache.
 *
 * The catalog has the CRSs and, for each pair, its operations; it belongs to one PROJ context, used
 * under a lock. Threads transform with clones in contexts of their own, the workers: a call takes
 * an idle worker and returns it, so there are as many as calls at the same time.
 */
#include "grid/operations.h"

#include "grid/operation_create.h"
#include "grid/proj_files.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

enum { BUCKETS = 1024, CLONES_MAX = 64, TEXT_BYTES_MAX = 1 << 20 };

/* Web Mercator to WGS 84 has a closed formula. */
typedef enum formula { BY_PROJ, FROM_MERCATOR, TO_MERCATOR } formula;

struct cogpu_operation {
    cogpu_operation *next; /* of the same pair */
    PJ *original;          /* of the catalog's context */
    cogpu_area area;       /* for which PROJ chose it */
    formula formula;
    bool swaps_from, swaps_to; /* x and y for PROJ */
};

typedef struct crs_entry crs_entry;

typedef struct crs_pair {
    struct crs_pair *next; /* of the same source CRS */
    const crs_entry *to;
    bool is_same;
    cogpu_area *areas; /* that the choice depends on */
    uint32_t area_count;
    cogpu_operation *operations;
} crs_pair;

struct crs_entry {
    crs_entry *next; /* of the bucket */
    uint64_t hash;
    const char *text;
    cogpu_flat_crs flat;
    crs_pair *pairs;
};

typedef struct clone {
    const cogpu_operation *of;
    PJ *pj;
    uint64_t last_used;
} clone;

/* A PROJ context of one thread at a time, with the operations that it used last. */
typedef struct worker {
    struct worker *next;
    PJ_CONTEXT *context;
    clone clones[CLONES_MAX];
    uint32_t clone_count;
    uint64_t uses;
} worker;

struct cogpu_operations {
    pthread_mutex_t lock; /* of the catalog */
    PJ_CONTEXT *context;
    cogpu_arena arena;
    crs_entry *buckets[BUCKETS];
    pthread_mutex_t idle_lock;
    worker *idle;
    cogpu_proj_folders folders;
};

/* ---- open and close ------------------------------------------------------------------------ */

static cogpu_status open_context(cogpu_operations *operations, PJ_CONTEXT **context,
                                 cogpu_error *error) {
    TRY(cogpu_crs_database_open(context, error));
    if (!operations->folders.paths[0])
        cogpu_proj_folders_find(*context, &operations->folders);
    cogpu_status status = cogpu_proj_restrict_files(*context, &operations->folders, error);
    if (status != COGPU_OK) {
        cogpu_crs_database_close(*context);
        *context = NULL;
    }
    return status;
}

cogpu_status cogpu_operations_open(cogpu_operations **operations, cogpu_error *error) {
    *operations = NULL;
    cogpu_operations *made = cogpu_allocate(sizeof *made);
    if (!made)
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "no memory for coordinate operations");
    *made = (cogpu_operations){0};
    cogpu_status status = open_context(made, &made->context, error);
    if (status != COGPU_OK) {
        cogpu_release(made);
        return status;
    }
    cogpu_arena_open(&made->arena, UINT64_MAX);
    pthread_mutex_init(&made->lock, NULL);
    pthread_mutex_init(&made->idle_lock, NULL);
    *operations = made;
    return COGPU_OK;
}

static void close_workers(worker *first) {
    while (first) {
        worker *now = first;
        first = now->next;
        for (uint32_t i = 0; i < now->clone_count; i++)
            proj_destroy(now->clones[i].pj);
        cogpu_crs_database_close(now->context);
        cogpu_release(now);
    }
}

static void close_entry(crs_entry *entry) {
    for (crs_pair *pair = entry->pairs; pair; pair = pair->next)
        for (cogpu_operation *operation = pair->operations; operation; operation = operation->next)
            proj_destroy(operation->original);
    cogpu_flat_crs_destroy(&entry->flat);
}

void cogpu_operations_close(cogpu_operations *operations) {
    if (!operations)
        return;
    close_workers(operations->idle);
    for (int i = 0; i < BUCKETS; i++)
        for (crs_entry *entry = operations->buckets[i]; entry; entry = entry->next)
            close_entry(entry);
    cogpu_crs_database_close(operations->context);
    cogpu_arena_close(&operations->arena);
    pthread_mutex_destroy(&operations->lock);
    pthread_mutex_destroy(&operations->idle_lock);
    cogpu_release(operations);
}

/* ---- catalog ------------------------------------------------------------------------------- */

/* FNV-1a. */
static uint64_t hash_text(const char *text) {
    uint64_t hash = 0xCBF29CE484222325;
    for (; *text; text++)
        hash = (hash ^ (uint8_t)*text) * 0x100000001B3;
    return hash;
}

static cogpu_status add_crs(cogpu_operations *in, const char *text, uint64_t hash,
                            crs_entry **found, cogpu_error *error) {
    crs_entry *entry = NULL;
    size_t bytes = strlen(text);
    if (bytes > TEXT_BYTES_MAX)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT, "the text of a CRS has more than %d bytes",
                          TEXT_BYTES_MAX);
    TRY(cogpu_arena_allocate(&in->arena, 1, sizeof *entry, &entry, error));
    TRY(cogpu_arena_text(&in->arena, text, bytes, &entry->text, error));
    TRY(cogpu_flat_crs_create(in->context, text, &entry->flat, error));
    entry->hash = hash;
    entry->next = in->buckets[hash % BUCKETS];
    in->buckets[hash % BUCKETS] = entry;
    *found = entry;
    return COGPU_OK;
}

static cogpu_status find_crs(cogpu_operations *in, const char *text, crs_entry **found,
                             cogpu_error *error) {
    uint64_t hash = hash_text(text);
    for (crs_entry *entry = in->buckets[hash % BUCKETS]; entry; entry = entry->next) {
        if (entry->hash == hash && strcmp(entry->text, text) == 0) {
            *found = entry;
            return COGPU_OK;
        }
    }
    return add_crs(in, text, hash, found, error);
}

static cogpu_status find_pair(cogpu_operations *in, crs_entry *from, const crs_entry *to,
                              crs_pair **found, cogpu_error *error) {
    crs_pair *pair = from->pairs;
    while (pair && pair->to != to)
        pair = pair->next;
    *found = pair;
    if (pair)
        return COGPU_OK;
    TRY(cogpu_arena_allocate(&in->arena, 1, sizeof *pair, &pair, error));
    pair->to = to;
    pair->is_same = from == to || cogpu_flat_crs_equal(in->context, &from->flat, &to->flat);
    if (!pair->is_same)
        TRY(cogpu_operation_areas(in->context, &from->flat, &to->flat, &in->arena, &pair->areas,
                                  &pair->area_count, error));
    pair->next = from->pairs;
    from->pairs = pair;
    *found = pair;
    return COGPU_OK;
}

static cogpu_status find_formula(cogpu_operations *in, const crs_entry *from, const crs_entry *to,
                                 formula *found, cogpu_error *error) {
    crs_entry *mercator, *wgs84;
    *found = BY_PROJ;
    if (from->flat.in_degrees == to->flat.in_degrees)
        return COGPU_OK;
    TRY(find_crs(in, "EPSG:3857", &mercator, error));
    TRY(find_crs(in, "EPSG:4326", &wgs84, error));
    const crs_entry *plane = from->flat.in_degrees ? to : from;
    const crs_entry *sphere = from->flat.in_degrees ? from : to;
    if (cogpu_flat_crs_equal(in->context, &plane->flat, &mercator->flat) &&
        cogpu_flat_crs_equal(in->context, &sphere->flat, &wgs84->flat))
        *found = plane == from ? FROM_MERCATOR : TO_MERCATOR;
    return COGPU_OK;
}

/* Else coordinates would be taken for others. */
static cogpu_status check_is_horizontal(const crs_entry *entry, cogpu_error *error) {
    const PJ_TYPE type = proj_get_type(entry->flat.crs);
    if (type == PJ_TYPE_VERTICAL_CRS || type == PJ_TYPE_GEOCENTRIC_CRS ||
        type == PJ_TYPE_TEMPORAL_CRS)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "\"%.60s\" is no horizontal CRS: pixels have no place in it",
                          entry->text);
    return COGPU_OK;
}

static cogpu_status add_operation(cogpu_operations *in, const crs_entry *from, crs_pair *pair,
                                  const cogpu_area *area, cogpu_operation **found,
                                  cogpu_error *error) {
    cogpu_operation *made = NULL;
    TRY(check_is_horizontal(from, error));
    TRY(check_is_horizontal(pair->to, error));
    TRY(cogpu_arena_allocate(&in->arena, 1, sizeof *made, &made, error));
    TRY(find_formula(in, from, pair->to, &made->formula, error));
    made->area = *area;
    made->swaps_from = from->flat.swaps;
    made->swaps_to = pair->to->flat.swaps;
    made->original = cogpu_operation_create(in->context, &from->flat, &pair->to->flat, area);
    if (!made->original)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "PROJ cannot transform \"%.60s\" to \"%.60s\"", from->text,
                          pair->to->text);
    made->next = pair->operations;
    pair->operations = made;
    *found = made;
    return COGPU_OK;
}

static cogpu_status find_operation(cogpu_operations *in, const crs_entry *from, crs_pair *pair,
                                   const double *corners, cogpu_operation **found,
                                   cogpu_error *error) {
    cogpu_area area = {.is_known = false};
    if (pair->area_count > 0)
        area = cogpu_area_compute(&from->flat, corners);
    for (cogpu_operation *made = pair->operations; made; made = made->next) {
        if (cogpu_area_choice_equal(pair->areas, pair->area_count, &made->area, &area)) {
            *found = made;
            return COGPU_OK;
        }
    }
    return add_operation(in, from, pair, &area, found, error);
}

static cogpu_status find_reprojection(cogpu_operations *in, const char *source, const char *target,
                                      const double *corners, cogpu_reprojection *found,
                                      cogpu_error *error) {
    crs_entry *from, *to;
    crs_pair *pair;
    TRY(find_crs(in, source, &from, error));
    TRY(find_crs(in, target, &to, error));
    TRY(find_pair(in, from, to, &pair, error));
    found->from_degrees = from->flat.in_degrees;
    found->to_degrees = to->flat.in_degrees;
    return pair->is_same ? COGPU_OK
                         : find_operation(in, from, pair, corners, &found->operation, error);
}

cogpu_status cogpu_operations_find(cogpu_operations *operations, const char *source,
                                   const char *target, const double *corners,
                                   cogpu_reprojection *found, cogpu_error *error) {
    *found = (cogpu_reprojection){.operations = operations};
    pthread_mutex_lock(&operations->lock);
    cogpu_status status = find_reprojection(operations, source, target, corners, found, error);
    pthread_mutex_unlock(&operations->lock);
    return status;
}

/* ---- workers ------------------------------------------------------------------------------- */

/* NULL if there is no memory. */
static worker *open_worker(cogpu_operations *in) {
    worker *made = cogpu_allocate(sizeof *made);
    if (!made)
        return NULL;
    *made = (worker){0};
    if (open_context(in, &made->context, NULL) == COGPU_OK)
        return made;
    cogpu_release(made);
    return NULL;
}

static worker *take_worker(cogpu_operations *in) {
    pthread_mutex_lock(&in->idle_lock);
    worker *found = in->idle;
    if (found)
        in->idle = found->next;
    pthread_mutex_unlock(&in->idle_lock);
    return found ? found : open_worker(in);
}

static void return_worker(cogpu_operations *in, worker *used) {
    pthread_mutex_lock(&in->idle_lock);
    used->next = in->idle;
    in->idle = used;
    pthread_mutex_unlock(&in->idle_lock);
}

/* A free place, or that of the clone used least recently. */
static clone *place_clone(worker *in) {
    clone *oldest = in->clones;
    if (in->clone_count < CLONES_MAX)
        return &in->clones[in->clone_count++];
    for (uint32_t i = 1; i < CLONES_MAX; i++)
        oldest = in->clones[i].last_used < oldest->last_used ? &in->clones[i] : oldest;
    proj_destroy(oldest->pj);
    return oldest;
}

/* NULL if there is no memory. */
static PJ *find_clone(cogpu_operations *in, worker *by, const cogpu_operation *operation) {
    by->uses++;
    for (uint32_t i = 0; i < by->clone_count; i++) {
        if (by->clones[i].of == operation) {
            by->clones[i].last_used = by->uses;
            return by->clones[i].pj;
        }
    }
    pthread_mutex_lock(&in->lock);
    PJ *pj = proj_clone(by->context, operation->original);
    pthread_mutex_unlock(&in->lock);
    if (pj)
        *place_clone(by) = (clone){operation, pj, by->uses};
    return pj;
}

/* ---- transform ----------------------------------------------------------------------------- */

static PJ_COORD coordinate_of(double x, double y, bool swaps) {
    return (PJ_COORD){.xyzt = {swaps ? y : x, swaps ? x : y, 0, HUGE_VAL}};
}

static void transform_points(PJ *pj, const cogpu_operation *operation, bool back, size_t count,
                             double *x, double *y) {
    bool swaps_before = back ? operation->swaps_to : operation->swaps_from;
    bool swaps_after = back ? operation->swaps_from : operation->swaps_to;
    for (size_t i = 0; i < count; i++) {
        PJ_COORD at = coordinate_of(NAN, NAN, false);
        if (isfinite(x[i]) && isfinite(y[i]))
            at = proj_trans(pj, back ? PJ_INV : PJ_FWD, coordinate_of(x[i], y[i], swaps_before));
        if (!isfinite(at.xy.x) || !isfinite(at.xy.y)) {
            proj_errno_reset(pj);
            at.xy.x = at.xy.y = NAN;
        }
        x[i] = swaps_after ? at.xy.y : at.xy.x;
        y[i] = swaps_after ? at.xy.x : at.xy.y;
    }
}

static void transform_by_proj(cogpu_operations *in, const cogpu_operation *operation, bool back,
                              size_t count, double *x, double *y) {
    worker *by = take_worker(in);
    PJ *pj = by ? find_clone(in, by, operation) : NULL;
    if (pj) {
        transform_points(pj, operation, back, count, x, y);
    } else { /* memory ran out: one thread at a time */
        pthread_mutex_lock(&in->lock);
        transform_points(operation->original, operation, back, count, x, y);
        pthread_mutex_unlock(&in->lock);
    }
    if (by)
        return_worker(in, by);
}

/* Longitudes come to -180..180. */
static double mercator_longitude(double x) {
    static const double pi = 3.14159265358979323846, rounding = 1e-14;
    double longitude = x * (1 / 6378137.0);
    if (fabs(longitude) > pi)
        longitude = fabs(longitude) < pi + rounding ? copysign(pi, longitude)
                                                    : remainder(longitude, 2 * pi);
    return longitude * (180 / pi);
}

static double mercator_latitude(double y) {
    static const double pi = 3.14159265358979323846;
    return (pi / 2 - 2 * atan(exp(-y * (1 / 6378137.0)))) * (180 / pi);
}

static void transform_from_mercator(size_t count, double *x, double *y) {
    for (size_t i = 0; i < count; i++) {
        bool is_number = isfinite(x[i]) && isfinite(y[i]);
        x[i] = is_number ? mercator_longitude(x[i]) : NAN;
        y[i] = is_number ? mercator_latitude(y[i]) : NAN;
    }
}

void cogpu_reproject(const cogpu_reprojection *reprojection, bool back, size_t count, double *x,
                     double *y) {
    const cogpu_operation *operation = reprojection->operation;
    if (!operation)
        return;
    if (operation->formula == (back ? TO_MERCATOR : FROM_MERCATOR))
        transform_from_mercator(count, x, y);
    else
        transform_by_proj(reprojection->operations, operation, back, count, x, y);
}
