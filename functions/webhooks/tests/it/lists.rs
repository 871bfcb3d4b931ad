//! Pages of webhooks.

use serde_json::Value;

use crate::server::{Server, Site, new_webhook};

/// Returns the names of all webhooks, grouped by the page that contains them.
async fn pages(server: &Server, size: usize) -> Vec<Vec<String>> {
    let (mut pages, mut token) = (Vec::new(), String::new());
    loop {
        let page = server.get("webhooks", &[("max_results", &size.to_string()), ("page_token", &token)]).await.ok();
        let webhooks = page["webhooks"].as_array().cloned().unwrap_or_default();
        pages.push(webhooks.iter().map(|webhook| webhook["name"].as_str().unwrap().to_owned()).collect());
        match &page["next_page_token"] {
            Value::String(next) => next.clone_into(&mut token),
            _ => return pages,
        }
    }
}

#[tokio::test]
async fn webhooks_are_listed_newest_first() {
    let site = Site::new().await;
    let server = &site.server;
    assert_eq!(pages(server, 0).await, vec![Vec::<String>::new()]);
    for number in 0..7 {
        server.create(new_webhook(&format!("h{number}"))).await;
        // Webhooks that were created in the same millisecond are listed in random order.
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
    let all: Vec<_> = (0..7).rev().map(|number| format!("h{number}")).collect();
    assert_eq!(pages(server, 0).await, vec![all.clone()]);
    for size in [1, 2, 3, 6, 7, 8, 1_000] {
        let found = pages(server, size).await;
        assert_eq!(found.concat(), all, "{size}");
        assert_eq!(found.len(), all.len().div_ceil(size), "{size}");
    }
    let message = |size: &'static str| async move {
        server.get("webhooks", &[("max_results", size)]).await.refused(400, "INVALID_PARAMETER_VALUE")
    };
    assert_eq!(message("-1").await, "max_results must be between 1 and 1000.");
    assert_eq!(message("1001").await, "max_results must be between 1 and 1000.");
    let wrong = server.get("webhooks", &[("page_token", "x")]).await.refused(400, "INVALID_PARAMETER_VALUE");
    assert_eq!(wrong, "Invalid page token, could not base64-decode");
}
