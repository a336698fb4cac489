//! Catalogs: what tables there are and where.
