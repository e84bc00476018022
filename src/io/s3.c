/*
 * Takes "s3://bucket/key" and settings, hands on the URL that a request goes to.
 *
 * All that is not plain is encoded here, once: so a URL's path is at the same time what is signed,
 * and no key can say anything but its own name.
 */
#include "io/s3_inner.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

enum { OBJECT_BYTES_MAX = 1024, PREFIX_BYTES = 256, ENDPOINT_BYTES = 512, PORT_MAX = 65535 };
static const char scheme[] = "s3://";

typedef struct slice {
    const char *at;
    size_t bytes;
} slice;

/* ---- encoding ---- */

static bool is_plain(char c) {
    return s3_is_letter(c) || s3_is_digit(c) || c == '-' || c == '.' || c == '_' || c == '~';
}

static void put_encoded(s3_text *text, slice from, bool keeps_slashes) {
    static const char digits[] = "0123456789ABCDEF";
    for (size_t i = 0; i < from.bytes; i++) {
        const char c = from.at[i];
        const char code[] = {'%', digits[(uint8_t)c >> 4], digits[c & 15]};
        const bool stays = is_plain(c) || (keeps_slashes && c == '/');
        s3_put_bytes(text, stays ? &c : code, stays ? 1 : sizeof code);
    }
}

void cogpu_s3_query(uint32_t part, const char *upload, char query[COGPU_S3_QUERY_BYTES]) {
    char number[32] = "";
    if (part)
        snprintf(number, sizeof number, "partNumber=%u&", part);
    s3_text text = s3_text_in(query, COGPU_S3_QUERY_BYTES);
    s3_put(&text, number);
    s3_put(&text, "uploadId=");
    put_encoded(&text, (slice){upload, strlen(upload)}, false);
}

/* ---- names ---- */

/* The length of the UTF-8 character that begins here; 0 where none does. */
static size_t utf8_bytes(const char *at, size_t left) {
    const uint8_t first = (uint8_t)at[0];
    const size_t bytes = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    if (bytes == 1)
        return 1;
    if (first < 0xc2 || first > 0xf4 || bytes > left)
        return 0;
    for (size_t i = 1; i < bytes; i++)
        if (((uint8_t)at[i] & 0xc0) != 0x80)
            return 0;
    const uint8_t second = (uint8_t)at[1];
    const bool is_overlong = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
    const bool is_surrogate = first == 0xed && second >= 0xa0;
    const bool is_beyond = first == 0xf4 && second >= 0x90;
    return is_overlong || is_surrogate || is_beyond ? 0 : bytes;
}

static bool is_utf8(slice text) {
    for (size_t i = 0, bytes; i < text.bytes; i += bytes) {
        bytes = utf8_bytes(text.at + i, text.bytes - i);
        if (!bytes)
            return false;
    }
    return true;
}

/* Whether a name between slashes is "." or "..", which what is on the way of a request takes for
 * folders, so that it would arrive with another key than was signed. */
static bool has_dot_names(slice path) {
    for (size_t start = 0, i = 0; i <= path.bytes; i++) {
        if (i < path.bytes && path.at[i] != '/')
            continue;
        const size_t bytes = i - start;
        if ((bytes == 1 || bytes == 2) && memcmp(path.at + start, "..", bytes) == 0)
            return true;
        start = i + 1;
    }
    return false;
}

/* As Amazon has it today, and as it was: capitals and underscores. */
static bool is_bucket(slice name) {
    if (name.bytes < 3 || name.bytes >= COGPU_S3_BUCKET_BYTES)
        return false;
    for (size_t i = 0; i < name.bytes; i++) {
        const char c = name.at[i];
        const bool is_inner = i > 0 && i < name.bytes - 1 && (c == '.' || c == '-' || c == '_');
        if (!s3_is_letter(c) && !s3_is_digit(c) && !is_inner)
            return false;
    }
    return true;
}

/* Dots would make names of several levels, which no certificate of a store fits. */
static bool is_host_label(const char *bucket) {
    for (; *bucket; bucket++)
        if (!s3_is_digit(*bucket) && !(*bucket >= 'a' && *bucket <= 'z') && *bucket != '-')
            return false;
    return true;
}

bool cogpu_s3_is_region(const char *text, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        if (!s3_is_letter(text[i]) && !s3_is_digit(text[i]) && text[i] != '-' && text[i] != '_')
            return false;
    return bytes > 0 && bytes < COGPU_S3_REGION_BYTES;
}

