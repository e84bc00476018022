/* The client and its connection thread; see client.h. */
#include "io/http/client_internal.h"

#include "base/clock.h"
#include "base/memory.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { POLL_MS = 1000 };

/* ---- the connection thread ---- */

static void report_done(cogpu_http *http, cogpu_http_request *request) {
    pthread_mutex_lock(&http->lock);
    request->is_done = true;
    pthread_cond_broadcast(&http->request_done);
    pthread_mutex_unlock(&http->lock);
}

static void end_request(cogpu_http *http, cogpu_transfer *transfer) {
    cogpu_http_request *request = transfer->request;
    if (request->redirect_url)
        snprintf(request->redirect_url, COGPU_URL_BYTES, "%s",
                 transfer->redirects ? transfer->url : "");
    request->redirected_from_public = transfer->is_from_public;
    if (transfer->is_checked && transfer->outcome == COGPU_RESPONSE_GOOD &&
        request->received == request->expected)
        cogpu_error_clear(&request->error);
    else if (request->error.status == COGPU_OK)
        cogpu_fail(&request->error, COGPU_IO_ERROR, "%s: ended early", transfer->shown);
    cogpu_transfer_close(transfer);
    report_done(http, request);
}

static void collect_results(cogpu_http *http) {
    CURLMsg *message;
    int left;
    while ((message = curl_multi_info_read(http->multi, &left))) {
        cogpu_transfer *transfer = NULL;
        CURLcode code = message->data.result;
        if (message->msg != CURLMSG_DONE ||
            curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &transfer) != CURLE_OK)
            continue;
        cogpu_transfer_stop(transfer);
        if (!cogpu_transfer_continues(transfer, code))
            transfer->state = TRANSFER_ENDED;
    }
}

/* Starts transfers whose time has come, and ends those that are over. Returns after how many
 * milliseconds the next one starts. */
static int update_transfers(cogpu_http *http) {
    double soonest = POLL_MS * 1e-3, time = clock_now();
    for (cogpu_transfer **link = &http->transfers; *link;) {
        cogpu_transfer *transfer = *link;
        if (transfer->state == TRANSFER_ENDED || atomic_load(&transfer->request->is_cancelled)) {
            cogpu_transfer_stop(transfer);
            *link = transfer->next;
            end_request(http, transfer);
            continue;
        }
        const bool is_waiting = transfer->state == TRANSFER_WAITING;
        if (is_waiting && transfer->start_at <= time && http->running < http->network.max_requests)
            cogpu_transfer_start(transfer);
        else if (is_waiting && transfer->start_at - time < soonest && transfer->start_at > time)
            soonest = transfer->start_at - time;
        link = &transfer->next;
    }
    return (int)(soonest * 1000) + 1;
}

/* Under the lock. In their order, because what is requested first is needed first. */
static void accept_requests(cogpu_http *http) {
    cogpu_transfer **end = &http->transfers;
    while (*end)
        end = &(*end)->next;
    while (http->started) {
        cogpu_http_request *request = http->started;
        http->started = request->next;
        *end = cogpu_transfer_open(http, request);
        if (*end) {
            end = &(*end)->next;
            continue;
        }
        cogpu_fail(&request->error, COGPU_OUT_OF_MEMORY, "out of memory for a request");
        request->is_done = true;
        pthread_cond_broadcast(&http->request_done);
    }
    http->started_end = &http->started;
}

static void *serve_connections(void *argument) {
    cogpu_http *http = argument;
    for (bool is_open = true; is_open;) {
        int running;
        pthread_mutex_lock(&http->lock);
        accept_requests(http);
        is_open = !http->is_closing;
        pthread_mutex_unlock(&http->lock);
        curl_multi_perform(http->multi, &running);
        collect_results(http);
        int wait_ms = update_transfers(http);
        if (is_open)
            curl_multi_poll(http->multi, NULL, 0, wait_ms, NULL);
    }
    return NULL;
}

/* ---- opening and closing ---- */

static void init_curl(void) {
    curl_global_init(CURL_GLOBAL_DEFAULT);
}

/* Since curl 7.70; before that, libcurl's own are assumed to be there. */
static const char *built_in_certificates(void) {
    const curl_version_info_data *curl = curl_version_info(CURLVERSION_NOW);
    if (curl->age < CURLVERSION_SEVENTH)
        return "unknown";
    return curl->cainfo ? curl->cainfo : curl->capath;
}

static void init_locks(cogpu_http *http) {
    pthread_condattr_t monotonic;
    pthread_mutex_init(&http->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&http->request_done, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

static void free_client(cogpu_http *http) {
    pthread_cond_destroy(&http->request_done);
    pthread_mutex_destroy(&http->lock);
    curl_multi_cleanup(http->multi);
    cogpu_header_cache_close(http->header_cache);
    cogpu_release(http);
}

cogpu_status cogpu_http_open(const cogpu_network *network, cogpu_http **out, cogpu_error *error) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    cogpu_http *http = cogpu_allocate(sizeof *http);
    pthread_once(&once, init_curl);
    const cogpu_network complete = cogpu_network_complete(network);
    CURLM *multi = http ? curl_multi_init() : NULL;
    cogpu_header_cache *cache =
        multi ? cogpu_header_cache_open(complete.header_cache_seconds) : NULL;
    if (!cache) {
        curl_multi_cleanup(multi);
        cogpu_release(http);
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory for connections");
    }
    *http = (cogpu_http){.network = complete,
                         .header_cache = cache,
                         .multi = multi,
                         .process = getpid(),
                         .random = (uint64_t)(clock_now() * 1e9)};
    http->started_end = &http->started;
    curl_multi_setopt(multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, (long)http->network.max_connections);
    curl_multi_setopt(multi, CURLMOPT_PIPELINING, CURLPIPE_MULTIPLEX);
    cogpu_certificates_find(complete.ca_file, built_in_certificates(), "", &http->certificates);
    init_locks(http);
    if (pthread_create(&http->thread, NULL, serve_connections, http) != 0) {
        free_client(http);
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "cannot start a thread for connections");
    }
    *out = http;
    return COGPU_OK;
}

