//! Configuration as users meet it: files, environment variables, errors that say where.

use std::process::Command;

use sandur::config::{CatalogConfig, Config, SqlCatalogConfig, TableFormat};

const FULL: &str = r#"
[server]
listen = "127.0.0.1:4000"
[limits]
memory = "12GiB"
queries = 3
[cache]
metadata = "64MiB"
deletes = 1024
[log]
level = "warn,sandur=debug"
[catalog.lake]
type = "directory"
path = "/data/lake"
[catalog.cases]
type = "tables"
[[catalog.cases.table]]
name = "default.orders"
format = "iceberg"
location = "/data/orders"
path_map = [{ from = "s3://old-bucket/orders/", to = "/data/orders/" }]
read_only = true
[[catalog.cases.table]]
name = "a.b.items"
format = "delta"
location = "/data/items"
"#;

fn parse(text: &str) -> sandur::error::Result<Config> {
    Config::parse(Some(("sandur.toml", text)), [])
}

fn with_env(text: &str, env: &[(&str, &str)]) -> sandur::error::Result<Config> {
    let env = env.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
    Config::parse(Some(("sandur.toml", text)), env)
}

#[test]
fn every_built_key_is_read() {
    let config = parse(FULL).unwrap();
    assert_eq!(config.server.listen.to_string(), "127.0.0.1:4000");
    assert_eq!(config.limits.memory, Some(12_884_901_888));
    assert_eq!(config.limits.queries, 3);
    assert_eq!(config.cache.metadata, 67_108_864);
    assert_eq!(config.cache.deletes, 1024);
    assert_eq!(config.log.level, "warn,sandur=debug");
    assert!(matches!(&config.catalogs["lake"], CatalogConfig::Directory { path } if path == "/data/lake"));
    let CatalogConfig::Tables { tables } = &config.catalogs["cases"] else {
        panic!("not a catalog of tables");
    };
    assert_eq!(tables[0].name, "default.orders");
    assert_eq!(tables[0].format, TableFormat::Iceberg);
    assert_eq!(
        tables[0].path_map,
        [("s3://old-bucket/orders/".to_owned(), "/data/orders/".to_owned())]
    );
    assert!(tables[0].read_only);
    assert_eq!(tables[1].format, TableFormat::Delta);
    assert!(!tables[1].read_only);
}

#[test]
fn an_empty_file_gives_the_defaults() {
    let config = parse("").unwrap();
    assert_eq!(config.server.listen.to_string(), "127.0.0.1:31337");
    assert_eq!(config.limits.memory, None);
    assert_eq!(config.limits.queries, 8);
    assert_eq!(config.cache.metadata, 512 << 20);
    assert_eq!(config.cache.deletes, 256 << 20);
    assert_eq!(config.log.level, "info");
    assert!(config.pruning.manifests && config.pruning.pages && config.pruning.bloom);
    assert!(config.catalogs.is_empty());
}

#[test]
fn every_kind_of_pruning_has_a_switch() {
    let config = with_env(
        "[pruning]\nmanifests = false\npages = false",
        &[("SANDUR__PRUNING__BLOOM", "false"), ("SANDUR__PRUNING__PAGES", "true")],
    )
    .unwrap();
    let off = &config.pruning;
    assert!(!off.manifests && !off.bloom);
    assert!(off.partitions && off.metrics && off.row_groups && off.pages);
    assert_eq!(parse(&config.to_toml().unwrap()).unwrap().pruning, config.pruning);
    let error = parse("[pruning]\nfiles = false").unwrap_err().to_string();
    assert!(error.contains("`pruning.files`"), "{error}");
}

