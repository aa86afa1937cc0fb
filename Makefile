# What a person types. Everything below is CMake: see CMakePresets.json for the builds.
#
#   make run               chat with the default model; PROMPT="…" answers once and leaves,
#                          MODEL=… takes another model
#   make test              everything that the tests need, then all of them
#   make cuda              the program and its CUDA plugin in build/cuda (needs the CUDA toolkit);
#                          CUDA_ARCHITECTURES=90a (default), 80, 86, 89, 100 or a list
#   make ci                what only maintainers need: sanitizers, fuzzing, format, docs' commands
#   make tidy              clang-tidy over all sources
#   make format            clang-format over all sources
#   make clean             remove the build folder and the tests' Python environment
#
# All of them set up what they need, can be repeated cheaply, and work as root and with sudo.

DEFAULT_MODEL := build/models/SmolLM2-135M-Instruct.Q4_1.gguf
MODEL ?= $(DEFAULT_MODEL)
BUILD := build/release
export MODEL PROMPT

CUDA_ARCHITECTURES ?= 90a

.PHONY: run test cuda ci format clean setup-run setup-test setup-ci model venv tidy

run: setup-run $(if $(filter $(DEFAULT_MODEL),$(MODEL)),model)
	@[ -f $(BUILD)/build.ninja ] || cmake --preset release -DMINISGL_BUILD_TESTS=OFF
	@cmake --build $(BUILD) --target minisgl_cli_main
	@scripts/run.sh

test: setup-test model venv
	@cmake --preset release -DMINISGL_BUILD_TESTS=ON $(if $(CI),-DMINISGL_WERROR=ON)
	@cmake --build $(BUILD)
	@ctest --test-dir $(BUILD) --output-on-failure
	@.venv/bin/pytest tests/clients

cuda: setup-run
	@cmake --preset cuda -DMINISGL_BUILD_TESTS=OFF "-DMINISGL_CUDA_ARCHITECTURES=$(CUDA_ARCHITECTURES)"
	@cmake --build build/cuda --target minisgl_cuda minisgl_cli_main

ci: setup-ci model
	@scripts/ci.sh

tidy: setup-ci
	@scripts/ci.sh tidy

format:
	@scripts/format.sh fix

clean:
	rm -rf build .venv

model:
	@cmake -DOUT=build/models -P cmake/default_model.cmake

setup-run:
	@scripts/setup.sh run
setup-test:
	@scripts/setup.sh run test
setup-ci:
	@scripts/setup.sh run test ci

# The environment is made anew whenever the pinned list changes.
venv: .venv/requirements.txt
.venv/requirements.txt: tests/clients/requirements.txt | setup-test
	rm -rf .venv
	python3 -m venv .venv
	.venv/bin/pip install -q --disable-pip-version-check -r $<
	cp $< $@
