/* See http.h. */
#include "io/http.h"

#include "base/clock.h"
#include "base/memory.h"
#include "io/address.h"
#include "io/url.h"

#include <curl/curl.h>

#include <arpa/inet.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    REDIRECTS_MOST = 5,
    POLL_MS = 1000,
    HEADER_BYTES = 1200,
    PAGE_BYTES = 64 << 10, /* of what is no file */
    SHOWN_BYTES = 136      /* of URLs in a message, which has to have room for more */
};

/* What the thread holds for a request: a handle of libcurl, and how far it is. */
typedef struct cogpu_http_try {
    struct cogpu_http_try *next;
    cogpu_http *http;
    cogpu_http_request *request;
    CURL *easy;
    struct curl_slist *headers;
    char url[COGPU_URL_BYTES]; /* after redirects */
    uint32_t tries, redirects;
    double begin_at, end_at;      /* of the clock */
    size_t from;                  /* bytes of the request that tries before have brought */
    size_t page;                  /* bytes of what is no file */
    cogpu_answer_verdict verdict; /* of the headers, if is_judged */
    bool is_judged, is_running, is_over;
    bool is_ahead;       /* it began where redirects led others before */
    bool is_from_public; /* a server with a public address has led to `url` */
    enum { ALLOWED, NOT_PUBLIC, LINK_LOCAL, FROM_PUBLIC } refusal; /* of the address */
    char shown[SHOWN_BYTES]; /* for messages: the request's URL, and `url` where it is another */
} http_try;

struct cogpu_http {
    cogpu_network network; /* with no field left to a default */
    cogpu_heads *heads;
    CURLM *multi;
    pthread_t thread;
    pid_t process;   /* that has the thread */
    uint64_t random; /* of the thread that asks, as the next two */
    http_try *tries;
    uint32_t running;
    pthread_mutex_t lock; /* of the rest */
    pthread_cond_t some_through;
    uint64_t held;
    cogpu_http_request *started, **last; /* not seen by the thread yet */
    bool is_closing;
};

/* ---- what libcurl calls ---- */

/* Whether the user named the host that is asked now: in the URL, or among `private_hosts`. */
static bool is_named(const http_try *self) {
    return cogpu_url_has_host_of(self->url, self->request->target->url) ||
           cogpu_url_has_host_in(self->url, self->http->network.private_hosts);
}

static bool may_be_private(const http_try *self) {
    const cogpu_network *network = &self->http->network;
    const cogpu_http_target *target = self->request->target;
    return network->private_addresses ||
           (target->may_be_private && cogpu_url_same_host(self->url, target->url)) ||
           cogpu_url_has_host_in(self->url, network->private_hosts);
}

/* Notes why an address may not be connected to. */
static bool is_allowed(http_try *self, const struct sockaddr *address) {
    cogpu_address_class class = cogpu_address_class_of(address);
    if (class == COGPU_ADDRESS_PUBLIC)
        return true;
    if (class == COGPU_ADDRESS_LINK_LOCAL && !self->http->network.link_local_addresses)
        self->refusal = LINK_LOCAL;
    else if (class == COGPU_ADDRESS_PRIVATE && !may_be_private(self))
        self->refusal = NOT_PUBLIC;
    else if (self->is_from_public && !is_named(self))
        self->refusal = FROM_PUBLIC;
    else
        return true;
    return false;
}

/* Of names it is only known here where they lead, so that no server of a name can say one address
 * to a check and another to the connection. */
