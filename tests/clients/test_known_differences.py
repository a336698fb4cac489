"""A second engine for an entry of `tests/known-differences.md`, where one can be had here: pyiceberg."""

import copy
import json

import fastavro
import pytest

import cases
import questions

CASE = cases.by_name("dremio_partitionednation")


@pytest.mark.skipif(CASE is None, reason="the collection is not here")
def test_pyiceberg_reads_25_rows_of_partitionednation(tmp_path):
    """pyiceberg gets copies that say what version 1 lets a writer leave out, with the same data files."""
    from pyiceberg.io.pyarrow import PyArrowFileIO
    from pyiceberg.table import StaticTable

    class MappedIO(PyArrowFileIO):
        def new_input(self, location):
            return super().new_input(place(CASE, location))

    table = StaticTable.from_metadata(str(complete_copy(CASE, tmp_path)))
    table.io = MappedIO()
    rows = table.scan().to_arrow()
    assert rows.num_rows == 25
    assert sorted(rows["n_nationkey"].to_pylist()) == list(range(25))


def place(case, path):
    """Where a recorded path is."""
    mapped = (real + path[len(prefix) :] for prefix, real in case.path_map if path.startswith(prefix))
    return next(mapped, path)


def complete_copy(case, folder):
    """The metadata with ids of partition fields, which count from 1000, and manifests as newer writers make them."""
    document = copy.deepcopy(questions.metadata(case.metadata_file))
    for spec in document["partition-specs"]:
        for at, field in enumerate(spec["fields"]):
            field["field-id"] = 1000 + at
    del document["partition-spec"]
    (snapshot,) = document["snapshots"]
    snapshot["manifest-list"] = _list_copy(case, snapshot["manifest-list"], folder)
    file = folder / "v2.metadata.json"
    file.write_text(json.dumps(document), "utf-8")
    return file


def _read(path):
    with open(path, "rb") as source:
        reader = fastavro.reader(source)
        return reader.writer_schema, list(reader), reader.metadata


def _write(path, schema, records, header=None):
    with path.open("wb") as out:
        fastavro.writer(out, fastavro.parse_schema(schema), records, metadata=header)
    return str(path)


def _list_copy(case, recorded, folder):
    """The manifest list with row counts, of manifests without the fields that the specification has withdrawn."""
    schema, entries, _ = _read(place(case, recorded))
    for field_id, name in ((512, "added_rows_count"), (513, "existing_rows_count"), (514, "deleted_rows_count")):
        schema["fields"].append({"name": name, "type": "long", "field-id": field_id})
    for at, entry in enumerate(entries):
        manifest, files, header = _read(place(case, entry["manifest_path"]))
        assert {file["status"] for file in files} == {1}
        data_file = next(field for field in manifest["fields"] if field["name"] == "data_file")["type"]
        withdrawn = {"block_size_in_bytes", "file_ordinal", "sort_columns"}
        data_file["fields"] = [field for field in data_file["fields"] if field["name"] not in withdrawn]
        header = {key: text for key, text in header.items() if not key.startswith("avro.")}
        copied = folder / f"manifest-{at}.avro"
        entry["manifest_path"] = _write(copied, manifest, files, header)
        entry["manifest_length"] = copied.stat().st_size
        entry["added_rows_count"] = sum(file["data_file"]["record_count"] for file in files)
        entry["existing_rows_count"] = entry["deleted_rows_count"] = 0
    return _write(folder / "list.avro", schema, entries)
