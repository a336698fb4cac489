//! Statement tickets and prepared statement handles: protobuf with a code behind it.
//!
//! Invariants: nothing inside a handle is looked at before its code was found right; the code
//! covers the kind, so a ticket is no prepared statement; whatever does not check out is
//! `InvalidInput`. Definition: `proto/sandur/v1/ticket.proto`.

use std::fmt;

use bytes::Bytes;
use hmac::{Hmac, KeyInit, Mac};
use prost::Message;
use sha2::Sha256;

use crate::error::{Error, Result};
use crate::proto::ticket as proto;
use crate::proto::ticket::handle::Kind;
use crate::sql::{Defaults, Pin, Statement};
use crate::table::{AsOf, TableIdent};

/// Makes and checks handles.
pub(super) struct Signer {
    mac: Hmac<Sha256>,
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signer").finish_non_exhaustive()
    }
}

impl Signer {
    /// With a key of its own: handles end with the process.
    ///
    /// Errors: none in practice; every key length is valid.
    pub(super) fn random() -> Result<Self> {
        Self::with_key(&rand::random::<[u8; 32]>())
    }

    fn with_key(key: &[u8]) -> Result<Self> {
        let mac = Hmac::new_from_slice(key).map_err(|_| Error::internal("the ticket key has a length that cannot be used"))?;
        Ok(Self { mac })
    }

    /// The bytes that are handed out.
    pub(super) fn seal(&self, kind: Kind) -> Bytes {
        let handle = Bytes::from(proto::Handle { kind: Some(kind) }.encode_to_vec());
        let code = self.mac.clone().chain_update(&handle).finalize().into_bytes();
        let code = Bytes::copy_from_slice(&code);
        proto::SignedHandle { handle, code }.encode_to_vec().into()
    }

    /// What a statement ticket says.
    pub(super) fn open_statement(&self, bytes: &[u8]) -> Result<proto::StatementTicket> {
        match self.open(bytes)? {
            Kind::Statement(ticket) => Ok(ticket),
            Kind::Prepared(_) => Err(Error::invalid("this is the handle of a prepared statement, not a ticket")),
        }
    }

    /// What a prepared statement's handle says.
    pub(super) fn open_prepared(&self, bytes: &[u8]) -> Result<proto::PreparedStatement> {
        match self.open(bytes)? {
            Kind::Prepared(prepared) => Ok(prepared),
            Kind::Statement(_) => Err(Error::invalid("this is a ticket, not the handle of a prepared statement")),
        }
    }

    fn open(&self, bytes: &[u8]) -> Result<Kind> {
        let bad = || Error::invalid("the handle was not issued by this server, or was changed; run or prepare the statement again");
        let signed = proto::SignedHandle::decode(bytes).map_err(|_| bad())?;
        let mac = self.mac.clone().chain_update(&signed.handle);
        mac.verify_slice(&signed.code).map_err(|_| bad())?;
        let handle = proto::Handle::decode(signed.handle).map_err(|_| bad())?;
        handle.kind.ok_or_else(bad)
    }
}

/// The parts of a statement that travel.
pub(super) fn statement_to_proto(statement: &Statement, schema: Bytes, parameters: Option<proto::Parameters>) -> proto::StatementTicket {
    proto::StatementTicket {
        sql: statement.sql.clone(),
        defaults: Some(defaults_to_proto(&statement.defaults)),
        pins: statement.pins.iter().map(pin_to_proto).collect(),
        schema,
        parameters,
    }
}

/// The statement of a ticket.
///
/// Errors: `InvalidInput` for a version that is none.
pub(super) fn statement_from_proto(ticket: &proto::StatementTicket) -> Result<Statement> {
    Ok(Statement {
        sql: ticket.sql.clone(),
        defaults: defaults_from_proto(ticket.defaults.as_ref()),
        pins: ticket.pins.iter().map(pin_from_proto).collect::<Result<_>>()?,
    })
}

pub(super) fn defaults_to_proto(defaults: &Defaults) -> proto::Defaults {
    proto::Defaults {
        catalog: defaults.catalog.clone(),
        schema: defaults.schema.clone(),
        branch: defaults.branch.clone(),
        as_of: defaults.as_of.clone(),
    }
}