static curl_socket_t open_socket(void *argument, curlsocktype purpose,
                                 struct curl_sockaddr *address) {
    http_try *self = argument;
    (void)purpose;
    if (!is_allowed(self, &address->addr))
        return CURL_SOCKET_BAD;
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

/* The address that is connected to; false where it is not known. */
static bool peer_of(const http_try *self, struct sockaddr_storage *address) {
    char *text = NULL;
    struct sockaddr_in6 six = {.sin6_family = AF_INET6};
    struct sockaddr_in four = {.sin_family = AF_INET};
    if (curl_easy_getinfo(self->easy, CURLINFO_PRIMARY_IP, &text) != CURLE_OK || !text)
        return false;
    if (inet_pton(AF_INET, text, &four.sin_addr) == 1)
        memcpy(address, &four, sizeof four);
    else if (inet_pton(AF_INET6, text, &six.sin6_addr) == 1)
        memcpy(address, &six, sizeof six);
    else
        return false;
    return true;
}

/* A connection may be one that another request, which was allowed more, has opened. */
static void check_peer(http_try *self) {
    struct sockaddr_storage peer;
    if (!peer_of(self, &peer))
        self->refusal = may_be_private(self) ? self->refusal : NOT_PUBLIC;
    else
        (void)is_allowed(self, (const struct sockaddr *)&peer);
}

static cogpu_asked asked_of(const http_try *self) {
    const cogpu_http_request *request = self->request;
    const cogpu_http_target *target = request->target;
    return (cogpu_asked){.offset = request->offset + self->from,
                         .bytes = request->bytes - self->from,
                         .has_size = target->has_size,
                         .size = target->size,
                         .etag = target->etag,
                         .modified = target->modified,
                         .url = self->shown};
}

/* Sets how many bytes are due. A whole file in place of its first part is welcome if it has room.
 */
static void judge(http_try *self) {
    cogpu_http_request *request = self->request;
    cogpu_asked asked = asked_of(self);
    uint64_t bytes = 0;
    if (self->is_judged)
        return;
    self->is_judged = true;
    check_peer(self);
    if (request->call) {
        self->verdict = cogpu_answer_judge_call(&request->answer, asked.url, &request->error);
        return;
    }
    self->verdict = cogpu_answer_judge(&request->answer, &asked, &request->error);
    bool is_known = cogpu_answer_bytes(&request->answer, &bytes);
    if (self->verdict == COGPU_ANSWER_WHOLE && request->may_be_whole && is_known &&
        bytes <= request->bytes)
        self->verdict = COGPU_ANSWER_GOOD;
    request->is_too_long = self->verdict == COGPU_ANSWER_WHOLE;
    if (self->verdict == COGPU_ANSWER_GOOD && is_known && bytes <= request->bytes - self->from)
        request->due = self->from + (size_t)bytes;
}

/* Judged at the empty line: what comes after the body could pose as another answer. */
static size_t take_header(char *line, size_t size, size_t count, void *argument) {
    http_try *self = argument;
    const cogpu_answer *answer = &self->request->answer;
    if (self->is_judged)
        return size * count;
    if (!cogpu_answer_line(&self->request->answer, line, size * count))
        return 0;
    if (answer->has_ended && answer->status >= 200)
        judge(self);
    return size * count;
}

/* What a call answers, as far as it has room. */
static void take_text(cogpu_http_request *request, const char *data, size_t bytes) {
    size_t room = request->bytes - request->got;
    size_t kept = bytes < room ? bytes : room;
    memcpy(request->to + request->got, data, kept);
    request->got += kept;
}

/* Fewer bytes taken than given ends the transfer. */
static size_t take_body(char *data, size_t size, size_t count, void *argument) {
    http_try *self = argument;
    cogpu_http_request *request = self->request;
    size_t bytes = size * count;
    judge(self);
    if (self->refusal != ALLOWED || self->is_over)
        return 0;
    if (request->call)
        take_text(request, data, bytes);
    if (request->call || self->verdict != COGPU_ANSWER_GOOD) {
        self->page += bytes;
        return self->page > PAGE_BYTES ? 0 : bytes;
    }
    if (bytes > request->due - request->got) {
        self->verdict = COGPU_ANSWER_BAD;
        cogpu_fail(&request->error, COGPU_IO, "%s: the server sent more than it was asked for",
                   self->shown);
        return 0;
    }
    memcpy(request->to + request->got, data, bytes);
    request->got += bytes;
    return bytes;
}

/* ---- one try ---- */

/* The request's URL, and after redirects also where they led. */
static void show(http_try *self) {
    const char *first = self->request->target->shown;
    const bool has_moved = !cogpu_url_has_same_place(self->url, self->request->target->url);
    const size_t most = has_moved ? SHOWN_BYTES / 2 - 8 : SHOWN_BYTES - 4;
    char second[SHOWN_BYTES / 2 - 8];
    cogpu_url url;
    bool is_sound = has_moved && cogpu_url_parse(self->url, NULL, &url, NULL) == COGPU_OK;
    snprintf(self->shown, sizeof self->shown, "%.*s%s%s%s", (int)most, first,
             strlen(first) > most ? "..." : "", is_sound ? ", redirected to " : "",
             is_sound ? cogpu_url_shown(&url, second, sizeof second) : "");
}

static bool add_line(http_try *self, const char *line) {
    struct curl_slist *longer = curl_slist_append(self->headers, line);
    if (longer)
        self->headers = longer;
    return longer;
}

static bool add_header(http_try *self, const char *name, const char *value) {
    char line[HEADER_BYTES];
    int length = snprintf(line, sizeof line, "%s: %s", name, value);
    return length > 0 && (size_t)length < sizeof line && add_line(self, line);
}

/* Signatures hold for a few minutes: each try has its own. */
static bool add_signature(http_try *self) {
    const cogpu_http_target *target = self->request->target;
    const cogpu_s3_request read = {.method = "GET", .query = ""}, *call = self->request->call;
    cogpu_s3_headers headers;
    bool is_added = true;
    cogpu_s3_sign(target->place, target->credentials, call ? call : &read, time(NULL), &headers);
    for (size_t i = 0; i < headers.count; i++)
        is_added = is_added && add_line(self, headers.lines[i]);
    cogpu_s3_headers_wipe(&headers);
    return is_added;
}

/* Credentials go to the host that they are for, and to no other that it sends us to. */
static bool add_credentials(http_try *self) {
    const cogpu_http_target *target = self->request->target;
    if (!cogpu_url_same_host(self->url, target->url))
        return true;
    if (target->place)
        return add_signature(self);
    return !target->user || !target->user[0] ||
           curl_easy_setopt(self->easy, CURLOPT_USERPWD, target->user) == CURLE_OK;
}

/* libcurl would name a type, which is not signed. */
static bool add_call_headers(http_try *self) {
    return add_line(self, "Content-Type:") && add_credentials(self);
}

static bool add_headers(http_try *self) {
    const cogpu_http_request *request = self->request;
    char range[64];
    uint64_t first = request->offset + request->got, last = request->offset + request->bytes - 1;
    snprintf(range, sizeof range, "bytes=%llu-%llu", (unsigned long long)first,
             (unsigned long long)last);
    return add_header(self, "Range", range) && add_header(self, "Accept-Encoding", "identity") &&
           (!request->target->etag_is_strong ||
            add_header(self, "If-Match", request->target->etag)) &&
           add_credentials(self);
}

#define TEXT_OF(number) #number
#define TEXT(number)    TEXT_OF(number)
static const char user_agent[] = "cogpu/" TEXT(COGPU_VERSION_MAJOR) "." TEXT(COGPU_VERSION_MINOR);

/* The store may take minutes to put parts together, and says next to nothing meanwhile. Where a
 * connection that was used before turns out to be dead, libcurl repeats the request by itself: but
 * for those that change what the next one finds, all tries must be counted. */
static bool set_call(http_try *self) {
    const cogpu_s3_request *call = self->request->call;
    CURL *easy = self->easy;
    const bool is_put = strcmp(call->method, "PUT") == 0,
               is_post = strcmp(call->method, "POST") == 0;
    bool is_set = curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, call->method) == CURLE_OK;
    if (strcmp(call->method, "HEAD") == 0)
        is_set = is_set && curl_easy_setopt(easy, CURLOPT_NOBODY, 1L) == CURLE_OK;
    if (is_put || is_post)
        is_set =
            is_set &&
            curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)call->bytes) ==
                CURLE_OK &&
            curl_easy_setopt(easy, CURLOPT_POSTFIELDS, call->bytes ? call->body : "") == CURLE_OK;
    if (!is_put)
        is_set = is_set && curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L) == CURLE_OK;
    if (is_post)
        is_set = is_set && curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, 0L) == CURLE_OK;
    return is_set && add_call_headers(self);
}