static cogpu_status split(const char *address, char bucket[COGPU_S3_BUCKET_BYTES], slice *key,
                          cogpu_error *error) {
    if (strncasecmp(address, scheme, sizeof scheme - 1) != 0)
        return cogpu_fail(error, COGPU_ARGUMENT, "the address does not begin with %s", scheme);
    slice name = {address + sizeof scheme - 1, 0};
    name.bytes = strcspn(name.at, "/");
    if (!is_bucket(name))
        return cogpu_fail(error, COGPU_ARGUMENT,
                          "what follows s3:// is no bucket's name: 3 to 63 letters, digits, dots "
                          "and hyphens; an access point goes by its alias");
    memcpy(bucket, name.at, name.bytes);
    bucket[name.bytes] = '\0';
    *key = (slice){name.at + name.bytes, strlen(name.at + name.bytes)};
    if (key->bytes < 2)
        return cogpu_fail(error, COGPU_ARGUMENT,
                          "s3://%s names a bucket and no key in it: s3://%s/KEY", bucket, bucket);
    key->at++;
    key->bytes--;
    if (key->bytes > OBJECT_BYTES_MAX)
        return cogpu_fail(error, COGPU_ARGUMENT, "the key in s3://%s has %zu bytes; S3 has %d",
                          bucket, key->bytes, OBJECT_BYTES_MAX);
    if (!is_utf8(*key))
        return cogpu_fail(error, COGPU_ARGUMENT, "the key in s3://%s is not UTF-8", bucket);
    if (has_dot_names(*key))
        return cogpu_fail(error, COGPU_ARGUMENT,
                          "the key in s3://%s has a part \".\" or \"..\", which does not reach a "
                          "store as it is; give the object another key",
                          bucket);
    return COGPU_OK;
}

/* ---- settings ---- */

