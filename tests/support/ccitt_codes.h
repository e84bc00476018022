/*
 * The run codes of T.4 as text, in ccitt_codes.c. tests/unit/codec/test_codec_ccitt.c encodes by
 * them; tests/python/test_ccitt.py reads them from that file.
 */
#ifndef COGPU_TESTS_CCITT_CODES_H
#define COGPU_TESTS_CCITT_CODES_H

/* T.4, tables 2 and 3: runs of 0 to 63, then 64, 128, ... 1728; and 1792, ... 2560 for both. */
enum { SHORT_RUNS = 91, LONG_RUNS = 13 };
extern const char *const white_runs[SHORT_RUNS], *const black_runs[SHORT_RUNS];
extern const char *const long_runs[LONG_RUNS];

#endif