static bool set_up(http_try *self) {
    const cogpu_network *network = &self->http->network;
    CURL *easy = self->easy;
    double left = self->end_at - clock_now();
    curl_easy_reset(easy);
    curl_slist_free_all(self->headers);
    self->headers = NULL;
    self->is_judged = false;
    self->refusal = ALLOWED;
    self->page = 0;
    show(self);
    /* Before the file is known, what has come may be of another one than what will come. */
    if (self->request->call || !self->request->target->has_size)
        self->request->got = 0;
    self->from = self->request->got;
    memset(&self->request->answer, 0, sizeof self->request->answer);
    bool is_set =
        curl_easy_setopt(easy, CURLOPT_URL, self->url) == CURLE_OK &&
        curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L) == CURLE_OK &&
        curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK &&
        curl_easy_setopt(easy, CURLOPT_PROXY, "") == CURLE_OK &&
        curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
        curl_easy_setopt(easy, CURLOPT_PRIVATE, self) == CURLE_OK &&
        curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_body) == CURLE_OK &&
        curl_easy_setopt(easy, CURLOPT_WRITEDATA, self) == CURLE_OK &&
        curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, take_header) == CURLE_OK &&
        curl_easy_setopt(easy, CURLOPT_HEADERDATA, self) == CURLE_OK &&
        curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket) == CURLE_OK &&
        curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, self) == CURLE_OK &&
        curl_easy_setopt(easy, CURLOPT_USERAGENT, user_agent) == CURLE_OK &&
        curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS,
                         (long)(network->connect_seconds * 1000)) == CURLE_OK &&
        curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, (long)network->least_bytes) == CURLE_OK &&
        curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, (long)ceil(network->stall_seconds)) ==
            CURLE_OK &&
        curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)(left * 1000) + 1) == CURLE_OK &&
        (self->request->call ? set_call(self) : add_headers(self)) &&
        curl_easy_setopt(easy, CURLOPT_HTTPHEADER, self->headers) == CURLE_OK;
    /* What a libcurl may have been built without, and can be done without. */
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
    curl_easy_setopt(easy, CURLOPT_PIPEWAIT, 1L);
    if (network->ca_file)
        is_set = is_set && curl_easy_setopt(easy, CURLOPT_CAINFO, network->ca_file) == CURLE_OK;
    return is_set;
}

