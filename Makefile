# Everything a person types; CMake does the work. Variables: BUILD, JOBS, COUNT, PYTHONS, VERSION.
BUILD ?= build
COUNT ?= 3000
JOBS ?= $(shell nproc)
PYTHON ?= /usr/bin/python3
PYTHONS ?= $(PYTHON)
CLANG_FORMAT ?= clang-format
LLVM ?= /usr/lib/llvm-22

CCACHE := $(shell command -v ccache)
# Without the first, ccache keeps nothing that is compiled with a precompiled header; with the second it does not run the
# preprocessor before the compiler.
LAUNCHER = env;CCACHE_SLOPPINESS=pch_defines,time_macros;CCACHE_DEPEND=1;$(CCACHE)
# Ninja itself configures again what has changed; a second cmake would only
# risk another compiler being found in another PATH.
configure = test -f $(1)/build.ninja || cmake -S . -B $(1) $(2) -G Ninja \
  -DCMAKE_C_COMPILER=clang-22 -DCMAKE_CXX_COMPILER=clang++-22 \
  -DCMAKE_EXE_LINKER_FLAGS=-fuse-ld=lld -DCMAKE_EXPORT_COMPILE_COMMANDS=ON \
  -DMLIR_DIR=$(LLVM)/lib/cmake/mlir -DPython3_EXECUTABLE=$(PYTHON) \
  $(if $(CCACHE),-DCMAKE_C_COMPILER_LAUNCHER='$(LAUNCHER)' -DCMAKE_CXX_COMPILER_LAUNCHER='$(LAUNCHER)') \
  > /dev/null
SOURCES = $(shell git ls-files '*.cpp' '*.h')

.PHONY: build run test test-all test-torch test-models bench python dist wheel release docs site asan debug fuzz programs head-dims format lint clean setup

build: setup
	@$(call configure,$(BUILD))
	ninja -C $(BUILD) -j$(JOBS)

setup:
	@scripts/setup.sh

# Nothing else is built for it: this is what a newcomer waits for.
run: setup ## every example, checked against the reference and timed
	@$(call configure,$(BUILD))
	ninja -C $(BUILD) -j$(JOBS) flash-run
	scripts/run-examples.sh $(BUILD)

python: build ## the Python package, in the virtual environment $(BUILD)/python
	@scripts/setup.sh python3-venv python3-dev python3-matplotlib
	scripts/setup-python.sh $(BUILD) $(PYTHON)

test: python ## every test, with other cases of the suite each time; the last line is the tally
	scripts/setup-site.sh $(BUILD) $(PYTHON)
	$(PYTHON) scripts/run-tests.py $(LLVM)/bin/lit $(BUILD)

test-all: export FLASH_TEST_ALL = 1
test-all: test ## every test, with all cases of the suite

test-torch: python ## the Python tests with PyTorch, in the virtual environment $(BUILD)/torch
	scripts/setup-torch.sh $(BUILD) $(PYTHON)
	$(BUILD)/torch/bin/python -m pytest -q -n $(JOBS) --dist loadfile -p no:cacheprovider --only-torch python/tests

test-models: python ## Transformers' model types, tiny, beside eager
	scripts/setup-torch.sh $(BUILD) $(PYTHON)
	$(BUILD)/torch/bin/python python/tests/models.py

bench: build ## every experiment: JSON, a report and plots in $(BUILD)/bench
	@scripts/setup.sh python3-matplotlib
	$(PYTHON) python/benchmarks/bench.py --flash-run $(BUILD)/bin/flash-run --out $(BUILD)/bench

dist: setup ## statically linked, stripped tools and libflash in $(BUILD)/dist
	@$(call configure,$(BUILD))
	ninja -C $(BUILD) -j$(JOBS) flash-dist
	scripts/make-dist.sh $(BUILD) $(BUILD)/dist

wheel: ## wheels for the interpreters in PYTHONS in $(BUILD)/wheels, each tried in a fresh environment
	@scripts/setup.sh python3-venv python3-dev
	@$(call configure,$(BUILD))
	ninja -C $(BUILD) -j$(JOBS) libflash-tools-static
	scripts/make-wheel.sh $(BUILD)/lib/static/tools/libflash.so $(BUILD)/wheels $(PYTHONS)
	for python in $(PYTHONS); do scripts/try-wheel.sh $(BUILD)/wheels $$python || exit 1; done

# PYTHONS may name the interpreters; else those of CPython 3.9 to 3.14 that are found make wheels.
release: setup ## the files of a release, VERSION=1.2.3, in $(BUILD)/release: wheels, tools, notes, checksums
	scripts/make-release.sh "$(VERSION)" $(BUILD) $(if $(filter file,$(origin PYTHONS)),,$(PYTHONS))

docs: build ## regenerates docs/reference from the .td files
	ninja -C $(BUILD) flash-docs
	cp $(BUILD)/reference/*.md docs/reference/
	$(PYTHON) scripts/check-docs.py $(BUILD)/bin/flash-opt --write

# Nothing is compiled for it.
site: ## the pages as a site with search, in $(BUILD)/site; a link that leads nowhere is an error
	@scripts/setup.sh --only python3-venv python3-numpy
	scripts/setup-site.sh $(BUILD) $(PYTHON)
	scripts/make-site.sh $(BUILD) $(BUILD)/site

asan: ## the tools with the address and undefined sanitizers
	@scripts/setup.sh libclang-rt-22-dev
	@$(call configure,build-asan,-DFLASH_SANITIZE=ON)
	ninja -C build-asan -j$(JOBS) flash-opt flash-run

debug: ## the tools with assertions and with what LLVM_DEBUG prints, in build-debug
	@$(call configure,build-debug,-DFLASH_ASSERTIONS=ON)
	ninja -C build-debug -j$(JOBS) flash-opt flash-run

fuzz: asan ## ten thousand mutated inputs through the sanitized tools
	$(PYTHON) test/Fuzz/fuzz.py --bin build-asan/bin --count 10000 --save build-asan/fuzz

programs: build ## COUNT random attentions, COUNT gradients and COUNT programs on tiles, compared with numpy
	$(PYTHON) test/Fuzz/programs.py --bin $(BUILD)/bin --count $(COUNT) --save $(BUILD)/programs
	$(PYTHON) test/Fuzz/programs.py --bin $(BUILD)/bin --kind gradients --count $(COUNT) --save $(BUILD)/programs
	$(PYTHON) test/Fuzz/programs.py --bin $(BUILD)/bin --kind linalg --count $(COUNT) --save $(BUILD)/programs

head-dims: build ## every head dimension and element type, compiled for each GPU target
	PATH=$(abspath $(BUILD))/bin:$$PATH $(PYTHON) test/Run/targets/head_dims.py

format:
	@scripts/setup.sh clang-format
	$(CLANG_FORMAT) -i $(SOURCES)

lint:
	@scripts/setup.sh clang-format
	$(CLANG_FORMAT) -n -Werror $(SOURCES)

clean:
	rm -rf $(BUILD) build-asan build-debug
