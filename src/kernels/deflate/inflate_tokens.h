/*
 * Tokens (literals and matches) of a segment of the stream, decoded by one thread.
 *
 * TOKEN VALUES. A thread decodes its tokens once and records them as 16-bit values; write_slots
 * then turns records into slots when the output position is known.
 *
 *     literal       1 record     LITERAL_SLOT + value
 *     match         2 records    LENGTH_TOP - length, then SLOT_END - distance
 *     subtable      1 record     its index: reads as a length, which the next record replaces
 *
 * A value is the entry's base minus its extra bits, hence the reversed lengths and distances. They
 * distinguish records: lengths and subtables are below LITERAL_SLOT, distances from BEFORE_SLICE
 * on. The records of a warp are interleaved in scratch memory (record i of thread t at i * THREADS
 * + t), so that a warp stores to neighbouring addresses.
 */
#ifndef COGPU_KERNELS_DEFLATE_INFLATE_TOKENS_H
#define COGPU_KERNELS_DEFLATE_INFLATE_TOKENS_H

#include "kernels/deflate/inflate_codes.h"

/* Where the next entry is looked up: a table's first entry, and the bits that index it. Table 0 is
 * the root table of literals and lengths: only there does a token begin. */
struct table_lookup {
    uint32_t table, mask;
};

DEVICE_FN struct table_lookup first_lookup(void) {
    struct table_lookup lookup = {0, ROOT - 1};
    return lookup;
}

DEVICE_FN struct table_lookup next_lookup(uint32_t entry, uint32_t subtable_mask) {
    struct table_lookup next = first_lookup();
    next.table = entry & DISTANCE_ROOT;
    if (entry & IS_SUBTABLE) {
        next.table = entry >> 16;
        next.mask = subtable_mask;
    }
    return next;
}

DEVICE_FN uint32_t entry_at(const struct inflate_shared *s, struct table_lookup lookup,
                            uint32_t bits) {
    return s->table[lookup.table | (bits & lookup.mask)];
}

/* Base of an entry minus its extra bits, which follow the code in `bits`. Shift counts are taken
 * modulo 32, so an entry is a shift count as it is: its low 5 bits are all bits, and after >> 5 the
 * bits of the code. */
DEVICE_FN uint32_t token_value(uint32_t entry, uint32_t bits) {
    uint32_t token_bits = bits & ~funnel_left(0, 0xFFFFFFFFu, entry);
    return (entry >> 16) - funnel_right(token_bits, 0, entry >> 5);
}

/* Decodes from any bit, whether a token begins there or not, to the first token at or after `to`.
 * Huffman codes synchronise themselves: after some dozens of tokens the decoded ones are true ones,
 * nearly always. decode_segments checks it. Invalid codes and long ones count as one bit. */
DEVICE_FN uint32_t synchronize_segment(const struct inflate_shared *s, uint32_t from, uint32_t to) {
    const uint32_t subtable_mask = (1u << s->codes.subtable_bits) - 1;
    struct bit_reader reader = open_reader(s->stage, from);
    struct table_lookup lookup = first_lookup();
    while (lookup.table != 0 || reader.bit < to) {
        uint32_t entry = entry_at(s, lookup, peek_bits(&reader));
        skip_bits(&reader, s->stage, entry & 31);
        lookup = next_lookup(entry, subtable_mask);
    }
    return reader.bit;
}

/* A thread's part of a stride: the tokens that begin in its segment. */
struct token_segment {
    uint32_t from, to; /* bit of its first token; its last token begins before `to` */
    uint32_t exit;     /* bit after its last token */
    uint32_t bytes;    /* that its tokens decode to */
    uint32_t records;
    bool is_stopped; /* it ended before `to`: its records are full, or `has_end` */
    bool has_end;    /* it met the end of block, or an invalid code */
    bool is_bad;     /* it met an invalid code */
};

/* Decodes the tokens of a segment into records. It ends: each token takes at least one bit, and
 * records are limited. */
