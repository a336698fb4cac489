BEGIN TRANSACTION;
CREATE TABLE iceberg_namespace_properties(catalog_name VARCHAR(255) NOT NULL,namespace VARCHAR(255) NOT NULL,property_key VARCHAR(255),property_value VARCHAR(1000),PRIMARY KEY (catalog_name, namespace, property_key));
INSERT INTO "iceberg_namespace_properties" VALUES('iceberg','n1','exists','true');
INSERT INTO "iceberg_namespace_properties" VALUES('iceberg','n1.n2','owner','me');
INSERT INTO "iceberg_namespace_properties" VALUES('iceberg','n1.n2','exists','true');
CREATE TABLE iceberg_tables(catalog_name VARCHAR(255) NOT NULL,table_namespace VARCHAR(255) NOT NULL,table_name VARCHAR(255) NOT NULL,metadata_location VARCHAR(1000),previous_metadata_location VARCHAR(1000),PRIMARY KEY (catalog_name, table_namespace, table_name));
INSERT INTO "iceberg_tables" VALUES('iceberg','n1.n2','orders','file:///WAREHOUSE/n1/n2/orders/metadata/00000-a3010357-b880-480f-b990-1ae0855c2c59.metadata.json',NULL);
COMMIT;
