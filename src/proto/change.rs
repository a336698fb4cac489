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
    /// A key belongs to one branch of a table.
    #[prost(string, tag = "2")]
    pub idempotency_key: String,
}

/// What a change did. In app_metadata of the FlightInfo of a statement that changes something, and of
/// the PutResult of the commands above.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub struct ChangeResult {
    /// INSERT, CREATE TABLE, ...
    #[prost(string, tag = "1")]
    pub verb: String,
    /// Rows that were inserted.
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
