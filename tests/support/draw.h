/* Numbers by chance, the same in each run unless a test is started with another number. */
#ifndef COGPU_TESTS_DRAW_H
#define COGPU_TESTS_DRAW_H

#include <stdint.h>
#include <stdlib.h>

extern uint64_t draw_state;

void draw_from(int argc, char **argv);

uint32_t draw(uint32_t below);

#endif