/* In the child of a fork the client leaks: to close its connections would end the parent's. */
void cogpu_http_close(cogpu_http *http) {
    if (!http || !cogpu_http_is_usable(http))
        return;
    pthread_mutex_lock(&http->lock);
    http->is_closing = true;
    pthread_mutex_unlock(&http->lock);
    curl_multi_wakeup(http->multi);
    pthread_join(http->thread, NULL);
    free_client(http);
}

const char *cogpu_curl_version(void) {
    return curl_version_info(CURLVERSION_NOW)->version;
}

const cogpu_network *cogpu_http_network(const cogpu_http *http) {
    return &http->network;
}

cogpu_header_cache *cogpu_http_header_cache(const cogpu_http *http) {
    return http->header_cache;
}

bool cogpu_http_is_usable(const cogpu_http *http) {
    return http->process == getpid();
}

cogpu_status cogpu_http_ensure(cogpu_http **http, bool *is_own, cogpu_error *error) {
    *is_own = !*http;
    if (*is_own)
        return cogpu_http_open(NULL, http, error);
    if (!cogpu_http_is_usable(*http))
        return cogpu_fail(error, COGPU_IO_ERROR,
                          "the context was opened before the process was forked; open another");
    return COGPU_OK;
}

/* ---- requests, from any thread ---- */

bool cogpu_http_reserve(cogpu_http *http, uint64_t bytes) {
    pthread_mutex_lock(&http->lock);
    bool fits = bytes <= http->network.max_inflight_bytes - http->reserved_bytes;
    http->reserved_bytes += fits ? bytes : 0;
    pthread_mutex_unlock(&http->lock);
    return fits;
}

void cogpu_http_unreserve(cogpu_http *http, uint64_t bytes) {
    pthread_mutex_lock(&http->lock);
    http->reserved_bytes -= bytes;
    pthread_mutex_unlock(&http->lock);
}

void cogpu_http_start(cogpu_http *http, cogpu_http_request *requests, uint32_t count) {
    pthread_mutex_lock(&http->lock);
    for (uint32_t i = 0; i < count; i++) {
        cogpu_http_request *request = &requests[i];
        request->received = 0;
        request->expected = request->bytes;
        request->is_done = request->ignores_ranges = false;
        atomic_store(&request->is_cancelled, false);
        request->next = NULL;
        cogpu_error_clear(&request->error);
        *http->started_end = request;
        http->started_end = &request->next;
    }
    pthread_mutex_unlock(&http->lock);
    curl_multi_wakeup(http->multi);
}

/* Under the lock: until a request is done, or COGPU_POLL_MS are over. */
static void wait_for_any(cogpu_http *http) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += COGPU_POLL_MS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    pthread_cond_timedwait(&http->request_done, &http->lock, &until);
}

/* False if the meter is cancelled before the request is done. The meter calls the user's function,
 * so it is polled without the lock. */
static bool wait_polling(cogpu_http *http, const cogpu_http_request *request, cogpu_meter *meter) {
    bool goes_on = true;
    pthread_mutex_lock(&http->lock);
    while (!request->is_done && goes_on) {
        wait_for_any(http);
        pthread_mutex_unlock(&http->lock);
        goes_on = cogpu_meter_poll(meter);
        pthread_mutex_lock(&http->lock);
    }
    goes_on = goes_on || request->is_done;
    pthread_mutex_unlock(&http->lock);
    return goes_on;
}

cogpu_status cogpu_http_wait_metered(cogpu_http *http, cogpu_http_request *request,
                                     cogpu_meter *meter, cogpu_error *error) {
    if (meter && meter->report && !wait_polling(http, request, meter))
        return cogpu_fail_cancelled(error);
    return cogpu_http_wait(http, request, error);
}

cogpu_status cogpu_http_wait(cogpu_http *http, cogpu_http_request *request, cogpu_error *error) {
    pthread_mutex_lock(&http->lock);
    while (!request->is_done)
        pthread_cond_wait(&http->request_done, &http->lock);
    pthread_mutex_unlock(&http->lock);
    if (request->error.status != COGPU_OK && error)
        *error = request->error;
    return request->error.status;
}

void cogpu_http_cancel(cogpu_http *http, cogpu_http_request *request) {
    pthread_mutex_lock(&http->lock);
    bool is_done = request->is_done;
    pthread_mutex_unlock(&http->lock);
    if (is_done)
        return;
    atomic_store(&request->is_cancelled, true);
    curl_multi_wakeup(http->multi);
    (void)cogpu_http_wait(http, request, NULL);
}
