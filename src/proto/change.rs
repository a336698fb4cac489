//! Package `sandur.v1`, `proto/sandur/v1/change.proto`: writing beyond Flight SQL.

/// A table by name. Parts that are left out are those of the session.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub struct TableRef {
    #[prost(string, tag = "1")]
    pub catalog: String,
    /// A nested namespace is one name joined with dots.
    #[prost(string, tag = "2")]
    pub schema: String,
    #[prost(string, tag = "3")]
    pub table: String,
    /// The branch to write to; main where it is empty.
    #[prost(string, tag = "4")]
    pub branch: String,
}

/// DoPut: the stream's rows are appended, all in one commit, or none of them. Columns are matched by
/// name; a column of the table that the stream lacks gets its default or null. The answer's
/// app_metadata is a ChangeResult.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub struct AppendRows {
    #[prost(message, optional, tag = "1")]
    pub table: Option<TableRef>,
    /// Sent again with the same key, the rows are not appended again, and the answer is that of the first time.
    /// A key belongs to one branch of a table, and to one kind of change.
    #[prost(string, tag = "2")]
    pub idempotency_key: String,
}

/// DoPut: the rows of the stream are deleted, all in one commit, or none of them: by position delete
/// files in format version 2, by deletion vectors from 3 on. The stream has the columns file_path (text, a
/// path as the table's metadata and the column _file have it) and pos (a whole number, from 0). Rows that
/// are deleted already do not count. The answer's app_metadata is a ChangeResult.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub struct DeletePositions {
    #[prost(message, optional, tag = "1")]
    pub table: Option<TableRef>,
    /// The snapshot that the positions were read from; it must be in the history of the branch. Absent:
    /// whatever the table is now.
    #[prost(int64, optional, tag = "2")]
    pub snapshot: Option<i64>,
    /// Sent again with the same key, nothing is deleted again. A key belongs to one kind of change.
    #[prost(string, tag = "3")]
    pub idempotency_key: String,
}

/// What a change did. In app_metadata of the FlightInfo of a statement that changes something, and of
/// the PutResult of the commands above.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub struct ChangeResult {
    /// INSERT, DELETE, CREATE TABLE, ...
    #[prost(string, tag = "1")]
    pub verb: String,
    /// Rows that were inserted or deleted.
    #[prost(uint64, tag = "2")]
    pub rows: u64,
    /// The snapshot that was made; absent where none was.
    #[prost(int64, optional, tag = "3")]
    pub snapshot_id: Option<i64>,
    /// What CommitStatus can be asked with.
    #[prost(string, tag = "4")]
    pub commit_id: String,
    #[prost(uint64, tag = "5")]
    pub data_files: u64,
    /// Bytes of the data files.
    #[prost(uint64, tag = "6")]
    pub bytes: u64,
    /// Delete files or deletion vectors that were added.
    #[prost(uint64, tag = "7")]
    pub delete_files: u64,
    /// Bytes of these.
    #[prost(uint64, tag = "8")]
    pub delete_bytes: u64,
    /// Data files that were written anew without rows.
    #[prost(uint64, tag = "9")]
    pub rewritten_files: u64,
    /// Data files that went as a whole.
    #[prost(uint64, tag = "10")]
    pub removed_files: u64,
}

/// DoAction: what became of a commit, also after a restart of the server.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub struct CommitStatus {
    #[prost(oneof = "commit_status::Of", tags = "1, 2")]
    pub of: Option<commit_status::Of>,
    /// The table that it was for. Needed for a key that was used on several.
    #[prost(message, optional, tag = "3")]
    pub table: Option<TableRef>,
}

/// Nested types of [`CommitStatus`].
pub mod commit_status {
    /// Which commit.
    #[derive(Clone, PartialEq, Eq, Hash, prost::Oneof)]
    pub enum Of {
        /// As a ChangeResult or an error named it.
        #[prost(string, tag = "1")]
        CommitId(String),
        /// As the client gave it.
        #[prost(string, tag = "2")]
        IdempotencyKey(String),
    }
}

/// The answer to CommitStatus.
#[derive(Clone, Copy, PartialEq, Eq, Hash, prost::Message)]
pub struct CommitStatusResult {
    #[prost(enumeration = "commit_status_result::State", tag = "1")]
    pub state: i32,
    /// Of a commit that was made.
    #[prost(int64, optional, tag = "2")]
    pub snapshot_id: Option<i64>,
}

/// Nested types of [`CommitStatusResult`].
pub mod commit_status_result {
    /// What became of a commit.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
    #[repr(i32)]
    pub enum State {
        /// Nothing is known of such a commit, or its fate cannot be told yet.
        Unknown = 0,
        Committed = 1,
        /// It was not made, and never will be.
        NotCommitted = 2,
    }
}