DEVICE_FN void decode_segment(const struct inflate_shared *s, struct token_segment *segment,
                              uint16_t *records) {
    /* A token takes at most three records: subtable, length, distance. */
    enum { TOKEN_RECORDS = 3, LAST_TOKEN = RECORDS - TOKEN_RECORDS };
    const uint32_t subtable_mask = (1u << s->codes.subtable_bits) - 1;
    struct bit_reader reader = open_reader(s->stage, segment->from);
    struct table_lookup lookup = first_lookup();
    uint32_t bits = peek_bits(&reader), entry = entry_at(s, lookup, bits), count = 0, bytes = 0;
    bool is_done = reader.bit >= segment->to;
    for (;;) {
        while (!is_done & !(entry & (IS_LONG | IS_END))) { /* & instead of &&: one branch */
            uint32_t value = token_value(entry, bits);
            *records = (uint16_t)value;
            records += THREADS;
            count++;
            /* Each record counts as one byte (`count`). Corrections: the two records of a match
             * are `length` bytes, that of a subtable none. */
            if (entry & IS_LENGTH)
                bytes += LENGTH_TOP - 2 - value;
            if (entry & IS_SUBTABLE)
                bytes--;
            skip_bits(&reader, s->stage, entry & 31);
            lookup = next_lookup(entry, subtable_mask);
            bits = peek_bits(&reader);
            entry = entry_at(s, lookup, bits);
            is_done = (lookup.table == 0) & ((reader.bit >= segment->to) | (count > LAST_TOKEN));
        }
        if (is_done || (entry & IS_END))
            break;
        entry = find_long_entry(s, lookup.table, bits);
    }
    segment->has_end = !is_done;
    segment->is_bad = segment->has_end && entry >> 16 != 0;
    segment->is_stopped = segment->has_end || reader.bit < segment->to;
    segment->exit = reader.bit + (segment->has_end ? entry & 31 : 0);
    segment->bytes = bytes + count;
    /* Padding for write_slots, which loads RECORDS_AT_ONCE: 0 is no literal and no distance. */
    for (; count % RECORDS_AT_ONCE != 0; count++, records += THREADS)
        *records = 0;
    segment->records = count;
}

/* Turns records into slots of the slice. */
struct slot_writer {
    int32_t at;     /* position in the slice of the next byte, negative if it is before the slice */
    int32_t length; /* if the next record is a distance: of its match */
    int32_t lowest; /* source of the matches so far, plus SLOT_END */
};

/* Writes the slot of a token, if it is in the slice. A match sets only its first slot.
 *
 * The record of a distance is SLOT_END - distance. Added to the position it gives the source plus
 * 0x10000, of which the slot keeps 16 bits: the source itself, if it is in the slice, or one of the
 * values from BEFORE_SLICE on. The length is in the record before. */
DEVICE_FN void write_record(struct inflate_shared *s, struct slot_writer *writer, int32_t value) {
    const int32_t source = writer->at + value; /* of a match: + SLOT_END */
    const bool is_match = value >= BEFORE_SLICE, is_token = value >= LITERAL_SLOT;
    if (is_token && (uint32_t)writer->at < SLICE_BYTES)
        s->slots[writer->at] = (uint16_t)(is_match ? source : value);
    if (is_match)
        writer->lowest = source < writer->lowest ? source : writer->lowest;
    writer->at += is_match ? writer->length : is_token ? 1 : 0;
    writer->length = LENGTH_TOP - value;
}

/* Writes the part of a thread's tokens that is in the slice. `at`: position of its first byte,
 * negative if it is before the slice. False if a distance reaches before the first byte of the
 * stream. */
DEVICE_FN bool write_slots(struct inflate_shared *s, const uint16_t *records, uint32_t count,
                           uint32_t slice, int32_t at) {
    struct slot_writer writer = {at, 0, SLOT_END};
    for (uint32_t first = 0; first < count;
         first += RECORDS_AT_ONCE, records += RECORDS_AT_ONCE * THREADS) {
        int32_t values[RECORDS_AT_ONCE];
        UNROLL
        for (uint32_t i = 0; i < RECORDS_AT_ONCE; i++)
            values[i] = records[i * THREADS];
        UNROLL
        for (uint32_t i = 0; i < RECORDS_AT_ONCE; i++)
            write_record(s, &writer, values[i]);
    }
    return writer.lowest >= SLOT_END - (int32_t)slice;
}

#endif