#[test]
fn errors_name_the_full_key_and_the_file() {
    for (text, key, says) in [
        ("sever = 1", "`sever`", "unknown key"),
        ("[server]\nlisten_on = 'x'", "`server.listen_on`", "unknown key"),
        ("[limits]\nquery = 1", "`limits.query`", "unknown key"),
        (
            "[catalog.a]\ntype = 'directory'\npath = '/x'\nuri = 'u'",
            "`catalog.a.uri`",
            "unknown key",
        ),
        ("[server]\nlisten = '127.0.0.1:1'\nlisten = '127.0.0.1:2'", "sandur.toml:3", "TOML"),
        (
            "[catalog.a]\ntype = 'tables'\n[[catalog.a.table]]\nname = 's.t'\nformat = 'iceberg'\nlocation = '/t'\nloc = 1",
            "`catalog.a.table[0].loc`",
            "unknown key",
        ),
        (
            "[catalog.a]\ntype = 'tables'\ntable = [{ name = 's.t', format = 'iceberg', location = '/t', path_map = [{ form = '' }] }]",
            "`catalog.a.table[0].path_map[0].from`",
            "missing",
        ),
        ("[catalog.'a b']\ntype = 'directory'", "`catalog.\"a b\".path`", "missing"),
        ("[catalog.a]\npath = 'x'", "`catalog.a.type`", "missing"),
        (
            "[catalog.a]\ntype = 'hive'",
            "`catalog.a.type`",
            "\"sql\", \"directory\" or \"tables\"",
        ),
        ("[catalog.a]\ntype = 'sql'\nuri = 'sqlite:x'", "`catalog.a.warehouse`", "missing"),
        ("[catalog.a]\ntype = 'sql'\nwarehouse = 'w'", "`catalog.a.uri`", "missing"),
        (
            "[catalog.a]\ntype = 'sql'\nwarehouse = 'w'\nuri = 'sqlite:x'\npath = 'p'",
            "`catalog.a.path`",
            "unknown key",
        ),
        (
            "[catalog.a]\ntype = 'sql'\nwarehouse = 'w'\nuri = 'postgresql://u:secret@h/d'",
            "`catalog.a.uri`",
            "only SQLite files are built yet",
        ),
        (
            "[catalog.a]\ntype = 'sql'\nwarehouse = 'w'\nuri = 'sqlite::memory:'",
            "`catalog.a.uri`",
            "no file",
        ),
        (
            "[catalog.a]\ntype = 'sql'\nwarehouse = 'w'\nuri = 'sqlite://x/y.db'",
            "`catalog.a.uri`",
            "`sqlite:///`",
        ),
        (
            "[catalog.a]\ntype = 'sql'\nwarehouse = 'w'\nuri = 'sqlite:x'\nallowed_locations = 'x'",
            "`catalog.a.allowed_locations`",
            "array of strings",
        ),
        ("catalog.a = 1", "`catalog.a`", "must be a table"),
        (
            "[catalog.a]\ntype = 'tables'\ntable = [1]",
            "`catalog.a.table[0]`",
            "must be a table",
        ),
        (
            "[catalog.a]\ntype='directory'\npath='/a'\n[catalog.A]\ntype='directory'\npath='/b'",
            "`catalog.a.type`",
            "case alone",
        ),
        ("[server]\nlisten = 'somewhere'", "`server.listen`", "address"),
        ("[server]\nlisten = 31337", "`server.listen`", "string"),
        ("[limits]\nqueries = 0", "`limits.queries`", "at least 1"),
        ("[limits]\nqueries = '8'", "`limits.queries`", "whole number"),
        ("[limits]\nmemory = 'lots'", "`limits.memory`", "12GiB"),
        ("[limits]\nmemory = 0", "`limits.memory`", "more than 0"),
        ("[log]\nlevel = 'no=such=level'", "`log.level`", "level"),
    ] {
        let error = parse(text).unwrap_err().to_string();
        assert!(error.contains(key) && error.contains(says), "{text}\ngives {error}");
        assert!(error.contains("sandur.toml"), "{text}\ngives {error}");
    }
}

#[test]
fn a_sql_catalog_has_a_file_and_a_warehouse() {
    let here = std::env::current_dir().unwrap();
    let at = |path: &str| format!("{}/{path}", here.display());
    let read = |text: &str| {
        let config = parse(&format!("[catalog.a]\ntype = 'sql'\n{text}")).unwrap();
        // what is printed gives the same again
        let again = parse(&config.to_toml().unwrap()).unwrap();
        match (&config.catalogs["a"], &again.catalogs["a"]) {
            (CatalogConfig::Sql(config), CatalogConfig::Sql(again)) if config == again => config.clone(),
            other => panic!("{other:?}"),
        }
    };
    let plain = |file: &str| SqlCatalogConfig {
        file: file.to_owned(),
        warehouse: at("wh"),
        allowed_locations: Vec::new(),
        catalog_name: None,
    };
    for (uri, file) in [
        ("sqlite:wh/catalog.db", at("wh/catalog.db")),
        ("sqlite:/data/catalog.db", "/data/catalog.db".to_owned()),
        ("sqlite:///wh/catalog.db", at("wh/catalog.db")),
        ("sqlite:////data/catalog.db", "/data/catalog.db".to_owned()),
    ] {
        assert_eq!(read(&format!("uri = '{uri}'\nwarehouse = 'wh'")), plain(&file), "{uri}");
    }
    let full = "uri = 'sqlite:/c.db'\nwarehouse = 'wh'\nallowed_locations = ['/more', 'x']\ncatalog_name = 'default'";
    let expected = SqlCatalogConfig {
        allowed_locations: vec!["/more".to_owned(), at("x")],
        catalog_name: Some("default".to_owned()),
        ..plain("/c.db")
    };
    assert_eq!(read(full), expected);
}

