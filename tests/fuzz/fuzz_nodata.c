/* Input: a sample type, then the text of GDAL_NODATA. */
#include "image/image.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint8_t sample[16];
    cogpu_nodata nodata;
    if (size < 1)
        return 0;
    cogpu_type type = (cogpu_type)(data[0] % (COGPU_TYPE_CF64 + 2));
    char *text = malloc(size);
    if (!text)
        return 0;
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    cogpu_nodata_parse(text, type, &nodata);
    cogpu_nodata_sample(&nodata, type, sample);
    if (nodata.text != text ||
        (type >= COGPU_TYPE_U8 && type <= COGPU_TYPE_I64 && nodata.matches && isnan(nodata.value)))
        abort();
    free(text);
    return 0;
}