static void begin(http_try *self) {
    if (self->tries++ == 0)
        self->end_at = clock_now() + self->http->network.total_seconds;
    self->request->tries = self->tries;
    if (set_up(self) && curl_multi_add_handle(self->http->multi, self->easy) == CURLM_OK) {
        self->is_running = true;
        self->http->running++;
    } else {
        cogpu_fail(&self->request->error, COGPU_MEMORY, "%s: libcurl could not begin a request",
                   self->shown);
        self->is_over = true;
    }
}

/* ---- how a try ended ---- */

/* Not through yet: once more at a time to come. False where patience is at its end. */
static bool again(http_try *self) {
    const cogpu_network *network = &self->http->network;
    uint32_t asked_for = cogpu_answer_retry_after(&self->request->answer, (int64_t)time(NULL));
    double wait = cogpu_retry_wait(self->tries, asked_for, &self->http->random);
    self->begin_at = clock_now() + wait;
    return self->tries <= network->retries && self->begin_at < self->end_at;
}

static bool follow(http_try *self) {
    cogpu_http_request *request = self->request;
    struct sockaddr_storage peer;
    cogpu_error reason;
    char next[COGPU_URL_BYTES];
    if (++self->redirects > REDIRECTS_MOST) {
        cogpu_fail(&request->error, COGPU_IO, "%s: more than %d redirects", self->shown,
                   REDIRECTS_MOST);
        return false;
    }
    if (cogpu_url_resolve(self->url, request->answer.location, next, sizeof next, &reason) !=
        COGPU_OK) {
        cogpu_fail(&request->error, reason.status, "%s: %s", self->shown, reason.message);
        return false;
    }
    if (peer_of(self, &peer) &&
        cogpu_address_class_of((const struct sockaddr *)&peer) == COGPU_ADDRESS_PUBLIC)
        self->is_from_public = true;
    memcpy(self->url, next, sizeof next);
    self->begin_at = 0;
    self->tries--; /* another place, not another try */
    return true;
}

