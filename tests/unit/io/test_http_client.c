/*
 * The HTTP client with a small server of this process: responses that end early, requests that are
 * cancelled while they are under way or wait for their turn, many at once, hooks of a store, and
 * the child of a fork.
 */
#include "io/http/client.h"

#include "support/test.h"

#if COGPU_HAVE_CURL
#include <arpa/inet.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FILE_BYTES = 100000 };

/* ---- the server: /plain, /unended, /silent, /call ---- */

static int listener;
static char url_start[64];

static uint8_t byte_at(uint64_t offset) {
    return (uint8_t)(offset * 31 + offset / 251);
}

static bool send_all(int peer, const void *data, size_t bytes) {
    for (size_t sent = 0; sent < bytes;) {
        ssize_t some = send(peer, (const uint8_t *)data + sent, bytes - sent, MSG_NOSIGNAL);
        if (some <= 0)
            return false;
        sent += (size_t)some;
    }
    return true;
}

static bool read_request(int peer, char *text, size_t capacity) {
    size_t bytes = 0;
    while (bytes + 1 < capacity) {
        ssize_t some = recv(peer, text + bytes, capacity - 1 - bytes, 0);
        if (some <= 0)
            return false;
        bytes += (size_t)some;
        text[bytes] = '\0';
        if (strstr(text, "\r\n\r\n"))
            return true;
    }
    return false;
}

/* In one chunk, of which the end is missing where the path says so. */
static bool send_response(int peer, const char *request) {
    static uint8_t body[FILE_BYTES];
    unsigned long long first = 0, last = 0;
    const char *range = strstr(request, "bytes=");
    char head[256];
    bool is_unended = strncmp(request, "GET /unended", 12) == 0;
    if (!range || sscanf(range, "bytes=%llu-%llu", &first, &last) != 2 || last >= FILE_BYTES)
        return false;
    snprintf(head, sizeof head,
             "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes %llu-%llu/%d\r\n"
             "ETag: \"v\"\r\nTransfer-Encoding: chunked\r\n\r\n%llx\r\n",
             first, last, FILE_BYTES, last - first + 1);
    for (uint64_t i = first; i <= last; i++)
        body[i] = byte_at(i);
    return send_all(peer, head, strlen(head)) &&
           send_all(peer, body + first, (size_t)(last - first + 1)) && !is_unended &&
           send_all(peer, "\r\n0\r\n\r\n", 7);
}

/* Responds to a call with 200, and with what it was sent. */
static bool send_call_response(int peer, const char *request) {
    char text[512], body[64];
    const char *token = strstr(request, "X-Token: ");
    int number = token ? atoi(token + 9) : 0;
    bool fails = strstr(request, "fail=1") || (strstr(request, "fail=once") && number == 1);
    snprintf(body, sizeof body, "%s %.4s %d", fails ? "broken" : "yes", request, number);
    snprintf(text, sizeof text,
             "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n%s", strlen(body),
             body);
    (void)send_all(peer, text, strlen(text));
    return false;
}

/* One connection after the other; those that are to wait are kept open. */
static void *serve(void *unused) {
    char request[4096];
    (void)unused;
    for (int peer; (peer = accept(listener, NULL, NULL)) >= 0;) {
        while (read_request(peer, request, sizeof request)) {
            if (strncmp(request, "GET /silent", 11) == 0) {
                peer = -1;
                break;
            }
            if (strstr(request, " /call?") ? !send_call_response(peer, request)
                                           : !send_response(peer, request))
                break;
        }
        if (peer >= 0)
            close(peer);
    }
    return NULL;
}

static void start_server(pthread_t *thread) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof address;
    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(listener >= 0 && bind(listener, (struct sockaddr *)&address, sizeof address) == 0 &&
          listen(listener, 64) == 0 &&
          getsockname(listener, (struct sockaddr *)&address, &bytes) == 0);
    snprintf(url_start, sizeof url_start, "http://127.0.0.1:%u", ntohs(address.sin_port));
    CHECK(pthread_create(thread, NULL, serve, NULL) == 0);
}

/* ---- the tests ---- */

static cogpu_error error;
static char url[128];

static cogpu_http *open_http(uint32_t connections) {
    const cogpu_network network = {.struct_size = sizeof(cogpu_network),
                                   .allow_private_addresses = 1,
                                   .max_connections = connections,
                                   .max_requests = connections,
                                   .max_retries = 1};
    cogpu_http *http = NULL;
    CHECK(cogpu_http_open(&network, &http, &error) == COGPU_OK);
    return http;
}

static cogpu_http_target target_of(const char *path) {
    snprintf(url, sizeof url, "%s%s", url_start, path);
    return (cogpu_http_target){
        .url = url, .shown = url, .etag = "\"v\"", .has_size = true, .size = FILE_BYTES};
}

static bool is_right(const cogpu_http_request *request) {
    for (size_t i = 0; i < request->bytes; i++)
        if (request->to[i] != byte_at(request->offset + i))
            return false;
    return request->received == request->bytes;
}

/* All bytes are there before the connection breaks: another request would ask for none. */
static void test_the_end_is_missing(void) {
    static uint8_t buffer[5000];
    cogpu_http *http = open_http(1);
    cogpu_http_target target = target_of("/unended");
    cogpu_http_request request = {
        .target = &target, .offset = 700, .bytes = sizeof buffer, .to = buffer};
    cogpu_http_start(http, &request, 1);
    CHECK(cogpu_http_wait(http, &request, &error) == COGPU_OK);
    CHECK(is_right(&request));
    cogpu_http_close(http);
}

