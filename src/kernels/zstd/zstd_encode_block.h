/*
 * The content of a compressed block (RFC 8878, 3.1.1.3): literals section, then sequences section.
 *
 *     literals     | header | tree description | jump table | 4 Huffman streams |
 *     sequences    | number of sequences | modes | FSE table descriptions | bit stream |
 *
 * All sizes are known before anything is written; scans over the threads give each its position.
 * Literals stay in the segments of their threads. The four streams have equal numbers of literals,
 * so a stream can begin inside a segment.
 */
#ifndef COGPU_KERNELS_ZSTD_ZSTD_ENCODE_BLOCK_H
#define COGPU_KERNELS_ZSTD_ZSTD_ENCODE_BLOCK_H

#include "kernels/zstd/zstd_encode_huffman.h"
#include "kernels/zstd/zstd_encode_sequences.h"

/* ---- literals section (3.1.1.3.1) ----------------------------------------------------------- */

enum { JUMP_TABLE_BYTES = 2 * (HUFFMAN_STREAMS - 1) }; /* sizes of the first three streams */

/* How the literals of a part are written. */
struct literals_plan {
    /* Literals_Block_Type; bytes of the section, and those before streams or raw literals. */
    uint32_t type, bytes, header_bytes;
    uint32_t starts[HUFFMAN_STREAMS]; /* of streams, in bytes of the section */
    uint32_t bits[HUFFMAN_STREAMS];
    uint32_t own_before; /* bits of all literals before those of this thread */
};

/* Literals of each stream but the last, which may have fewer. */
DEVICE_FN uint32_t stream_literals(uint32_t literals) {
    return (literals + HUFFMAN_STREAMS - 1) / HUFFMAN_STREAMS;
}

/* Bits of a stream and its end mark, in bytes. */
DEVICE_FN uint32_t stream_bytes(uint32_t bits) {
    return bits / 8 + 1;
}

/* Sums the bits of literals. The thread that has the first literal of a stream stores where the
 * stream begins. */
DEVICE_FN void measure_streams(struct zstd_encode_shared *shared, const struct sequence_list *list,
                               struct literals_plan *plan) {
    const uint8_t *own = padded_byte(shared->u.parse.choices, segment_begin());
    const uint32_t each = stream_literals(list->literals);
    uint32_t bits = 0, total;
    for (uint32_t i = 0; i < list->own_literals; i++)
        bits += shared->literal_codes[own[i]] >> 16;
    plan->own_before = block_scan(shared->warp_sums, bits, &total);
    bits = plan->own_before;
    uint32_t stream = (list->own_first + each - 1) / each; /* the next that begins */
    for (uint32_t i = 0; i < list->own_literals; i++) {
        if (list->own_first + i == stream * each)
            shared->stream_starts[stream++] = bits;
        bits += shared->literal_codes[own[i]] >> 16;
    }
    if (thread_index() == 0)
        shared->stream_starts[HUFFMAN_STREAMS] = total;
    sync_block();
    for (uint32_t i = 0; i < HUFFMAN_STREAMS; i++)
        plan->bits[i] = shared->stream_starts[i + 1] - shared->stream_starts[i];
}

/* Literals_Section_Header (3.1.1.3.1.1) of raw and RLE literals: a size of 5, 12 or 20 bits. */
DEVICE_FN uint32_t raw_header_bytes(uint32_t literals) {
    return literals < 1 << 5 ? 1 : literals < 1 << 12 ? 2 : 3;
}

/* Of compressed literals: two sizes of 10, 14 or 18 bits. */
DEVICE_FN uint32_t compressed_header_bytes(uint32_t literals) {
    return literals < 1 << 10 ? 3 : literals < 1 << 14 ? 4 : 5;
}

DEVICE_FN struct literals_plan plan_literals(struct zstd_encode_shared *shared,
                                             const struct sequence_list *list) {
    const uint32_t count = list->literals;
    struct literals_plan plan = {RAW_LITERALS, 0, raw_header_bytes(count), {0}, {0}, 0};
    plan.bytes = plan.header_bytes + count;
    if (count > 0 && shared->used == 1) {
        plan.type = RLE_LITERALS;
        plan.bytes = plan.header_bytes + 1;
    }
    if (count < HUFFMAN_LITERALS_MIN || shared->used < 2 ||
        shared->tree_description_bytes == UINT32_MAX)
        return plan;
    measure_streams(shared, list, &plan);
    const uint32_t header =
        compressed_header_bytes(count) + shared->tree_description_bytes + JUMP_TABLE_BYTES;
    uint32_t bytes = header;
    for (uint32_t i = 0; i < HUFFMAN_STREAMS; i++) {
        plan.starts[i] = bytes;
        bytes += stream_bytes(plan.bits[i]);
    }
    if (bytes < plan.bytes) {
        plan.type = COMPRESSED_LITERALS;
        plan.header_bytes = header;
        plan.bytes = bytes;
    }
    return plan;
}

