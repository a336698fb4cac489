mod format_manifest;
