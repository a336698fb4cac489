mod format_manifest;
mod format_metadata;
