/*
 * The location of an object: "s3://bucket/key" and the settings become a URL.
 *
 * Keys are encoded here, once. So the path of the URL is the path that is signed, and no key can
 * change the meaning of the URL.
 */
#include "base/text.h"
#include "io/store/s3_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

enum { OBJECT_BYTES_MAX = 1024, PREFIX_BYTES = 256, ENDPOINT_BYTES = 512, PORT_MAX = 65535 };
static const char scheme[] = "s3://";

/* ---- encoding ---- */

static bool is_unreserved_char(char c) {
    return ascii_is_letter(c) || ascii_is_digit(c) || c == '-' || c == '.' || c == '_' || c == '~';
}

static void append_uri_encoded(s3_text *text, s3_slice from, bool keeps_slashes) {
    static const char digits[] = "0123456789ABCDEF";
    for (size_t i = 0; i < from.bytes; i++) {
        const char c = from.at[i];
        const char code[] = {'%', digits[(uint8_t)c >> 4], digits[c & 15]};
        const bool stays = is_unreserved_char(c) || (keeps_slashes && c == '/');
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
    append_uri_encoded(&text, (s3_slice){upload, strlen(upload)}, false);
}

/* ---- names ---- */

static bool is_utf8(s3_slice text) {
    for (size_t i = 0, bytes; i < text.bytes; i += bytes) {
        bytes = utf8_char_bytes(text.at + i, text.bytes - i);
        if (!bytes)
            return false;
    }
    return true;
}

/* Whether a segment is "." or "..": proxies resolve them as folders, so that the request would
 * arrive with another key than was signed. */
static bool has_dot_segments(s3_slice path) {
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

/* By Amazon's rules of today, and older ones: capitals and underscores. */
static bool is_bucket(s3_slice name) {
    if (name.bytes < 3 || name.bytes >= COGPU_S3_BUCKET_BYTES)
        return false;
    for (size_t i = 0; i < name.bytes; i++) {
        const char c = name.at[i];
        const bool is_inner = i > 0 && i < name.bytes - 1 && (c == '.' || c == '-' || c == '_');
        if (!ascii_is_letter(c) && !ascii_is_digit(c) && !is_inner)
            return false;
    }
    return true;
}

/* Not with dots: no certificate of a store matches names of several levels. */
static bool is_host_label(const char *bucket) {
    for (; *bucket; bucket++)
        if (!ascii_is_digit(*bucket) && !(*bucket >= 'a' && *bucket <= 'z') && *bucket != '-')
            return false;
    return true;
}

bool cogpu_s3_is_region(const char *text, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        if (!ascii_is_letter(text[i]) && !ascii_is_digit(text[i]) && text[i] != '-' &&
            text[i] != '_')
            return false;
    return bytes > 0 && bytes < COGPU_S3_REGION_BYTES;
}

static cogpu_status split_address(const char *address, char bucket[COGPU_S3_BUCKET_BYTES],
                                  s3_slice *key, cogpu_error *error) {
    if (strncasecmp(address, scheme, sizeof scheme - 1) != 0)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT, "the address does not begin with %s",
                          scheme);
    s3_slice name = {address + sizeof scheme - 1, 0};
    name.bytes = strcspn(name.at, "/");
    if (!is_bucket(name))
        return cogpu_fail(
            error, COGPU_INVALID_ARGUMENT,
            "the text after s3:// is not a valid bucket name: 3 to 63 letters, digits, "
            "dots and hyphens; use the alias of an access point");
    memcpy(bucket, name.at, name.bytes);
    bucket[name.bytes] = '\0';
    *key = (s3_slice){name.at + name.bytes, strlen(name.at + name.bytes)};
    if (key->bytes < 2)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "s3://%s names a bucket and no key in it: s3://%s/KEY", bucket, bucket);
    key->at++;
    key->bytes--;
    if (key->bytes > OBJECT_BYTES_MAX)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "the key in s3://%s has %zu bytes; S3 allows %d", bucket, key->bytes,
                          OBJECT_BYTES_MAX);
    if (!is_utf8(*key))
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT, "the key in s3://%s is not UTF-8", bucket);
    if (has_dot_segments(*key))
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "the key in s3://%s has a segment \".\" or \"..\", which proxies "
                          "resolve; give the object another key",
                          bucket);
    return COGPU_OK;
}

