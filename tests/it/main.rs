mod format_metadata;
