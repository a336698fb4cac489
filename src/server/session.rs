//! Handshake, sessions and their options.
//!
//! Invariants: a handshake succeeds whatever it carries, since there is no authentication yet;
//! the token it answers with means nothing but a name for the client's session. A session holds
//! option values only, is found by cookie or else by bearer token, and ends after half an hour
//! without use. flight-sql.md 1.5, 1.10.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use moka::future::Cache;
use prost::Message;
use tonic::metadata::{MetadataMap, MetadataValue};

use crate::catalog::Catalogs;
use crate::error::{Error, Result};
use crate::proto::flight::session_option_value::OptionValue;
use crate::proto::flight::{
    CloseSessionResult, CloseSessionStatus, GetSessionOptionsResult, SessionOptionValue, SetSessionOptionsError,
    SetSessionOptionsErrorValue, SetSessionOptionsRequest, SetSessionOptionsResult,
};
use crate::sql::{Defaults, parse_as_of};

/// Name of the session cookie, by convention.
const COOKIE: &str = "arrow_flight_session_id";
const IDLE: Duration = Duration::from_secs(30 * 60);
const MAX_SESSIONS: u64 = 20_000;
/// Names of options.
const OPTIONS: &[&str] = &["catalog", "schema", "branch", "as_of"];
/// Bytes of an option's value.
const MAX_VALUE: usize = 1024;

type Session = Arc<Mutex<Defaults>>;

/// All sessions.
#[derive(Debug)]
pub(super) struct Sessions {
    /// By cookie value (`c:`) and by bearer token (`b:`).
    by_key: Cache<String, Session>,
}

/// An answer with headers to send.
#[derive(Debug)]
pub(super) struct Reply {
    pub body: Vec<u8>,
    pub headers: MetadataMap,
}

impl Sessions {
    pub(super) fn new() -> Self {
        Self {
            by_key: Cache::builder().max_capacity(MAX_SESSIONS).time_to_idle(IDLE).build(),
        }
    }

    /// What names of a call are resolved against: the session's options, else headers `catalog`,
    /// `schema`, `branch` and `as_of`, which JDBC URLs can set. A version from the session and one
    /// from a header do not meet: the session's goes first.
    pub(super) async fn defaults(&self, request: &MetadataMap) -> Defaults {
        let mut defaults = self.find(request).await.map(|s| lock(&s).clone()).unwrap_or_default();
        let header = |name: &str| {
            request
                .get(name)
                .and_then(|v| v.to_str().ok())
                .filter(|v| !v.is_empty())
                .map(str::to_owned)
        };
        if defaults.catalog.is_none() {
            defaults.catalog = header("catalog");
        }
        if defaults.schema.is_none() {
            defaults.schema = header("schema");
        }
        if defaults.branch.is_none() && defaults.as_of.is_none() {
            defaults.branch = header("branch");
            defaults.as_of = header("as_of");
        }
        defaults
    }

    /// Action SetSessionOptions.
    pub(super) async fn set(&self, request: &MetadataMap, body: &[u8], catalogs: &Catalogs) -> Result<Reply> {
        let options = SetSessionOptionsRequest::decode(body).map_err(|e| Error::invalid(format!("not a SetSessionOptionsRequest: {e}")))?;
        let mut headers = MetadataMap::new();
        let session = match self.find(request).await {
            Some(session) => session,
            None => self.create(request, &mut headers).await,
        };
        let mut errors = HashMap::new();
        {
            let mut defaults = lock(&session);
            for (name, value) in options.session_options {
                if let Err(reason) = set_option(&mut defaults, &name, value.option_value, catalogs) {
                    errors.insert(name, SetSessionOptionsError { value: reason as i32 });
                }
            }
        }
        Ok(Reply {
            body: SetSessionOptionsResult { errors }.encode_to_vec(),
            headers,
        })
    }

