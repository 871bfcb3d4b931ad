//! Endpoints of `webhooks/…`.

use access::{Action, Needs, Resource, Scope, Target};
use mlflow_api::requests::webhooks as message;
use mlflow_api::tracking::EmptyResponse;
use mlflow_api::webhooks::{
    ListWebhooksResponse, TestWebhookResponse, WebhookEvent, WebhookEventMessage, WebhookResponse, page_size,
    read_events,
};
use mlflow_api::{Request, Result};
use service::Endpoint;

use crate::store::{NewWebhook, Store, WebhookChange};

/// Returns the need for an action on the webhooks of the workspace.
fn webhook_needs(action: Action) -> Needs {
    Needs::of(action, [Target::Any(Resource::Webhook)])
}

/// Returns the webhook's id as the path contains it. The store parses it.
fn id_in_path(request: &Request) -> String {
    request.path_part("webhook_id").to_owned()
}

pub(crate) struct Create(NewWebhook);

impl Endpoint for Create {
    type Store = Store;
    type Answer = WebhookResponse;

    fn read(request: &Request) -> Result<Self> {
        let message::CreateWebhook { name, url, events, description, secret, status } = request.read()?;
        let events = read_events(&events)?;
        Ok(Self(NewWebhook { name, url, events, description, secret, status: status.unwrap_or_default() }))
    }

    fn needs(&self) -> Needs {
        webhook_needs(Action::Create)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<WebhookResponse> {
        Ok(WebhookResponse { webhook: store.webhook_create(scope.workspace(), self.0).await? })
    }
}

pub(crate) struct List {
    page_size: i32,
    page_token: String,
}

impl Endpoint for List {
    type Store = Store;
    type Answer = ListWebhooksResponse;

    fn read(request: &Request) -> Result<Self> {
        let message::ListWebhooks { max_results, page_token } = request.read()?;
        Ok(Self { page_size: max_results, page_token })
    }

    fn needs(&self) -> Needs {
        webhook_needs(Action::Read)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<ListWebhooksResponse> {
        store.webhook_list(scope.workspace(), page_size(self.page_size)?, &self.page_token).await
    }
}

pub(crate) struct Get(String);

impl Endpoint for Get {
    type Store = Store;
    type Answer = WebhookResponse;

    fn read(request: &Request) -> Result<Self> {
        Ok(Self(id_in_path(request)))
    }

    fn needs(&self) -> Needs {
        webhook_needs(Action::Read)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<WebhookResponse> {
        Ok(WebhookResponse { webhook: store.webhook_get(scope.workspace(), &self.0).await? })
    }
}

pub(crate) struct Update {
    id: String,
    change: WebhookChange,
}

impl Endpoint for Update {
    type Store = Store;
    type Answer = WebhookResponse;

    fn read(request: &Request) -> Result<Self> {
        let message::UpdateWebhook { name, description, url, events, secret, status } = request.read()?;
        let events = read_events(&events)?;
        // As in MLflow, an empty name, URL or list of events leaves the webhook as it is.
        let change = WebhookChange {
            name: Some(name).filter(|name| !name.is_empty()),
            url: Some(url).filter(|url| !url.is_empty()),
            events: Some(events).filter(|events| !events.is_empty()),
            description,
            secret,
            status,
        };
        Ok(Self { id: id_in_path(request), change })
    }

    fn needs(&self) -> Needs {
        webhook_needs(Action::Update)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<WebhookResponse> {
        Ok(WebhookResponse { webhook: store.webhook_update(scope.workspace(), &self.id, self.change).await? })
    }
}

pub(crate) struct Delete(String);

impl Endpoint for Delete {
    type Store = Store;
    type Answer = EmptyResponse;

    fn read(request: &Request) -> Result<Self> {
        Ok(Self(id_in_path(request)))
    }

    fn needs(&self) -> Needs {
        webhook_needs(Action::Delete)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<EmptyResponse> {
        store.webhook_delete(scope.workspace(), &self.0).await?;
        Ok(EmptyResponse {})
    }
}

pub(crate) struct Test {
    id: String,
    event: Option<WebhookEvent>,
}

impl Endpoint for Test {
    type Store = Store;
    type Answer = TestWebhookResponse;

    fn read(request: &Request) -> Result<Self> {
        let message::TestWebhook { event } = request.read()?;
        Ok(Self { id: id_in_path(request), event: event.map(WebhookEventMessage::event).transpose()? })
    }

    /// Testing requires the permission to update, because it sends a request to the webhook's
    /// address.
    fn needs(&self) -> Needs {
        webhook_needs(Action::Update)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<TestWebhookResponse> {
        Ok(TestWebhookResponse { result: store.webhook_test(scope.workspace(), &self.id, self.event).await? })
    }
}