/* Literals_Section_Header as a little-endian number: type, Size_Format, one or two sizes. */
DEVICE_FN uint64_t raw_header(uint32_t type, uint32_t count, uint32_t header_bytes) {
    const uint32_t size_format = header_bytes == 1 ? 0 : header_bytes == 2 ? 1 : 3;
    return type | (uint64_t)count << (header_bytes == 1 ? 3 : 4) | (uint64_t)size_format << 2;
}

DEVICE_FN uint64_t compressed_header(const struct literals_plan *plan, uint32_t count,
                                     uint32_t header_bytes) {
    const uint32_t compressed = plan->bytes - header_bytes, size_format = header_bytes - 2;
    return plan->type | size_format << 2 | (uint64_t)count << 4 |
           (uint64_t)compressed << (header_bytes == 3   ? 14
                                    : header_bytes == 4 ? 18
                                                        : 22);
}

/* Everything before the streams: byte by byte, each byte by one thread. */
DEVICE_FN void write_literals_header(const struct zstd_encode_shared *shared,
                                     const struct sequence_list *list,
                                     const struct literals_plan *plan, uint8_t *out) {
    const bool is_compressed = plan->type == COMPRESSED_LITERALS;
    const uint32_t header_bytes =
        is_compressed ? compressed_header_bytes(list->literals) : plan->header_bytes;
    const uint64_t header = is_compressed ? compressed_header(plan, list->literals, header_bytes)
                                          : raw_header(plan->type, list->literals, header_bytes);
    if (thread_index() < header_bytes)
        out[thread_index()] = (uint8_t)(header >> 8 * thread_index());
    if (plan->type == RLE_LITERALS && shared->literal_counts[thread_index()] > 0)
        out[header_bytes] = (uint8_t)thread_index();
    if (!is_compressed)
        return;
    for (uint32_t i = thread_index(); i < shared->tree_description_bytes; i += PART_THREADS)
        out[header_bytes + i] = ((const uint8_t *)shared->tree_description)[i];
    if (thread_index() < JUMP_TABLE_BYTES)
        out[header_bytes + shared->tree_description_bytes + thread_index()] =
            (uint8_t)(stream_bytes(plan->bits[thread_index() / 2]) >> 8 * (thread_index() % 2));
}

/* Raw literals, or the Huffman streams; each thread the literals of its segment. */
DEVICE_FN void write_literals(struct zstd_encode_shared *shared, const struct sequence_list *list,
                              const struct literals_plan *plan, uint8_t *out) {
    const uint8_t *own = padded_byte(shared->u.parse.choices, segment_begin());
    const uint32_t each = stream_literals(list->literals);
    struct backward_writer w = {NULL, 0, 0, 0, false};
    uint32_t bits = plan->own_before;
    if (plan->type == RAW_LITERALS)
        for (uint32_t i = 0; i < list->own_literals; i++)
            out[plan->header_bytes + list->own_first + i] = own[i];
    if (plan->type != COMPRESSED_LITERALS)
        return;
    uint32_t stream = list->own_first / each;
    for (uint32_t i = 0; i < list->own_literals; i++) {
        const uint32_t literal = list->own_first + i, code = shared->literal_codes[own[i]];
        stream += literal == (stream + 1) * each;
        const bool begins_stream = literal == stream * each;
        if (i == 0 || begins_stream) {
            const uint32_t below = shared->stream_starts[stream + 1] - bits;
            flush_backward(&w);
            w = write_below((uint32_t *)out, 8 * plan->starts[stream] + below + begins_stream);
            if (begins_stream)
                put_backward(&w, 1, 1); /* the end mark, which the decoder meets first */
        }
        put_backward(&w, code & 0xFFFF, code >> 16);
        bits += code >> 16;
    }
    flush_backward(&w);
}

/* ---- sequences section (3.1.1.3.2) ---------------------------------------------------------- */