/* Where a redirect leads may be good for a while only. */
static bool begins_anew(http_try *self) {
    if (!self->is_ahead)
        return false;
    snprintf(self->url, sizeof self->url, "%s", self->request->target->url);
    self->is_ahead = self->is_from_public = false;
    self->redirects = 0;
    self->begin_at = 0;
    self->tries--;
    return true;
}

static bool is_passing(CURLcode code) {
    switch (code) {
    case CURLE_COULDNT_CONNECT:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_GOT_NOTHING:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_PARTIAL_FILE:
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
    case CURLE_SSL_CONNECT_ERROR:
        return true;
    default:
        return false;
    }
}

/* A text says more than a status: also a 200 may turn out to be an Error. */
static void judge_text(http_try *self, bool is_complete) {
    cogpu_http_request *request = self->request;
    cogpu_s3_fault fault;
    cogpu_error told;
    request->due = request->got + !is_complete;
    if (!cogpu_s3_fault_read((const char *)request->to, request->got, &fault))
        return;
    cogpu_s3_fault_fail(&fault, (long)request->answer.status, &told);
    cogpu_fail(&request->error, told.status, "%s: %s", told.message, self->shown);
    if (self->verdict != COGPU_ANSWER_RETRY)
        self->verdict = cogpu_s3_fault_passes(&fault) ? COGPU_ANSWER_RETRY : COGPU_ANSWER_BAD;
}

static void refuse(http_try *self) {
    static const char *const reasons[] = {
        [NOT_PUBLIC] = "its address is not public; private_addresses (--private-addresses) allows "
                       "that",
        [LINK_LOCAL] = "its address is link-local, not public; link_local_addresses "
                       "(--link-local-addresses) allows that",
        [FROM_PUBLIC] = "redirects from public to private addresses need private_hosts "
                        "(--private-hosts)",
    };
    cogpu_fail(&self->request->error, COGPU_ARGUMENT, "%s: %s", self->shown,
               reasons[self->refusal]);
}

/* What libcurl's code means here. It tells of our own refusal to take more as a failed write, and
 * of headers that are too long for it as memory that is out. */
static void fail_by_code(http_try *self, CURLcode code) {
    cogpu_error *error = &self->request->error;
    bool is_in_headers = !self->request->answer.has_ended;
    if (code == CURLE_OUT_OF_MEMORY && !is_in_headers) {
        cogpu_fail(error, COGPU_MEMORY, "%s: out of memory for an answer", self->shown);
        return;
    }
    const char *what = curl_easy_strerror(code);
    if (code == CURLE_OUT_OF_MEMORY)
        what = "the server's headers are too long";
    if (code == CURLE_WRITE_ERROR)
        what = is_in_headers ? "the server's headers are too long"
                             : "the server's answer is longer than it should be";
    cogpu_fail(error, COGPU_IO, "%s: %s, at try %u", self->shown, what, self->tries);
}

