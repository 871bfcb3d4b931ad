//! Tests of uploads: stored files, their deletion, and limits.

use artifact_store::ArtifactStore;
use embedded_engine::faults::InjectedFault;
use key_schema::attributes::CREATED;
use key_schema::rows;
use mlflow_api::skills::ContentLimits;
use serde_json::{Value, json};
use table::{Item, Query, Update, number};
use tempfile::TempDir;
use test_site::TestEnvironment;

use crate::server::{Server, archive, housekeep};

#[tokio::test]
async fn content_is_stored_below_its_skill_and_deleted_with_it() {
    let site = TestEnvironment::new().await;
    let root = tempfile::tempdir().unwrap();
    let server = Server::with(&site.table, ArtifactStore::in_directory(root.path()), ContentLimits::MLFLOW);
    let files: [(&str, &[u8]); 2] = [("SKILL.md", b"---\nname: a\n---\n"), ("docs/a.txt", b"x")];
    let metadata = json!({ "name": "a", "organization": "acme", "status": "active" });
    let (status, version) = server.upload("@acme/a", &metadata, &archive(&files)).await;
    assert_eq!((status, version["version"].clone(), version["source_type"].clone()), (200, json!(1), json!("mlflow")));
    let path = version["source"].as_str().unwrap().strip_prefix("mlflow-artifacts:/skills/@acme/a/").unwrap();
    let directory = root.path().join("skills/@acme/a");
    for (name, content) in files {
        assert_eq!(std::fs::read(directory.join(path).join(name)).unwrap(), content);
    }
    let wrong = json!({ "digest": "0".repeat(64) });
    let (status, error) = server.upload("@acme/a", &wrong, &archive(&files)).await;
    assert_eq!(status, 400, "{error}");
    assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 1);
    // The content of this version is in a git repository, so the deletion of the skill must not
    // delete any files for it.
    server.register("@acme/a", "active").await;
    std::fs::write(root.path().join("other"), "x").unwrap();
    server.send("DELETE", "/@acme/a", json!({})).await.ok();
    assert!(!directory.join(path).exists());
    assert!(root.path().join("other").exists());
    // The row of the completed upload expires later.
    assert_eq!(site.items().await.len(), 1);
}

/// A table with a server that stores artifacts in a directory.
struct Uploads {
    site: TestEnvironment,
    root: TempDir,
}

impl Uploads {
    async fn new() -> Self {
        Self { site: TestEnvironment::new().await, root: tempfile::tempdir().unwrap() }
    }

    fn artifacts(&self) -> ArtifactStore {
        ArtifactStore::in_directory(self.root.path())
    }

    /// Returns a server whose requests to the table are subject to faults.
    fn server(&self) -> Server {
        Server::with(&self.site.impatient(), self.artifacts(), ContentLimits::MLFLOW)
    }

    /// Uploads a version of the skill `a`. Returns the status of the response.
    async fn upload(&self) -> u16 {
        self.server().upload("a", &json!({}), &archive(&[("SKILL.md", b"a"), ("b/c", b"")])).await.0
    }

    /// Injects a fault into a number of consecutive requests, starting with the one that registers
    /// the first version.
    async fn fail_registration(&self, fault: InjectedFault, calls: u64) {
        let other = Self::new().await;
        other.site.faults.keep_order();
        assert_eq!(other.upload().await, 200);
        let order = other.site.faults.order();
        let registration = (1..).zip(order).find(|(_, operation)| operation == "TransactWriteItems").unwrap().0;
        self.site.faults.trouble_at(fault, registration, calls);
    }

    /// Returns the number of directories with content of the skill.
    fn directories(&self) -> usize {
        std::fs::read_dir(self.root.path().join("skills/a")).map_or(0, Iterator::count)
    }

    async fn rows(&self) -> Vec<Item> {
        self.site.table.query(Query::of(rows::SkillUpload::all())).await.unwrap()
    }

    /// Runs the housekeeper as if the uploads had begun long ago.
    async fn housekeep_much_later(&self) {
        for row in self.rows().await {
            self.site.table.apply(&Update::new(row.key().unwrap()).set(CREATED, number(0))).await.unwrap();
        }
        housekeep(&self.site.table, self.artifacts()).await;
    }

