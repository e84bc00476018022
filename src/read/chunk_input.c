/* Stored bytes of a block that several threads decode: chunks.h. */
#include "read/chunks.h"

#include "base/math.h"

cogpu_status cogpu_chunk_input_open(const cogpu_chunk_task *task, struct chunk_input *input) {
    const cogpu_storage *storage = task->plan->storage;
    *input = (struct chunk_input){.io = storage->tiff->io,
                                  .meter = task->plan->meter,
                                  .span = task->span,
                                  .segment_bytes = task->sizes.segment_bytes};
    input->reverses_bits = storage->format.fill_order == 2;
    input->mapped = input->reverses_bits ? NULL : cogpu_io_mapped(input->io, task->span.offset);
    pthread_mutex_init(&input->lock, NULL);
    pthread_cond_init(&input->loaded, NULL);
    if (input->mapped)
        return COGPU_OK;
    const uint32_t count = CHUNK_SEGMENTS * task->threads;
    input->segments = cogpu_allocate(count * sizeof *input->segments);
    if (!input->segments)
        return COGPU_OUT_OF_MEMORY;
    for (input->segment_count = 0; input->segment_count < count;)
        input->segments[input->segment_count++] = (struct chunk_segment){.number = 0};
    return COGPU_OK;
}

void cogpu_chunk_input_close(struct chunk_input *input) {
    for (uint32_t i = 0; i < input->segment_count; i++)
        cogpu_unmap(input->segments[i].memory, (size_t)input->segment_bytes);
    cogpu_release(input->segments);
    pthread_cond_destroy(&input->loaded);
    pthread_mutex_destroy(&input->lock);
}

/* How soon memory of a segment may be used for another: the higher, the sooner. */
static unsigned rank_of(const struct chunk_input *input, const struct chunk_segment *segment) {
    if (!segment->is_loaded)
        return 3;
    if (segment->number < input->front)
        return 2;
    return segment->is_start ? 0 : 1;
}

/* The segment, or else one that no thread uses: each thread uses one at most, so there is one. */
static struct chunk_segment *choose_segment(struct chunk_input *input, uint64_t number) {
    struct chunk_segment *best = NULL;
    unsigned best_rank = 0;
    for (uint32_t i = 0; i < input->segment_count; i++) {
        struct chunk_segment *segment = &input->segments[i];
        const unsigned rank = rank_of(input, segment);
        if (segment->number == number && (segment->is_loaded || segment->is_loading))
            return segment;
        if (segment->users == 0 && (!best || rank > best_rank ||
                                    (rank == best_rank && segment->used_at < best->used_at))) {
            best = segment;
            best_rank = rank;
        }
    }
    return best;
}

/* Reads a segment, without the lock. */
static bool load_segment(struct chunk_input *input, struct chunk_segment *segment, size_t bytes) {
    if (!segment->memory)
        segment->memory = cogpu_map((size_t)input->segment_bytes);
    if (!segment->memory ||
        cogpu_io_read_metered(input->io,
                              input->span.offset + segment->number * input->segment_bytes, bytes,
                              segment->memory, input->meter, NULL) != COGPU_OK)
        return false;
    if (input->reverses_bits)
        cogpu_cpu_reverse_bits(segment->memory, bytes, segment->memory);
    return true;
}

static size_t segment_size(const struct chunk_input *input, uint64_t number) {
    return (size_t)min_u64(input->segment_bytes, input->span.bytes - number * input->segment_bytes);
}

/* NULL if it cannot be read. */
static struct chunk_segment *use_segment(const struct chunk_reader *reader, uint64_t number) {
    struct chunk_input *input = reader->input;
    pthread_mutex_lock(&input->lock);
    if (reader->purpose == READS_FRONT)
        input->front = number;
    struct chunk_segment *segment = choose_segment(input, number);
    segment->used_at = ++input->uses;
    segment->users++;
    while (segment->is_loading)
        pthread_cond_wait(&input->loaded, &input->lock);
    if (segment->number != number || !segment->is_loaded) {
        segment->number = number;
        segment->is_loaded = segment->is_start = false;
        segment->is_loading = true;
        pthread_mutex_unlock(&input->lock);
        const bool is_loaded = load_segment(input, segment, segment_size(input, number));
        pthread_mutex_lock(&input->lock);
        segment->is_loading = false;
        segment->is_loaded = is_loaded;
        input->read += is_loaded ? segment_size(input, number) : 0;
        pthread_cond_broadcast(&input->loaded);
    }
    segment->is_start |= reader->purpose == READS_START;
    const bool is_there = segment->is_loaded;
    segment->users -= !is_there;
    pthread_mutex_unlock(&input->lock);
    return is_there ? segment : NULL;
}

void cogpu_chunk_end_use(struct chunk_reader *reader) {
    if (!reader->segment)
        return;
    pthread_mutex_lock(&reader->input->lock);
    reader->segment->users--;
    pthread_mutex_unlock(&reader->input->lock);
    reader->segment = NULL;
}

bool cogpu_chunk_bytes_at(struct chunk_reader *reader, uint64_t offset, const uint8_t **bytes,
                          size_t *count) {
    struct chunk_input *input = reader->input;
    cogpu_chunk_end_use(reader);
    if (offset >= input->span.bytes)
        return false;
    if (input->mapped) {
        *bytes = input->mapped + offset;
        *count = (size_t)(input->span.bytes - offset);
        return true;
    }
    const uint64_t number = offset / input->segment_bytes;
    const size_t skipped = (size_t)(offset % input->segment_bytes);
    reader->segment = use_segment(reader, number);
    if (!reader->segment)
        return false;
    *bytes = reader->segment->memory + skipped;
    *count = segment_size(input, number) - skipped;
    return true;
}

static bool set_input(struct chunk_reader *reader, cogpu_inflater *inflater, uint64_t offset) {
    size_t count;
    if (!cogpu_chunk_bytes_at(reader, offset, &inflater->in, &count))
        return false;
    inflater->in_end = inflater->in + count;
    inflater->in_end_offset = offset + count;
    return true;
}

static bool set_next_input(cogpu_inflater *inflater) {
    return set_input(inflater->user, inflater, inflater->in_end_offset);
}

bool cogpu_chunk_seek(struct chunk_reader *reader, cogpu_inflater *inflater, uint64_t bit) {
    inflater->more = set_next_input;
    inflater->user = reader;
    inflater->bits = 0;
    inflater->bit_count = 0;
    if (!set_input(reader, inflater, bit / 8) || !cogpu_inflate_need_bits(inflater, 8))
        return false;
    (void)inflate_take_bits(inflater, bit % 8);
    return true;
}
