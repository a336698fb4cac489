# Two commands set everything up: `make run` and `make test`. See README.md.
.PHONY: run test test-full fmt

# Installs what is missing, builds, serves the sample tables. ARGS go to `sandur serve`.
run:
	@scripts/run.sh $(ARGS)

# Installs what the tests need and runs them.
test:
	@scripts/test.sh

# Adds what is too long for every change.
test-full:
	@scripts/test.sh --full

fmt:
	@cargo fmt
