/* The table of stores: which URL belongs to which, what they sign, and what can be written. */
#include "io/store/store.h"

#include "support/test.h"

#include <stdlib.h>

#if COGPU_HAVE_CURL

static cogpu_error error;
static cogpu_store *store;

static cogpu_status open_store(const char *address, const cogpu_network *network, bool for_upload) {
    cogpu_http *http = NULL;
    store = NULL;
    CHECK(cogpu_http_open(network, &http, &error) == COGPU_OK);
    cogpu_status status = for_upload ? cogpu_store_open_for_upload(address, http, &store, &error)
                                     : cogpu_store_open(address, http, &store, &error);
    if (status != COGPU_OK)
        cogpu_http_close(http);
    return status;
}

static void close_store(void) {
    cogpu_http *http = store->http;
    cogpu_store_close(store);
    cogpu_http_close(http);
}

static const cogpu_network keys = {.struct_size = sizeof(cogpu_network),
                                   .max_retries = -1,
                                   .s3_access_key = "AKID",
                                   .s3_secret_key = "SECRET"};

static void test_files_on_web_servers(void) {
    CHECK(open_store("HTTPS://user:SECRET@Example.com/a b.tif?token=SECRET", &keys, false) ==
          COGPU_OK);
    CHECK(strcmp(store->kind->scheme, "https") == 0 && !store->kind->uploads);
    CHECK(strcmp(store->target.url, "https://example.com/a%20b.tif?token=SECRET") == 0);
    CHECK(strcmp(store->target.user, "user:SECRET") == 0 && !store->target.sign);
    CHECK(strcmp(store->identity[0], "user:SECRET") == 0 && !store->identity[1]);
    CHECK(!strstr(store->shown, "SECRET") && !store->target.may_be_private);
    close_store();
}

static void test_objects_of_s3(void) {
    cogpu_network network = keys;
    network.s3_region = "eu-west-1";
    CHECK(open_store("s3://bucket/a key", &network, false) == COGPU_OK);
    CHECK(strcmp(store->target.url, "https://bucket.s3.eu-west-1.amazonaws.com/a%20key") == 0);
    CHECK(store->target.sign && store->target.signer && store->target.find_error);
    CHECK(!store->target.user && strcmp(store->identity[1], "SECRET") == 0);
    CHECK(!store->target.may_be_private && store->kind->uploads);
    close_store();
    network.s3_endpoint = "http://127.0.0.1:9000"; /* the user named it */
    CHECK(open_store("s3://bucket/key", &network, false) == COGPU_OK);
    CHECK(store->target.may_be_private);
    close_store();
}

static void test_errors_of_s3_are_found(void) {
    static const char slow[] = "<Error><Code>SlowDown</Code></Error>",
                      denied[] = "<Error><Code>AccessDenied</Code></Error>", other[] = "<a></a>";
    bool is_transient = false;
    CHECK(open_store("s3://bucket/key", &keys, true) == COGPU_OK);
    cogpu_http_find_error *find_error = store->target.find_error;
    CHECK(find_error(slow, sizeof slow - 1, 200, &is_transient, &error) && is_transient);
    CHECK(find_error(denied, sizeof denied - 1, 403, &is_transient, &error) && !is_transient);
    CHECK(strstr(error.message, "403 AccessDenied"));
    CHECK(!find_error(other, sizeof other - 1, 200, &is_transient, &error));
    close_store();
}

static void test_schemes(void) {
    const cogpu_network only_https = {.struct_size = sizeof(cogpu_network),
                                      .max_retries = -1,
                                      .schemes = "https"},
                        ftp = {.schemes = "ftp,https"};
    CHECK(open_store("ftp://user:SECRET@host/x", &keys, false) == COGPU_UNSUPPORTED);
    CHECK(strstr(error.message, "https,http,s3") && !strstr(error.message, "SECRET"));
    CHECK(open_store("s3://bucket/key", &only_https, false) == COGPU_UNSUPPORTED);
    CHECK(open_store("ftp://user:SECRET@host/x", &ftp, false) == COGPU_UNSUPPORTED);
    CHECK(strstr(error.message, "https,http,s3") && !strstr(error.message, "SECRET"));
}

static void test_web_servers_are_read_only(void) {
    CHECK(open_store("https://user:SECRET@host/x.tif", &keys, true) == COGPU_UNSUPPORTED);
    CHECK(!store && strstr(error.message, "s3://") && !strstr(error.message, "SECRET"));
}

/* With a client of its own. */
static void test_a_store_without_a_client(void) {
    CHECK(cogpu_store_open("http://host/x.tif", NULL, &store, &error) == COGPU_OK);
    CHECK(store->http && store->owns_http);
    cogpu_store_close(store);
    CHECK(cogpu_store_open("no URL", NULL, &store, &error) == COGPU_INVALID_ARGUMENT);
    cogpu_store_close(NULL);
}

TESTS(store) {
    RUN(test_files_on_web_servers);
    RUN(test_objects_of_s3);
    RUN(test_errors_of_s3_are_found);
    RUN(test_schemes);
    RUN(test_web_servers_are_read_only);
    RUN(test_a_store_without_a_client);
    return FINISH();
}

#else

static void test_the_build_says_so(void) {
    cogpu_store *store = NULL;
    cogpu_error error;
    CHECK(cogpu_store_open("https://host/x", NULL, &store, &error) == COGPU_UNSUPPORTED && !store);
    CHECK(strstr(error.message, "libcurl"));
}

TESTS(store) {
    RUN(test_the_build_says_so);
    return FINISH();
}

#endif
