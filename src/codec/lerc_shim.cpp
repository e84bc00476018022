/*
 * The LERC library behind functions that throw nothing: std::bad_alloc becomes a status, and so
 * does any other exception.
 *
 * The library catches some of its own exceptions and then reports a plain failure, as for a damaged
 * blob. In that case we check whether there is memory. If so, we call the library again, and its
 * second result counts.
 */
#include "codec/lerc_shim.h"

#include <Lerc_c_api.h>
#include <cstddef>
#include <new>

namespace {

enum : std::size_t { BYTES_OF_SAMPLE = 16, BYTES_OF_TABLES = 1 << 20 };
enum : unsigned int { LERC_FAILED = 1 };

/* More than the library allocates at once for such an image. */
std::size_t most_memory(const cogpu_lerc_shape &shape) {
    return static_cast<std::size_t>(shape.width) * shape.height * shape.depth * shape.bands *
               BYTES_OF_SAMPLE +
           BYTES_OF_TABLES;
}

bool has_memory(std::size_t bytes) {
    void *volatile memory = operator new(bytes, std::nothrow); /* not to be optimised away */
    operator delete(memory);
    return memory != nullptr;
}

template <typename Call> uint32_t without_exceptions(Call call) {
    try {
        return call();
    } catch (const std::bad_alloc &) {
        return COGPU_LERC_MEMORY;
    } catch (...) {
        return COGPU_LERC_EXCEPTION;
    }
}

template <typename Call> uint32_t guarded(std::size_t memory, Call call) {
    const uint32_t status = without_exceptions(call);
    if (status != LERC_FAILED)
        return status;
    return has_memory(memory) ? without_exceptions(call) : static_cast<uint32_t>(COGPU_LERC_MEMORY);
}

} // namespace

uint32_t cogpu_lerc_info(const uint8_t *blob, uint32_t bytes, uint32_t *info, uint32_t fields) {
    return guarded(BYTES_OF_TABLES, [&] {
        return lerc_getBlobInfo(blob, bytes, info, nullptr, static_cast<int>(fields), 0);
    });
}

uint32_t cogpu_lerc_read(const cogpu_lerc_shape *shape, const uint8_t *blob, uint32_t bytes,
                         uint8_t *masks, void *samples) {
    return guarded(most_memory(*shape), [&] {
        return lerc_decode(blob, bytes, static_cast<int>(shape->masks), masks,
                           static_cast<int>(shape->depth), static_cast<int>(shape->width),
                           static_cast<int>(shape->height), static_cast<int>(shape->bands),
                           shape->type, samples);
    });
}

uint32_t cogpu_lerc_write(const cogpu_lerc_shape *shape, int version, const void *samples,
                          const uint8_t *masks, double max_error, uint8_t *blob, uint32_t capacity,
                          uint32_t *bytes) {
    return guarded(most_memory(*shape), [&] {
        return lerc_encodeForVersion(samples, version, shape->type, static_cast<int>(shape->depth),
                                     static_cast<int>(shape->width),
                                     static_cast<int>(shape->height),
                                     static_cast<int>(shape->bands), static_cast<int>(shape->masks),
                                     masks, max_error, blob, capacity, bytes);
    });
}
