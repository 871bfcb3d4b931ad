//! The TTL policy.

use key_schema::rows;
use retention::{Age, Policy};
use serde_json::json;
use table::{Condition, Item, text};

use crate::lab::{Lab, apply_policy};

#[tokio::test]
async fn without_a_policy_nothing_is_removed() {
    let lab = Lab::new().await;
    let run = lab.run("0").await;
    lab.post("runs/delete", json!({ "run_id": run })).await;
    let retention = lab.retention();
    assert_eq!(Policy::read(&lab.site.table).await.unwrap(), None);
    assert!(!apply_policy(&retention).await.0);

    for (age, removed) in [("30d", 0), ("0s", 1)] {
        Policy::write(&lab.site.table, Some(&Age::parse(age).unwrap())).await.unwrap();
        assert_eq!(Policy::read(&lab.site.table).await.unwrap().unwrap().as_str(), age);
        let (is_set, outcome) = apply_policy(&retention).await;
        assert_eq!((is_set, outcome.removed.len()), (true, removed), "{age}");
    }
    assert!(lab.items(&run).await.is_empty());
    Policy::write(&lab.site.table, None).await.unwrap();
    assert_eq!(Policy::read(&lab.site.table).await.unwrap(), None);
}

#[tokio::test]
async fn a_policy_that_cannot_be_read_removes_nothing() {
    let lab = Lab::new().await;
    let row = Item::new(rows::Config::key(&"ttl_policy".into()));
    for row in [row.clone(), row.with("kept_for", text("soon"))] {
        lab.site.table.put(row, &Condition::Always).await.unwrap();
        assert!(Policy::read(&lab.site.table).await.is_err());
    }
}
