# Two commands set everything up: `make run` and `make test`. See README.md.
.PHONY: run test test-full bench-scan bench-planning bench-writing bench-deletes bench-delta-log fmt

# Installs what is missing, builds, serves the sample tables. ARGS go to `sandur serve`.
run:
	@scripts/run.sh $(ARGS)

# Installs what the tests need and runs them.
test:
	@scripts/test.sh

# Adds what is too long for every change.
test-full:
	@scripts/test.sh --full

# A full scan beside DuckDB on the same table. See benches/README.md.
bench-scan:
	@benches/run.sh full_scan $(ARGS)

# A point query over 10,000 files and opening 1,000 commits, beside DuckDB and pyiceberg. See benches/README.md.
bench-planning:
	@benches/run.sh planning $(ARGS)

# Ten million rows written, beside DuckDB and pyiceberg. See benches/README.md.
bench-writing:
	@benches/run.sh writing $(ARGS)

# DELETE of one row and of a tenth of six million, beside Spark and Sail. See benches/README.md.
bench-deletes:
	@benches/run.sh deletes $(ARGS)

# Opening a Delta table of 100,000 files, asking for one row, refreshing it, beside DuckDB and deltalake. See benches/README.md.
bench-delta-log:
	@benches/run.sh delta_log $(ARGS)

fmt:
	@cargo fmt