    /// Action GetSessionOptions.
    ///
    /// Errors: `InvalidInput` without a session.
    pub(super) async fn get(&self, request: &MetadataMap) -> Result<Reply> {
        let session = self
            .find(request)
            .await
            .ok_or_else(|| Error::invalid("there is no session, or it has expired; set an option to start one"))?;
        let defaults = lock(&session).clone();
        let values = [
            ("catalog", defaults.catalog),
            ("schema", defaults.schema),
            ("branch", defaults.branch),
            ("as_of", defaults.as_of),
        ];
        let session_options = values
            .into_iter()
            .filter_map(|(name, value)| {
                let option_value = Some(OptionValue::String(value?));
                Some((name.to_owned(), SessionOptionValue { option_value }))
            })
            .collect();
        Ok(Reply {
            body: GetSessionOptionsResult { session_options }.encode_to_vec(),
            headers: MetadataMap::new(),
        })
    }

    /// Action CloseSession. Fine without a session: pools close twice.
    pub(super) async fn close(&self, request: &MetadataMap) -> Reply {
        if let Some(session) = self.find(request).await {
            for key in keys(request) {
                if self.by_key.get(&key).await.is_some_and(|s| Arc::ptr_eq(&s, &session)) {
                    self.by_key.invalidate(&key).await;
                }
            }
        }
        let status = CloseSessionStatus::Closed as i32;
        Reply {
            body: CloseSessionResult { status }.encode_to_vec(),
            headers: MetadataMap::new(),
        }
    }

    async fn find(&self, request: &MetadataMap) -> Option<Session> {
        for key in keys(request) {
            if let Some(session) = self.by_key.get(&key).await {
                return Some(session);
            }
        }
        None
    }

    /// A new session. Clients that keep cookies find it by cookie; the others by the token they
    /// send anyway, or by one that they are given and adopt.
    async fn create(&self, request: &MetadataMap, headers: &mut MetadataMap) -> Session {
        let session = Session::default();
        let id = random_token();
        self.by_key.insert(format!("c:{id}"), Arc::clone(&session)).await;
        if let Ok(cookie) = MetadataValue::try_from(format!("{COOKIE}={id}")) {
            headers.insert("set-cookie", cookie);
        }
        let token = match bearer(request) {
            Some(token) => token.to_owned(),
            None => {
                let token = random_token();
                set_bearer(headers, &token);
                token
            }
        };
        self.by_key.insert(format!("b:{token}"), Arc::clone(&session)).await;
        session
    }
}

/// The headers that answer a handshake: the client's own token, or a new one.
pub(super) fn handshake(request: &MetadataMap) -> (String, MetadataMap) {
    let token = bearer(request).map_or_else(random_token, str::to_owned);
    let mut headers = MetadataMap::new();
    set_bearer(&mut headers, &token);
    (token, headers)
}

fn set_bearer(headers: &mut MetadataMap, token: &str) {
    if let Ok(value) = MetadataValue::try_from(format!("Bearer {token}")) {
        headers.insert("authorization", value);
    }
}

fn bearer(request: &MetadataMap) -> Option<&str> {
    let value = request.get("authorization")?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme
        .eq_ignore_ascii_case("bearer")
        .then_some(token.trim())
        .filter(|t| !t.is_empty())
}

/// Keys that a request's session may be under, the most exact first.
fn keys(request: &MetadataMap) -> Vec<String> {
    let mut keys = Vec::new();
    for header in request.get_all("cookie") {
        for pair in header.to_str().unwrap_or_default().split(';') {
            if let Some((COOKIE, value)) = pair.trim().split_once('=') {
                keys.push(format!("c:{}", value.trim_matches('"')));
            }
        }
    }
    keys.extend(bearer(request).map(|token| format!("b:{token}")));
    keys
}

fn random_token() -> String {
    format!("{:032x}", rand::random::<u128>())
}

fn lock(session: &Session) -> MutexGuard<'_, Defaults> {
    session.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sets or, without a value, unsets an option.
