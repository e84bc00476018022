/* World files: six numbers, one a line. The rules are those of GDALReadWorldFile. */
#include "image/sidecar.h"
#include "image/values.h"

#include <math.h>
#include <string.h>

enum { LINES_MAX = 100, LINE_CHARS_MAX = 100, NUMBERS = 6 };

bool cogpu_transform_is_valid(const double transform[6]) {
    double area = transform[1] * transform[5] - transform[2] * transform[4];
    bool is_finite = isfinite(area);
    for (int i = 0; i < 6; i++)
        is_finite = is_finite && isfinite(transform[i]);
    return is_finite && area != 0;
}

static bool is_blank_line(const char *line, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        if (!cogpu_xml_is_blank(line[i]))
            return false;
    return true;
}

bool cogpu_world_parse(xml_slice text, double transform[6]) {
    double numbers[NUMBERS];
    const char *at = text.at, *end = at + text.bytes;
    int found = 0;
    for (int lines = 0; at < end && lines < LINES_MAX && found < NUMBERS; lines++) {
        char line[LINE_CHARS_MAX + 1];
        const char *next = memchr(at, '\n', (size_t)(end - at));
        size_t bytes = (size_t)((next ? next : end) - at);
        if (bytes > 0 && at[bytes - 1] == '\r')
            bytes--;
        if (bytes > LINE_CHARS_MAX)
            break;
        memcpy(line, at, bytes);
        line[bytes] = '\0';
        if (!is_blank_line(line, bytes) && !cogpu_number_parse(line, &numbers[found++]))
            numbers[found - 1] = 0; /* as GDAL reads text that is not a number */
        at = next ? next + 1 : end;
    }
    if (found < NUMBERS)
        return false;
    double a = numbers[0], d = numbers[1], b = numbers[2], e = numbers[3];
    double corner[6] = {numbers[4] - 0.5 * a - 0.5 * b, a, b, numbers[5] - 0.5 * d - 0.5 * e, d, e};
    memcpy(transform, corner, sizeof corner);
    return cogpu_transform_is_valid(transform);
}
