//! Field ids that the format keeps for itself (spec "Reserved Field IDs").

/// `file_path` in position delete files.
pub const DELETE_FILE_PATH_ID: i32 = 2_147_483_546;
/// `pos` in position delete files.
pub const DELETE_POS_ID: i32 = 2_147_483_545;