fn set_option(
    defaults: &mut Defaults,
    name: &str,
    value: Option<OptionValue>,
    catalogs: &Catalogs,
) -> Result<(), SetSessionOptionsErrorValue> {
    let value = match value {
        None => None,
        Some(OptionValue::String(text)) if text.len() <= MAX_VALUE => Some(text),
        Some(_) if !OPTIONS.contains(&name) => return Err(SetSessionOptionsErrorValue::InvalidName),
        Some(_) => return Err(SetSessionOptionsErrorValue::InvalidValue),
    };
    match name {
        "catalog" => {
            defaults.catalog = match value {
                None => None,
                Some(wanted) => Some(find_catalog(&wanted, catalogs).ok_or(SetSessionOptionsErrorValue::InvalidValue)?),
            };
        }
        "schema" => defaults.schema = value,
        "branch" if value.as_deref() == Some("") => return Err(SetSessionOptionsErrorValue::InvalidValue),
        "branch" => defaults.branch = value,
        "as_of" => {
            if value.as_deref().is_some_and(|text| parse_as_of(text).is_err()) {
                return Err(SetSessionOptionsErrorValue::InvalidValue);
            }
            defaults.as_of = value;
        }
        _ => return Err(SetSessionOptionsErrorValue::InvalidName),
    }
    Ok(())
}