/* Number_of_Sequences, compression modes and table descriptions. */
DEVICE_FN uint32_t sequences_header_bytes(const struct fse_table *tables, uint32_t count) {
    uint32_t bytes = count == 0 ? 1 : count < 128 ? 2 : 3;
    for (uint32_t t = 0; count > 0 && t < SEQUENCE_TABLES; t++)
        bytes += tables[t].description_bytes;
    return bytes;
}

DEVICE_FN void write_sequences_header(const struct fse_table *tables, uint32_t count,
                                      uint8_t *out) {
    const uint32_t count_bytes = count < 128 ? 1 : 2;
    uint32_t at = count_bytes + 1;
    if (thread_index() == 0) {
        out[0] = (uint8_t)(count < 128 ? count : 128 + (count >> 8));
        if (count >= 128)
            out[1] = (uint8_t)count;
        if (count > 0)
            out[count_bytes] = (uint8_t)(tables[LITERALS_LENGTH].mode << 6 |
                                         tables[OFFSET].mode << 4 | tables[MATCH_LENGTH].mode << 2);
    }
    for (uint32_t t = 0; count > 0 && t < SEQUENCE_TABLES; t++) {
        for (uint32_t i = thread_index(); i < tables[t].description_bytes; i += PART_THREADS)
            out[at + i] = ((const uint8_t *)tables[t].description)[i];
        at += tables[t].description_bytes;
    }
}

/* Bits of a sequence: extra bits of its codes, and of the state changes to the next one, which the
 * last one does not have. */
DEVICE_FN uint32_t count_sequence_bits(const struct fse_table *tables,
                                       const struct cogpu_zstd_workspace *workspace, uint32_t i,
                                       bool is_last) {
    const struct sequence_symbols symbols = get_sequence_symbols(workspace->sequences, i);
    uint32_t bits = 0;
    UNROLL
    for (uint32_t t = 0; t < SEQUENCE_TABLES; t++) {
        const struct coded_value symbol = symbols.of[t];
        bits += symbol.extra_bits;
        bits += is_last ? 0 : state_bits(&tables[t], symbol.number, workspace->u.states[t][i]);
    }
    return bits;
}

/* In the order of the decoder (3.1.1.3.2.1.2): extra bits of offset, match length and literals
 * length; then the bits that update the states of literals length, match length and offset. */
DEVICE_FN void put_sequence(struct backward_writer *w, const struct fse_table *tables,
                            const struct cogpu_zstd_workspace *workspace, uint32_t i,
                            bool is_last) {
    const struct sequence_symbols symbols = get_sequence_symbols(workspace->sequences, i);
    const struct coded_value literals_length = symbols.of[LITERALS_LENGTH],
                             offset = symbols.of[OFFSET], match_length = symbols.of[MATCH_LENGTH];
    put_backward(w, offset.extra, offset.extra_bits);
    put_backward(w, match_length.extra, match_length.extra_bits);
    put_backward(w, literals_length.extra, literals_length.extra_bits);
    if (is_last)
        return;
    put_state(w, &tables[LITERALS_LENGTH], literals_length.number,
              workspace->u.states[LITERALS_LENGTH][i]);
    put_state(w, &tables[MATCH_LENGTH], match_length.number, workspace->u.states[MATCH_LENGTH][i]);
    put_state(w, &tables[OFFSET], offset.number, workspace->u.states[OFFSET][i]);
}

/* The end mark and the initial states of the decoder, at the top of the stream. By one thread. */
DEVICE_FN void put_initial_states(const struct fse_table *tables, uint32_t *words, uint32_t top) {
    struct backward_writer w = write_below(words, top);
    put_backward(&w, 1, 1);
    for (uint32_t t = 0; t < SEQUENCE_TABLES; t++)
        put_backward(&w, tables[t].final_state, tables[t].accuracy_log);
    flush_backward(&w);
}

/* Writes the bit stream of sequences from byte `start` on, unless it reaches byte `limit`. Returns
 * the byte after it. It is put together in shared memory, where the literals were: neighbouring
 * threads have neighbouring sequences, so they write to the same words. */
