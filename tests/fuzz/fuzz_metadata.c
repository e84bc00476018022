/* Input: the XML of GDAL_METADATA. Names and values are never longer than the document. */
#include "image/image.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    cogpu_arena arena;
    cogpu_metadata metadata;
    cogpu_error error;
    const char *warning = NULL;
    char *xml = malloc(size ? size : 1); /* so that a read past the end is seen */
    if (!xml)
        return 0;
    memcpy(xml, data, size);
    cogpu_arena_open(&arena, 64 << 20);
    if (cogpu_metadata_parse(xml, size, &arena, &metadata, &warning, &error) == COGPU_OK)
        for (uint32_t i = 0; i < metadata.item_count; i++) {
            const cogpu_metadata_item *item = &metadata.items[i];
            if (strlen(item->name) + strlen(item->value) + strlen(item->domain) > size ||
                strlen(item->role) > size || item->band < 0)
                abort();
        }
    cogpu_arena_close(&arena);
    free(xml);
    return 0;
}