/// A catalog's name as it is configured, from one in any case.
fn find_catalog(wanted: &str, catalogs: &Catalogs) -> Option<String> {
    let names = || catalogs.iter().map(|c| c.name());
    names()
        .find(|name| *name == wanted)
        .or_else(|| names().find(|name| name.eq_ignore_ascii_case(wanted)))
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;

    use super::*;
    use crate::catalog::Catalog;
    use crate::table::{Table, TableIdent};

    #[derive(Debug)]
    struct Named(&'static str);

    #[async_trait]
    impl Catalog for Named {
        fn name(&self) -> &str {
            self.0
        }
        async fn list_schemas(&self) -> Result<Vec<String>> {
            Ok(Vec::new())
        }
        async fn list_tables(&self, _schema: &str) -> Result<Vec<TableIdent>> {
            Ok(Vec::new())
        }
        async fn load_table(&self, _ident: &TableIdent) -> Result<Arc<dyn Table>> {
            Err(Error::not_found("no table"))
        }
        async fn load_table_at(&self, ident: &TableIdent, _metadata_location: &str) -> Result<Arc<dyn Table>> {
            self.load_table(ident).await
        }
    }

    fn catalogs() -> Catalogs {
        Catalogs::new(vec![Arc::new(Named("Prod"))])
    }

    fn options(values: &[(&str, Option<&str>)]) -> Vec<u8> {
        let session_options = values
            .iter()
            .map(|(name, value)| {
                let option_value = value.map(|v| OptionValue::String(v.to_owned()));
                ((*name).to_owned(), SessionOptionValue { option_value })
            })
            .collect();
        SetSessionOptionsRequest { session_options }.encode_to_vec()
    }

    fn with(name: &'static str, value: &str) -> MetadataMap {
        let mut map = MetadataMap::new();
        map.insert(name, value.parse().unwrap());
        map
    }

    #[tokio::test]
    async fn options_are_found_by_cookie_and_by_token() {
        let sessions = Sessions::new();
        let reply = sessions
            .set(
                &MetadataMap::new(),
                &options(&[("catalog", Some("prod")), ("schema", Some("s"))]),
                &catalogs(),
            )
            .await
            .unwrap();
        assert!(SetSessionOptionsResult::decode(reply.body.as_slice()).unwrap().errors.is_empty());
        let cookie = with(
            "cookie",
            &format!("x=y; {}", reply.headers.get("set-cookie").unwrap().to_str().unwrap()),
        );
        let token = with("authorization", reply.headers.get("authorization").unwrap().to_str().unwrap());
        for request in [&cookie, &token] {
            let defaults = sessions.defaults(request).await;
            assert_eq!(defaults.catalog.as_deref(), Some("Prod"));
            assert_eq!(defaults.schema.as_deref(), Some("s"));
        }
        assert_eq!(sessions.defaults(&MetadataMap::new()).await, Defaults::default());

        // A second change goes to the same session and names no new one.
        let reply = sessions.set(&cookie, &options(&[("schema", None)]), &catalogs()).await.unwrap();
        assert!(reply.headers.is_empty());
        assert_eq!(sessions.defaults(&token).await.schema, None);

        let listed = GetSessionOptionsResult::decode(sessions.get(&token).await.unwrap().body.as_slice()).unwrap();
        assert_eq!(listed.session_options.len(), 1);
        assert_eq!(
            listed.session_options["catalog"].option_value,
            Some(OptionValue::String("Prod".to_owned()))
        );
    }

    #[tokio::test]
    async fn each_bad_option_has_its_reason() {
        let sessions = Sessions::new();
        let mut request =
            SetSessionOptionsRequest::decode(options(&[("catalog", Some("none")), ("colour", Some("red"))]).as_slice()).unwrap();
        request.session_options.insert(
            "schema".to_owned(),
            SessionOptionValue {
                option_value: Some(OptionValue::Int64(7)),
            },
        );
        let reply = sessions
            .set(&MetadataMap::new(), &request.encode_to_vec(), &catalogs())
            .await
            .unwrap();
        let errors = SetSessionOptionsResult::decode(reply.body.as_slice()).unwrap().errors;
        assert_eq!(errors["catalog"].value, 2);
        assert_eq!(errors["schema"].value, 2);
        assert_eq!(errors["colour"].value, 1);
    }

    #[tokio::test]
    async fn a_session_reads_a_branch_or_a_time() {
        let sessions = Sessions::new();
        let token = with("authorization", "Bearer t");
        let set = async |values: &[(&str, Option<&str>)]| {
            let reply = sessions.set(&token, &options(values), &catalogs()).await.unwrap();
            SetSessionOptionsResult::decode(reply.body.as_slice()).unwrap().errors
        };
        let mut headers = token.clone();
        headers.insert("as_of", "7".parse().unwrap());
        assert_eq!(sessions.defaults(&headers).await.as_of.as_deref(), Some("7"));
        assert!(set(&[("branch", Some("dev"))]).await.is_empty());
        let defaults = sessions.defaults(&headers).await;
        assert_eq!((defaults.branch.as_deref(), defaults.as_of), (Some("dev"), None));
        let errors = set(&[("branch", None), ("as_of", Some("some day"))]).await;
        assert_eq!(errors["as_of"].value, 2);
        assert!(set(&[("as_of", Some("2026-01-31 12:00:00"))]).await.is_empty());
        assert_eq!(sessions.defaults(&token).await.as_of.as_deref(), Some("2026-01-31 12:00:00"));
    }

    #[tokio::test]
    async fn without_a_session_get_fails_and_close_does_not() {
        let sessions = Sessions::new();
        assert!(sessions.get(&MetadataMap::new()).await.is_err());
        let token = with("authorization", "Bearer mine");
        sessions.set(&token, &options(&[("schema", Some("s"))]), &catalogs()).await.unwrap();
        for _ in 0..2 {
            let closed = CloseSessionResult::decode(sessions.close(&token).await.body.as_slice()).unwrap();
            assert_eq!(closed.status, CloseSessionStatus::Closed as i32);
        }
        assert!(sessions.get(&token).await.is_err());
    }

    #[tokio::test]
    async fn headers_are_defaults_of_last_resort() {
        let sessions = Sessions::new();
        let mut request = with("authorization", "Bearer t");
        request.insert("schema", "from_header".parse().unwrap());
        assert_eq!(sessions.defaults(&request).await.schema.as_deref(), Some("from_header"));
        sessions
            .set(&request, &options(&[("schema", Some("chosen"))]), &catalogs())
            .await
            .unwrap();
        assert_eq!(sessions.defaults(&request).await.schema.as_deref(), Some("chosen"));
    }

    #[test]
    fn a_handshake_keeps_a_token_and_replaces_a_password() {
        let (token, headers) = handshake(&with("authorization", "bearer abc"));
        assert_eq!(
            (token.as_str(), headers.get("authorization").unwrap().to_str().unwrap()),
            ("abc", "Bearer abc")
        );
        // Without padding, as Go clients send it.
        let (token, headers) = handshake(&with("authorization", "Basic dTp3cm9uZw"));
        assert_eq!(token.len(), 32);
        assert_eq!(headers.get("authorization").unwrap().to_str().unwrap(), format!("Bearer {token}"));
    }
}
