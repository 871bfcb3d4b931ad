//! `mlflow-serverless login`: obtains a token for this machine, for a user who signs in with a
//! browser.
//!
//! The user signs in at the server, whatever the identity provider, or with a password. If a browser
//! can be opened on this machine, it returns a code to a loopback address (`loopback.rs`; RFC 8252,
//! with PKCE). Otherwise, the user enters a code in a browser on any machine (`device.rs`; RFC
//! 8628). The token is stored in a file that only the user can read (`stored_tokens.rs`), from where
//! `clients/python` takes it.

mod browser;
mod device;
mod loopback;
mod oauth_client;
mod server_url;
mod stored_tokens;

use std::io::IsTerminal;

use clap::Args;

use crate::Failure;
use crate::login::oauth_client::{IssuedToken, OauthClient};
use crate::login::server_url::ServerUrl;
use crate::login::stored_tokens::{StoredToken, StoredTokens};
use crate::output::{print_line, print_note};

/// Remaining lifetime in seconds below which `--print` replaces a stored token. Long enough for the
/// script that the token is printed for.
const MIN_REMAINING_SECONDS: i64 = 24 * 3_600;
/// Name of a host whose name cannot be determined.
const UNNAMED_HOST: &str = "unnamed host";

/// Options of `login`.
#[derive(Args)]
pub(crate) struct Options {
    /// URL of the server.
    #[arg(value_name = "URL", env = "MLFLOW_TRACKING_URI")]
    server: ServerUrl,
    /// Print only the token, to standard output, for clients that read `MLFLOW_TRACKING_TOKEN`. If a
    /// valid token is stored, it is printed; otherwise, the login takes place first.
    #[arg(long)]
    print: bool,
    /// Show a code to enter in a browser on any machine, instead of opening a browser here.
    #[arg(long)]
    device: bool,
}

pub(crate) async fn run(options: Options) -> Result<(), Failure> {
    let Options { server, print, device } = options;
    let tokens = StoredTokens::of_user()?;
    let client = OauthClient::new(server)?;
    if print {
        if let Some(token) = valid_token(&client, &tokens).await? {
            print_line(&token);
            return Ok(());
        }
        if !std::io::stderr().is_terminal() {
            return Err(
                format!("there is no valid token for {0}: run mlflow-serverless login {0}", client.server()).into()
            );
        }
    }
    let issued = log_in(&client, device).await?;
    let expires = runtime::clock::now_ms() / 1_000 + issued.expires_in;
    let stored = StoredToken { token: issued.access_token, user: issued.username, expires };
    tokens.add(client.server().origin(), stored.clone())?;
    let text = format!(
        "Logged in to {} as {}. The token expires on {}. To revoke it, open {}/tokens.",
        client.server(),
        stored.user,
        auth::format_date(stored.expires),
        client.server()
    );
    if print {
        print_note(&text);
        print_line(&stored.token);
    } else {
        print_line(&text);
    }
    Ok(())
}

async fn log_in(client: &OauthClient, device: bool) -> Result<IssuedToken, Failure> {
    if client.server().is_exposed() {
        print_note("Warning: the URL begins with http://, so anyone on the network can read the token.");
    }
    let name = host_name();
    match browser::command().filter(|_| !device) {
        Some(browser) => loopback::log_in(client, &name, &browser).await,
        None => device::log_in(client, &name).await,
    }
}

/// Returns the stored token, if it remains valid for long enough and the server accepts it.
async fn valid_token(client: &OauthClient, tokens: &StoredTokens) -> Result<Option<String>, Failure> {
    let Some(stored) = tokens.find(client.server().origin())? else { return Ok(None) };
    let remaining = stored.expires - runtime::clock::now_ms() / 1_000;
    if remaining < MIN_REMAINING_SECONDS || client.refuses(&stored.token).await {
        return Ok(None);
    }
    Ok(Some(stored.token))
}

/// Returns the name of this machine.
fn host_name() -> String {
    let name = rustix::system::uname().nodename().to_string_lossy().trim().to_owned();
    if name.is_empty() { UNNAMED_HOST.to_owned() } else { name }
}
