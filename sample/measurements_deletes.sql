-- Three of the 58 measurements are deleted, by one deletion vector: the station was broken.
DELETE FROM iceberg.sample.measurements WHERE station = 'X-9'
