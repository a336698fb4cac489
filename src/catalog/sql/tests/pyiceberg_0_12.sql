BEGIN TRANSACTION;
CREATE TABLE iceberg_namespace_properties (
    catalog_name VARCHAR(255) NOT NULL,
    namespace VARCHAR(255) NOT NULL,
    property_key VARCHAR(255) NOT NULL,
    property_value VARCHAR(1000) NOT NULL,
    PRIMARY KEY (catalog_name, namespace, property_key)
);
INSERT INTO "iceberg_namespace_properties" VALUES('iceberg','a','exists','true');
INSERT INTO "iceberg_namespace_properties" VALUES('iceberg','a.b','k','v');
CREATE TABLE iceberg_tables (
    catalog_name VARCHAR(255) NOT NULL,
    table_namespace VARCHAR(255) NOT NULL,
    table_name VARCHAR(255) NOT NULL,
    metadata_location VARCHAR(1000),
    previous_metadata_location VARCHAR(1000),
    iceberg_type VARCHAR(5),
    PRIMARY KEY (catalog_name, table_namespace, table_name)
);
INSERT INTO "iceberg_tables" VALUES('iceberg','a.b','t','file:///WAREHOUSE/a.b/t/metadata/00001-be89f09f-ed1d-401a-9aa7-d651c1e3a408.metadata.json','file:///WAREHOUSE/a.b/t/metadata/00000-5674d931-d059-43c0-b2f0-bb4c91ad4ca0.metadata.json','TABLE');
COMMIT;