/* Whether the request goes on; else its error says why not, or all its bytes are there. */
static bool goes_on(http_try *self, CURLcode code) {
    cogpu_http_request *request = self->request;
    const char *shown = self->shown;
    if (request->answer.has_ended || request->answer.header_bytes == COGPU_HEADERS_BYTES_MAX)
        judge(self);
    if (self->refusal != ALLOWED) {
        refuse(self);
        return false;
    }
    if (request->call && self->is_judged)
        judge_text(self, code == CURLE_OK);
    if (self->is_judged && self->verdict == COGPU_ANSWER_REDIRECT)
        return follow(self);
    if (self->is_judged && self->verdict == COGPU_ANSWER_WHOLE)
        cogpu_fail(&request->error, COGPU_UNSUPPORTED,
                   "the server knows no ranges, and sends the whole file: %s", shown);
    if (self->is_judged && self->verdict != COGPU_ANSWER_GOOD)
        return self->verdict == COGPU_ANSWER_RETRY ? again(self) : begins_anew(self);
    /* A file's bytes are there also where the connection broke after them. */
    if (request->call ? code == CURLE_OK : self->is_judged && request->got == request->due)
        return false;
    if (code == CURLE_OK) {
        cogpu_asked asked = asked_of(self);
        cogpu_answer_verdict verdict = cogpu_answer_complete(
            &request->answer, &asked, request->got - self->from, &request->error);
        return verdict == COGPU_ANSWER_RETRY && again(self);
    }
    fail_by_code(self, code);
    return is_passing(code) && again(self);
}

/* ---- the thread ---- */

static void end_request(cogpu_http *http, http_try *self) {
    cogpu_http_request *request = self->request;
    if (request->moved)
        snprintf(request->moved, COGPU_URL_BYTES, "%s", self->redirects ? self->url : "");
    request->moved_from_public = self->is_from_public;
    if (self->is_judged && self->verdict == COGPU_ANSWER_GOOD && request->got == request->due)
        cogpu_error_clear(&request->error);
    else if (request->error.status == COGPU_OK)
        cogpu_fail(&request->error, COGPU_IO, "%s: ended early", self->shown);
    curl_slist_free_all(self->headers);
    curl_easy_cleanup(self->easy);
    cogpu_release(self);
    pthread_mutex_lock(&http->lock);
    request->is_through = true;
    pthread_cond_broadcast(&http->some_through);
    pthread_mutex_unlock(&http->lock);
}

static void stop(http_try *self) {
    if (self->is_running) {
        curl_multi_remove_handle(self->http->multi, self->easy);
        self->http->running--;
    }
    self->is_running = false;
}

static void take_results(cogpu_http *http) {
    CURLMsg *message;
    int left;
    while ((message = curl_multi_info_read(http->multi, &left))) {
        http_try *self = NULL;
        CURLcode code = message->data.result;
        if (message->msg != CURLMSG_DONE ||
            curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &self) != CURLE_OK)
            continue;
        stop(self);
        self->is_over = self->is_over || !goes_on(self, code);
    }
}

/* Begins what is due, ends what is through; hands on for how many milliseconds nothing is due. */
static int go_round(cogpu_http *http) {
    double soonest = POLL_MS * 1e-3, time = clock_now();
    for (http_try **place = &http->tries; *place;) {
        http_try *self = *place;
        if (self->is_over || atomic_load(&self->request->is_dropped)) {
            stop(self);
            *place = self->next;
            end_request(http, self);
            continue;
        }
        if (!self->is_running && self->begin_at <= time && http->running < http->network.requests)
            begin(self);
        else if (!self->is_running && self->begin_at - time < soonest && self->begin_at > time)
            soonest = self->begin_at - time;
        place = &self->next;
    }
    return (int)(soonest * 1000) + 1;
}

