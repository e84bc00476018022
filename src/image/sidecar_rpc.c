/*
 * Rational polynomial coefficients in text files: DigitalGlobe's RPB ("name = value;" in a group
 * IMAGE) and lines "KEY: value" (_RPC.TXT of GeoEye, .rpc of EROS), and in metadata of GDAL. All
 * give the 92 numbers of tag 50844.
 */
#include "base/text.h"
#include "image/sidecar.h"
#include "image/values.h"

#include <math.h>
#include <string.h>

enum {
    SINGLES = 12,
    LISTS = 4,
    LIST_NUMBERS = 20,
    ERRORS = 2, /* which may be missing */
    LINES_MAX = 200,
    LINE_CHARS_MAX = 100,
    NUMBER_CHARS = 64
};

/* In the order of the tag. */
static const struct {
    const char *key, *rpb;
} fields[SINGLES + LISTS] = {{"ERR_BIAS", "errBias"},           {"ERR_RAND", "errRand"},
                             {"LINE_OFF", "lineOffset"},        {"SAMP_OFF", "sampOffset"},
                             {"LAT_OFF", "latOffset"},          {"LONG_OFF", "longOffset"},
                             {"HEIGHT_OFF", "heightOffset"},    {"LINE_SCALE", "lineScale"},
                             {"SAMP_SCALE", "sampScale"},       {"LAT_SCALE", "latScale"},
                             {"LONG_SCALE", "longScale"},       {"HEIGHT_SCALE", "heightScale"},
                             {"LINE_NUM_COEFF", "lineNumCoef"}, {"LINE_DEN_COEFF", "lineDenCoef"},
                             {"SAMP_NUM_COEFF", "sampNumCoef"}, {"SAMP_DEN_COEFF", "sampDenCoef"}};

static void clear_rpc(double rpc[COGPU_RPC_NUMBERS]) {
    for (int i = 0; i < COGPU_RPC_NUMBERS; i++)
        rpc[i] = NAN;
}

static bool is_complete_rpc(const double rpc[COGPU_RPC_NUMBERS]) {
    for (int i = ERRORS; i < COGPU_RPC_NUMBERS; i++)
        if (!isfinite(rpc[i]))
            return false;
    return true;
}

/* The number at the start of a text; NaN where there is none. */
static double number_of(xml_slice text) {
    char digits[NUMBER_CHARS];
    double value;
    while (text.bytes && cogpu_xml_is_blank(*text.at))
        text.at++, text.bytes--;
    size_t bytes = text.bytes < sizeof digits - 1 ? text.bytes : sizeof digits - 1;
    memcpy(digits, text.at, bytes);
    digits[bytes] = '\0';
    return cogpu_number_parse(digits, &value) && isfinite(value) ? value : NAN;
}

/* Numbers between blanks, commas and parentheses; false where there are not as many as `count`. */
static bool numbers_of(xml_slice text, double *numbers, int count) {
    const char *at = text.at, *end = at + text.bytes;
    int found = 0;
    while (at < end) {
        while (at < end && (cogpu_xml_is_blank(*at) || strchr(",()", *at)))
            at++;
        const char *start = at;
        while (at < end && !cogpu_xml_is_blank(*at) && !strchr(",()", *at))
            at++;
        if (at == start)
            break;
        if (found == count)
            return false;
        numbers[found++] = number_of((xml_slice){start, (size_t)(at - start)});
    }
    return found == count;
}

static double *place_of(double rpc[COGPU_RPC_NUMBERS], int field) {
    return field < SINGLES ? &rpc[field] : &rpc[SINGLES + (field - SINGLES) * LIST_NUMBERS];
}

static int count_of(int field) {
    return field < SINGLES ? 1 : LIST_NUMBERS;
}

/* ---- RPB ---- */

/* The next "name = value", which ends at ';' or with its line, a list with its parenthesis. */
static bool next_assignment(xml_text *in, xml_slice *name, xml_slice *value) {
    while (in->at < in->end && (cogpu_xml_is_blank(*in->at) || *in->at == ';'))
        in->at++;
    const char *start = in->at;
    while (in->at < in->end && !cogpu_xml_is_blank(*in->at) && *in->at != '=' && *in->at != ';')
        in->at++;
    *name = (xml_slice){start, (size_t)(in->at - start)};
    while (in->at < in->end && (*in->at == ' ' || *in->at == '\t'))
        in->at++;
    *value = (xml_slice){in->at, 0};
    if (in->at == in->end || *in->at != '=')
        return in->at < in->end; /* a word of its own, as END */
    for (start = ++in->at; in->at < in->end && (*in->at == ' ' || *in->at == '\t');)
        in->at++;
    bool is_list = in->at < in->end && *in->at == '(';
    while (in->at < in->end && *in->at != ';' && (is_list ? *in->at != ')' : *in->at != '\n'))
        in->at++;
    *value = (xml_slice){start, (size_t)(in->at - start)};
    in->at += is_list && in->at < in->end && *in->at == ')';
    return true;
}

