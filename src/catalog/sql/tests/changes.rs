//! Schemas and names of tables, and who may change them.

use std::collections::BTreeMap;

use super::*;
use crate::catalog::{Catalog, SwapOutcome};
use crate::error::ErrorKind;

fn pairs(list: &[(&str, &str)]) -> BTreeMap<String, String> {
    list.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
}

fn u(schema: &str, table: &str) -> TableIdent {
    TableIdent::new("iceberg", schema, table)
}

#[tokio::test]
async fn schemas_are_created_changed_and_dropped() {
    let lake = Lake::new();
    let catalog = lake.catalog();
    catalog.create_namespace("a.b", &pairs(&[("owner", "me")])).await.unwrap();
    assert_eq!(catalog.list_schemas().await.unwrap(), ["a", "a.b"]);
    for twice in ["a", "a.b"] {
        let e = catalog.create_namespace(twice, &[].into()).await.unwrap_err();
        assert_eq!(e.kind(), ErrorKind::AlreadyExists);
    }
    let set = pairs(&[("owner", "you"), ("comment", "x")]);
    catalog.set_namespace_properties("a.b", &set, &[]).await.unwrap();
    assert_eq!(catalog.namespace_properties("a.b").await.unwrap(), set);
    let both = ["owner".to_owned(), "comment".to_owned()];
    assert_eq!(
        catalog.set_namespace_properties("a.b", &set, &both).await.unwrap_err().kind(),
        ErrorKind::InvalidInput
    );
    catalog.set_namespace_properties("a.b", &[].into(), &both).await.unwrap();
    assert_eq!(
        catalog.namespace_properties("a.b").await.unwrap(),
        [].into(),
        "it stays without properties"
    );
    assert_eq!(
        catalog.drop_namespace("a").await.unwrap_err().kind(),
        ErrorKind::InvalidInput,
        "it has a schema inside"
    );
    done(catalog.create_table(&u("a.b", "t"), &lake.metadata(0)).await);
    assert_eq!(catalog.drop_namespace("a.b").await.unwrap_err().kind(), ErrorKind::InvalidInput);
    catalog.drop_table(&u("a.b", "t")).await.unwrap();
    catalog.drop_namespace("a.b").await.unwrap();
    assert_eq!(catalog.drop_namespace("a.b").await.unwrap_err().kind(), ErrorKind::NotFound);
    let e = catalog.set_namespace_properties("a.b", &set, &[]).await.unwrap_err();
    assert_eq!(e.kind(), ErrorKind::NotFound);
    assert_eq!(catalog.list_schemas().await.unwrap(), Vec::<String>::new());
    for bad in ["", "a..b", ".a", "a.", "a\0", &"x".repeat(256)] {
        let e = catalog.create_namespace(bad, &[].into()).await.unwrap_err();
        assert_eq!(e.kind(), ErrorKind::InvalidInput, "{bad:?}");
    }
}

