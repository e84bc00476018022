# The commands of the project. Each is thin: CMakeLists.txt, tools/ and tests/ do the work.
PREFIX ?= /usr/local
TIME   ?= 600
COUNT  ?= 100000
FILE   ?=
ARCH   ?= x86_64

generator := $(if $(shell command -v ninja),-G Ninja)
python    := .venv/bin/python
c_files   := git ls-files -co --exclude-standard '*.c' '*.h' '*.cpp'

.PHONY: all setup demo check test test-deep test-gpu sanitize-gpu bench bench-gpu bench-python bench-warp bench-network fuzz mutations docs docs-examples docs-picture format install wheel test-wheel clean

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

# The contributor's loop: one tree with sanitizers, the quick suites, kernels on the emulator among them.
# T=name: builds and runs one suite (tests/unit/MODULE/test_name.c, tests/faults/test_name.c), the suites of a module,
# or the Python tests whose names have it.
suite  := $(firstword $(wildcard tests/unit/*/test_$(T).c tests/faults/test_$(T).c))
module := $(firstword $(wildcard tests/unit/$(T)/. $(if $(filter faults,$(T)),tests/faults/.)))
check: build-san/CMakeCache.txt
ifndef T
	@cmake --build build-san
	@ctest --test-dir build-san -L quick -j $$(nproc) --output-on-failure --quiet && echo "make check: all quick suites pass"
else ifneq ($(module),)
	@cmake --build build-san --target module_$(T)
	@ctest --test-dir build-san -L '^$(T)$$' -j $$(nproc) --output-on-failure
else ifneq ($(suite),)
	@cmake --build build-san --target suite_$(T)
	@ctest --test-dir build-san -R '/$(T)$$' --output-on-failure
else
	@$(MAKE) --no-print-directory build/with-python
	@for folder in tests/python tests/package; do $(python) -m pytest -q -k '$(T)' $$folder || [ $$? = 5 ] || exit 1; done
endif

build-san/CMakeCache.txt:
	@cmake -S . -B build-san $(generator) -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS=-O1 -DCOGPU_SANITIZE=ON -DCOGPU_TESTS=ON -DCOGPU_CUDA=OFF

.PHONY: build/with-python
build/with-python:
	@cmake -S . -B build $(generator) -DCMAKE_BUILD_TYPE=Release -DCOGPU_PYTHON=ON >/dev/null
	@cmake --build build

# On a machine with a GPU: the tests of the CUDA backend there, and under compute-sanitizer.
test-gpu:
	@tools/setup.sh tests/requirements-gpu.txt
	@$(python) tests/run_gpu.py

sanitize-gpu: setup
	@$(python) tests/run_gpu.py --sanitize

# The reader and the writer beside their peers; the tables go into docs/bench.md.
bench:
	@tools/setup.sh bench/requirements.txt
	@$(MAKE) --no-print-directory all
	@$(python) bench/bench.py --docs
	@$(python) bench/bench_write.py --docs

# Reading into a GPU's memory and writing from it beside nvCOMP, nvTIFF and xarray-spatial: docs/bench-gpu.md.
bench-gpu:
	@tools/setup.sh bench/requirements-gpu.txt
	@$(python) bench/bench_gpu.py

# The Python package beside rioxarray, xarray-spatial, odc-geo and async-geotiff: docs/bench-python.md.
bench-python:
	@tools/setup.sh bench/requirements-python.txt
	@cmake -S . -B build $(generator) -DCMAKE_BUILD_TYPE=Release -DCOGPU_PYTHON=ON >/dev/null
	@cmake --build build --target cogpu_python
	@$(python) bench/bench_python.py --docs

# Warps, mosaics and VRTs beside GDAL, rasterio and rioxarray: docs/bench-warp.md. With a GPU, its part too.
bench-warp:
	@tools/setup.sh bench/requirements-python.txt
	@cmake -S . -B build $(generator) -DCMAKE_BUILD_TYPE=Release -DCOGPU_PYTHON=ON >/dev/null
	@cmake --build build
	@$(python) bench/bench_warp.py --docs

# Reading by HTTP from a server that is 30 ms away, beside GDAL and async-geotiff: docs/bench-network.md.
bench-network:
	@tools/setup.sh bench/requirements.txt
	@cmake -S . -B build $(generator) -DCMAKE_BUILD_TYPE=Release -DCOGPU_PYTHON=ON >/dev/null
	@cmake --build build --target cogpu_python
	@$(python) bench/bench_network.py --docs

# The documentation site: build-docs/site/index.html, from docs/, README.md, the headers and the option table.
docs: all build-docs/venv/made
	@NO_MKDOCS_2_WARNING=1 build-docs/venv/bin/mkdocs build --strict --quiet
	@echo "build-docs/site/index.html"

# Runs the worked examples of docs/examples and writes their pages and pictures.
docs-examples: build/with-python build-docs/examples/made
	@PYTHONPATH=$(CURDIR)/build/python build-docs/examples/bin/python tools/docs/run_examples.py

# The picture of README.md, from the table of docs/bench-gpu.md.
docs-picture: build-docs/examples/made
	@build-docs/examples/bin/python tools/docs/speed_picture.py

# Environments of their own: `made` is newer than the requirements that were installed.
build-docs/venv/made: docs/requirements.txt
build-docs/examples/made: docs/requirements-examples.txt
build-docs/%/made:
	@python3 -m venv build-docs/$*
	@build-docs/$*/bin/pip install --quiet --disable-pip-version-check -r $<
	@touch $@

# What takes longer than a change should wait for: all races, whole sweeps, TIME seconds for each fuzz target, COUNT
# mutated streams of each codec, the test programs without sanitizers.
test-deep: setup
	@$(python) tests/run.py --deep --fuzz-seconds $(TIME)
	@$(MAKE) --no-print-directory mutations

# Each fuzz target for TIME seconds.
fuzz: setup
	@$(python) tests/run.py --only fuzz --fuzz-seconds $(TIME)

# COUNT mutated streams of each codec through the decoders of the emulated GPU, a part on each core.
mutations:
	@cmake -S . -B build $(generator) -DCMAKE_BUILD_TYPE=Release -DCOGPU_TESTS=ON >/dev/null
	@cmake --build build --target test_kernels
	@for codec in zstd deflate deflate-few lzw packbits; do for seed in $$(seq 20); do \
	    echo --codec $$codec --count $$((($(COUNT) + 19) / 20)) --seed $$seed; \
	done; done | xargs -P $$(nproc) -L 1 build/tests/test_kernels kernel_mutations

format:
	@$(c_files) | xargs clang-format-14 -i

install: all
	@cmake --install build --prefix $(PREFIX)

# dist/*.whl with all libraries inside, for Python 3.11 and later on any Linux since 2018: docs/packaging.md.
# ARCH=aarch64: for that. The libraries are built once, in build-wheel/, which `make clean` keeps.
wheel:
	@tools/wheel/build_libraries.sh $(ARCH)
	@tools/wheel/build_wheel.sh $(ARCH)

# That wheel in bare roots of Debian 12 and 13. Needs root and debootstrap.
test-wheel:
	@tools/wheel/test_in_chroot.sh

clean:
	rm -rf build build-san build-fuzz build-races build-deep build-gpu build-docs build-aarch64 build-cross demo
