# The commands of the project. Each is thin: CMakeLists.txt, tools/ and tests/ do the work.
PREFIX ?= /usr/local
TIME   ?= 600
COUNT  ?= 100000
FILE   ?=

generator := $(if $(shell command -v ninja),-G Ninja)
python    := .venv/bin/python
c_files   := git ls-files -co --exclude-standard '*.c' '*.h' '*.cpp'

.PHONY: all setup demo check test test-gpu sanitize-gpu bench bench-gpu bench-python bench-network races fuzz mutations format install clean

# build/cogpu, build/libcogpu.so, build/libcogpu.a
all: build/CMakeCache.txt
	@cmake --build build

build/CMakeCache.txt:
	@cmake -S . -B build $(generator) -DCMAKE_BUILD_TYPE=Release -DCOGPU_TESTS=OFF

# What this machine lacks for all of the below.
setup:
	@tools/setup.sh

# A raster (FILE=my.tif, or a generated terrain) described, read, compared and drawn.
demo: setup
	@mkdir -p build && $(MAKE) --no-print-directory all >build/make.log 2>&1 || (cat build/make.log && false)
	@$(python) tools/demo.py $(if $(FILE),"$(FILE)")

# Every test; the last line is "N passed, N failed".
test: setup
	@$(python) tests/run.py

# The contributor's loop: one tree with sanitizers, the quick test programs, kernels on the emulator among them.
# T=name: builds and runs one program (tests/unit/test_name.c), or the Python tests whose names have it.
check: build-san/CMakeCache.txt
ifdef T
	@if ls tests/*/test_$(T).c >/dev/null 2>&1; then \
	    cmake --build build-san --target test_$(T) && ctest --test-dir build-san -R '^test_$(T)$$' --output-on-failure; \
	else \
	    $(MAKE) --no-print-directory build/with-python && for folder in tests/python tests/package; do \
	        $(python) -m pytest -q -k '$(T)' $$folder || [ $$? = 5 ] || exit 1; \
	    done; \
	fi
else
	@cmake --build build-san
	@ctest --test-dir build-san -L quick -j $$(nproc) --output-on-failure --quiet && echo "make check: all quick programs pass"
endif

build-san/CMakeCache.txt:
	@cmake -S . -B build-san $(generator) -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS=-O1 -DCOGPU_SANITIZE=ON -DCOGPU_TESTS=ON -DCOGPU_CUDA=OFF

.PHONY: build/with-python
build/with-python:
	@cmake -S . -B build $(generator) -DCMAKE_BUILD_TYPE=Release -DCOGPU_PYTHON=ON >/dev/null
	@cmake --build build --target cogpu_python cogpu_cli cogpu

# On a machine with a GPU: the tests of the CUDA backend there, and under compute-sanitizer.
test-gpu:
	@tools/setup.sh tests/requirements-gpu.txt
	@$(python) tests/run_gpu.py

sanitize-gpu: setup
	@$(python) tests/run_gpu.py --sanitize

# The reader and the writer beside their peers; the tables go into README.md.
bench:
	@tools/setup.sh bench/requirements.txt
	@$(MAKE) --no-print-directory all
	@$(python) bench/bench.py --readme
	@$(python) bench/bench_write.py --readme

# Reading into a GPU's memory and writing from it beside nvCOMP, nvTIFF and xarray-spatial: docs/bench-gpu.md.
bench-gpu:
	@tools/setup.sh bench/requirements-gpu.txt
	@$(python) bench/bench_gpu.py

# The Python package beside rioxarray, xarray-spatial, odc-geo and async-geotiff: docs/bench-python.md.
bench-python:
	@tools/setup.sh bench/requirements-python.txt
	@cmake -S . -B build $(generator) -DCMAKE_BUILD_TYPE=Release -DCOGPU_PYTHON=ON >/dev/null
	@cmake --build build --target cogpu_python
	@$(python) bench/bench_python.py --readme

# Reading by HTTP from a server that is 30 ms away, beside GDAL and async-geotiff: docs/bench-network.md.
bench-network:
	@tools/setup.sh bench/requirements.txt
	@cmake -S . -B build $(generator) -DCMAKE_BUILD_TYPE=Release -DCOGPU_PYTHON=ON >/dev/null
	@cmake --build build --target cogpu_python
	@$(python) bench/bench_network.py --readme

# Races between threads, and between those of kernels on the emulator.
races: setup
	@$(python) tests/run.py --only races --all-races

# Each fuzz target for TIME seconds.
fuzz: setup
	@$(python) tests/run.py --only fuzz --fuzz-seconds $(TIME)

# COUNT mutated streams of each codec through the decoders of the emulated GPU, a part on each core.
mutations:
	@cmake -S . -B build $(generator) -DCMAKE_BUILD_TYPE=Release -DCOGPU_TESTS=ON >/dev/null
	@cmake --build build --target test_cuda_mutations
	@for codec in zstd deflate lzw packbits; do for seed in $$(seq 20); do \
	    echo --codec $$codec --count $$((($(COUNT) + 19) / 20)) --seed $$seed; \
	done; done | xargs -P $$(nproc) -L 1 build/tests/test_cuda_mutations

format:
	@$(c_files) | xargs clang-format-14 -i

install: all
	@cmake --install build --prefix $(PREFIX)

clean:
	rm -rf build build-san build-fuzz build-races build-gpu demo