#[tokio::test]
async fn tables_are_created_renamed_and_dropped() {
    let lake = Lake::new();
    let catalog = lake.with_table().await;
    done(catalog.create_table(&t(), &lake.metadata(0)).await);
    let plain = lake.metadata(0).strip_prefix("file://").unwrap().to_owned();
    done(catalog.create_table(&t(), &plain).await);
    let SwapOutcome::Failed(e) = catalog.create_table(&t(), &lake.metadata(1)).await else {
        panic!()
    };
    assert_eq!(e.kind(), ErrorKind::AlreadyExists);
    // ours, and a commit came on top since
    done(catalog.swap(&t(), &lake.metadata(0), &lake.metadata(1)).await);
    done(catalog.create_table(&t(), &lake.metadata(0)).await);
    let SwapOutcome::Failed(e) = catalog.create_table(&u("nope", "t"), &lake.metadata(0)).await else {
        panic!()
    };
    assert_eq!(e.kind(), ErrorKind::NotFound);

    catalog.create_namespace("Other", &[].into()).await.unwrap();
    assert_eq!(
        catalog.rename_table(&t(), &u("nope", "t")).await.unwrap_err().kind(),
        ErrorKind::NotFound
    );
    assert_eq!(
        catalog.rename_table(&u("s", "nope"), &u("s", "x")).await.unwrap_err().kind(),
        ErrorKind::NotFound
    );
    catalog.rename_table(&t(), &u("Other", "T2")).await.unwrap();
    assert_eq!(catalog.pointer(&t()).await.unwrap(), None);
    assert_eq!(catalog.find_table("other", "t2").await.unwrap(), Some(u("Other", "T2")));
    done(catalog.create_table(&t(), &lake.metadata(7)).await);
    assert_eq!(
        catalog.rename_table(&t(), &u("Other", "T2")).await.unwrap_err().kind(),
        ErrorKind::AlreadyExists
    );
    done(catalog.create_table(&u("Other", "t2"), &lake.metadata(8)).await);
    assert_eq!(catalog.find_table("OTHER", "T2").await.unwrap(), Some(u("Other", "T2")));
    let e = catalog.find_table("other", "t2").await;
    assert_eq!(
        e.unwrap(),
        Some(u("Other", "t2")),
        "in a schema found without regard to case, a table spelled exactly"
    );
    done(catalog.create_table(&u("Other", "tX"), &lake.metadata(9)).await);
    done(catalog.create_table(&u("Other", "Tx"), &lake.metadata(9)).await);
    assert_eq!(catalog.find_table("Other", "TX").await.unwrap_err().kind(), ErrorKind::InvalidInput);

    assert_eq!(catalog.drop_table(&u("Other", "T2")).await.unwrap(), lake.metadata(1));
    assert_eq!(catalog.drop_table(&u("Other", "T2")).await.unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(
        catalog.drop_table(&TableIdent::new("x", "s", "t")).await.unwrap_err().kind(),
        ErrorKind::InvalidInput
    );
    for bad in ["", "a.b", "a\nb"] {
        let SwapOutcome::Failed(e) = catalog.create_table(&u("s", bad), &lake.metadata(0)).await else {
            panic!()
        };
        assert_eq!(e.kind(), ErrorKind::InvalidInput, "{bad:?}");
    }
}

#[tokio::test]
async fn a_new_table_gets_a_place_in_its_schema() {
    let lake = Lake::new();
    let catalog = lake.with_table().await;
    let wh = lake.dir.path().join("wh");
    assert_eq!(
        catalog.new_location(&u("s", "x")).await.unwrap(),
        format!("file://{}/s/x", wh.display())
    );
    let own = pairs(&[("location", &format!("{}/own", wh.display()))]);
    catalog.set_namespace_properties("s", &own, &[]).await.unwrap();
    assert_eq!(
        catalog.new_location(&u("s", "x")).await.unwrap(),
        format!("file://{}/own/x", wh.display())
    );
    assert_eq!(catalog.new_location(&u("nope", "x")).await.unwrap_err().kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn a_second_server_reads_and_does_not_write() {
    let lake = Lake::new();
    let catalog = lake.with_table().await;
    // A second catalog of this process is the same server.
    let again = lake.catalog();
    again.create_namespace("more", &[].into()).await.unwrap();
    drop(catalog);
    again.claim().await.unwrap();
    drop(again);

    let lock = std::fs::File::options()
        .write(true)
        .open(lake.dir.path().join("catalog.db.sandur-lock"))
        .unwrap();
    // Another test may be starting a process just now, which holds every open file for a moment.
    let free = (0..100).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        lock.try_lock().is_ok()
    });
    assert!(free, "the lock goes with the last catalog of the process");
    std::fs::write(lake.dir.path().join("catalog.db.sandur-lock"), "4711\n").unwrap();
    let second = lake.catalog();
    assert_eq!(second.list_schemas().await.unwrap(), ["more", "s"]);
    for e in [
        second.claim().await.unwrap_err(),
        second.create_namespace("x", &[].into()).await.unwrap_err(),
        second.drop_table(&t()).await.unwrap_err(),
        second
            .swap(&t(), &lake.metadata(0), &lake.metadata(1))
            .await
            .into_result()
            .unwrap_err(),
    ] {
        assert_eq!(e.kind(), ErrorKind::PermissionDenied, "{e}");
        assert!(
            e.to_string().contains("another Sandur server") && e.to_string().contains("4711"),
            "{e}"
        );
    }
    assert_eq!(second.pointer(&t()).await.unwrap().unwrap().location, lake.metadata(0));
    // The first one ends, and the second may write.
    lock.unlock().unwrap();
    done(second.swap(&t(), &lake.metadata(0), &lake.metadata(1)).await);
}
