/* A library that Python tests load, so that warps can be compared with GDAL's without a mosaic. */
#include "cpu/warp.h"
#include "support/warp_job.h"

__attribute__((visibility("default"))) int run_warp_case(const struct warp_case *given);

int run_warp_case(const struct warp_case *given) {
    struct warp_job_memory memory;
    cogpu_pool *pool = NULL;
    cogpu_status status = cogpu_pool_open(given->threads, &pool, NULL);
    open_warp_job(given, &memory);
    if (status == COGPU_OK)
        status = cogpu_cpu_warp(&memory.job, pool, given->threads, NULL);
    close_warp_job(&memory);
    cogpu_pool_close(pool);
    return (int)status;
}
