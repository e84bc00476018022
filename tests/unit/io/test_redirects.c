/*
 * Where servers may redirect to, with small servers of this process. All addresses are loopback:
 * a stand-in for cogpu_address_class_of makes 127.0.0.2 public and 127.0.0.3 link-local. And
 * messages for errors of libcurl.
 */
#include "io/http/address.h"
#include "io/http/client.h"

#include "support/test.h"

#if COGPU_HAVE_CURL
#include <arpa/inet.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

/* The linker puts this in the place of cogpu_address_class_of (tests/CMakeLists.txt). For this
 * suite 127.0.0.2 is a public address and 127.0.0.3 a link-local one. */
static bool has_other_classes;
cogpu_address_class __real_cogpu_address_class_of(const struct sockaddr *address);
cogpu_address_class __wrap_cogpu_address_class_of(const struct sockaddr *address);

cogpu_address_class __wrap_cogpu_address_class_of(const struct sockaddr *address) {
    struct sockaddr_in four;
    memcpy(&four, address, sizeof four);
    switch (has_other_classes && address->sa_family == AF_INET ? ntohl(four.sin_addr.s_addr) & 0xff
                                                               : 0) {
    case 2:
        return COGPU_ADDRESS_PUBLIC;
    case 3:
        return COGPU_ADDRESS_LINK_LOCAL;
    }
    return __real_cogpu_address_class_of(address);
}

/* ---- the servers: /file, /away to `location`, /long and /many with headers without end ---- */

static int listeners[4]; /* by the last number of the address */
static unsigned port;
static char location[128];
static int visits[4];

static void send_all(int peer, const char *data, size_t bytes) {
    for (ssize_t sent; bytes > 0 && (sent = send(peer, data, bytes, MSG_NOSIGNAL)) > 0;
         data += sent, bytes -= (size_t)sent)
        continue;
}

static void send_text(int peer, const char *text) {
    send_all(peer, text, strlen(text));
}

static void send_response(int peer, const char *request) {
    static const char ok[] = "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-7/8\r\n"
                             "ETag: \"v\"\r\nContent-Length: 8\r\nConnection: close\r\n";
    char text[512];
    if (strncmp(request, "GET /away", 9) == 0) {
        snprintf(text, sizeof text,
                 "HTTP/1.1 302 Found\r\nLocation: %s\r\nContent-Length: 0\r\n"
                 "Connection: close\r\n\r\n",
                 location);
        send_text(peer, text);
        return;
    }
    send_text(peer, ok);
    memset(text, 'x', sizeof text);
    memcpy(text, "X-Filler: ", 10);
    memcpy(text + sizeof text - 2, "\r\n", 2);
    bool is_long = strncmp(request, "GET /long", 9) == 0;
    bool is_many = strncmp(request, "GET /many", 9) == 0;
    for (int i = 0; (is_long || is_many) && i < 1000; i++)
        send_all(peer, text, is_long ? sizeof text - 2 : sizeof text);
    send_text(peer, is_long ? "\r\n\r\nabcdefgh" : "\r\nabcdefgh");
}

static void *serve(void *number) {
    const int own = *(int *)number;
    for (int peer; (peer = accept(listeners[own], NULL, NULL)) >= 0;) {
        char request[4096] = "";
        if (recv(peer, request, sizeof request - 1, 0) > 0) {
            visits[own]++;
            send_response(peer, request);
        }
        shutdown(peer, SHUT_WR);
        while (recv(peer, request, sizeof request, 0) > 0)
            continue;
        close(peer);
    }
    return NULL;
}