pub(super) fn defaults_from_proto(defaults: Option<&proto::Defaults>) -> Defaults {
    defaults.map_or_else(Defaults::default, |d| Defaults {
        catalog: d.catalog.clone(),
        schema: d.schema.clone(),
        branch: d.branch.clone(),
        as_of: d.as_of.clone(),
    })
}

fn pin_to_proto(pin: &Pin) -> proto::Pin {
    proto::Pin {
        catalog: pin.table.catalog.clone(),
        schema: pin.table.schema.clone(),
        table: pin.table.table.clone(),
        metadata_location: pin.metadata_location.clone(),
        snapshot_id: pin.snapshot_id,
        as_of: match &pin.as_of {
            AsOf::Latest => None,
            AsOf::Version(id) => Some(proto::pin::AsOf::Version(*id)),
            AsOf::Ref(name) => Some(proto::pin::AsOf::Reference(name.clone())),
            AsOf::Timestamp(micros) => Some(proto::pin::AsOf::Timestamp(*micros)),
            AsOf::Changes(range) => Some(proto::pin::AsOf::Changes(range.to_string())),
        },
        part: pin.part.clone(),
        mentions: pin.mentions.clone(),
    }
}

fn pin_from_proto(pin: &proto::Pin) -> Result<Pin> {
    Ok(Pin {
        table: TableIdent::new(&pin.catalog, &pin.schema, &pin.table),
        metadata_location: pin.metadata_location.clone(),
        snapshot_id: pin.snapshot_id,
        as_of: match &pin.as_of {
            None => AsOf::Latest,
            Some(proto::pin::AsOf::Version(id)) => AsOf::Version(*id),
            Some(proto::pin::AsOf::Reference(name)) => AsOf::Ref(name.clone()),
            Some(proto::pin::AsOf::Timestamp(micros)) => AsOf::Timestamp(*micros),
            Some(proto::pin::AsOf::Changes(range)) => AsOf::Changes(range.parse()?),
        },
        part: pin.part.clone(),
        mentions: pin.mentions.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    fn statement() -> Statement {
        Statement {
            sql: "select 1 from t".to_owned(),
            defaults: Defaults {
                catalog: Some("c".to_owned()),
                schema: None,
                branch: Some("dev".to_owned()),
                as_of: None,
            },
            pins: vec![Pin {
                table: TableIdent::new("c", "a.b", "t"),
                metadata_location: "/w/t/metadata/v3.metadata.json".to_owned(),
                snapshot_id: Some(-7),
                as_of: AsOf::Ref("dev".to_owned()),
                part: Some("files".to_owned()),
                mentions: vec![0, 2],
            }],
        }
    }

    fn sealed(signer: &Signer) -> Bytes {
        signer.seal(Kind::Statement(statement_to_proto(
            &statement(),
            Bytes::from_static(b"schema"),
            None,
        )))
    }

    #[test]
    fn a_ticket_carries_the_statement() {
        let signer = Signer::random().unwrap();
        let ticket = signer.open_statement(&sealed(&signer)).unwrap();
        assert_eq!(statement_from_proto(&ticket).unwrap(), statement());
        assert_eq!(ticket.schema, "schema");
    }

    #[test]
    fn any_changed_bit_is_refused() {
        let signer = Signer::random().unwrap();
        let good = sealed(&signer);
        for at in 0..good.len() {
            for bit in 0..8 {
                let mut bad = good.to_vec();
                bad[at] ^= 1 << bit;
                // Flips that leave handle and code as they are (none in this encoding) would be fine.
                let error = signer.open_statement(&bad).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::InvalidInput, "byte {at} bit {bit}");
            }
        }
        for length in 0..good.len() {
            assert!(signer.open_statement(&good[..length]).is_err());
        }
    }

    #[test]
    fn another_key_is_refused() {
        let ticket = sealed(&Signer::with_key(&[1; 32]).unwrap());
        assert!(Signer::with_key(&[2; 32]).unwrap().open_statement(&ticket).is_err());
        assert!(Signer::with_key(&[1; 32]).unwrap().open_statement(&ticket).is_ok());
    }

    #[test]
    fn a_ticket_is_no_prepared_statement() {
        let signer = Signer::random().unwrap();
        assert!(signer.open_prepared(&sealed(&signer)).is_err());
        let handle = signer.seal(Kind::Prepared(proto::PreparedStatement::default()));
        assert!(signer.open_prepared(&handle).is_ok());
        assert!(signer.open_statement(&handle).is_err());
    }
}