DEVICE_FN uint32_t write_sequences(struct zstd_encode_shared *shared,
                                   const struct cogpu_zstd_workspace *workspace, uint32_t count,
                                   uint32_t start, uint32_t limit, uint32_t *out) {
    const struct fse_table *tables = shared->u.parse.w.tables;
    const uint32_t logs = tables[LITERALS_LENGTH].accuracy_log + tables[OFFSET].accuracy_log +
                          tables[MATCH_LENGTH].accuracy_log;
    uint32_t *words = shared->u.parse.choices, bits = 0, total;
    for (uint32_t i = thread_index(); i < count; i += PART_THREADS)
        bits += count_sequence_bits(tables, workspace, i, i + 1 == count);
    block_scan(shared->warp_sums, bits, &total);
    const uint32_t end = start + stream_bytes(total + logs);
    if (end >= limit)
        return limit;
    for (uint32_t i = start / 4 + thread_index(); 4 * i < end; i += PART_THREADS)
        words[i] = 0;
    sync_block();
    uint32_t top = 8 * start + total + logs;
    if (thread_index() == 0)
        put_initial_states(tables, words, top + 1);
    top -= logs;
    for (uint32_t base = 0; base < count; base += PART_THREADS) {
        const uint32_t i = base + thread_index();
        bits = i < count ? count_sequence_bits(tables, workspace, i, i + 1 == count) : 0;
        const uint32_t before = block_scan(shared->warp_sums, bits, &total);
        if (bits > 0) {
            struct backward_writer w = write_below(words, top - before);
            put_sequence(&w, tables, workspace, i, i + 1 == count);
            flush_backward(&w);
        }
        top -= total;
    }
    sync_block();
    /* The first word also has bytes of the header. */
    for (uint32_t i = start / 4 + thread_index(); 4 * i < end; i += PART_THREADS)
        out[i] = i == start / 4 ? out[i] | words[i] : words[i];
    return end;
}

/* ---- the block ------------------------------------------------------------------------------ */

/* Entropy codes of the part: a warp for each of the three FSE tables and the states of its
 * sequences, a fourth warp for the Huffman code. */
DEVICE_FN void build_codes(struct zstd_encode_shared *shared,
                           struct cogpu_zstd_workspace *workspace,
                           const struct sequence_list *list) {
    const struct huffman_build literals = get_literals_build(shared);
    struct fse_table *tables = shared->u.parse.w.tables;
    shared->lengths[thread_index()] = 0;
    if (thread_index() <= HUFFMAN_BITS_MAX)
        shared->length_counts[thread_index()] = 0;
    if (thread_index() == 0) {
        shared->used = 0;
        shared->tree_description_bytes = UINT32_MAX;
    }
    list_sequence_codes(shared, workspace->sequences, list->sequences);
    huffman_make_keys(&literals);
    sync_block();
    huffman_sort_symbols(&literals);
    sync_block();
    const uint32_t warp = warp_index();
    if (warp < SEQUENCE_TABLES) {
        if (list->sequences > 0) {
            build_fse_table(&tables[warp], warp);
            encode_all_states(&tables[warp], sequence_codes(shared, warp),
                              workspace->u.states[warp], list->sequences);
        }
    } else if (warp == SEQUENCE_TABLES && shared->used > 1) {
        huffman_assign_lengths(&literals);
        assign_literal_codes(shared);
        write_tree_description(shared);
    }
    sync_block();
}

/* Writes the content of a compressed block to `out`. Returns its bytes, or those of the part if it
 * is not shorter. */
DEVICE_FN uint32_t write_block(struct zstd_encode_shared *shared, const struct encode_part *part,
                               struct cogpu_zstd_workspace *workspace,
                               const struct sequence_list *list, uint8_t *out) {
    const struct fse_table *tables = shared->u.parse.w.tables;
    const uint32_t count = list->sequences;
    const words4 zeros = {0, 0, 0, 0};
    for (uint32_t i = 16 * thread_index(); i < COGPU_ZSTD_ENCODED_BYTES; i += 16 * PART_THREADS)
        store_words4(out + i, zeros);
    build_codes(shared, workspace, list);
    const struct literals_plan literals = plan_literals(shared, list);
    const uint32_t start = literals.bytes + sequences_header_bytes(tables, count);
    if (start >= part->bytes)
        return part->bytes;
    write_literals_header(shared, list, &literals, out);
    write_sequences_header(tables, count, out + literals.bytes);
    sync_block(); /* header bytes share words with the streams */
    write_literals(shared, list, &literals, out);
    sync_block();
    if (count == 0)
        return start;
    return write_sequences(shared, workspace, count, start, part->bytes, (uint32_t *)out);
}

#endif
