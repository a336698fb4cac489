BEGIN TRANSACTION;
CREATE TABLE iceberg_namespace_properties(catalog_name VARCHAR(255) NOT NULL,namespace VARCHAR(255) NOT NULL,property_key VARCHAR(255),property_value VARCHAR(1000),PRIMARY KEY (catalog_name, namespace, property_key));
INSERT INTO "iceberg_namespace_properties" VALUES('iceberg','n1','exists','true');
CREATE TABLE iceberg_tables(catalog_name VARCHAR(255) NOT NULL,table_namespace VARCHAR(255) NOT NULL,table_name VARCHAR(255) NOT NULL,metadata_location VARCHAR(1000),previous_metadata_location VARCHAR(1000), iceberg_type VARCHAR(5),PRIMARY KEY (catalog_name, table_namespace, table_name));
INSERT INTO "iceberg_tables" VALUES('iceberg','n1','orders','file:///WAREHOUSE/n1/orders/metadata/00000-f50b7ffe-3008-45a4-8b7e-43c57c69feff.metadata.json',NULL,'TABLE');
INSERT INTO "iceberg_tables" VALUES('iceberg','n1','v','file:///WAREHOUSE/n1/v/metadata/00000-d7d2024e-8fd0-4932-8f62-af2903b775c4.gz.metadata.json',NULL,'VIEW');
COMMIT;