    async fn latest(&self) -> Option<Value> {
        let found = self.server().read("/a/versions/1", &[]).await;
        (found.status == 200).then_some(found.body)
    }
}

#[tokio::test]
async fn content_is_deleted_later_if_its_client_disconnects() {
    let uploads = Uploads::new().await;
    let mut gate = uploads.site.faults.pause_before("TransactWriteItems", 1);
    tokio::select! {
        status = uploads.upload() => panic!("{status}"),
        () = gate.reached() => {}
    }
    drop(gate);
    // The upload might still be in progress.
    housekeep(&uploads.site.table, uploads.artifacts()).await;
    assert_eq!(uploads.directories(), 1);
    uploads.housekeep_much_later().await;
    assert_eq!((uploads.directories(), uploads.site.items().await.len()), (0, 0));
}

#[tokio::test]
async fn content_of_a_version_is_never_deleted() {
    let uploads = Uploads::new().await;
    assert_eq!(uploads.upload().await, 200);
    uploads.housekeep_much_later().await;
    assert_eq!(uploads.directories(), 1);

    // All responses are lost from the registration on, so its outcome is unknown to the server.
    let uploads = Uploads::new().await;
    uploads.fail_registration(InjectedFault::AnswerLost, u64::MAX).await;
    assert_eq!(uploads.upload().await, 409);
    uploads.site.faults.work_again();
    assert!(uploads.latest().await.is_some());
    uploads.housekeep_much_later().await;
    assert_eq!(uploads.directories(), 1);
}

#[tokio::test]
async fn an_upload_is_refused_once_its_content_is_being_deleted() {
    let uploads = Uploads::new().await;
    let mut gate = uploads.site.faults.pause_before("TransactWriteItems", 1);
    let late = async {
        gate.reached().await;
        uploads.housekeep_much_later().await;
        gate.open();
    };
    let (status, ()) = tokio::join!(uploads.upload(), late);
    assert_eq!((status, uploads.directories(), uploads.latest().await), (503, 0, None));
}

#[tokio::test]
async fn content_is_deleted_at_once_if_the_registration_fails() {
    let uploads = Uploads::new().await;
    uploads.fail_registration(InjectedFault::Throttled, 2).await;
    let status = uploads.upload().await;
    assert_eq!((status, uploads.directories(), uploads.latest().await), (429, 0, None));
    uploads.housekeep_much_later().await;
    assert!(uploads.site.items().await.is_empty());
}

#[tokio::test]
async fn an_interrupted_deletion_is_completed_later() {
    let uploads = Uploads::new().await;
    assert_eq!(uploads.upload().await, 200);
    let mut gate = uploads.site.faults.pause_after("TransactWriteItems", 1);
    let interruption = async {
        gate.reached().await;
        uploads.site.faults.cut_off_at(1);
        gate.open();
    };
    let server = uploads.server();
    let (response, ()) = tokio::join!(server.send("DELETE", "/a", json!({})), interruption);
    response.ok();
    uploads.site.faults.work_again();
    assert_eq!((uploads.directories(), uploads.site.items().await.len()), (1, 3));
    housekeep(&uploads.site.table, uploads.artifacts()).await;
    assert_eq!((uploads.directories(), uploads.site.items().await.len()), (0, 1));
}

#[tokio::test]
async fn an_upload_is_refused_beyond_the_limits_and_without_artifacts() {
    let site = TestEnvironment::new().await;
    let root = tempfile::tempdir().unwrap();
    let in_lambda = Server::with(&site.table, ArtifactStore::in_directory(root.path()), ContentLimits::LAMBDA);
    let large = vec![0; (4 << 20) + 1];
    let (status, error) = in_lambda.upload("a", &json!({}), &archive(&[("a", &large)])).await;
    assert_eq!((status, error["message"].as_str().unwrap().contains("4194304")), (413, true));
    let (status, error) = in_lambda.upload("a", &json!({ "source": "https://h/a.git" }), &archive(&[("a", b"")])).await;
    assert_eq!(status, 400, "{error}");
    let without = Server::on(&site.table);
    let (status, _) = without.upload("a", &json!({}), &archive(&[("a", b"")])).await;
    assert_eq!((status, site.items().await.is_empty()), (501, true));
}