static void test_many(void) {
    enum { COUNT = 200, EACH = FILE_BYTES / COUNT };
    static uint8_t buffer[FILE_BYTES];
    static cogpu_http_request requests[COUNT];
    cogpu_http *http = open_http(1);
    cogpu_http_target target = target_of("/plain");
    for (uint32_t i = 0; i < COUNT; i++)
        requests[i] = (cogpu_http_request){
            .target = &target, .offset = i * EACH, .bytes = EACH, .to = buffer + i * EACH};
    cogpu_http_start(http, requests, COUNT);
    for (uint32_t i = COUNT; i-- > 0;) {
        CHECK(cogpu_http_wait(http, &requests[i], &error) == COGPU_OK);
        CHECK(is_right(&requests[i]));
    }
    cogpu_http_close(http);
}

/* The first gets no response, the others wait for it. */
static void test_cancelled(void) {
    static uint8_t buffer[3][100];
    cogpu_http_request requests[3];
    cogpu_http *http = open_http(1);
    cogpu_http_target target = target_of("/silent");
    for (uint32_t i = 0; i < 3; i++)
        requests[i] = (cogpu_http_request){
            .target = &target, .offset = i * 100, .bytes = 100, .to = buffer[i]};
    cogpu_http_start(http, requests, 3);
    for (uint32_t i = 3; i-- > 0;) {
        cogpu_http_cancel(http, &requests[i]);
        cogpu_http_cancel(http, &requests[i]);
        CHECK(requests[i].is_done && requests[i].received == 0);
    }
    cogpu_http_close(http);
}

/* ---- hooks of a store ---- */

static int signatures;

static bool sign(const void *signer, const cogpu_http_call *call, cogpu_http_headers *headers) {
    char line[64];
    CHECK(signer == &signatures && call->method);
    snprintf(line, sizeof line, "X-Token: %d", ++signatures);
    return cogpu_http_add_header(headers, line);
}

static bool find_error(const char *body, size_t bytes, uint32_t http_status, bool *is_transient,
                       cogpu_error *found) {
    CHECK(http_status == 200);
    if (bytes < 6 || memcmp(body, "broken", 6) != 0)
        return false;
    *is_transient = signatures == 1;
    cogpu_fail(found, COGPU_IO_ERROR, "the store is broken");
    return true;
}

static cogpu_status do_call(const char *query, char body[64]) {
    cogpu_http *http = open_http(1);
    cogpu_http_target target = target_of("/call");
    const cogpu_http_call call = {.method = "POST", .query = query, .body = "body", .bytes = 4};
    cogpu_http_request request = {
        .target = &target, .bytes = 63, .to = (uint8_t *)body, .call = &call};
    target.sign = sign;
    target.signer = &signatures;
    target.find_error = find_error;
    signatures = 0;
    cogpu_http_start(http, &request, 1);
    cogpu_status status = cogpu_http_wait(http, &request, &error);
    body[request.received] = '\0';
    cogpu_http_close(http);
    return status;
}

/* Each attempt has a signature of its own; a 200 may be an error, which is final or not. */
static void test_calls_are_signed_and_their_bodies_checked(void) {
    char body[64];
    CHECK(do_call("a=1", body) == COGPU_OK && signatures == 1);
    CHECK(strcmp(body, "yes POST 1") == 0);
    CHECK(do_call("fail=once", body) == COGPU_OK && signatures == 2);
    CHECK(do_call("fail=1", body) == COGPU_IO_ERROR && signatures == 2);
    CHECK(strstr(error.message, "the store is broken: http://"));
}

static void test_memory_budget(void) {
    const cogpu_network network = {
        .struct_size = sizeof(cogpu_network), .max_retries = -1, .max_inflight_bytes = 1000};
    cogpu_http *http = NULL;
    CHECK(cogpu_http_open(&network, &http, &error) == COGPU_OK);
    CHECK(!cogpu_http_reserve(http, 1001) && !cogpu_http_reserve(http, UINT64_MAX));
    CHECK(cogpu_http_reserve(http, 600) && !cogpu_http_reserve(http, 401) &&
          cogpu_http_reserve(http, 400));
    cogpu_http_unreserve(http, 600);
    CHECK(!cogpu_http_reserve(http, 601) && cogpu_http_reserve(http, 600));
    cogpu_http_unreserve(http, 1000);
    cogpu_http_close(http);
}

/* Its thread is not there to be waited for. */
static void test_closed_in_a_fork(void) {
    cogpu_http *http = open_http(1);
    CHECK(cogpu_http_is_usable(http));
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        alarm(20);
        bool is_usable = cogpu_http_is_usable(http);
        cogpu_http_close(http);
        _exit(is_usable);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    cogpu_http_close(http);
}

TESTS(http_client) {
    pthread_t server;
    start_server(&server);
    RUN(test_the_end_is_missing);
    RUN(test_many);
    RUN(test_cancelled);
    RUN(test_calls_are_signed_and_their_bodies_checked);
    RUN(test_memory_budget);
    RUN(test_closed_in_a_fork);
    shutdown(listener, SHUT_RDWR);
    pthread_join(server, NULL);
    close(listener);
    return FINISH();
}
#else
TESTS(http_client) {
    return FINISH();
}
#endif