/* ---- settings ---- */

const char *cogpu_s3_variable(const char *name) {
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

static const char *first_value(const char *value_of_caller, const char *variable,
                               const char *other) {
    const char *value =
        value_of_caller && *value_of_caller ? value_of_caller : cogpu_s3_variable(variable);
    return value ? value : cogpu_s3_variable(other);
}

/* Of the caller, the environment or the profile; "" if there is no endpoint. */
static cogpu_status find_settings(const cogpu_s3_settings *settings,
                                  char region[COGPU_S3_REGION_BYTES], char endpoint[ENDPOINT_BYTES],
                                  cogpu_error *error) {
    const char *region_set = first_value(settings->region, "AWS_REGION", "AWS_DEFAULT_REGION");
    const char *endpoint_set =
        first_value(settings->endpoint, "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL");
    cogpu_s3_profile_value values[] = {{"region", region, COGPU_S3_REGION_BYTES, false},
                                       {"endpoint_url", endpoint, ENDPOINT_BYTES, false}};
    bool has_profile;
    region[0] = endpoint[0] = '\0';
    if (!region_set || !endpoint_set)
        TRY(cogpu_s3_profile_read(COGPU_S3_CONFIG_FILE, cogpu_s3_profile_name(settings), values, 2,
                                  &has_profile, error));
    if (!region_set && !region[0])
        region_set = "us-east-1";
    if (region_set)
        snprintf(region, COGPU_S3_REGION_BYTES, "%s", region_set);
    if (!cogpu_s3_is_region(region, region_set ? strlen(region_set) : strlen(region)))
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "the region (AWS_REGION) is not a name such as eu-central-1");
    if (endpoint_set && strlen(endpoint_set) >= ENDPOINT_BYTES)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT, "the endpoint has more than %d bytes",
                          ENDPOINT_BYTES - 1);
    if (endpoint_set)
        snprintf(endpoint, ENDPOINT_BYTES, "%s", endpoint_set);
    return COGPU_OK;
}

/* ---- endpoints ---- */

typedef struct s3_endpoint {
    bool is_secure, is_address; /* https; an IP address, not a name */
    char host[COGPU_S3_HOST_BYTES];
    char prefix[PREFIX_BYTES]; /* of the path; "" or "/..." */
} s3_endpoint;

static bool is_ipv4(const char *host, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        if (!ascii_is_digit(host[i]) && host[i] != '.')
            return false;
    return true;
}

static bool is_host(s3_slice name, bool *is_address) {
    const bool is_bracketed = name.bytes > 2 && name.at[0] == '[' && name.at[name.bytes - 1] == ']';
    *is_address = is_bracketed || is_ipv4(name.at, name.bytes);
    for (size_t i = is_bracketed; i < name.bytes - is_bracketed; i++) {
        const char c = name.at[i];
        const bool is_inner =
            is_bracketed ? c == ':' || c == '.' : c == '-' || c == '_' || c == '.';
        if (!ascii_is_letter(c) && !ascii_is_digit(c) && !is_inner)
            return false;
    }
    return name.bytes > 0 && name.at[0] != '.';
}

/* The default port is left out, as in the Host header. */
static bool put_port(s3_text *host, s3_slice port, bool is_secure) {
    unsigned number = 0;
    for (size_t i = 0; i < port.bytes; i++) {
        if (!ascii_is_digit(port.at[i]) || number > PORT_MAX)
            return false;
        number = number * 10 + (unsigned)(port.at[i] - '0');
    }
    char text[16];
    snprintf(text, sizeof text, ":%u", number);
    if (number != (is_secure ? 443 : 80))
        s3_put(host, text);
    return number > 0 && number <= PORT_MAX;
}

static bool is_prefix(s3_slice path) {
    for (size_t i = 0; i < path.bytes; i++)
        if (!is_unreserved_char(path.at[i]) && path.at[i] != '/')
            return false;
    return !has_dot_segments(path);
}