#[test]
fn planned_keys_are_refused_as_not_built() {
    for (text, key) in [
        ("[server]\nadvertise = 'grpc://h:1'", "`server.advertise`"),
        ("[server]\nticket_key = 'k'", "`server.ticket_key`"),
        ("[server]\ndrain_timeout = '30s'", "`server.drain_timeout`"),
        ("[server.tls]\ncert = 'c'", "`server.tls`"),
        ("[admin]\nlisten = '127.0.0.1:1'", "`admin`"),
        ("[auth]\nusers = 'u'", "`auth`"),
        ("[audit]\nfile = 'f'", "`audit`"),
        ("[storage.'s3://bucket']\nregion = 'r'", "`storage`"),
        ("[limits]\nstatement_timeout = '10m'", "`limits.statement_timeout`"),
        ("[catalog.a]\ntype = 'rest'\nuri = 'https://x'", "`catalog.a.type`"),
    ] {
        let error = parse(text).unwrap_err().to_string();
        assert!(error.contains(key) && error.contains("not built yet"), "{text}\ngives {error}");
    }
}

#[test]
fn environment_variables_override_the_file() {
    let config = with_env(
        FULL,
        &[
            ("SANDUR__SERVER__LISTEN", "localhost:5000"),
            ("SANDUR__LIMITS__QUERIES", "5"),
            ("SANDUR__CACHE__DELETES", "2MiB"),
            ("SANDUR__CATALOG__LAKE__PATH", "/elsewhere"),
            ("SANDUR__CATALOG__NEW__TYPE", "tables"),
            (
                "SANDUR__CATALOG__NEW__TABLE",
                "[{ name = 's.t', format = 'iceberg', location = '/t', read_only = true }]",
            ),
            ("SANDUR_OTHER", "not ours"),
        ],
    )
    .unwrap();
    assert_eq!(config.server.listen.to_string(), "127.0.0.1:5000");
    assert_eq!(config.limits.queries, 5);
    assert_eq!(config.limits.memory, Some(12 << 30));
    assert_eq!(config.cache.deletes, 2 << 20);
    assert!(matches!(&config.catalogs["lake"], CatalogConfig::Directory { path } if path == "/elsewhere"));
    assert!(matches!(&config.catalogs["new"], CatalogConfig::Tables { tables } if tables[0].read_only));
}

#[test]
fn errors_name_the_environment_variable() {
    for (variable, value, says) in [
        ("SANDUR__LIMITS__QUERIES", "many", "whole number"),
        ("SANDUR__LIMITS__QUERY", "1", "unknown key `limits.query`"),
        ("SANDUR__SERVER__LISTEN__PORT", "1", "`server.listen` is not a table"),
        ("SANDUR__SERVER____LISTEN", "1", "empty part"),
        ("SANDUR__AUTH__USERS", "u", "not built yet"),
        ("SANDUR__CATALOG__NEW", "{ type = ", "TOML"),
        ("SANDUR__CATALOG__NEW", "{ type = 'directory', path = 3 }", "`catalog.new.path`"),
    ] {
        let error = with_env(FULL, &[(variable, value)]).unwrap_err().to_string();
        assert!(
            error.contains(variable) && error.contains(says),
            "{variable}={value}\ngives {error}"
        );
    }
}

#[test]
fn the_effective_configuration_reads_back_as_itself() {
    let once = parse(FULL).unwrap().to_toml().unwrap();
    assert_eq!(parse(&once).unwrap().to_toml().unwrap(), once);
    assert!(once.contains("memory = \"12GiB\"") && once.contains("deletes = \"1KiB\""), "{once}");
}

#[test]
fn check_config_prints_it_with_the_environment_applied() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("sandur.toml");
    std::fs::write(&file, FULL).unwrap();
    let out = Command::new(env!("CARGO_BIN_EXE_sandur"))
        .args(["check-config", file.to_str().unwrap()])
        .env("SANDUR__LIMITS__QUERIES", "7")
        .output()
        .unwrap();
    assert!(out.status.success(), "{out:?}");
    let printed = String::from_utf8(out.stdout).unwrap();
    assert_eq!(parse(&printed).unwrap().limits.queries, 7);
    assert!(printed.contains("path = \"/data/lake\""), "{printed}");
}

#[test]
fn no_secret_reaches_the_output_of_check_config() {
    const CANARY: &str = "canary-4b0e";
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("sandur.toml");
    for text in [
        format!("[server]\nticket_key = '{CANARY}'"),
        format!("[catalog.prod]\ntype = 'rest'\ncredential = '{CANARY}'"),
        format!("[catalog.prod]\ntype = 'directory'\npath = '/x'\ntoken = '{CANARY}'"),
        format!("[storage.'s3://b']\nsecret_access_key = '{CANARY}'"),
        // not TOML at all: the line must not be quoted
        format!("[server]\nticket_key = '{CANARY}' '"),
        format!("[server]\nticket_key = {CANARY}"),
    ] {
        std::fs::write(&file, &text).unwrap();
        let out = Command::new(env!("CARGO_BIN_EXE_sandur"))
            .args(["check-config", file.to_str().unwrap()])
            .env("SANDUR__CATALOG__PROD__CREDENTIAL", CANARY)
            .output()
            .unwrap();
        assert_eq!(out.status.code(), Some(1), "{text}");
        let printed = format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
        assert!(!printed.contains(CANARY), "{text}\ngives {printed}");
    }
}
