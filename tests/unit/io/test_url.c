/* URLs: what is one, its parts, what is refused, where redirects lead; and which addresses are
 * public, each range at both its ends and one beyond. */
#include "support/test.h"

#include "io/http/address.h"
#include "io/http/url.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/un.h>

enum { LONGEST = COGPU_URL_BYTES - 1 };

/* ---- what is a URL ---- */

/* T228: an upper case scheme is no way around the checks. */
static void urls_differ_from_paths(void) {
    static const char *const urls[] = {"http://a/b",  "HTTP://a/b", "hTTpS://", "s3://bucket/key",
                                       "s3+x.y-z://", "file:///x",  "gs://b/k", "nothing://at/all"};
    static const char *const paths[] = {"",
                                        "a.tif",
                                        "/a/b.tif",
                                        "./http://a/b",
                                        "/vsicurl/https://a/b",
                                        "C:\\a.tif",
                                        "c:/a.tif",
                                        "c://a",
                                        "http:/a/b",
                                        "http:a",
                                        "http//a",
                                        "://a",
                                        ":",
                                        "-",
                                        "7z://a",
                                        "+http://a",
                                        " http://a",
                                        "ht tp://a",
                                        "ht_tp://",
                                        "http:\\\\",
                                        "h\xc3\xa9://",
                                        "http"};
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++)
        CHECK(cogpu_url_is(urls[i]));
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        cogpu_url url;
        CHECK(!cogpu_url_is(paths[i]));
        CHECK(cogpu_url_parse(paths[i], NULL, &url, NULL) == COGPU_INVALID_ARGUMENT);
    }
}

/* ---- parts ---- */

static cogpu_url parsed(const char *text) {
    cogpu_url url;
    cogpu_error error;
    if (cogpu_url_parse(text, NULL, &url, &error) != COGPU_OK) {
        printf("refused: %s: %s\n", text, error.message);
        test_broken = 1;
        memset(&url, 0, sizeof url);
    }
    return url;
}

static void check_parts(const char *text, const char *scheme, const char *user, const char *host,
                        uint32_t port, const char *path, const char *query) {
    cogpu_url url = parsed(text);
    char part[COGPU_URL_BYTES];
    CHECK_TEXT(url.scheme, scheme);
    CHECK_TEXT(url.user, user);
    CHECK_TEXT(url.host, host);
    CHECK(url.port == port);
    snprintf(part, sizeof part, "%.*s", (int)(url.query - url.path), url.text + url.path);
    CHECK_TEXT(part, path);
    CHECK_TEXT(url.text + url.query, query);
}

static void parts_are_found(void) {
    check_parts("https://example.com/a/b.tif?x=1&y=2#top", "https", "", "example.com", 443,
                "/a/b.tif", "?x=1&y=2");
    check_parts("http://h", "http", "", "h", 80, "/", "");
    check_parts("http://h?q", "http", "", "h", 80, "/", "?q");
    check_parts("http://h#f?q", "http", "", "h", 80, "/", "");
    check_parts("http://h/?", "http", "", "h", 80, "/", "?");
    check_parts("http://h/a?b?c/d", "http", "", "h", 80, "/a", "?b?c/d");
    check_parts("HTTPS://Example.COM:8443/A/B", "https", "", "example.com", 8443, "/A/B", "");
    check_parts("http://h:/a", "http", "", "h", 80, "/a", "");
    check_parts("http://h:1/a", "http", "", "h", 1, "/a", "");
    check_parts("http://h:00065535/a", "http", "", "h", 65535, "/a", "");
    check_parts("s3://My_Bucket.x-y/k", "s3", "", "my_bucket.x-y", 0, "/k", "");
    check_parts("s3://bucket:99", "s3", "", "bucket", 99, "/", "");
    check_parts("http://h/a@b:c", "http", "", "h", 80, "/a@b:c", "");
    check_parts("http://h//a//../b/.", "http", "", "h", 80, "//a//../b/.", "");
}

static void user_info_is_kept_apart(void) {
    check_parts("https://name:pass@h/a", "https", "name:pass", "h", 443, "/a", "");
    check_parts("https://n%40me:p%3A%2F%25%20x@h:8/a", "https", "n@me:p:/% x", "h", 8, "/a", "");
    check_parts("https://name@h", "https", "name", "h", 443, "/", "");
    check_parts("https://@h", "https", "", "h", 443, "/", "");
    check_parts("https://a:b:c@[::1]:9", "https", "a:b:c", "[::1]", 9, "/", "");
    CHECK_TEXT(parsed("https://name:pass@h:444/a?b#c").text, "https://h:444/a?b");
}

static void ipv6_hosts_have_one_form(void) {
    check_parts("http://[::1]/a", "http", "", "[::1]", 80, "/a", "");
    check_parts("http://[2001:DB8:0:0:0:0:0:1]:81", "http", "", "[2001:db8::1]", 81, "/", "");
    check_parts("http://[::FFFF:7f00:1]?q", "http", "", "[::ffff:127.0.0.1]", 80, "/", "?q");
    check_parts("http://[ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255]", "http", "",
                "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]", 80, "/", "");
}