static void take_rpb_field(xml_slice name, xml_slice value, double rpc[COGPU_RPC_NUMBERS]) {
    for (int i = 0; i < SINGLES + LISTS; i++)
        if (cogpu_xml_is_same(name, fields[i].rpb) &&
            !numbers_of(value, place_of(rpc, i), count_of(i)))
            *place_of(rpc, i) = NAN;
}

static bool is_value(xml_slice value, const char *word) {
    while (value.bytes && cogpu_xml_is_blank(*value.at))
        value.at++, value.bytes--;
    while (value.bytes && cogpu_xml_is_blank(value.at[value.bytes - 1]))
        value.bytes--;
    return cogpu_xml_is_same(value, word);
}

bool cogpu_rpb_parse(xml_slice text, double rpc[COGPU_RPC_NUMBERS]) {
    xml_text in = {text.at, text.at + text.bytes};
    xml_slice name, value;
    bool is_inside = false;
    clear_rpc(rpc);
    while (next_assignment(&in, &name, &value)) {
        if (cogpu_xml_is_same(name, "BEGIN_GROUP"))
            is_inside = is_value(value, "IMAGE");
        else if (cogpu_xml_is_same(name, "END_GROUP"))
            is_inside = false;
        else if (is_inside)
            take_rpb_field(name, value, rpc);
    }
    return is_complete_rpc(rpc);
}

/* ---- lines "KEY: value" ---- */

/* The place of a key, with the number of its coefficient; NULL for a key that is none. */
static double *place_of_key(xml_slice key, double rpc[COGPU_RPC_NUMBERS]) {
    for (int i = 0; i < SINGLES; i++)
        if (cogpu_xml_is_same(key, fields[i].key))
            return place_of(rpc, i);
    for (int i = SINGLES; i < SINGLES + LISTS; i++) {
        size_t stem = strlen(fields[i].key);
        if (key.bytes <= stem + 1 || key.bytes > stem + 3 || key.at[stem] != '_' ||
            !cogpu_xml_is_same((xml_slice){key.at, stem}, fields[i].key))
            continue;
        double index = number_of((xml_slice){key.at + stem + 1, key.bytes - stem - 1});
        if (index >= 1 && index <= LIST_NUMBERS && key.at[stem + 1] != '0')
            return place_of(rpc, i) + (int)index - 1;
    }
    return NULL;
}

/* The first line of a key counts, as in GDAL. */
static void take_line(xml_slice line, double rpc[COGPU_RPC_NUMBERS]) {
    size_t key = 0;
    while (key < line.bytes && line.at[key] != ':' && line.at[key] != '=')
        key++;
    if (key == line.bytes)
        return;
    double *place = place_of_key((xml_slice){line.at, key}, rpc);
    if (place && isnan(*place))
        *place = number_of((xml_slice){line.at + key + 1, line.bytes - key - 1});
}

bool cogpu_rpc_text_parse(xml_slice text, double rpc[COGPU_RPC_NUMBERS]) {
    const char *at = text.at, *end = at + text.bytes;
    clear_rpc(rpc);
    for (int lines = 0; at < end && lines < LINES_MAX; lines++) {
        const char *stop = at;
        while (stop < end && *stop != '\n' && *stop != '\r')
            stop++;
        if (stop - at > LINE_CHARS_MAX)
            break;
        take_line((xml_slice){at, (size_t)(stop - at)}, rpc);
        while (stop < end && *stop == '\r') /* CR CR LF is the end of one line, too */
            stop++;
        at = stop + (stop < end && *stop == '\n');
    }
    return is_complete_rpc(rpc);
}

/* ---- metadata ---- */

bool cogpu_rpc_items_parse(const cogpu_metadata *metadata, double rpc[COGPU_RPC_NUMBERS]) {
    clear_rpc(rpc);
    for (uint32_t k = 0; k < metadata->item_count; k++) {
        const cogpu_metadata_item *item = &metadata->items[k];
        if (item->band != 0 || !is_same_name(item->domain, "RPC"))
            continue;
        xml_slice value = {item->value, strlen(item->value)};
        for (int i = 0; i < SINGLES + LISTS; i++) {
            if (!is_same_name(item->name, fields[i].key))
                continue;
            if (i < SINGLES)
                rpc[i] = number_of(value);
            else if (!numbers_of(value, place_of(rpc, i), LIST_NUMBERS))
                *place_of(rpc, i) = NAN;
        }
    }
    return is_complete_rpc(rpc);
}