static http_try *new_try(cogpu_http *http, cogpu_http_request *request) {
    http_try *self = cogpu_allocate(sizeof *self);
    CURL *easy = self ? curl_easy_init() : NULL;
    if (!easy) {
        cogpu_release(self);
        return NULL;
    }
    const cogpu_http_target *target = request->target;
    const bool is_ahead = target->moved && target->moved[0];
    const char *query = request->call ? request->call->query : "";
    *self = (http_try){.http = http,
                       .request = request,
                       .easy = easy,
                       .is_ahead = is_ahead,
                       .is_from_public = is_ahead && target->moved_from_public};
    snprintf(self->url, sizeof self->url, "%s%s%s", is_ahead ? target->moved : target->url,
             *query ? "?" : "", query);
    return self;
}

/* Called under the lock. In their order, since what is asked for first is wanted first. */
static void take_over(cogpu_http *http) {
    http_try **end = &http->tries;
    while (*end)
        end = &(*end)->next;
    while (http->started) {
        cogpu_http_request *request = http->started;
        http->started = request->next;
        *end = new_try(http, request);
        if (*end) {
            end = &(*end)->next;
            continue;
        }
        cogpu_fail(&request->error, COGPU_MEMORY, "out of memory for a request");
        request->is_through = true;
        pthread_cond_broadcast(&http->some_through);
    }
    http->last = &http->started;
}

static void *ask(void *argument) {
    cogpu_http *http = argument;
    for (bool goes = true; goes;) {
        int running;
        pthread_mutex_lock(&http->lock);
        take_over(http);
        goes = !http->is_closing;
        pthread_mutex_unlock(&http->lock);
        curl_multi_perform(http->multi, &running);
        take_results(http);
        int wait = go_round(http);
        if (goes)
            curl_multi_poll(http->multi, NULL, 0, wait, NULL);
    }
    return NULL;
}

/* ---- from other threads ---- */

static void init_curl(void) {
    curl_global_init(CURL_GLOBAL_DEFAULT);
}

cogpu_status cogpu_http_open(const cogpu_network *network, cogpu_http **out, cogpu_error *error) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    cogpu_http *http = cogpu_allocate(sizeof *http);
    pthread_once(&once, init_curl);
    const cogpu_network complete = cogpu_network_complete(network);
    CURLM *multi = http ? curl_multi_init() : NULL;
    cogpu_heads *heads = multi ? cogpu_heads_open(complete.header_seconds) : NULL;
    if (!heads) {
        curl_multi_cleanup(multi);
        cogpu_release(http);
        return cogpu_fail(error, COGPU_MEMORY, "out of memory for connections");
    }
    *http = (cogpu_http){.network = complete,
                         .heads = heads,
                         .multi = multi,
                         .process = getpid(),
                         .random = (uint64_t)(clock_now() * 1e9)};
    http->last = &http->started;
    curl_multi_setopt(multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, (long)http->network.connections);
    curl_multi_setopt(multi, CURLMOPT_PIPELINING, CURLPIPE_MULTIPLEX);
    pthread_mutex_init(&http->lock, NULL);
    pthread_condattr_t by_clock;
    pthread_condattr_init(&by_clock);
    pthread_condattr_setclock(&by_clock, CLOCK_MONOTONIC);
    pthread_cond_init(&http->some_through, &by_clock);
    pthread_condattr_destroy(&by_clock);
    if (pthread_create(&http->thread, NULL, ask, http) != 0) {
        pthread_cond_destroy(&http->some_through);
        pthread_mutex_destroy(&http->lock);
        curl_multi_cleanup(multi);
        cogpu_heads_close(heads);
        cogpu_release(http);
        return cogpu_fail(error, COGPU_MEMORY, "no thread for connections");
    }
    *out = http;
    return COGPU_OK;
}