/* "http://host:port/prefix", without user and query. */
static bool split_endpoint(const char *text, s3_endpoint *to) {
    to->is_secure = strncasecmp(text, "https://", 8) == 0;
    if (!to->is_secure && strncasecmp(text, "http://", 7) != 0)
        return false;
    s3_slice host = {text + (to->is_secure ? 8 : 7), 0};
    host.bytes = strcspn(host.at, "/");
    s3_slice path = {host.at + host.bytes, strlen(host.at + host.bytes)};
    while (path.bytes && path.at[path.bytes - 1] == '/')
        path.bytes--;
    size_t name = host.bytes;
    while (name && ascii_is_digit(host.at[name - 1]))
        name--;
    const bool has_port = name && host.at[name - 1] == ':';
    const s3_slice port = {host.at + name, host.bytes - name};
    host.bytes = has_port ? name - 1 : host.bytes;
    s3_text into = s3_text_in(to->host, sizeof to->host);
    s3_text prefix = s3_text_in(to->prefix, sizeof to->prefix);
    for (size_t i = 0; i < host.bytes; i++)
        s3_put_bytes(&into, &(char){ascii_lower(host.at[i])}, 1);
    s3_put_bytes(&prefix, path.at, path.bytes);
    if (!is_host(host, &to->is_address) || !is_prefix(path))
        return false;
    return (!has_port || put_port(&into, port, to->is_secure)) && into.fits && prefix.fits;
}

/* Amazon's endpoint, by region. The name without a region is us-east-1's, and redirects to buckets
 * of other regions: so public data can be read without knowing its region. */
static void set_amazon_endpoint(const char *region, s3_endpoint *to) {
    const char *domain = strncmp(region, "cn-", 3) == 0     ? "amazonaws.com.cn"
                         : strncmp(region, "eusc-", 5) == 0 ? "amazonaws.eu"
                                                            : "amazonaws.com";
    const bool is_first = strcmp(region, "us-east-1") == 0;
    *to = (s3_endpoint){.is_secure = true};
    snprintf(to->host, sizeof to->host, "s3.%s%s%s", is_first ? "" : region, is_first ? "" : ".",
             domain);
}

/* ---- the location ---- */

static bool uses_virtual_host(const cogpu_s3_location *location, const s3_endpoint *store,
                              bool is_amazon, cogpu_s3_style style) {
    if (style == COGPU_S3_BY_PATH || (style == COGPU_S3_AUTO && !is_amazon))
        return false;
    return is_host_label(location->bucket) && !store->is_address;
}

static bool write_location(const s3_endpoint *store, bool by_host, s3_slice key,
                           cogpu_s3_location *location) {
    s3_text host = s3_text_in(location->host, sizeof location->host);
    s3_text url = s3_text_in(location->url, sizeof location->url);
    s3_put(&host, by_host ? location->bucket : "");
    s3_put(&host, by_host ? "." : "");
    s3_put(&host, store->host);
    s3_put(&url, store->is_secure ? "https://" : "http://");
    s3_put(&url, location->host);
    location->path = url.used;
    s3_put(&url, store->prefix);
    s3_put(&url, by_host ? "" : "/");
    s3_put(&url, by_host ? "" : location->bucket);
    s3_put(&url, "/");
    append_uri_encoded(&url, key, true);
    return host.fits && url.fits;
}

cogpu_status cogpu_s3_locate(const char *address, const cogpu_s3_settings *settings,
                             cogpu_s3_location *location, cogpu_error *error) {
    char text[ENDPOINT_BYTES];
    s3_endpoint store;
    s3_slice key;
    TRY(split_address(address, location->bucket, &key, error));
    TRY(find_settings(settings, location->region, text, error));
    if (!text[0])
        set_amazon_endpoint(location->region, &store);
    else if (!split_endpoint(text, &store))
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "the endpoint (AWS_ENDPOINT_URL_S3) is not of the form "
                          "https://HOST[:PORT][/PATH]");
    const bool by_host = uses_virtual_host(location, &store, !text[0], settings->style);
    if (!write_location(&store, by_host, key, location))
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "the URL of the object in s3://%s is too long", location->bucket);
    return COGPU_OK;
}
