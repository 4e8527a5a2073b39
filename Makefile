# gpu-ready: `make setup` prepares a control node, `make demo` shows it on simulated hosts, `make check` and `make test` test it.
.DEFAULT_GOAL := help
SHELL := /bin/sh
VENV := .venv/bin
LAB := $(VENV)/python -m gpu_ready_lab
FLEET ?= demo
export PATH := $(CURDIR)/$(VENV):$(PATH)
export PYTHONPATH := $(CURDIR)/lab
# Some images set this. Without bytecode every run of a playbook compiles the plugins and the planner again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup dev demo collection containers test check programs lint lint-files lint-playbooks lint-changed types unit unit-a-k unit-l-z integration campaign catalog lock lab-up lab-down lab-purge lab-status bench simulation clean

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 22

setup:  ## virtual environment for real hosts (.venv with ansible-core)
	@tools/setup runtime

dev:  ## virtual environment for developing (adds linters and pytest)
	@tools/setup dev

demo: setup  ## a lab of simulated GPU hosts, provisioned by site.yml, and the table
	@tools/demo $(FLEET)

picture: dev  ## the picture of the README, from the recording docs/demo.cast (needs PyPI)
	@rm -rf build/picture && mkdir -p build
	@$(VENV)/uvx --quiet --from termtosvg-ng==1.4.1 termtosvg render docs/demo.cast build/picture --still-frames --template window_frame
	@cp "$$(ls build/picture/*.svg | tail -n 1)" docs/demo.svg

collection: setup  ## build the collection gpu_ready.nodes for ansible-galaxy, from the files that git tracks
	@$(VENV)/python tools/build_collection.py

test: check  ## lint, types, unit and integration tests
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target programs lint-playbooks
	@$(MAKE) --no-print-directory integration

check: dev  ## the fast tests, at once: lint, types, unit tests that start no program
	@$(MAKE) --no-print-directory --jobs=4 --output-sync=target unit-a-k unit-l-z lint-changed types lint-files

lint: lint-files lint-playbooks  ## all linters, over all files

# A minute of CPU time, so only if something that ansible-lint reads was changed since it was clean.
LINTED := .config ansible.cfg deploy galaxy.yml inventory library meta module_utils molecule playbooks plugins requirements roles site.yml
lint-playbooks: dev
	@clean=build/ansible-lint-$$(find $(LINTED) -name __pycache__ -prune -o -type f -print0 | sort -z | xargs -0 sha256sum | sha256sum | cut -c 1-16).clean; \
	if [ ! -e "$$clean" ]; then $(VENV)/ansible-lint --offline && mkdir -p build && rm -f build/ansible-lint-*.clean && touch "$$clean"; fi
	@echo "lint: ansible-lint (production): clean"

# Of these, what is not in the last commit. After a change of its configuration, run lint-playbooks.
lint-changed: dev
	@changed=$$(git diff --name-only --diff-filter=d HEAD -- $(LINTED) && git ls-files --others --exclude-standard -- $(LINTED)) && \
	if [ -n "$$changed" ]; then $(VENV)/ansible-lint --offline $$changed; fi
	@echo "lint: ansible-lint (production) of what is not committed: clean"

lint-files: dev
	@$(VENV)/ruff check --quiet .
	@$(VENV)/ruff format --check --quiet .
	@$(VENV)/yamllint --strict .
	@$(VENV)/codespell
	@$(VENV)/python tools/compile_variables.py --check
	@$(VENV)/vermin --quiet --no-tips --target=3.6- --violations module_utils library
	@echo "lint: ruff, yamllint, codespell, generated pages, vermin (Python 3.6 on hosts): clean"

types: dev
	@$(VENV)/mypy

unit: dev
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target unit-a-k unit-l-z

# Two processes with half of the files each. The workers of pytest-xdist would each collect all of the 13,000 tests.
unit-a-k: dev
	@$(VENV)/pytest -q -m "not host_io" tests/unit/test_[a-k]*.py

unit-l-z: dev
	@$(VENV)/pytest -q -m "not host_io" tests/unit/test_[!a-k]*.py tests/corpus

programs: dev  ## the unit tests that start programs: Ansible, package managers, shells
	@$(VENV)/pytest -q --numprocesses=4 --dist=loadfile --no-loadscope-reorder -m host_io $$(grep -l host_io tests/unit/test_*.py)

integration: dev  ## tests on lab hosts (root; starts the lab and stops its own hosts)
	@$(VENV)/pytest -v --durations=25 -m "not alone" --numprocesses=3 --dist=loadfile --no-loadscope-reorder tests/integration
	@$(VENV)/pytest -v -m alone tests/integration

containers: dev  ## the molecule scenario "container": podman or docker, no root, no lab
	@$(VENV)/molecule test -s container

campaign: dev  ## all long checks (root; ten hours on two cores), or some: make campaign PART="vm cuda" SEED=2026-11-26
	@$(VENV)/python tools/campaign.py $(PART) $(if $(SEED),--seed $(SEED))

catalog: dev  ## generate defaults, argument specs and docs/variables.md
	@$(VENV)/python tools/compile_variables.py

# With hashes of all files of every release, for every Python from 3.11 on. dev.txt takes the versions of runtime.txt.
lock: dev  ## resolve requirements/*.in into the newest versions that fit, with hashes (requirements/*.txt)
	@for name in runtime runtime-2.16 dev; do \
		$(VENV)/uv pip compile --quiet --no-config --upgrade --universal --python-version 3.11 --generate-hashes --no-annotate \
			--custom-compile-command 'make lock' --output-file requirements/$$name.txt requirements/$$name.in || exit; \
	done

lab-up: setup  ## start a lab fleet: make lab-up FLEET=demo
	@$(LAB) up lab/fleets/$(FLEET).yml

lab-down: setup  ## stop every lab host, the lab's docker engine and mirror; leave nothing but the cache
	@$(LAB) down

lab-purge: setup  ## lab-down, and delete the cache (images, packages, compiler cache)
	@$(LAB) down --all

lab-status: setup
	@$(LAB) status

bench: dev  ## measure on lab hosts, print ratios, write docs/dev/benchmarks.md
	@$(VENV)/python bench/run.py

simulation: dev  ## the playbooks over 2,000 simulated hosts; writes docs/scale.md (half an hour)
	@$(VENV)/python bench/simulation/simulate.py --record

clean:  ## remove what was built in this checkout
	rm -rf .venv build reports .lab .mypy_cache .ruff_cache .pytest_cache