/* On 127.0.0.1 to 127.0.0.3, with one port. */
static void start_servers(pthread_t threads[4]) {
    static int numbers[] = {0, 1, 2, 3};
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t bytes = sizeof address;
    for (uint32_t i = 1; i < 4; i++) {
        address.sin_addr.s_addr = htonl(0x7f000000 + i);
        listeners[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        CHECK(bind(listeners[i], (struct sockaddr *)&address, sizeof address) == 0 &&
              listen(listeners[i], 16) == 0 &&
              getsockname(listeners[i], (struct sockaddr *)&address, &bytes) == 0);
        CHECK(pthread_create(&threads[i], NULL, serve, &numbers[i]) == 0);
    }
    port = ntohs(address.sin_port);
}

static void stop_servers(pthread_t threads[4]) {
    for (uint32_t i = 1; i < 4; i++) {
        shutdown(listeners[i], SHUT_RDWR);
        pthread_join(threads[i], NULL);
        close(listeners[i]);
    }
}

/* ---- the tests ---- */

static cogpu_error error;

/* A read from the host, which redirects to /file of `to`, or of nowhere where that is 0. */
static cogpu_status open_file(cogpu_network network, int from, const char *path, int to) {
    cogpu_http *http = NULL;
    cogpu_io *io = NULL;
    char url[128];
    memset(visits, 0, sizeof visits);
    network.max_retries = 1;
    snprintf(url, sizeof url, "http://127.0.0.%d:%u/%s", from, port, path);
    if (to)
        snprintf(location, sizeof location, "http://127.0.0.%d:%u/file?token=SECRET", to, port);
    CHECK(cogpu_http_open(&network, &http, &error) == COGPU_OK);
    cogpu_status status = cogpu_io_open_url(url, http, &io, &error);
    cogpu_io_close(io);
    cogpu_http_close(http);
    return status;
}

static bool says(const char *words) {
    return strstr(error.message, words) && !strstr(error.message, "SECRET");
}

static const cogpu_network none = COGPU_NETWORK_INIT,
                           private = {.struct_size = sizeof(cogpu_network),
                                      .max_retries = -1,
                                      .allow_private_addresses = 1},
                           link_local = {.struct_size = sizeof(cogpu_network),
                                         .max_retries = -1,
                                         .allow_private_addresses = 1,
                                         .allow_link_local_addresses = 1};

static void test_addresses_without_redirects(void) {
    CHECK(open_file(none, 2, "file", 0) == COGPU_OK);
    CHECK(open_file(none, 1, "file", 0) == COGPU_INVALID_ARGUMENT &&
          says("allow_private_addresses"));
    CHECK(open_file(private, 1, "file", 0) == COGPU_OK);
    CHECK(open_file((cogpu_network){.struct_size = sizeof(cogpu_network),
                                    .max_retries = -1,
                                    .private_hosts = "127.0.0.1"},
                    1, "file", 0) == COGPU_OK);
    CHECK(open_file((cogpu_network){.struct_size = sizeof(cogpu_network),
                                    .max_retries = -1,
                                    .private_hosts = "127.0.0.9"},
                    1, "file", 0) == COGPU_INVALID_ARGUMENT);
}

/* They have a switch of their own, and no other opens them. */
static void test_link_local_addresses(void) {
    CHECK(open_file(none, 3, "file", 0) == COGPU_INVALID_ARGUMENT &&
          says("allow_link_local_addresses"));
    CHECK(open_file(private, 3, "file", 0) == COGPU_INVALID_ARGUMENT &&
          says("allow_link_local_addresses"));
    CHECK(open_file((cogpu_network){.struct_size = sizeof(cogpu_network),
                                    .max_retries = -1,
                                    .private_hosts = "127.0.0.3"},
                    3, "file", 0) == COGPU_INVALID_ARGUMENT);
    CHECK(open_file(private, 1, "away", 3) == COGPU_INVALID_ARGUMENT &&
          says("allow_link_local_addresses"));
    CHECK(visits[3] == 0);
    CHECK(open_file(link_local, 3, "file", 0) == COGPU_OK && visits[3] == 1);
    CHECK(open_file(link_local, 2, "away", 3) == COGPU_INVALID_ARGUMENT && visits[3] == 0);
}

static void test_redirects_from_public_to_private(void) {
    CHECK(open_file(none, 2, "away", 1) == COGPU_INVALID_ARGUMENT && visits[2] == 1 &&
          visits[1] == 0);
    CHECK(open_file(private, 2, "away", 1) == COGPU_INVALID_ARGUMENT && visits[2] == 1 &&
          visits[1] == 0);
    CHECK(says("private_hosts") && says("127.0.0.2") && says("127.0.0.1"));
    cogpu_network named = {.struct_size = sizeof(cogpu_network),
                           .max_retries = -1,
                           .private_hosts = "other.example, 127.0.0.1"};
    CHECK(open_file(named, 2, "away", 1) == COGPU_OK && visits[2] == 1 && visits[1] == 1);
    named.allow_private_addresses = 1;
    CHECK(open_file(named, 2, "away", 1) == COGPU_OK && visits[1] == 1);
    CHECK(open_file(private, 1, "away", 1) == COGPU_OK &&
          visits[1] == 2); /* from private to private */
    CHECK(open_file(private, 1, "away", 2) == COGPU_OK && visits[2] == 1);
    CHECK(open_file(none, 2, "away", 2) == COGPU_OK && visits[2] == 2);
}

/* Both URLs, without what is secret. */
static void test_errors_after_a_redirect_name_both_urls(void) {
    snprintf(location, sizeof location, "http://127.0.0.1:%u/many?token=SECRET", port);
    CHECK(open_file(private, 1, "away?token=SECRET", 0) == COGPU_IO_ERROR);
    CHECK(says("/away?..., redirected to ") && says("/many?..."));
    snprintf(location, sizeof location, "ftp://user:SECRET@127.0.0.1:%u/x", port);
    CHECK(open_file(private, 1, "away", 0) == COGPU_IO_ERROR);
    CHECK(says("/away: ") && says("ftp://127.0.0.1:") && says("neither http nor https"));
}

/* Not "Out of memory", nor "Failed writing received data to disk/application". */
static void test_headers_that_are_too_long(void) {
    static const char *const paths[] = {"long", "many"};
    for (size_t i = 0; i < 2; i++) {
        cogpu_status status = open_file(private, 1, paths[i], 0);
        CHECK(status == COGPU_IO_ERROR && says("headers"));
        CHECK(!strstr(error.message, "emory") && !strstr(error.message, "riting"));
    }
}

TESTS(redirects) {
    pthread_t servers[4];
    has_other_classes = true;
    start_servers(servers);
    RUN(test_addresses_without_redirects);
    RUN(test_link_local_addresses);
    RUN(test_redirects_from_public_to_private);
    RUN(test_errors_after_a_redirect_name_both_urls);
    RUN(test_headers_that_are_too_long);
    stop_servers(servers);
    has_other_classes = false;
    return FINISH();
}
#else
TESTS(redirects) {
    return FINISH();
}
#endif