/* Their meaning is up to the resolver: the address of the connection is what is checked. */
static void numeric_hosts_are_left_alone(void) {
    static const char *const hosts[] = {"127.0.0.1",  "0x7f.1", "017700000001", "2130706433",
                                        "127.1",      "0",      "1.2.3.4.5",    "999.999.999.999",
                                        "0xffffffff", "1.2.3."};
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
        char text[64];
        snprintf(text, sizeof text, "http://%s/", hosts[i]);
        CHECK_TEXT(parsed(text).host, hosts[i]);
    }
}

static void the_normal_form_is_valid(void) {
    static const struct {
        const char *text, *normal;
    } cases[] = {
        {"HTTP://H:80/a", "http://h/a"},
        {"https://h:443", "https://h/"},
        {"http://h:443", "http://h:443/"},
        {"https://h:080/", "https://h:80/"},
        {"s3://b/key with spaces", "s3://b/key%20with%20spaces"},
        {"http://h/caf\xc3\xa9?\xc3\xa9=\xff", "http://h/caf%C3%A9?%C3%A9=%FF"},
        {"http://h/100%", "http://h/100%25"},
        {"http://h/%zz%4", "http://h/%25zz%254"},
        {"http://h/%%41", "http://h/%25%41"},
        {"http://h/%20%c3%A9%7e%2F%2e", "http://h/%20%c3%A9%7e%2F%2e"},
        {"http://h/a;b=1,2!$&'()*+:@-._~", "http://h/a;b=1,2!$&'()*+:@-._~"},
        {"http://h/\"<>[]^`{|}", "http://h/%22%3C%3E%5B%5D%5E%60%7B%7C%7D"},
        {"http://h/a?X-Amz-Signature=0%2F+=&b=[1 2]#x y",
         "http://h/a?X-Amz-Signature=0%2F+=&b=%5B1%202%5D"},
        {"http://h/%0d%0aHost:x", "http://h/%0d%0aHost:x"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cogpu_url url = parsed(cases[i].text);
        CHECK_TEXT(url.text, cases[i].normal);
        CHECK_TEXT(parsed(url.text).text, cases[i].normal);
    }
}

/* ---- what is refused ---- */

static void check_refused(const char *text, const char *why) {
    cogpu_url url;
    cogpu_error error;
    CHECK(cogpu_url_parse(text, NULL, &url, &error) == COGPU_INVALID_ARGUMENT);
    CHECK(error.status == COGPU_INVALID_ARGUMENT);
    if (!strstr(error.message, why) || strstr(error.message, "SECRET")) {
        printf("%s: \"%s\", expected \"%s\"\n", text, error.message, why);
        test_broken = 1;
    }
}

static void malformed_urls_are_refused(void) {
    static const char *const texts[][2] = {
        {"http://", "host"},
        {"http:///a?SECRET", "host"},
        {"http://?q", "host"},
        {"http://#f", "host"},
        {"http://:80/", "host"},
        {"http://u:SECRET@/a", "host"},
        {"http://u:SECRET@:80/a", "host"},
        {"http://u:SECRET@evil@good/a", "host"},
        {"http://u:SEC@RET@good/a", "host"},
        {"http://a b/", "host"},
        {"http://a%41/", "host"},
        {"http://a%2eb/", "host"},
        {"http://a\xc3\xa9/", "host"},
        {"http://a*b/", "host"},
        {"http://a,b/", "host"},
        {"http://.a/", "host"},
        {"http://../a", "host"},
        {"http://a..b/", "host"},
        {"http://[::1/", "host"},
        {"http://[::1", "host"},
        {"http://[", "host"},
        {"http://[]/", "host"},
        {"http://[/]", "host"},
        {"http://::1/", "host"},
        {"http://[1.2.3.4]/", "host"},
        {"http://[fe80::1%25eth0]/", "host"},
        {"http://[v1.x]/", "host"},
        {"http://[:::::::::::::::::::::::::::::::::::::::::::::::::::]/", "host"},
        {"http://[::1]a/", "port"},
        {"http://[::1]8080/", "port"},
        {"http://[::1]]/", "port"},
        {"http://h:0/", "port"},
        {"http://h:000/", "port"},
        {"http://h:65536/", "port"},
        {"http://h:4294967376/", "port"},
        {"http://h:18446744073709551696/", "port"},
        {"http://h:-80/", "port"},
        {"http://h:+80/", "port"},
        {"http://h: 80/", "port"},
        {"http://h:80a/", "port"},
        {"http://h:80:80/", "port"},
        {"http://u:SECRET/a@h", "port"},
        {"http://u:SECRET x@h/", "user"},
        {"http://u:SECRET%@h/", "user"},
        {"http://u:SECRET%4@h/", "user"},
        {"http://u:SECRET%0a@h/", "user"},
        {"http://u:SECRET%7F@h/", "user"},
        {"http://h/a\nb", "control"},
        {"http://h/a\rb", "control"},
        {"http://h/a\tb?SECRET", "control"},
        {"http://h/a\x7f", "control"},
        {"http://h/a\x01", "control"},
        {"http://h/?a\x1f", "control"},
        {"http://h\n/a", "control"},
        {"http://u\n:SECRET@h/a", "control"},
        {"http://h/\\a?SECRET", "backslash"},
        {"http://good\\@evil/", "backslash"},
        {"http:// good\\evil/", "backslash"},
        {"http://h/?\\", "backslash"},
        {"http://h/a%00b?SECRET", "%00"},
        {"http://h/?a=%00", "%00"},
        {"http://h%00/", "%00"},
        {"http://u%00:SECRET@h/", "%00"},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        check_refused(texts[i][0], texts[i][1]);
}

/* BEFORE, then letters up to so many bytes in all, then AFTER. */
static char *filled(char *text, const char *before, size_t bytes, const char *after) {
    size_t head = strlen(before), tail = strlen(after);
    memcpy(text, before, head);
    memset(text + head, 'a', bytes - head - tail);
    memcpy(text + bytes - tail, after, tail + 1);
    return text;
}

static void each_part_has_its_limit(void) {
    char text[COGPU_URL_BYTES + 16];
    CHECK(strlen(parsed(filled(text, "http://h/", LONGEST, "")).text) == LONGEST);
    check_refused(filled(text, "http://h/", LONGEST + 1, ""), "long");
    check_refused(filled(text, "http://h/#", LONGEST + 1, ""), "long");
    CHECK(strlen(parsed(filled(text, "http://h/?", LONGEST, "")).text) == LONGEST);
    check_refused(filled(text, "http://h/", LONGEST, " "), "long"); /* once it is encoded */
    CHECK(strlen(parsed(filled(text, "http://h/", LONGEST - 2, " ")).text) == LONGEST);
    CHECK(strlen(parsed(filled(text, "http://h?", LONGEST - 1, "")).text) == LONGEST);
    check_refused(filled(text, "http://h?", LONGEST, ""), "long"); /* for its "/" */
    parsed(filled(text, "", 15 + 4, "://h"));
    check_refused(filled(text, "", 16 + 4, "://h"), "scheme");
    parsed(filled(text, "http://", 7 + 253 + 1, "/"));
    check_refused(filled(text, "http://", 7 + 254 + 1, "/"), "host");
    CHECK(strlen(parsed(filled(text, "http://", 7 + 1023 + 2, "@h")).user) == 1023);
    check_refused(filled(text, "http://", 7 + 1024 + 2, "@h"), "user");
    check_refused(filled(text, "http://h:", LONGEST, "9"), "port");
}

/* ---- schemes ---- */

static cogpu_status allowed(const char *text, const char *schemes) {
    cogpu_url url;
    return cogpu_url_parse(text, schemes, &url, NULL);
}

static void schemes_are_whole_words_of_the_list(void) {
    CHECK(allowed("https://h/", "https,http,s3") == COGPU_OK);
    CHECK(allowed("HTTP://h/", "https,http,s3") == COGPU_OK);
    CHECK(allowed("s3://h/", "https,http,s3") == COGPU_OK);
    CHECK(allowed("http://h/", "S3, HTTPS ,Http,") == COGPU_OK);
    CHECK(allowed("http://h/", "https,s3") == COGPU_UNSUPPORTED);
    CHECK(allowed("https://h/", "http,s3") == COGPU_UNSUPPORTED);
    CHECK(allowed("HTTP://h/", "https") == COGPU_UNSUPPORTED);
    CHECK(allowed("tp://h/", "http") == COGPU_UNSUPPORTED);
    CHECK(allowed("http://h/", "") == COGPU_UNSUPPORTED);
    CHECK(allowed("http://h/", ", ,") == COGPU_UNSUPPORTED);
    CHECK(allowed("ftp://h/", NULL) == COGPU_OK);
}

static void a_refused_scheme_is_named(void) {
    static const char *const texts[] = {"FILE:///etc/passwd", "file://h/\\", "file://u:SECRET@h/"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        cogpu_url url;
        cogpu_error error;
        CHECK(cogpu_url_parse(texts[i], "https,http", &url, &error) == COGPU_UNSUPPORTED);
        CHECK(strstr(error.message, "file://") && strstr(error.message, "https,http"));
        CHECK(!strstr(error.message, "SECRET"));
    }
}

/* ---- redirects ---- */

static const char *resolved(const char *base, const char *location) {
    static char text[COGPU_URL_BYTES];
    cogpu_error error;
    if (cogpu_url_resolve(base, location, text, sizeof text, &error) == COGPU_OK)
        return text;
    if (error.status != COGPU_IO_ERROR || strstr(error.message, "SECRET")) {
        printf("%s: status %d: %s\n", location, (int)error.status, error.message);
        test_broken = 1;
    }
    return "refused";
}

/* RFC 3986, 5.4, less the fragments; "g:h" and "http:g" are no URLs of ours. */
static void redirects_are_resolved_as_the_rfc_says(void) {
    static const char *const cases[][2] = {
        {"g:h", "refused"},
        {"g", "http://a/b/c/g"},
        {"./g", "http://a/b/c/g"},
        {"g/", "http://a/b/c/g/"},
        {"/g", "http://a/g"},
        {"//g", "http://g/"},
        {"?y", "http://a/b/c/d;p?y"},
        {"g?y", "http://a/b/c/g?y"},
        {"#s", "http://a/b/c/d;p?q"},
        {"g#s", "http://a/b/c/g"},
        {"g?y#s", "http://a/b/c/g?y"},
        {";x", "http://a/b/c/;x"},
        {"g;x", "http://a/b/c/g;x"},
        {"g;x?y#s", "http://a/b/c/g;x?y"},
        {"", "http://a/b/c/d;p?q"},
        {".", "http://a/b/c/"},
        {"./", "http://a/b/c/"},
        {"..", "http://a/b/"},
        {"../", "http://a/b/"},
        {"../g", "http://a/b/g"},
        {"../..", "http://a/"},
        {"../../", "http://a/"},
        {"../../g", "http://a/g"},
        {"../../../g", "http://a/g"},
        {"../../../../g", "http://a/g"},
        {"/./g", "http://a/g"},
        {"/../g", "http://a/g"},
        {"g.", "http://a/b/c/g."},
        {".g", "http://a/b/c/.g"},
        {"g..", "http://a/b/c/g.."},
        {"..g", "http://a/b/c/..g"},
        {"./../g", "http://a/b/g"},
        {"./g/.", "http://a/b/c/g/"},
        {"g/./h", "http://a/b/c/g/h"},
        {"g/../h", "http://a/b/c/h"},
        {"g;x=1/./y", "http://a/b/c/g;x=1/y"},
        {"g;x=1/../y", "http://a/b/c/y"},
        {"g?y/./x", "http://a/b/c/g?y/./x"},
        {"g?y/../x", "http://a/b/c/g?y/../x"},
        {"g#s/./x", "http://a/b/c/g"},
        {"g#s/../x", "http://a/b/c/g"},
        {"http:g", "refused"},
        /* Not of the RFC. */
        {"HTTP://G:81/a/../b?c", "http://g:81/b?c"},
        {"https://g/a/./b/..?c/..", "https://g/a/?c/.."},
        {"//g:90/h?i", "http://g:90/h?i"},
        {"//u:SECRET@g/h", "http://g/h"},
        {"/a//../b", "http://a/a/b"},
        {"//g/..//h", "http://g//h"},
        {"a b/\xc3\xa9", "http://a/b/c/a%20b/%C3%A9"},
        {"...", "http://a/b/c/..."},
        {"@g", "http://a/b/c/@g"},
        {"./g:h", "http://a/b/c/g:h"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CHECK_TEXT(resolved("http://a/b/c/d;p?q", cases[i][0]), cases[i][1]);
        CHECK_TEXT(resolved("HTTP://u:SECRET@A:80/b/c/d;p?q#f/g", cases[i][0]), cases[i][1]);
    }
    CHECK_TEXT(resolved("http://a:81", "g"), "http://a:81/g");
    CHECK_TEXT(resolved("http://a?x/y", "g"), "http://a/g");
    CHECK_TEXT(resolved("http://a", "?x"), "http://a/?x");
    CHECK_TEXT(resolved("https://[::1]:2/a", "/b"), "https://[::1]:2/b");
}

static void redirects_stay_safe(void) {
    static const char *const locations[] = {
        "http://a/b",   "HTTP://a/",   "http://a:443/", "s3://bucket/key?SECRET",
        "ftp://a/",     "file:///etc", "file://a/etc",  "gopher://a/",
        "javascript:x", "c://a/",      "///a",          "//",
        "//u:SECRET@",  "//a b/",      "//a:99999/",    "https://",
        "https:///a",   "/\\evil",     "\\\\evil\\x",   "/a%00",
        "/a\r\nX: y",   "a\tb",        "//evil\\@a/",   "https://a@b@c/?SECRET",
    };
    for (size_t i = 0; i < sizeof locations / sizeof *locations; i++)
        CHECK_TEXT(resolved("https://a/b?SECRET", locations[i]), "refused");
    CHECK_TEXT(resolved("https://a/b", "https://c/d"), "https://c/d");
    CHECK_TEXT(resolved("https://a/b", "//c/d"), "https://c/d");
    CHECK_TEXT(resolved("http://a/b", "https://c/d"), "https://c/d");
    CHECK_TEXT(resolved("http://a/b", "http://c/d"), "http://c/d");
    CHECK_TEXT(resolved("http://a/b", "s3://c/d"), "refused");
    CHECK_TEXT(resolved("s3://a/b", "http://c/d"), "refused");
}

static void redirects_have_a_limit(void) {
    static char location[1 << 20];
    char text[16];
    cogpu_error error;
    CHECK_TEXT(resolved("http://a/b", filled(location, "/", sizeof location - 1, "")), "refused");
    CHECK(strlen(resolved("http://a/b", filled(location, "/", LONGEST - 8, ""))) == LONGEST);
    CHECK_TEXT(resolved("http://a/b", filled(location, "/", LONGEST - 7, "")), "refused");
    CHECK_TEXT(resolved("http://a/b", filled(location, "/", LONGEST - 8, " ")), "refused");
    CHECK(cogpu_url_resolve("http://a/", "/345678", text, sizeof text, &error) == COGPU_OK);
    CHECK_TEXT(text, "http://a/345678");
    CHECK(cogpu_url_resolve("http://a/", "/3456789", text, sizeof text, &error) == COGPU_IO_ERROR);
    CHECK(cogpu_url_resolve("b", "/", text, sizeof text, &error) == COGPU_INVALID_ARGUMENT);
}

static void a_refused_redirect_says_where_to(void) {
    char text[64];
    cogpu_error error;
    CHECK(cogpu_url_resolve("https://a/b?SECRET", "http://c", text, sizeof text, &error) ==
          COGPU_IO_ERROR);
    CHECK(strstr(error.message, "http://c/: ") && strstr(error.message, "https to http"));
    CHECK(!strstr(error.message, "SECRET"));
    CHECK(cogpu_url_resolve("https://a/b", "http://u:SECRET@c/d?SECRET", text, sizeof text,
                            &error) == COGPU_IO_ERROR);
    CHECK(strstr(error.message, "http://c/d?...: ") && !strstr(error.message, "SECRET"));
    CHECK(cogpu_url_resolve("https://a/b", "http://u:SECRET@:x", text, sizeof text, &error) ==
          COGPU_IO_ERROR);
    CHECK(!strstr(error.message, "SECRET"));
}

static void credentials_stay_with_their_host(void) {
    CHECK(cogpu_url_same_host("https://h/a", "HTTPS://H:443/b?c"));
    CHECK(cogpu_url_same_host("http://u:p@h:80/", "http://h"));
    CHECK(cogpu_url_same_host("http://[::1]/", "http://[0:0::1]/"));
    CHECK(!cogpu_url_same_host("https://h/", "http://h/"));
    CHECK(!cogpu_url_same_host("https://h/", "http://h:443/"));
    CHECK(!cogpu_url_same_host("https://h/", "https://h:444/"));
    CHECK(!cogpu_url_same_host("https://h/", "https://h.evil/"));
    CHECK(!cogpu_url_same_host("https://a.h/", "https://h/"));
    CHECK(!cogpu_url_same_host("https://h/", "https://h@evil/"));
    CHECK(!cogpu_url_same_host("h", "h") && !cogpu_url_same_host("https://h/", "https:///"));
}

/* ---- for messages and requests ---- */

static void what_is_shown_has_no_secrets(void) {
    char text[32];
    cogpu_url url = parsed("https://u:SECRET@h:8/a/b.tif?SECRET#SECRET");
    CHECK_TEXT(cogpu_url_shown(&url, text, sizeof text), "https://h:8/a/b.tif?...");
    url = parsed("https://h/a/b.tif#SECRET");
    CHECK_TEXT(cogpu_url_shown(&url, text, sizeof text), "https://h/a/b.tif");
    CHECK_TEXT(cogpu_url_shown(&url, text, 18), "https://h/a/b.tif");
    CHECK_TEXT(cogpu_url_shown(&url, text, 17), "https://h/a/b...");
    CHECK_TEXT(cogpu_url_shown(&url, text, 5), "h...");
    CHECK_TEXT(cogpu_url_shown(&url, text, 3), "..");
    CHECK_TEXT(cogpu_url_shown(&url, text, 1), "");
    url = parsed("https://h/?SECRET");
    CHECK_TEXT(cogpu_url_shown(&url, text, 15), "https://h/?...");
    CHECK_TEXT(cogpu_url_shown(&url, text, 14), "https://h/...");
}

/* Paths, and URLs that were misspelt. */
static void paths_are_shown_without_secrets(void) {
    static const char *const shown[][2] = {
        {"/data/a.tif", "/data/a.tif"},
        {"C:/data/a.tif", "C:/data/a.tif"},
        {"what?.tif", "what?.tif"},
        {"me@home.tif", "me@home.tif"},
        {"http:/user:SECRET@host/a.tif", "...host/a.tif"},
        {"http:user:SECRET@host/a.tif", "...host/a.tif"},
        {"https//user:SECRET@host", "...host"},
        {"user:SECRET@host/a.tif", "...host/a.tif"},
        {"http:/user:SEC@RET@host/a.tif?token=SECRET", "...host/a.tif?..."},
        {"http:/host/a.tif?X-Amz-Signature=SECRET", "http:/host/a.tif?..."},
        {"http:/host/a.tif?token=SECRET@SECRET", "..."},
        {"http:/user:SEC?RET=1@host/a.tif", "..."},
    };
    char text[64];
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
        CHECK_TEXT(cogpu_path_shown(shown[i][0], text, sizeof text), shown[i][1]);
    CHECK_TEXT(cogpu_path_shown("/a/long/path.tif", text, 8), "/a/l...");
    CHECK_TEXT(cogpu_path_shown("http:/user:SECRET@host", text, 3), "..");
}

/* A "/" or "?" in a password ends what is read as the host. */
static void ambiguous_urls_are_shown_without_secrets(void) {
    static const char *const urls[] = {
        "https://user:12/SECRET@host/x", "https://user:443/SECRET@host/x",
        "https://user:12?SECRET@host/x", "https://user:12#SECRET@host/x"};
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        cogpu_url url;
        char text[64];
        CHECK(cogpu_url_parse(urls[i], NULL, &url, NULL) == COGPU_OK && url.is_ambiguous);
        CHECK_TEXT(cogpu_url_shown(&url, text, sizeof text), "https://...");
    }
}

/* ---- addresses ---- */

static bool is_public(const struct sockaddr *address) {
    return cogpu_address_class_of(address) == COGPU_ADDRESS_PUBLIC;
}

static bool is_public4(const char *text) {
    struct sockaddr_in address = {.sin_family = AF_INET};
    CHECK(inet_pton(AF_INET, text, &address.sin_addr) == 1);
    return is_public((const struct sockaddr *)&address);
}

static bool is_public6(const char *text) {
    struct sockaddr_in6 address = {.sin6_family = AF_INET6};
    CHECK(inet_pton(AF_INET6, text, &address.sin6_addr) == 1);
    return is_public((const struct sockaddr *)&address);
}

/* One before, first, last, one beyond; NULL where that is of another closed range, or nothing. */
static const char *const closed[][4] = {
    {NULL, "0.0.0.0", "0.255.255.255", "1.0.0.0"},
    {"9.255.255.255", "10.0.0.0", "10.255.255.255", "11.0.0.0"},
    {"100.63.255.255", "100.64.0.0", "100.127.255.255", "100.128.0.0"},
    {"126.255.255.255", "127.0.0.0", "127.255.255.255", "128.0.0.0"},
    {"168.63.129.15", "168.63.129.16", "168.63.129.16", "168.63.129.17"},
    {"169.253.255.255", "169.254.0.0", "169.254.255.255", "169.255.0.0"},
    {"172.15.255.255", "172.16.0.0", "172.31.255.255", "172.32.0.0"},
    {"191.255.255.255", "192.0.0.0", "192.0.0.255", "192.0.1.0"},
    {"192.0.1.255", "192.0.2.0", "192.0.2.255", "192.0.3.0"},
    {"192.88.98.255", "192.88.99.0", "192.88.99.255", "192.88.100.0"},
    {"192.167.255.255", "192.168.0.0", "192.168.255.255", "192.169.0.0"},
    {"198.17.255.255", "198.18.0.0", "198.19.255.255", "198.20.0.0"},
    {"198.51.99.255", "198.51.100.0", "198.51.100.255", "198.51.101.0"},
    {"203.0.112.255", "203.0.113.0", "203.0.113.255", "203.0.114.0"},
    {"223.255.255.255", "224.0.0.0", "239.255.255.255", NULL}, /* groups */
    {NULL, "240.0.0.0", "255.255.255.255", NULL},
};

static void closed_ranges_of_ipv4(void) {
    for (size_t i = 0; i < sizeof closed / sizeof *closed; i++) {
        CHECK(!closed[i][0] || is_public4(closed[i][0]));
        CHECK(!is_public4(closed[i][1]));
        CHECK(!is_public4(closed[i][2]));
        CHECK(!closed[i][3] || is_public4(closed[i][3]));
    }
    CHECK(!is_public4("169.254.169.254") && !is_public4("100.100.100.200"));
    CHECK(is_public4("8.8.8.8") && is_public4("93.184.216.34"));
}

static void check_carried(const char *text) {
    uint8_t a[4];
    char six[INET6_ADDRSTRLEN];
    bool is_public = is_public4(text);
    CHECK(inet_pton(AF_INET, text, a) == 1);
    snprintf(six, sizeof six, "::%s", text);
    CHECK(is_public6(six) == is_public);
    snprintf(six, sizeof six, "::ffff:%s", text);
    CHECK(is_public6(six) == is_public);
    snprintf(six, sizeof six, "64:ff9b::%s", text);
    CHECK(is_public6(six) == is_public);
    snprintf(six, sizeof six, "2002:%02x%02x:%02x%02x:1::808:808", a[0], a[1], a[2], a[3]);
    CHECK(is_public6(six) == is_public);
    snprintf(six, sizeof six, "2001:0:808:808:0:1:%02x%02x:%02x%02x", 255 - a[0], 255 - a[1],
             255 - a[2], 255 - a[3]);
    CHECK(is_public6(six) == is_public);
    /* These carry one too, but only inside of somebody's network. */
    snprintf(six, sizeof six, "64:ff9b:1::%s", text);
    CHECK(!is_public6(six));
    snprintf(six, sizeof six, "::ffff:0:%s", text);
    CHECK(!is_public6(six));
}

static void ipv4_inside_ipv6_is_checked(void) {
    for (size_t i = 0; i < sizeof closed / sizeof *closed; i++)
        for (size_t k = 0; k < 4; k++)
            if (closed[i][k])
                check_carried(closed[i][k]);
    CHECK(!is_public6("::ffff:127.0.0.1") && is_public6("::ffff:8.8.8.8"));
    CHECK(!is_public6("2002:7f00:1::") && is_public6("2002:808:808::"));
    CHECK(!is_public6("2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff"));
    /* The example of RFC 4380 and its like of 65.54.227.120. */
    CHECK(!is_public6("2001:0:4136:e378:8000:63bf:3fff:fdd2"));
    CHECK(is_public6("2001:0:4136:e378:8000:63bf:bec9:1c87"));
    CHECK(is_public6("2001:0:ffff:ffff:8000:63bf:bec9:1c87"));
}

#define ONES3 "ffff:ffff:ffff"
#define ONES6 ONES3 ":" ONES3

static void ranges_of_ipv6(void) {
    static const char *const public_ones[] = {
        "2000::",           "2000:ffff:" ONES6,     "2001:200::",
        "2001:db7:" ONES6,  "2001:db9::",           "2001:ffff:" ONES6,
        "2003::",           "3ffe:ffff:" ONES6,     "3fff:1000::",
        "3fff:ffff:" ONES6, "2606:4700:4700::1111",
    };
    static const char *const closed_ones[] = {
        "::",             /* unspecified */
        "::1",            /* loopback */
        "::1:808:808",    /* behind the IPv4-compatible ones */
        "::fffe:808:808", /* before the mapped */
        "::1:0:808:808",  /* behind them */
        "64:ff9a:ffff:" ONES3 ":808:808",
        "64:ff9b::1:808:808", /* behind NAT64 */
        "64:ff9b:1::",        /* NAT64 of one's own */
        "64:ff9b:1:ffff:" ONES3 ":ffff",
        "100::", /* discard */
        "100::ffff:" ONES3,
        "1fff:ffff:" ONES6,  /* the last before what is given out */
        "4000::",            /* the first behind it */
        "2001::",            /* Teredo of 255.255.255.255 */
        "2001:0:" ONES6,     /* Teredo of 0.0.0.0 */
        "2001:1::f7f7:f7f7", /* protocols */
        "2001:2::",          /* benchmarks */
        "2001:10::",         /* ORCHID */
        "2001:20::",
        "2001:1ff:" ONES6,
        "2001:db8::", /* documents */
        "2001:db8:" ONES6,
        "3fff::",
        "3fff:fff:" ONES6,
        "5f00::",        /* segment routing */
        "fc00::",        /* unique local */
        "fd00:ec2::254", /* a cloud's metadata */
        "fdff:ffff:" ONES6,
        "fe80::", /* link-local */
        "febf:ffff:" ONES6,
        "fec0::", /* site-local */
        "ff00::", /* multicast */
        "ff02::1",
        "ffff:ffff:" ONES6,
    };
    for (size_t i = 0; i < sizeof public_ones / sizeof *public_ones; i++)
        CHECK(is_public6(public_ones[i]));
    for (size_t i = 0; i < sizeof closed_ones / sizeof *closed_ones; i++)
        CHECK(!is_public6(closed_ones[i]));
}

static bool is_link4(const char *text) {
    struct sockaddr_in address = {.sin_family = AF_INET};
    CHECK(inet_pton(AF_INET, text, &address.sin_addr) == 1);
    return cogpu_address_class_of((const struct sockaddr *)&address) == COGPU_ADDRESS_LINK_LOCAL;
}

static bool is_link6(const char *text) {
    struct sockaddr_in6 address = {.sin6_family = AF_INET6};
    CHECK(inet_pton(AF_INET6, text, &address.sin6_addr) == 1);
    return cogpu_address_class_of((const struct sockaddr *)&address) == COGPU_ADDRESS_LINK_LOCAL;
}

/* What allow_private_addresses does not open: links, and where clouds serve metadata. */
static void link_local_and_metadata_addresses(void) {
    static const char *const links4[] = {"169.254.0.0",     "169.254.169.254", "169.254.170.2",
                                         "169.254.255.255", "168.63.129.16",   "100.100.100.200",
                                         "192.0.0.192"};
    static const char *const others4[] = {
        "169.253.255.255", "169.255.0.0", "168.63.129.15",   "168.63.129.17", "100.100.100.199",
        "100.100.100.201", "127.0.0.1",   "192.0.0.191",     "192.0.0.193",   "10.0.0.1",
        "172.16.0.1",      "192.168.0.1", "255.255.255.255", "8.8.8.8"};
    static const char *const links6[] = {"fe80::",
                                         "fe80::1",
                                         "febf:ffff:" ONES6,
                                         "fd00:ec2::254",
                                         "fd00:ec2::23",
                                         "fd20:ce::254",
                                         "fd00:c1::a9fe:a9fe",
                                         "fd00:42::42",
                                         "64:ff9b:1:a9fe:a9:fe00::",
                                         "64:ff9b:1:00a9:fe:a9fe::",
                                         "64:ff9b:1:0:a9:fea9:fe00::"};
    static const char *const others6[] = {
        "fe7f:ffff:" ONES6,     "fec0::",       "fd00:ec1:ffff:" ONES3 ":ffff:ffff",
        "fd00:ec3::",           "fd20:cf::254", "fd00:c2::1",
        "fd00:43::42",          "::1",          "64:ff9b:1::a00:1",
        "2606:4700:4700::1111", "ff02::1"};
    for (size_t i = 0; i < sizeof links4 / sizeof *links4; i++) {
        uint8_t a[4];
        char six[INET6_ADDRSTRLEN];
        static const char *const forms[] = {"::%s", "::ffff:%s", "::ffff:0:%s", "64:ff9b::%s",
                                            "64:ff9b:1::%s"};
        CHECK(is_link4(links4[i]));
        for (size_t k = 0; k < sizeof forms / sizeof *forms; k++) {
            size_t bytes = strlen(forms[k]) - 2;
            memcpy(six, forms[k], bytes);
            snprintf(six + bytes, sizeof six - bytes, "%s", links4[i]);
            CHECK(is_link6(six));
        }
        CHECK(inet_pton(AF_INET, links4[i], a) == 1);
        snprintf(six, sizeof six, "2002:%02x%02x:%02x%02x::1", a[0], a[1], a[2], a[3]);
        CHECK(is_link6(six));
        snprintf(six, sizeof six, "2001:0:808:808:0:1:%02x%02x:%02x%02x", 255 - a[0], 255 - a[1],
                 255 - a[2], 255 - a[3]);
        CHECK(is_link6(six));
    }
    for (size_t i = 0; i < sizeof others4 / sizeof *others4; i++)
        CHECK(!is_link4(others4[i]));
    for (size_t i = 0; i < sizeof links6 / sizeof *links6; i++)
        CHECK(is_link6(links6[i]));
    for (size_t i = 0; i < sizeof others6 / sizeof *others6; i++)
        CHECK(!is_link6(others6[i]));
}

static void hosts_are_found_in_lists(void) {
    CHECK(cogpu_url_has_host_of("https://a.example/x", "http://A.EXAMPLE:81/y"));
    CHECK(!cogpu_url_has_host_of("https://a.example/x", "https://b.a.example/x"));
    CHECK(!cogpu_url_has_host_of("https://a.example/x", "nothing"));
    CHECK(cogpu_url_has_host_in("http://store.local:9000/x", "other, Store.Local"));
    CHECK(cogpu_url_has_host_in("http://[::0001]/x", "[::1]"));
    CHECK(!cogpu_url_has_host_in("http://store.local/x", "xstore.local,store.locally,local"));
    CHECK(!cogpu_url_has_host_in("http://store.local/x", "") &&
          !cogpu_url_has_host_in("http://store.local/x", NULL));
}

static void other_families_are_closed(void) {
    struct sockaddr_un local = {.sun_family = AF_UNIX, .sun_path = "/tmp/x"};
    struct sockaddr_in nowhere = {.sin_family = AF_UNSPEC};
    inet_pton(AF_INET, "8.8.8.8", &nowhere.sin_addr);
    CHECK(!is_public((const struct sockaddr *)&local));
    CHECK(!is_public((const struct sockaddr *)&nowhere));
}

TESTS(url) {
    RUN(urls_differ_from_paths);
    RUN(parts_are_found);
    RUN(user_info_is_kept_apart);
    RUN(ipv6_hosts_have_one_form);
    RUN(numeric_hosts_are_left_alone);
    RUN(the_normal_form_is_valid);
    RUN(malformed_urls_are_refused);
    RUN(each_part_has_its_limit);
    RUN(schemes_are_whole_words_of_the_list);
    RUN(a_refused_scheme_is_named);
    RUN(redirects_are_resolved_as_the_rfc_says);
    RUN(redirects_stay_safe);
    RUN(redirects_have_a_limit);
    RUN(a_refused_redirect_says_where_to);
    RUN(credentials_stay_with_their_host);
    RUN(what_is_shown_has_no_secrets);
    RUN(paths_are_shown_without_secrets);
    RUN(ambiguous_urls_are_shown_without_secrets);
    RUN(closed_ranges_of_ipv4);
    RUN(ipv4_inside_ipv6_is_checked);
    RUN(link_local_and_metadata_addresses);
    RUN(hosts_are_found_in_lists);
    RUN(ranges_of_ipv6);
    RUN(other_families_are_closed);
    return FINISH();
}