const char *cogpu_s3_variable(const char *name) {
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

static const char *first_of(const char *said, const char *variable, const char *other) {
    const char *value = said && *said ? said : cogpu_s3_variable(variable);
    return value ? value : cogpu_s3_variable(other);
}

/* Caller, environment, profile; "" where nobody says an endpoint. */
static cogpu_status find_settings(const cogpu_s3_settings *settings,
                                  char region[COGPU_S3_REGION_BYTES], char endpoint[ENDPOINT_BYTES],
                                  cogpu_error *error) {
    const char *said_region = first_of(settings->region, "AWS_REGION", "AWS_DEFAULT_REGION");
    const char *said_endpoint =
        first_of(settings->endpoint, "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL");
    cogpu_s3_wish wishes[] = {{"region", region, COGPU_S3_REGION_BYTES, false},
                              {"endpoint_url", endpoint, ENDPOINT_BYTES, false}};
    bool has_profile;
    region[0] = endpoint[0] = '\0';
    if (!said_region || !said_endpoint)
        TRY(cogpu_s3_profile_read(COGPU_S3_CONFIG_FILE, cogpu_s3_profile_name(settings), wishes, 2,
                                  &has_profile, error));
    if (!said_region && !region[0])
        said_region = "us-east-1";
    if (said_region)
        snprintf(region, COGPU_S3_REGION_BYTES, "%s", said_region);
    if (!cogpu_s3_is_region(region, said_region ? strlen(said_region) : strlen(region)))
        return cogpu_fail(error, COGPU_ARGUMENT,
                          "the region (AWS_REGION) is not a name such as eu-central-1");
    if (said_endpoint && strlen(said_endpoint) >= ENDPOINT_BYTES)
        return cogpu_fail(error, COGPU_ARGUMENT, "the endpoint has more than %d bytes",
                          ENDPOINT_BYTES - 1);
    if (said_endpoint)
        snprintf(endpoint, ENDPOINT_BYTES, "%s", said_endpoint);
    return COGPU_OK;
}

/* ---- endpoints ---- */

typedef struct endpoint {
    bool is_secure, is_address; /* https; an IP address instead of a name */
    char host[COGPU_S3_HOST_BYTES];
    char prefix[PREFIX_BYTES]; /* of the path; "" or "/..." */
} endpoint;

static bool is_ipv4(const char *host, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        if (!s3_is_digit(host[i]) && host[i] != '.')
            return false;
    return true;
}

static bool is_host(slice name, bool *is_address) {
    const bool is_bracketed = name.bytes > 2 && name.at[0] == '[' && name.at[name.bytes - 1] == ']';
    *is_address = is_bracketed || is_ipv4(name.at, name.bytes);
    for (size_t i = is_bracketed; i < name.bytes - is_bracketed; i++) {
        const char c = name.at[i];
        const bool is_inner =
            is_bracketed ? c == ':' || c == '.' : c == '-' || c == '_' || c == '.';
        if (!s3_is_letter(c) && !s3_is_digit(c) && !is_inner)
            return false;
    }
    return name.bytes > 0 && name.at[0] != '.';
}

/* As the header will have it, whoever sends it. */
static char lowered(char c) {
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Behind the colon; the usual port is left out, as it is in the header. */
static bool put_port(s3_text *host, slice port, bool is_secure) {
    unsigned number = 0;
    for (size_t i = 0; i < port.bytes; i++) {
        if (!s3_is_digit(port.at[i]) || number > PORT_MAX)
            return false;
        number = number * 10 + (unsigned)(port.at[i] - '0');
    }
    char text[16];
    snprintf(text, sizeof text, ":%u", number);
    if (number != (is_secure ? 443 : 80))
        s3_put(host, text);
    return number > 0 && number <= PORT_MAX;
}

static bool is_prefix(slice path) {
    for (size_t i = 0; i < path.bytes; i++)
        if (!is_plain(path.at[i]) && path.at[i] != '/')
            return false;
    return !has_dot_names(path);
}

/* "http://host:port/prefix", no user and no query. */
static bool split_endpoint(const char *text, endpoint *to) {
    to->is_secure = strncasecmp(text, "https://", 8) == 0;
    if (!to->is_secure && strncasecmp(text, "http://", 7) != 0)
        return false;
    slice host = {text + (to->is_secure ? 8 : 7), 0};
    host.bytes = strcspn(host.at, "/");
    slice path = {host.at + host.bytes, strlen(host.at + host.bytes)};
    while (path.bytes && path.at[path.bytes - 1] == '/')
        path.bytes--;
    size_t name = host.bytes;
    while (name && s3_is_digit(host.at[name - 1]))
        name--;
    const bool has_port = name && host.at[name - 1] == ':';
    const slice port = {host.at + name, host.bytes - name};
    host.bytes = has_port ? name - 1 : host.bytes;
    s3_text into = s3_text_in(to->host, sizeof to->host);
    s3_text prefix = s3_text_in(to->prefix, sizeof to->prefix);
    for (size_t i = 0; i < host.bytes; i++)
        s3_put_bytes(&into, &(char){lowered(host.at[i])}, 1);
    s3_put_bytes(&prefix, path.at, path.bytes);
    if (!is_host(host, &to->is_address) || !is_prefix(path))
        return false;
    return (!has_port || put_port(&into, port, to->is_secure)) && into.fits && prefix.fits;
}

/* Amazon's own, by region. The name without a region is us-east-1's, and leads to a bucket in any
 * other: so public data can be read by those who do not know where it is. */
static void name_amazon(const char *region, endpoint *to) {
    const char *domain = strncmp(region, "cn-", 3) == 0     ? "amazonaws.com.cn"
                         : strncmp(region, "eusc-", 5) == 0 ? "amazonaws.eu"
                                                            : "amazonaws.com";
    const bool is_first = strcmp(region, "us-east-1") == 0;
    *to = (endpoint){.is_secure = true};
    snprintf(to->host, sizeof to->host, "s3.%s%s%s", is_first ? "" : region, is_first ? "" : ".",
             domain);
}

/* ---- the place ---- */

static bool goes_by_host(const cogpu_s3_place *place, const endpoint *store, bool is_amazon,
                         cogpu_s3_style style) {
    if (style == COGPU_S3_BY_PATH || (style == COGPU_S3_AUTO && !is_amazon))
        return false;
    return is_host_label(place->bucket) && !store->is_address;
}

static bool compose(const endpoint *store, bool by_host, slice key, cogpu_s3_place *place) {
    s3_text host = s3_text_in(place->host, sizeof place->host);
    s3_text url = s3_text_in(place->url, sizeof place->url);
    s3_put(&host, by_host ? place->bucket : "");
    s3_put(&host, by_host ? "." : "");
    s3_put(&host, store->host);
    s3_put(&url, store->is_secure ? "https://" : "http://");
    s3_put(&url, place->host);
    place->path = url.used;
    s3_put(&url, store->prefix);
    s3_put(&url, by_host ? "" : "/");
    s3_put(&url, by_host ? "" : place->bucket);
    s3_put(&url, "/");
    put_encoded(&url, key, true);
    return host.fits && url.fits;
}

cogpu_status cogpu_s3_locate(const char *address, const cogpu_s3_settings *settings,
                             cogpu_s3_place *place, cogpu_error *error) {
    char text[ENDPOINT_BYTES];
    endpoint store;
    slice key;
    TRY(split(address, place->bucket, &key, error));
    TRY(find_settings(settings, place->region, text, error));
    if (!text[0])
        name_amazon(place->region, &store);
    else if (!split_endpoint(text, &store))
        return cogpu_fail(error, COGPU_ARGUMENT,
                          "the endpoint (AWS_ENDPOINT_URL_S3) is not of the form "
                          "https://HOST[:PORT][/PATH]");
    const bool by_host = goes_by_host(place, &store, !text[0], settings->style);
    if (!compose(&store, by_host, key, place))
        return cogpu_fail(error, COGPU_ARGUMENT, "the URL of the object in s3://%s is too long",
                          place->bucket);
    return COGPU_OK;
}
