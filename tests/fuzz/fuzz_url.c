/*
 * Input: the text of a URL and, after a line feed, a Location. What is accepted must have
 * the normal form that url.h promises and mean the same when it is read again; no redirect leaves
 * TLS; an IPv4 address has the same class alone and inside of IPv6.
 */
#include "io/http/address.h"
#include "io/http/url.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds) {
    if (!holds)
        abort();
}

static void check_url(const cogpu_url *url) {
    size_t bytes = strlen(url->text), host = strlen(url->scheme) + 3;
    must(url->path <= url->query && url->query <= bytes && url->text[url->path] == '/');
    must(url->host[0] && strncmp(url->text + host, url->host, strlen(url->host)) == 0);
    must(!url->text[url->query] || url->text[url->query] == '?');
    must(strcspn(url->text, "?") == url->query && strcspn(url->text, "#\\\" ") == bytes);
    for (size_t i = 0; i < bytes; i++) {
        must(url->text[i] > ' ' && url->text[i] < 0x7f);
        must(url->text[i] != '%' || strspn(url->text + i + 1, "0123456789abcdefABCDEF") >= 2);
    }
}

static void check_again(const cogpu_url *url) {
    cogpu_url again;
    must(cogpu_url_parse(url->text, url->scheme, &again, NULL) == COGPU_OK);
    must(strcmp(again.text, url->text) == 0 && again.port == url->port && !again.user[0]);
    must(again.path == url->path && again.query == url->query);
    must(cogpu_url_same_host(url->text, again.text));
}

static void check_shown(const cogpu_url *url, size_t capacity) {
    char *shown = malloc(capacity); /* of its exact size, so that ASan sees an overrun */
    if (!shown)
        return;
    cogpu_url_shown(url, shown, capacity);
    const char *query = strchr(shown, '?');
    must(strlen(shown) < capacity && (!query || strcmp(query, "?...") == 0));
    free(shown);
}

static void check_redirect(const char *base, const char *location) {
    char text[COGPU_URL_BYTES];
    cogpu_error error;
    cogpu_url url;
    if (cogpu_url_resolve(base, location, text, sizeof text, &error) != COGPU_OK) {
        must(error.status == COGPU_IO_ERROR);
        return;
    }
    must(cogpu_url_parse(text, "http,https", &url, NULL) == COGPU_OK);
    must(strcmp(url.text, text) == 0);
    check_url(&url);
    must(strncmp(base, "https:", 6) != 0 || strncmp(text, "https:", 6) == 0);
    size_t dots = strcspn(text + url.path, "?");
    for (size_t i = 0; i + 3 < dots; i++)
        must(strncmp(text + url.path + i, "/../", 4) != 0);
}

static void check_address(const uint8_t *data) {
    struct sockaddr_in four = {.sin_family = AF_INET};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6}, mapped = six;
    memcpy(&four.sin_addr, data, 4);
    memcpy(&six.sin6_addr, data, 16);
    memset(mapped.sin6_addr.s6_addr + 10, 0xff, 2);
    memcpy(mapped.sin6_addr.s6_addr + 12, data, 4);
    must(cogpu_address_class_of((struct sockaddr *)&four) ==
         cogpu_address_class_of((struct sockaddr *)&mapped));
    cogpu_address_class_of((struct sockaddr *)&six);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    cogpu_url url;
    char *text = malloc(size + 1);
    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    if (size >= 16)
        check_address(data);
    char *location = strchr(text, '\n');
    if (location)
        *location++ = '\0';
    if (cogpu_url_parse(text, NULL, &url, NULL) == COGPU_OK) {
        must(cogpu_url_is(text));
        check_url(&url);
        check_again(&url);
        check_shown(&url, size % 64 + 1);
        if (location)
            check_redirect(url.text, location);
    }
    free(text);
    return 0;
}