const char *cogpu_curl_version(void) {
    return curl_version_info(CURLVERSION_NOW)->version;
}

const cogpu_network *cogpu_http_network(const cogpu_http *http) {
    return &http->network;
}

cogpu_heads *cogpu_http_heads(const cogpu_http *http) {
    return http->heads;
}

bool cogpu_http_is_here(const cogpu_http *http) {
    return http->process == getpid();
}

cogpu_status cogpu_http_take(cogpu_http **http, bool *is_own, cogpu_error *error) {
    *is_own = !*http;
    if (*is_own)
        return cogpu_http_open(NULL, http, error);
    if (!cogpu_http_is_here(*http))
        return cogpu_fail(error, COGPU_IO,
                          "the context was opened before the process was forked; open another");
    return COGPU_OK;
}

/* In the child of a fork all of it can only be left lying: to close connections would end those of
 * the parent. */
void cogpu_http_close(cogpu_http *http) {
    if (!http || !cogpu_http_is_here(http))
        return;
    pthread_mutex_lock(&http->lock);
    http->is_closing = true;
    pthread_mutex_unlock(&http->lock);
    curl_multi_wakeup(http->multi);
    pthread_join(http->thread, NULL);
    curl_multi_cleanup(http->multi);
    cogpu_heads_close(http->heads);
    pthread_cond_destroy(&http->some_through);
    pthread_mutex_destroy(&http->lock);
    cogpu_release(http);
}

bool cogpu_http_hold(cogpu_http *http, uint64_t bytes) {
    pthread_mutex_lock(&http->lock);
    bool has_room = bytes <= http->network.held_bytes - http->held;
    http->held += has_room ? bytes : 0;
    pthread_mutex_unlock(&http->lock);
    return has_room;
}

void cogpu_http_let_go(cogpu_http *http, uint64_t bytes) {
    pthread_mutex_lock(&http->lock);
    http->held -= bytes;
    pthread_mutex_unlock(&http->lock);
}

void cogpu_http_start(cogpu_http *http, cogpu_http_request *requests, uint32_t count) {
    pthread_mutex_lock(&http->lock);
    for (uint32_t i = 0; i < count; i++) {
        cogpu_http_request *request = &requests[i];
        request->got = 0;
        request->due = request->bytes;
        request->is_through = request->is_too_long = false;
        atomic_store(&request->is_dropped, false);
        request->next = NULL;
        cogpu_error_clear(&request->error);
        *http->last = request;
        http->last = &request->next;
    }
    pthread_mutex_unlock(&http->lock);
    curl_multi_wakeup(http->multi);
}

/* Called under the lock. */
static void wait_a_while(cogpu_http *http) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += COGPU_POLL_MS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    pthread_cond_timedwait(&http->some_through, &http->lock, &until);
}

/* False where the meter is cancelled before the request is through. */
static bool wait_polling(cogpu_http *http, const cogpu_http_request *request, cogpu_meter *meter) {
    bool goes_on = true;
    pthread_mutex_lock(&http->lock);
    while (!request->is_through && goes_on) {
        wait_a_while(http);
        pthread_mutex_unlock(&http->lock);
        goes_on = cogpu_meter_poll(meter);
        pthread_mutex_lock(&http->lock);
    }
    goes_on = goes_on || request->is_through;
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
    while (!request->is_through)
        pthread_cond_wait(&http->some_through, &http->lock);
    pthread_mutex_unlock(&http->lock);
    if (request->error.status != COGPU_OK && error)
        *error = request->error;
    return request->error.status;
}

void cogpu_http_cancel(cogpu_http *http, cogpu_http_request *request) {
    pthread_mutex_lock(&http->lock);
    bool is_through = request->is_through;
    pthread_mutex_unlock(&http->lock);
    if (is_through)
        return;
    atomic_store(&request->is_dropped, true);
    curl_multi_wakeup(http->multi);
    (void)cogpu_http_wait(http, request, NULL);
}
