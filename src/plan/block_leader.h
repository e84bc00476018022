/*
 * Leader and trailer of a COG block, as GDAL's ghost area declares them: BLOCK_LEADER=SIZE_AS_UINT4
 * and BLOCK_TRAILER=LAST_4_BYTES_REPEATED.
 *
 *     | size of the payload, little endian | payload ... | last 4 bytes of the payload again |
 *       4 bytes                                            4 bytes
 *
 * TileOffsets and TileByteCounts describe the payload alone.
 */
#ifndef COGPU_PLAN_BLOCK_LEADER_H
#define COGPU_PLAN_BLOCK_LEADER_H

enum {
    COGPU_LEADER_BYTES = 4,
    COGPU_TRAILER_BYTES = 4,
    COGPU_BLOCK_OVERHEAD_BYTES = COGPU_LEADER_BYTES + COGPU_TRAILER_BYTES
};

#endif
